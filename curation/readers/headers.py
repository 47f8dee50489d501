"""Headers of archive records: WARC (ISO 28500) 0.17 to 1.1, and ARC 1.0 and 2.0."""

import email.utils
import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

from curation.readers.http import field_pattern, parse_fields

# Where a record begins in the middle of damage. No line end before it: that may be broken too.
# Names are the same in any case, and warcio reads the version so.
_WARC_START = re.compile(rb"(?i:WARC)/[01]\.\d++[ \t]*+\r*+\n(?i:WARC|Content)-[A-Za-z-]++[ \t]*+:")
_ARC_MIDDLE = re.compile(rb" [0-9]{1,3}(?:\.[0-9]{1,3}){3} (?:[0-9]{8,18}|null) ")
_ARC_SCHEME = re.compile(rb"(?:https?|ftp|dns|filedesc):")
_LONGEST_SCHEME = len(b"filedesc:")
_HALF_LINE = 8192  # longest part of an ARC line on either side of address and date, in bytes
_WARC = re.compile(rb"WARC(?:/|-[A-Za-z-]++[ \t]*+:)", re.IGNORECASE)
_HEAD_END = re.compile(rb"\n\r*+\n")
_ARC_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*+:")
# Address and date, between spaces.
_ARC_PLACE = re.compile(
    rb" (?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?=[0-9A-Fa-f]*+:)[0-9A-Fa-f:]++|-) "
    rb"([0-9]{4,18}|null|-) "
)
_FIELDS = field_pattern(
    "WARC-Type",
    "WARC-Target-URI",
    "WARC-Date",
    "WARC-Record-ID",
    "WARC-Identified-Payload-Type",
    "WARC-Truncated",
    "WARC-Segment-Number",
    "Content-Length",
    "Content-Type",
)
_DATE = re.compile(
    r"(\d{4})(?:-?(\d\d)(?:-?(\d\d)(?:[Tt ]?(\d\d):?(\d\d)(?::?(\d\d)(?:[.,]?(\d+))?)?)?)?)?"
    r"\s*(Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?"
)


class RecordHead(NamedTuple):
    """A parsed record header; `size` is the header's own length in bytes."""

    size: int
    archive: str  # "warc" or "arc"
    type: str  # WARC-Type in lower case; ARC: "response" or "warcinfo"
    url: str
    date: str
    record_id: str
    length: int | None  # of the block, None where it is missing or no number
    mime: str  # content type of the block (WARC) or of the body (ARC), with parameters
    payload_mime: str  # WARC-Identified-Payload-Type
    truncated: str  # WARC-Truncated, or "segment" for the first of several


def find_record(data: bytes | bytearray, begin: int, end: int, known: int) -> int | None:
    """Index in [begin, end) where the next WARC record or ARC record of usual form begins.

    The lines that prove it may reach up to `known`.
    """
    found = _WARC_START.search(data, begin, known)
    first = found.start() if found and found.start() < end else None
    stop = known if first is None else first
    seen = begin  # no scheme begins before it
    for middle in _ARC_MIDDLE.finditer(data, begin, stop):
        at = middle.start()
        if data.find(b"\n", middle.end(), min(known, middle.end() + _HALF_LINE)) < 0:
            continue
        line = max(seen, at - _HALF_LINE)
        line = max(line, data.rfind(b"\n", line, at) + 1)
        scheme = _ARC_SCHEME.search(data, line, at)
        if scheme:
            return scheme.start() if scheme.start() < end else first
        seen = max(seen, at - _LONGEST_SCHEME)
    return first


def may_begin_warc(data: bytes | bytearray, at: int, end: int = sys.maxsize) -> bool:
    return _WARC.match(data, at, end) is not None


def header_end(data: bytes | bytearray, at: int, end: int) -> re.Match[bytes] | None:
    """Return the empty line behind a WARC header in data[at:end], or the record that begins before
    it.

    The former ends with a line end, the latter with a colon.
    """
    found = _HEAD_END.search(data, at, end)
    return _WARC_START.search(data, at, found.end() if found else end) or found


def parse_warc(data: bytes | bytearray, at: int, end: re.Match[bytes]) -> RecordHead | None:
    """WARC header at `at` with the end that `header_end` gave; None where that is no end."""
    if not end[0].endswith(b"\n"):
        return None
    block = bytes(data[at : end.start() + 1])
    fields = parse_fields(block, _FIELDS)
    length = fields.get("content-length", "").partition(",")[0].strip()
    truncated = fields.get("warc-truncated", "")
    if not truncated and fields.get("warc-segment-number", "1") == "1":
        truncated = "segment" if "warc-segment-number" in fields else ""
    return RecordHead(
        end.end() - at,
        "warc",
        fields.get("warc-type", "unknown").lower(),
        clean_url(fields.get("warc-target-uri", "")),
        fields.get("warc-date", ""),
        fields.get("warc-record-id", "").strip(),
        int(length) if length.isdecimal() and length.isascii() and len(length) < 19 else None,
        fields.get("content-type", ""),
        fields.get("warc-identified-payload-type", ""),
        truncated,
    )


def parse_arc(data: bytes | bytearray, at: int, end: int) -> RecordHead | None:
    """ARC header line at `at`; None when there is none before `end`.

    URL IP date MIME length; version 2 has status, checksum, location, offset and file name between.
    The URL may hold spaces: it ends before the first address and date.
    """
    scheme = _ARC_URL.match(data, at, end)
    if not scheme:
        return None
    line_end = data.find(b"\n", scheme.end(), end)
    if line_end < 0:
        return None
    line = bytes(data[at:line_end]).removesuffix(b"\r").rstrip(b" \t")
    place = _ARC_PLACE.search(line, scheme.end() - at)
    if not place or line[-1:].isspace():
        return None
    url = line[: place.start()].decode("utf-8", "replace")
    length = line[place.end() :].split()[-1]
    rest = line[place.end() : len(line) - len(length)]
    return RecordHead(
        line_end + 1 - at,
        "arc",
        "warcinfo" if url.startswith("filedesc:") else "response",
        clean_url(url),
        place[1].decode(),
        "",
        int(length) if length.isdigit() and len(length) < 19 else None,
        rest.decode("latin-1").strip().split(" ")[0],
        "",
        "",
    )


def clean_url(url: str) -> str:
    """URL without the angle brackets some writers add, and with spaces escaped."""
    url = url.strip()
    if url.startswith("<") and url.endswith(">"):
        url = url[1:-1]
    return url.replace(" ", "%20")


def parse_date(value: str) -> datetime | None:
    """Date of a WARC (ISO 8601, any precision) or ARC (14 digits) header, in UTC.

    What is missing counts as the earliest; more digits than microseconds are cut. None where the
    value is no date, or has anything else next to it.
    """
    found = _DATE.fullmatch(value.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        date = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            min(int(second or 0), 59),  # leap seconds
            int((fraction or "")[:6].ljust(6, "0")),
            tzinfo=UTC,
        )
        if zone and zone[0] in "+-":
            shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
            date = date.replace(tzinfo=timezone(shift if zone[0] == "+" else -shift))
        return date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


#: 1714557600, 1714557600.5, 1714557600000
_SINCE_1970 = re.compile(r"-?\d{9,13}(?:\.\d+)?")
_SECONDS_LIMIT = 1e11  # larger timestamps are in milliseconds
#: 5 p.m., 5:30pm
_HALF_DAY = re.compile(r"\b(\d\d?)(:\d\d)?(:\d\d)?\s*([ap])\.?m\b\.?")
_DASHES = re.compile(r"(?<=\d)-([a-z]+)-(?=\d)")
#: What written English has besides what mail has: Wednesday the 1st of Sept., 2024 at 10:00
_WORDS = re.compile(
    r"(?<=\d)(?:st|nd|rd|th)\b|\b(?:at|of|on|the)\b|(?<=\bsep)t\b|\(.*\)|\b(?:gmt|utc)(?=[+-]\d)"
    r"|\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*|\.\d+|[,.]"
)
_NO_DAY = re.compile(r"\s*[a-z]+\s+\d{4}\b")
#: 2024/5/1, 2024. 5. 1., 2024年5月1日, 2024년 5월 1일: behind a year nobody writes the day first.
_YEAR_FIRST = re.compile(
    r"(\d{4}) ?[-/.年년] ?(\d\d?) ?[-/.月월] ?(\d\d?)(?!\d)(?:[日일]|\.(?!\d))?"
)


def any_date(value: Any) -> datetime | None:
    """Date of a table, in UTC; None where the value is none.

    As `parse_date`, mail (RFC 2822) and HTTP have it, in written English, with the year first, or
    as seconds or milliseconds since 1970.
    """
    if isinstance(value, datetime):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, float) and value.is_integer():  # as pandas has integers beside nulls
        value = int(value)
    text = str(value).strip()
    if (known := parse_date(text)) or not _SINCE_1970.fullmatch(text):
        return known or _written_date(text.lower())
    since = float(text)
    try:
        return datetime.fromtimestamp(since / (1000 if abs(since) > _SECONDS_LIMIT else 1), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _written_date(text: str) -> datetime | None:
    text = _HALF_DAY.sub(
        lambda f: f"{int(f[1]) % 12 + 12 * (f[4] == 'p')}{f[2] or ':00'}{f[3] or ''}", text
    )
    if known := parse_date(_YEAR_FIRST.sub(lambda f: f"{f[1]}-{f[2]:0>2}-{f[3]:0>2}", text, 1)):
        return known
    text = _WORDS.sub(" ", _DASHES.sub(r" \1 ", text))
    text = f"{'1 ' if _NO_DAY.match(text) else ''}{text}{'' if ':' in text else ' 00:00'}"
    try:
        parsed = email.utils.parsedate_tz(text)
        zone = timezone(timedelta(seconds=parsed[9] or 0)) if parsed else UTC
        return datetime(*parsed[:6], tzinfo=zone).astimezone(UTC) if parsed else None
    except (ValueError, OverflowError, IndexError):
        return None
