"""Records that no reader can take whole, between sound ones that must not be lost."""

from __future__ import annotations

from dataclasses import dataclass

from synth.archive import (
    chunked,
    encode_body,
    gzip_member,
    http_response,
    record_id,
    warc_record,
)
from synth.pages import Page


@dataclass(frozen=True)
class Broken:
    """One damaged record: its bytes in the file and the reason it should be set aside with."""

    page: Page
    reason: str
    data: bytes


def _response(page: Page, headers: list[tuple[str, str]], body: bytes) -> bytes:
    return http_response("200 OK", [("Content-Type", page.content_type()), *headers], body)


def _record(page: Page, block: bytes, extra: list[tuple[str, str]] | None = None) -> bytes:
    headers = [
        ("WARC-Type", "response"),
        ("WARC-Target-URI", page.url),
        ("WARC-Date", page.date),
        ("WARC-Record-ID", record_id("broken", page.url)),
        ("Content-Type", "application/http; msgtype=response"),
        *(extra or []),
    ]
    return warc_record(headers, block)


def _flip(data: bytes, start: int, count: int) -> bytes:
    """Overwrite `count` bytes from `start` with their complement."""
    middle = bytes(255 - b for b in data[start : start + count])
    return data[:start] + middle + data[start + count :]


def bad_gzip_body(page: Page) -> Broken:
    body = encode_body(page.body(), "gzip")
    body = _flip(body, len(body) // 3, 40)
    block = _response(page, [("Content-Encoding", "gzip")], body)
    return Broken(page, "http.bad_gzip|http.*", gzip_member(_record(page, block)))


def cut_gzip_body(page: Page) -> Broken:
    body = encode_body(page.body(), "gzip")
    block = _response(page, [("Content-Encoding", "gzip")], body[: len(body) // 2])
    return Broken(page, "http.bad_gzip|http.*", gzip_member(_record(page, block)))


def bad_brotli_body(page: Page) -> Broken:
    body = encode_body(page.body(), "br")
    block = _response(page, [("Content-Encoding", "br")], body[: len(body) // 2])
    return Broken(page, "http.bad_brotli|http.*", gzip_member(_record(page, block)))


def bad_chunk(page: Page) -> Broken:
    body = chunked(page.body(), 700)
    at = body.index(b"\r\n", 1500) + 2
    body = body[:at] + b"zz!\r\n" + body[at:]
    block = _response(page, [("Transfer-Encoding", "chunked")], body)
    return Broken(page, "http.bad_chunk|http.*", gzip_member(_record(page, block)))


def marked_truncated(page: Page) -> Broken:
    body = page.body()[:900]
    block = _response(page, [("Content-Length", str(len(page.body())))], body)
    data = gzip_member(_record(page, block, [("WARC-Truncated", "length")]))
    return Broken(page, "warc.truncated|http.*", data)


def corrupt_member(page: Page) -> Broken:
    """A gzip member with flipped bytes: the archive itself is damaged here."""
    member = gzip_member(_record(page, _response(page, [], page.body())))
    return Broken(page, "gzip.corrupt|gzip.*|warc.*", _flip(member, len(member) // 2, 60))


def long_length(page: Page) -> Broken:
    """Content-Length promises more than the member holds."""
    block = _response(page, [], page.body()[:1200])
    record = _record(page, block, [("Content-Length", str(len(block) + 5000))])
    return Broken(page, "warc.truncated|warc.*", gzip_member(record))


def no_http(page: Page) -> Broken:
    """The block doesn't begin with a status line."""
    block = b"\x00\x01\x02 not a message\r\n" + page.body()[:400]
    return Broken(page, "http.bad_header|http.*", gzip_member(_record(page, block)))


def cut_off_end(page: Page) -> Broken:
    """The file ends in the middle of this member."""
    member = gzip_member(_record(page, _response(page, [], page.body())))
    return Broken(page, "gzip.truncated|gzip.*|warc.truncated", member[: len(member) * 2 // 3])


#: In the order in which they stand in the file; the last one ends it.
DAMAGES = (
    bad_gzip_body, cut_gzip_body, bad_brotli_body, bad_chunk, marked_truncated, corrupt_member,
    long_length, no_http, cut_off_end,
)  # fmt: skip
#: Bytes between two records that belong to neither.
GARBAGE = b"\n\n<<< 512 bytes lost in a disk failure >>>\n" + bytes(range(256)) * 2
