"""One HTML or text file as one page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from curation.readers.charset import decode_text, is_binary
from curation.readers.records import Damage, Event, Page, binary
from curation.readers.settings import KEEP_RAW_BYTES, ReaderSettings
from curation.readers.stream import Stream

_HEAD = 1 << 16  # bytes in which a page names its own address
_LONGEST_LINK = 1 << 12  # bytes of a `<link>`
_LINK = re.compile(rb"<link\s", re.IGNORECASE)
_CANONICAL = re.compile(rb"\srel\s*=\s*[\"']?canonical[\"'\s/>]", re.IGNORECASE)
_ADDRESS = re.compile(rb"\shref\s*=\s*(?:\"(https?://[^\"]+)\"|'(https?://[^']+)')", re.IGNORECASE)


def canonical_url(content: bytes) -> str:
    """The absolute address that an HTML page gives for itself, or empty."""
    head = content[:_HEAD]
    end = tried = 0  # behind the last `>` that was found, and the last link that was looked into
    for found in _LINK.finditer(head):
        if found.start() < tried:
            continue
        if found.end() > end:
            end = head.find(b">", found.end()) + 1
            if not end:
                break
        link = head[found.start() : end]
        if len(link) > _LONGEST_LINK:
            continue
        tried = end
        if _CANONICAL.search(link):
            address = _ADDRESS.search(link)
            if address:
                return (address[1] or address[2]).decode("utf-8", "replace").strip()
    return ""


def read_file(stream: Stream, name: str, html: bool, settings: ReaderSettings) -> Iterator[Event]:
    """The file as a page whose address is the one it names, or `file:` and its relative name.

    The modification time is no date: it changes when files are copied.
    """
    reached = stream.fill(settings.max_record_bytes + 1)
    content = bytes(stream.buffer[: reached - stream.base])
    if len(content) > settings.max_record_bytes:
        raw = content[:KEEP_RAW_BYTES]
        detail = f"over {settings.most}"
        yield Damage(0, "record.too_large", detail, None, raw)
        return
    mended = detail = ""
    if stream.breaks:
        broken = stream.breaks[0][1]
        mended, detail = broken.reason, broken.detail
        if not (settings.keep_truncated and content):
            raw = content[:KEEP_RAW_BYTES]
            yield Damage(0, broken.reason, broken.detail, None, raw)
            return
    if is_binary(content):
        yield binary(0, content, None, KEEP_RAW_BYTES)
        return
    if not html:
        content = decode_text(content, None)[0].encode("utf-8", "replace")
    yield Page(
        url=(html and canonical_url(content)) or "file:" + quote(name),
        date=None,
        record_id="",
        offset=0,
        content=content,
        kind="html" if html else "text",
        charset=None if html else "utf-8",
        mime="text/html" if html else "text/plain",
        status=None,
        fields=None,
        mended=mended,
        detail=detail,
        normalize=settings.normalize_text or "repair",
    )
