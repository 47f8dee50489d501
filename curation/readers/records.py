"""Events of readers: pages, unreadable places, records that are not documents; a sample of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import xxhash

#: The two HTML types of the HTML standard, section 15, and that of pages for early phones.
HTML_TYPES = ("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml")


@dataclass(frozen=True, slots=True)
class Page:
    """One document candidate.

    `offset` is unique within its file and leads `read_at` back to the page:

    - WARC, ARC, JSONL: the byte offset in the file of the record or line; in a compressed file, of
      the compressed member it is the first record of.
    - A record further inside a member: minus its offset in the decompressed file.
    - WACZ: such an offset within one archive of the package, see `wacz.pack`.
    - Parquet, Arrow, CSV, dumps, mailboxes: the row number. HTML, PDF and text files: 0.

    `mended` names the damage when the record was broken and `content` is what could be saved of it
    (`warc.bad_length`, `http.bad_gzip`, ...), and `detail` says more; both are empty for a sound
    record.
    """

    url: str
    date: datetime | None = None  # UTC
    record_id: str = ""  # WARC-Record-ID, or empty
    offset: int = 0
    content: bytes = b""  # body without transfer and content codings; text records': UTF-8
    kind: str = "html"  # or "text", "pdf"
    charset: str | None = None  # from the HTTP header
    mime: str = "text/html"
    status: int | None = None  # of HTTP
    fields: dict[str, Any] | None = None  # other columns of a table's row: values, or Arrow scalars
    mended: str = ""
    detail: str = ""
    normalize: str = "repair"  # what extraction does to text: none, nfc, repair
    headers: tuple[tuple[str, str], ...] = ()  # lines kept of the HTTP head, see http.Head.kept

    @property
    def is_whole(self) -> bool:
        """Whether its HTML was made from a document of another type, so that all is content."""
        return bool(self.mime) and self.mime not in HTML_TYPES


@dataclass(frozen=True, slots=True)
class Damage:
    """A place that could not be read. Its offset follows the same rules as that of a page."""

    offset: int
    reason: str  # stable id
    detail: str
    url: str | None
    raw: bytes  # first bytes of the place, at most KEEP_RAW_BYTES


def binary(offset: int, content: bytes, url: str | None, keep: int) -> Damage:
    """Return the damage for a body that is no text, whatever its server says."""
    return Damage(offset, "http.binary", "neither HTML nor text", url or None, content[:keep])


@dataclass(frozen=True, slots=True)
class Skipped:
    """An intact record that is not a document: `type:request`, `mime:image/png`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that can't be read, as those behind it can; the reason is without its format's name."""

    reason: str
    detail: str


Event = Page | Damage | Skipped
#: What is read row by row. A row with a text has what was mended, as `Page.mended` and `detail`.
Row = Mapping[str, Any] | tuple[Mapping[str, Any], str] | Fault | Skipped | Damage


#: Why a document that was not drawn is skipped.
NOT_DRAWN = "not_drawn"
#: Counter of the documents that `readers.sample` left out.
NOT_DRAWN_COUNT = f"skipped.{NOT_DRAWN}"
_HASHES = 1 << 64


def drawn(events: Iterable[Event], share: float | None, name: str) -> Iterator[Event]:
    """Yield the events of file `name`, with the pages that are not drawn as skipped.

    A page is drawn by the hash of its address, or of its place in the file where it has none: the
    same pages whatever the number of tasks that read a file, all copies of an address or none, and
    those of a smaller share among those of a larger one. All are if `share` is None.
    """
    for event in events:
        if isinstance(event, Page) and not is_drawn(event.url or f"{name}:{event.offset}", share):
            yield Skipped(NOT_DRAWN)
        else:
            yield event


def is_drawn(key: str, share: float | None) -> bool:
    """Return whether the document of an address, or place, is in a sample of this share."""
    hashed = xxhash.xxh3_64_intdigest(key.encode("utf-8", "surrogatepass"))
    return share is None or hashed < int(share * _HASHES)


def skipped(counters: Mapping[str, int]) -> int:
    """Count the records of the input that are not documents, or were not drawn."""
    return sum(n for name, n in counters.items() if name.startswith("skipped."))
