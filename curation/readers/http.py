"""HTTP responses inside archive records: head, transfer codings, content codings.

RFC 9110 and 9112, read leniently: crawlers store what servers sent, and some undo a coding but keep
its header. A body that visibly lacks its declared coding is taken as it is.
"""

import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import brotli
import zstandard

from curation.readers.charset import is_binary
from curation.readers.members import ZSTD_MAGIC, ZstdFrameError, zstd_blocks
from curation.readers.raw import RawFile

_HEAD_END = re.compile(rb"\n\r*+\n")
_CR_HEAD_END = re.compile(rb"\r\r(?![\r\n])")  # of lines that end with CR alone
_FOLD = re.compile(rb"\r?\n[ \t]+")
# Lines before a status line don't count (RFC 9112, 2.2).
_START = re.compile(rb"\s*+(?=HTTP/|ICY 2)", re.IGNORECASE)
_NEXT = re.compile(rb"\s*+(?=HTTP/\d[.\d]*[ \t]+\d{3}\b)", re.IGNORECASE)
_INNER = re.compile(rb"\r?\n(?=HTTP/\d[.\d]*[ \t]+\d{3}\b)", re.IGNORECASE)
_STATUS = re.compile(rb"[A-Za-z]+(?:/\S*)?[ \t]+(\d{3})(?!\d)")
_CHUNK_SIZE = re.compile(rb"\s*+(?:0x)?([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_CHUNK_END = re.compile(rb"\r?\n")
# Atomic throughout: what has been passed over is never looked at again.
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?>(?><!--.*?-->|<\?xml.*?\?>)\s*+)*+"
    rb"<(?:!doctype html|html|head|body|script|style|title|meta|link|iframe|table|div|font|h[1-6]|"
    rb"br|p|a|b|center)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_STEP = 1 << 18  # bytes of output at once
_FINE_STEP = 1 << 3  # of broken bodies, whose last step is lost
_INPUT = 1 << 14  # bytes that a decoder is fed at once: it copies what it leaves of them
_LONGEST_HEAD = 1 << 18  # bytes, the most that browsers take
_Step = Callable[[], int]  # of the bytes of output that come next
_MOST_CODINGS = 16  # of one body; curl undoes 5
_SNIFFED = 1024  # bytes that tell what a body is, as in the MIME Sniffing standard (1445 there)


class Head(NamedTuple):
    """Status of a response, the fields that say how to read its body, and those that are kept."""

    status: int | None
    fields: dict[str, str]
    kept: tuple[tuple[str, str], ...]  # (name in lower case, value) of each line, in order
    body: int  # index of the body in the buffer
    ended: bool  # whether the head ends with an empty line


class Body(NamedTuple):
    """The result of decoding; `problem` is empty for an intact body."""

    content: bytes
    problem: str
    complete: bool  # whether its framing says that nothing is missing
    too_large: bool = False


def field_pattern(*names: str) -> re.Pattern[bytes]:
    """Pattern for `parse_fields` that finds the fields of these names only."""
    either = "|".join(re.escape(name) for name in names).encode()
    return re.compile(rb"^(" + either + rb")[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


_FRAMING = ("Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding")
_KEPT = (
    *("Content-Type", "Content-Language", "Last-Modified", "Link", "Location"),
    *("X-Robots-Tag", "TDM-Reservation", "TDM-Policy", "Content-Signal", "Content-Usage"),
)
_FIELDS = field_pattern(*dict.fromkeys((*_FRAMING, *_KEPT)))
_OF_BODIES = frozenset(name.lower() for name in _FRAMING)
_KEPT_NAMES = frozenset(name.lower() for name in _KEPT)
_MOST_KEPT = 32  # lines; no server says more that matters
_LONGEST_KEPT = 4096  # characters of a line


def parse_fields(head: bytes, pattern: re.Pattern[bytes]) -> dict[str, str]:
    """Fields of a header block, names in lower case; repeated ones are joined by commas."""
    return _joined(_lines(head, pattern))


def _lines(head: bytes, pattern: re.Pattern[bytes]) -> list[tuple[str, str]]:
    """Fields line by line, names in lower case."""
    if b"\n " in head or b"\n\t" in head:
        head = _FOLD.sub(b" ", head)
    lines: list[tuple[str, str]] = []
    for field, raw in pattern.findall(head):
        try:
            value = raw.decode().rstrip()
        except UnicodeDecodeError:
            value = raw.decode("latin-1").rstrip()
        lines.append((field.decode().lower(), value))
    return lines


def _joined(lines: list[tuple[str, str]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in lines:
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def parse_head(buffer: bytes | bytearray, begin: int, end: int) -> Head | None:
    """Head of the response in buffer[begin:end], or None where there is no HTTP response.

    Of several the last: interim responses (RFC 9110, 15.2), what a proxy answered to CONNECT and
    other heads without a body come before it. A head that goes on beyond 256 KiB has no end.
    """
    found, start = None, _START.match(buffer, begin, end)
    while start:
        last = min(end, start.end() + _LONGEST_HEAD)
        behind = buffer.find(b"\n", start.end(), last) + 1  # the first line
        ended = _CR_HEAD_END.search(buffer, start.end(), behind or last)
        ended = ended or _HEAD_END.search(buffer, start.end(), last)
        head = bytes(buffer[start.end() : ended.start() if ended else last])
        head = head if b"\n" in head else head.replace(b"\r", b"\n")
        if inner := [*_INNER.finditer(head)]:  # without an empty line between them
            head = head[inner[-1].end() :]
        line, _, rest = head.partition(b"\n")
        status = _STATUS.match(line)
        lines = _lines(rest, _FIELDS)
        kept = [(name, value[:_LONGEST_KEPT]) for name, value in lines if name in _KEPT_NAMES]
        found = Head(
            int(status[1]) if status else None,
            _joined(lines),
            tuple(kept[:_MOST_KEPT]),
            ended.end() if ended else end,
            ended is not None,
        )
        has_body = found.fields.get("content-length") != "0" and found.fields.keys() & _OF_BODIES
        is_interim = found.status is not None and 100 <= found.status < 200
        start = None if has_body and not is_interim else _NEXT.match(buffer, found.body, end)
    return found


def media_type(value: str) -> tuple[str, str | None]:
    """MIME type in lower case, and the charset parameter if there is one.

    Of several, as of repeated fields, the last that is a type, as in the Fetch standard.
    """
    mime, charset = "", None
    for one in re.findall(r'(?:[^,"]|"[^"]*"?)+', value):  # at commas that no quotes are around
        name, _, rest = one.partition(";")
        name = name.strip(" \t\"'").lower()
        if not mime or ("/" in name and name != "*/*"):
            found = _CHARSET.search(rest)
            charset = found[1] if found else charset if name == mime else None
            mime = name
    return mime, charset


def looks_like_html(body: bytes) -> bool:
    """Return whether a body without a MIME type begins as HTML does."""
    return _HTML_START.match(body[:_SNIFFED]) is not None


def decode_body(
    body: bytes, fields: dict[str, str], max_bytes: int, obey_length: bool = False
) -> Body:
    """Undo all transfer and content codings of a body, the last applied first.

    `obey_length` cuts what lies behind the Content-Length. Without it the longer body counts, as
    crawlers that undo a coding often keep the length of the coded body.

    A body that breaks in the middle gives what came before and the name of the problem
    (`http.bad_chunk`, `http.bad_gzip`, `http.bad_deflate`, `http.bad_br`, `http.bad_zstd`,
    `http.unknown_coding`); one that grows beyond `max_bytes` gives nothing.
    """
    transfer = _codings(fields.get("transfer-encoding", "")) or _bare(body)
    content = _codings(fields.get("content-encoding", ""))
    complete = False
    problem = ""
    if not transfer:
        length = fields.get("content-length", "").split(",")[0]
        if length.isdecimal() and len(length) < 16:
            complete = len(body) >= int(length)
            if obey_length and complete:
                body = body[: int(length)]
    if len(content) + len(transfer) > _MOST_CODINGS:
        return Body(b"", "http.unknown_coding", False)
    for coding in reversed(content + transfer):
        step = _undone(coding.removeprefix("x-"), body, max_bytes)
        if step is None:
            continue  # a charset or another word that is no coding
        if step.too_large or (step.problem and not step.content):
            return step
        body = step.content
        problem = step.problem or problem
        complete = step.complete or (complete and not step.problem)
    if opened := _opened(body, max_bytes):
        return opened._replace(problem=opened.problem or problem)
    return Body(body, problem, complete)


def _bare(body: bytes) -> list[str]:
    """Return the coding of chunks without their header. Lists of numbers begin like them, too."""
    return ["chunked"] * (body[-32:].rstrip().endswith(b"\r\n0") and _unchunk(body).complete)


def _undone(coding: str, body: bytes, max_bytes: int) -> Body | None:
    if coding == "chunked":
        return _unchunk(body)
    if coding in _DECODERS:
        return _decompress(body, coding, max_bytes)
    unknown = Body(b"", "http.unknown_coding", False)
    return (_opened(body, max_bytes) or unknown) if is_binary(body) else None


def _opened(body: bytes, max_bytes: int) -> Body | None:
    """Undo the coding that opens a body whole, whatever its fields name, or gzip as far as it goes.

    What chance makes of other bytes is shorter than they are, or is no text.
    """
    if not is_binary(body[:_SNIFFED].lstrip(b"\r\n")):
        return None
    body = body.lstrip(b"\r\n")
    if body.startswith(_GZIP):
        step = _decompress(body, "gzip", max_bytes)
        return step if step.content or step.too_large else None
    for name in ("gzip", "br", "zstd"):
        content, failed, too_large = _collect(body, name, max_bytes)
        if not (failed or too_large) and len(content) > len(body) and not is_binary(content):
            return Body(content, "", True)
    return None


def _codings(value: str) -> list[str]:
    names = (name.strip().lower() for name in value.split(","))
    return [name for name in names if name and name not in ("identity", "none", "binary")]


def _unchunk(body: bytes) -> Body:
    parts: list[bytes] = []
    at = 0
    while True:
        size = _CHUNK_SIZE.match(body, at)
        if not size:
            if not parts:  # the crawler undid the coding and kept the header
                return Body(body, "", False)
            return Body(b"".join(parts), "http.bad_chunk", False)
        length = int(size[1], 16)
        at = size.end()
        if not length:
            return Body(b"".join(parts), "", True)
        parts.append(body[at : at + length])
        if not (behind := _CHUNK_END.match(body, at + length)):
            if len(parts) == 1 and at + length < len(body):
                return Body(body, "", False)
            return Body(b"".join(parts), "http.bad_chunk", False)
        at = behind.end()


def _inflate(body: bytes, step: _Step, window: int) -> Iterator[bytes]:
    """Output of all zlib streams of one kind that follow each other in `body`."""
    at = 0
    while at < len(body):
        decoder = zlib.decompressobj(window)
        while not decoder.eof and at < len(body):
            piece = body[at : at + _INPUT]
            at += len(piece)
            while True:
                most = step()
                out = decoder.decompress(piece, most)
                piece = decoder.unconsumed_tail
                if out:
                    yield out
                if decoder.eof or not (piece or len(out) == most):
                    break
        if not decoder.eof:
            raise zlib.error("the body ends inside the stream")
        at -= len(decoder.unused_data)
        if window < 16 or not body.startswith(_GZIP, at):
            return


def _deflate(body: bytes, step: _Step) -> Iterator[bytes]:
    """RFC 9110 says zlib, some servers send raw deflate, some gzip for it or it for gzip."""
    if body.startswith(_GZIP):
        return _inflate(body, step, 31)
    if len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0:
        return _inflate(body, step, 15)
    return _inflate(body, step, -15)


def _brotli(body: bytes, step: _Step) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    for at in range(0, len(body), _INPUT):
        out = decoder.process(body[at : at + _INPUT], output_buffer_limit=step())
        while True:
            if out:
                yield out
            if decoder.is_finished():
                return
            if not out and decoder.can_accept_more_data():
                break
            out = decoder.process(b"", output_buffer_limit=step())
    raise brotli.error("the body ends inside the stream")


def _zstd(body: bytes, step: _Step) -> Iterator[bytes]:
    raw = RawFile(io.BytesIO(body), "body")
    context = zstandard.ZstdDecompressor()
    at = 0
    while at == 0 or body.startswith(ZSTD_MAGIC, at):
        decoder = context.decompressobj()
        for block, end in zstd_blocks(raw, at):
            yield decoder.decompress(block)
            at = end


_DECODERS: dict[str, Callable[[bytes, _Step], Iterator[bytes]]] = {
    "gzip": _deflate,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
_ERRORS = (zlib.error, brotli.error, zstandard.ZstdError, ZstdFrameError)


def _decompress(body: bytes, name: str, max_bytes: int) -> Body:
    if not body:
        return Body(b"", "", True)
    content, failed, too_large = _collect(body, name, max_bytes)
    if too_large:
        return Body(b"", "record.too_large", False, too_large=True)
    if not failed:
        return Body(content, "", True)
    if looks_like_html(body) or (not content and not is_binary(body)):
        return Body(body, "", False)  # the crawler undid the coding and kept the header
    content, _, _ = _collect(body, name, max_bytes, len(content))
    opened = None if name == "gzip" and body.startswith(_GZIP) else _opened(body, max_bytes)
    return opened or Body(content, f"http.bad_{name}", False)


def _collect(
    body: bytes, name: str, max_bytes: int, sound: int = sys.maxsize
) -> tuple[bytes, bool, bool]:
    """(output, whether decoding failed, whether it grew too large).

    Steps are fine from near the end of the output that is known to be `sound`.
    """
    parts: list[bytes] = []
    total = 0

    def step() -> int:
        return _STEP if total + _STEP <= sound else _FINE_STEP

    try:
        for part in _DECODERS[name](body, step):
            parts.append(part)
            total += len(part)
            if total > max_bytes:
                return b"", False, True
    except _ERRORS:
        return b"".join(parts), True, False
    return b"".join(parts), False, False
