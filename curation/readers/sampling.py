"""Read a share of the documents only, for a first look at a large crawl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import xxhash

from curation.readers.records import Event, Page, Skipped

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
    if share is None:
        yield from events
        return
    below = int(share * _HASHES)
    for event in events:
        if isinstance(event, Page) and _hash(event, name) >= below:
            yield Skipped(NOT_DRAWN)
        else:
            yield event


def _hash(page: Page, name: str) -> int:
    key = page.url or f"{name}:{page.offset}"
    return xxhash.xxh3_64_intdigest(key.encode("utf-8", "surrogatepass"))


def skipped(counters: Mapping[str, int]) -> int:
    """Count the records of the input that are not documents, or were not drawn."""
    return sum(n for name, n in counters.items() if name.startswith("skipped."))
