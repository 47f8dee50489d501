"""Mailboxes (RFC 4155): each message is a page, its subject the title.

A message begins with `From ` behind a blank line and before a header. Taken is its text, else its
HTML; not its attachments, headers and the messages that it forwards. Lines that were `From ` and
are `>From ` become what they were.
"""

import email
import email.policy
import re
from collections.abc import Iterator, Mapping
from email.message import EmailMessage
from itertools import chain, pairwise
from typing import IO, Any

from curation.readers.charset import decode_html, decode_text, is_binary
from curation.readers.records import Fault

_FROM = b"From "
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:")  # which every message begins with
_LINE = 1 << 16  # bytes of a line read at once
_KINDS = {"plain": "text", "html": "html"}


def rows(file: IO[bytes], longest: int) -> Iterator[Mapping[str, Any] | Fault]:
    """Yield a row for each message: `text` or `html`, `title`, `date` and `url` (RFC 2392)."""
    lines: list[bytes] = []
    size = 0
    before = b"\n"
    for line, following in pairwise(chain(iter(lambda: file.readline(_LINE), b""), (b"",))):
        if line.startswith(_FROM) and not before.strip() and _HEADER.match(following):
            if size:
                yield _row(b"".join(lines), longest, size)
            lines, size = [], 0
        size += len(line)
        if size <= longest:
            lines.append(line)
        before = line
    if size:
        yield _row(b"".join(lines), longest, size)


def _row(raw: bytes, longest: int, size: int) -> Mapping[str, Any] | Fault:
    if size > longest:
        return Fault("too_large", f"{size} bytes, over {longest} (readers.max_record_bytes)")
    first, _, rest = raw.partition(b"\n")
    if not first.startswith(_FROM):
        return Fault("garbage", f"{size} bytes before the first message")
    try:
        message = email.message_from_bytes(_ESCAPED.sub(rb"\1", rest), policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        body = message.get_body(("plain", "html"))
        if body is None:
            return Fault("no_text", f"a message of type {message.get_content_type()}")
        payload = body.get_payload(decode=True)
        assert isinstance(payload, bytes)
        if is_binary(payload, body.get_content_charset("")):
            return Fault("no_text", "a body that is neither HTML nor text")
        decoded = decode_html if body.get_content_subtype() == "html" else decode_text
        # A label that mail has and the web doesn't.
        content, _ = decoded(payload, body.get_content_charset("").replace("latin-", "latin"))
        names = {name: str(message.get(name, "")) for name in ("Subject", "Date", "Message-ID")}
        date = message["Date"].datetime if names["Date"] else None
    except Exception as error:  # the parser trips over what headers may say
        return Fault("bad_message", f"{type(error).__name__}: {error}")
    address = names["Message-ID"].strip(" <>")
    return {
        _KINDS[body.get_content_subtype()]: content.replace("\r\n", "\n").strip("\n"),
        "title": " ".join(names["Subject"].split()),
        "date": date and date.isoformat(),
        "url": f"mid:{address}" if address else "",
    }
