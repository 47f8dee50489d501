"""Turn an archive record into a page, or into the reason why it is not one."""

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

from curation.readers import http
from curation.readers.charset import decode_text, is_binary
from curation.readers.headers import RecordHead, parse_date
from curation.readers.records import HTML_TYPES, Damage, Event, Page, Skipped, binary
from curation.readers.settings import KEEP_RAW_BYTES, PDF, PDF_MAGIC, ReaderSettings

#: Types that say nothing, the last three as in the MIME Sniffing standard.
_UNKNOWN = ("application/octet-stream", "application/unknown", "unknown/unknown", "*/*")
#: Schemes of what names a page. Crawlers store logs and manifests under `metadata:`, `urn:`,
#: `warcinfo:`, name lookups under `dns:`.
_SCHEMES = ("http", "https", "ftp", "file")
_TOKEN = re.compile(r"[a-z0-9!#$&^_.+*-]{1,64}/[a-z0-9!#$&^_.+*-]{1,64}")


class Problem(NamedTuple):
    """What is wrong with a record: its end is missing (`cut`), or it has too much (`longer`)."""

    reason: str
    detail: str
    cut: bool
    longer: bool = False


class Record(NamedTuple):
    """The header of a record, and its block: buffer[begin:end]."""

    head: RecordHead
    buffer: bytes | bytearray
    begin: int
    end: int

    def damage(self, offset: int, reason: str, detail: str) -> Damage:
        """Return the damage of the record, with its first bytes."""
        raw = bytes(self.buffer[max(0, self.begin - self.head.size) : self.end][:KEEP_RAW_BYTES])
        return Damage(offset, reason, detail, self.head.url or None, raw)


class _Kind(NamedTuple):
    kind: str  # "html", "text", "pdf", or "" if not a document
    mime: str
    charset: str | None
    head: http.Head | None
    body: int


def skip_reason(record: Record, settings: ReaderSettings) -> str:
    """Return why a record is not a document; else empty."""
    return _skip_reason(record.head, _kind(record, settings), settings)


def _skip_reason(head: RecordHead, kind: _Kind, settings: ReaderSettings) -> str:
    if head.type not in settings.record_types:
        return f"type:{head.type if _TOKEN.fullmatch('type/' + head.type) else 'unknown'}"
    scheme = head.url.partition(":")[0].lower() if ":" in head.url else ""
    if scheme and scheme not in _SCHEMES:
        return f"scheme:{scheme if _TOKEN.fullmatch('scheme/' + scheme) else 'unknown'}"
    return "" if kind.kind else f"mime:{kind.mime}"


def _kind(record: Record, settings: ReaderSettings) -> _Kind:
    head, buffer, begin, end = record
    response = None
    declared = head.mime
    in_http = declared.lower().startswith("application/http")
    body = begin
    if head.type not in settings.record_types:
        return _Kind("", "", None, None, begin)
    if head.type == "response" or in_http:
        response = http.parse_head(buffer, begin, end)
        if response:
            declared = response.fields.get("content-type", "")
            body = response.body
        elif in_http:
            declared = ""
    mime, charset = http.media_type(declared)
    identified = http.media_type(head.payload_mime)[0]
    if "/" in identified and identified not in _UNKNOWN:
        mime = identified  # as in Common Crawl's WET files
    elif mime not in settings.text_types and ("/" not in mime or mime in _UNKNOWN):
        begun, fields = bytes(buffer[body : min(end, body + 2048)]), response and response.fields
        begun = http.decode_body(begun, fields or {}, settings.max_record_bytes).content
        mime = _seen(begun, settings) or mime
    if mime in HTML_TYPES and mime not in settings.text_types:
        kind = "html"
    elif mime == PDF and settings.pdf:
        kind = "pdf"
    else:
        kind = "text" if any(fnmatchcase(mime, known) for known in settings.text_types) else ""
        if not _TOKEN.fullmatch(mime):
            mime = "unknown"
    return _Kind(kind, mime, charset, response, body)


def _seen(beginning: bytes, settings: ReaderSettings) -> str:
    """Return the type that the first bytes of a body show; empty if they show none."""
    if settings.pdf and beginning.startswith(PDF_MAGIC):
        return PDF
    return HTML_TYPES[0] if http.looks_like_html(beginning) else ""


def to_event(
    record: Record, offset: int, problem: Problem | None, settings: ReaderSettings
) -> Event:
    """Return a record as a page, skipped record or damage."""
    head, kind = record.head, _kind(record, settings)
    reason = _skip_reason(head, kind, settings)
    if reason:
        if problem and problem.cut and not problem.reason.endswith(".bad_length"):
            return record.damage(offset, problem.reason, problem.detail)
        return Skipped(reason)
    body = bytes(memoryview(record.buffer)[kind.body : record.end])
    if kind.head:
        body, problem = _decoded(kind.head, body, problem, settings)
    if problem is None and head.truncated:
        problem = Problem("warc.truncated", f"WARC-Truncated: {head.truncated}", True)
    if problem and problem.cut and not (settings.keep_truncated and body):
        return record.damage(offset, problem.reason, problem.detail)
    date = parse_date(head.date)
    if head.date and date is None and problem is None:
        problem = Problem("warc.bad_date", f"WARC-Date: {head.date[:100]!r} is no date", False)
    what, charset = kind.kind, kind.charset
    if settings.pdf and (what == "pdf" or body.startswith(PDF_MAGIC)):
        what, charset = "pdf", None
    elif is_binary(body, charset):
        return binary(offset, body, head.url, KEEP_RAW_BYTES)
    if what == "text":
        text, _ = decode_text(body, charset or ("utf-8" if head.type == "conversion" else None))
        body = text.encode("utf-8", "replace")
        charset = "utf-8"
    return Page(
        url=head.url,
        date=date,
        record_id=head.record_id,
        offset=offset,
        content=body,
        kind=what,
        charset=charset,
        mime=kind.mime,
        status=kind.head.status if kind.head else None,
        mended=problem.reason if problem else "",
        detail=problem.detail if problem else "",
        normalize=settings.normalize_text or "repair",
        headers=kind.head.kept if kind.head else (),
    )


def _decoded(
    head: http.Head, body: bytes, problem: Problem | None, settings: ReaderSettings
) -> tuple[bytes, Problem | None]:
    """Return the body of a response without its encodings, and what is wrong with it."""
    if not head.ended and problem is None:
        problem = Problem("http.bad_head", "the HTTP head has no end", True)
    longer = problem is not None and problem.longer
    decoded = http.decode_body(body, head.fields, settings.max_record_bytes, obey_length=longer)
    if decoded.too_large:
        large = f"the body decodes to over {settings.most}"
        return b"", Problem("record.too_large", large, True)
    if problem and problem.cut and decoded.complete:
        problem = problem._replace(cut=False)
    elif decoded.problem and not (problem and problem.cut):
        problem = Problem(decoded.problem, "the body breaks off", True)
    return decoded.content, problem
