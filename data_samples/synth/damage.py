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

#: What may become of the beginning of a page.
PARTIAL = (
    "keep", "extract:extract.empty", "identify-language:language.low_score",
    "dedup-lines:lines.too_short", "filter:*", "classify:quality.low_score",
)  # fmt: skip


@dataclass(frozen=True)
class Broken:
    """One damaged record: its bytes in the file and the reason it should be set aside with."""

    page: Page
    reason: str
    data: bytes
    mended: str = ""

    @property
    def fate(self) -> str:
        """Nothing of it can be read: set aside. A beginning can: it is judged as what it is."""
        aside = [one if one == "skipped" else f"set_aside:{one}" for one in self.reason.split("|")]
        return "|".join([*aside, *PARTIAL]) if self.mended else "|".join(aside)


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
    return Broken(page, "http.bad_gzip", gzip_member(_record(page, block)), "http.bad_gzip")


def cut_gzip_body(page: Page) -> Broken:
    body = encode_body(page.body(), "gzip")
    block = _response(page, [("Content-Encoding", "gzip")], body[: len(body) // 2])
    return Broken(page, "http.bad_gzip", gzip_member(_record(page, block)), "http.bad_gzip")


def bad_brotli_body(page: Page) -> Broken:
    body = encode_body(page.body(), "br")
    block = _response(page, [("Content-Encoding", "br")], body[: len(body) // 2])
    return Broken(page, "http.bad_br", gzip_member(_record(page, block)), "http.bad_br")


def bad_chunk(page: Page) -> Broken:
    body = chunked(page.body(), 700)
    at = body.index(b"\r\n", 1500) + 2
    body = body[:at] + b"zz!\r\n" + body[at:]
    block = _response(page, [("Transfer-Encoding", "chunked")], body)
    return Broken(page, "http.bad_chunk", gzip_member(_record(page, block)), "http.bad_chunk")


def marked_truncated(page: Page) -> Broken:
    body = page.body()[:900]
    block = _response(page, [("Content-Length", str(len(page.body())))], body)
    data = gzip_member(_record(page, block, [("WARC-Truncated", "length")]))
    return Broken(page, "warc.truncated", data, "warc.truncated")


def corrupt_member(page: Page) -> Broken:
    """A gzip member with flipped bytes: the archive itself is damaged here."""
    member = gzip_member(_record(page, _response(page, [], page.body())))
    return Broken(page, "gzip.corrupt", _flip(member, len(member) // 2, 60), "gzip.corrupt")


def long_length(page: Page) -> Broken:
    """Content-Length promises more than the member holds."""
    block = _response(page, [], page.body()[:1200])
    record = _record(page, block, [("Content-Length", str(len(block) + 5000))])
    return Broken(page, "warc.bad_length", gzip_member(record), "warc.bad_length")


def no_http(page: Page) -> Broken:
    """The block doesn't begin with a status line; nothing says that it is a document."""
    block = b"\x00\x01\x02 not a message\r\n" + page.body()[:400]
    return Broken(page, "http.bad_head|skipped", gzip_member(_record(page, block)))


def lost_body(page: Page) -> Broken:
    """A gzip body that is damaged from its first byte."""
    body = _flip(encode_body(page.body(), "gzip"), 10, 60)
    block = _response(page, [("Content-Encoding", "gzip")], body)
    return Broken(page, "http.bad_gzip", gzip_member(_record(page, block)))


def lost_member(page: Page) -> Broken:
    """A gzip member that is damaged from its first byte: not even the address can be read."""
    member = gzip_member(_record(page, _response(page, [], page.body())))
    return Broken(page, "gzip.corrupt", member[:10] + b"\xff" * 40 + member[50:])


def endless_header(page: Page) -> Broken:
    """A record whose header breaks off."""
    record = _record(page, b"")
    return Broken(page, "warc.bad_header|warc.truncated|warc.garbage", gzip_member(record[:120]))


def cut_off_end(page: Page) -> Broken:
    """The file ends in the middle of this member."""
    member = gzip_member(_record(page, _response(page, [], page.body())))
    return Broken(page, "gzip.truncated", member[: len(member) * 2 // 3], "gzip.truncated")


#: In the order in which they stand in the file; the last one ends it.
DAMAGES = (
    bad_gzip_body, cut_gzip_body, bad_brotli_body, bad_chunk, marked_truncated, corrupt_member,
    long_length, no_http, lost_body, endless_header, lost_member, cut_off_end,
)  # fmt: skip
#: Bytes between two records that belong to neither.
GARBAGE = b"\n\n<<< 512 bytes lost in a disk failure >>>\n" + bytes(range(256)) * 2
