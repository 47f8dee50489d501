"""Repeated passages: bytes that stand at another place, too. All copies but one go.

Of each `GAP` windows of `min_bytes` bytes in a row the one with the least hash is chosen
(winnowing: Schleimer, Wilkerson and Aiken 2003), so every repeat of `min_bytes` + `GAP` - 1 bytes
has a window that is chosen in all its copies. Windows of one hash are copies; that in the first or
the best document is the original. What windows of a document cover is checked against their
originals by a cryptographic hash, grows to the ends of the repeat, and is claimed from the
originals. Between bytes an original loses nothing that is claimed, so what is cut stands whole in
its original; between lines and sentences it may, where its own original has the same: one copy of
every byte stays. Where two passages meet, what goes over both may stand nowhere else. A row of one
sign is the same at every place: copies of it may stay. And of each `BLOCK` copies one stays, so
that no worker has to hold all copies of what is on every page.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, cut_out, large_strings, text_buffers
from curation.bytes import ascii as by
from curation.columns import CODE_PATH, document_paths
from curation.compiled import Bools, Bytes, Int, Int64s, Uint16s, Uint64s, kernel
from curation.dedup.dedup_settings import LineDedupSettings, SubstringDedupSettings, defaults
from curation.dedup.keys import run_lengths, run_starts
from curation.dedup.lines import too_short
from curation.hashing import hash_spans
from curation.schema import Verdicts
from curation.text.characters import properties
from curation.text.lines import next_sentence, strip_left
from curation.text.noise import MOST, noise
from curation.text.structure import CODE, FORMULA, structure

Ids = npt.NDArray[np.uint64]
Spans = list[tuple[int, int]]

#: Windows of which one is chosen, and bytes around an original by which its copies may grow.
GAP = 100
#: Windows of one hash, in the order of their documents, of which one is the original.
BLOCK = 1 << 17
_BASE = np.uint64(0x9E3779B97F4A7C15)
_RING = 128  # a power of two above GAP
_DIGEST = 16  # bytes
_SECONDS, _SIZE = 36, 28  # bits of a rank


class Windows(NamedTuple):
    """Chosen windows of a batch, in the order of the texts."""

    documents: npt.NDArray[np.int64]  # [windows], text in the batch
    starts: npt.NDArray[np.int64]  # [windows], byte in the text
    keys: Ids  # [windows], hash of the window


def windows(texts: Texts, min_bytes: int) -> Windows:
    """Choose windows of `min_bytes` bytes in every text by their content."""
    offsets, data = text_buffers(texts)
    chosen = np.zeros(len(data), np.bool_)
    _choose(data, offsets, min_bytes, chosen)
    places = np.flatnonzero(chosen)
    documents = np.searchsorted(offsets, places, side="right") - 1
    keys = hash_spans(data, places, places + min_bytes, np.uint64(0))
    return Windows(documents, places - offsets[documents], keys)


@kernel
def _choose(data: Bytes, offsets: Int64s, width: Int, chosen: Bools) -> None:
    """Mark the least of each GAP windows, of equal ones the last, and none of these while it is
    among the GAP.
    """
    power = np.uint64(1)
    for _ in range(width - 1):
        power *= _BASE
    hashes = np.empty(_RING, np.uint64)  # of the windows before `known`
    for d in range(len(offsets) - 1):
        known, end = offsets[d], offsets[d + 1] - width + 1
        rolled = np.uint64(0)
        for i in range(known, min(known + width - 1, offsets[d + 1])):
            rolled = rolled * _BASE + np.uint64(data[i])
        place, least = known - 1, np.uint64(0)
        while place + 1 < end:
            lower, following = np.uint64(0xFFFFFFFFFFFFFFFF), place
            for i in range(place + 1, min(place + GAP + 1, end)):
                if i == known:
                    rolled = rolled * _BASE + np.uint64(data[np.uint64(i + width - 1)])
                    hashes[np.uint64(i) % np.uint64(_RING)] = rolled
                    rolled -= np.uint64(data[np.uint64(i)]) * power
                    known += 1
                own = hashes[np.uint64(i) % np.uint64(_RING)]
                if own <= lower:
                    lower, following = own, i
                if own < least:
                    break
            if lower >= least and offsets[d] <= place and place + GAP >= end:
                break  # it is among the last GAP
            place, least = following, lower
            chosen[place] = True


def ranks(batch: pa.RecordBatch, keep: str) -> Ids:
    """Return a number for each document, the least of the one whose copy stays: uint64 [documents].

    `first`: all are equal, so their order decides. `best`: the newest, then the longest, as the
    survivor policy of `dedup-documents` has it.
    """
    if keep == "first":
        return np.zeros(batch.num_rows, np.uint64)
    seconds = np.zeros(batch.num_rows, np.int64)
    if "date" in batch.schema.names:
        micros = batch.column("date").cast(pa.int64()).fill_null(-(1 << 62)).to_numpy()
        seconds = np.clip(micros // 1_000_000 + (1 << _SECONDS - 1), 0, (1 << _SECONDS) - 1)
    sizes = np.minimum(np.diff(text_buffers(batch.column("text")).offsets), (1 << _SIZE) - 1)
    newest, longest = (1 << _SECONDS) - 1 - seconds, (1 << _SIZE) - 1 - sizes
    return (newest.astype(np.uint64) << np.uint64(_SIZE)) | longest.astype(np.uint64)


def copies(rows: pa.RecordBatch) -> dict[str, npt.NDArray[Any]]:
    """Return every window that has an original elsewhere, with that.

    Args:
        rows: windows with their hash as `key`, `rank` and `number` of the document, and `start`.

    -> `key`, the document's number, and `start`; `original`, the number of another document, and
    `at`, with its `rank`.
    """
    column = {name: rows.column(name).to_numpy() for name in ("key", "rank", "number", "start")}
    order = np.argsort(column["key"])
    same = np.diff(column["key"][order]) == 0
    shared = order[np.append(same, False) | np.insert(same, 0, False)] if len(order) else order
    shared = shared[np.lexsort([shared, column["key"][shared]])]
    found = {name: values[shared] for name, values in column.items()}
    starts = run_starts(found["key"])
    places = np.arange(len(shared)) - np.repeat(starts, run_lengths(starts, len(shared)))
    starts = np.flatnonzero(places % BLOCK == 0)
    lengths = run_lengths(starts, len(shared))
    stays = np.ones(len(shared), bool)
    for name in ("rank", "number", "start"):
        values = np.where(stays, found[name], np.iinfo(found[name].dtype).max)
        stays &= values == np.repeat(np.minimum.reduceat(values, starts), lengths)
    originals, lost = np.repeat(np.flatnonzero(stays), lengths)[~stays], ~stays
    return {
        "key": found["number"][lost],
        "start": found["start"][lost],
        "rank": found["rank"][originals],
        "original": found["number"][originals],
        "at": found["start"][originals],
    }


def passages(rows: pa.RecordBatch, width: int) -> dict[str, npt.NDArray[Any]]:
    """Return the passages that windows of documents cover, each with the original of its bytes.

    Where windows overlap, the original of the least rank counts.

    Args:
        rows: columns as `copies` returns them, in any order.
        width: bytes of a window.

    -> `key`, the original's number, with `low` and `high`, what is claimed of it; `number` and
    `start` of the copy, its `size` and `at`, where it begins in the original; `before` and
    `after`, whether the repeat may be longer on that side.
    """
    names = ("key", "start", "rank", "original", "at")
    column = {name: rows.column(name).to_numpy() for name in names}
    order = np.lexsort([column["start"], column["key"]])
    column = {name: values[order] for name, values in column.items()}
    worth = np.empty(len(order), np.int64)
    worth[np.lexsort([column["at"], column["original"], column["rank"]])] = np.arange(len(order))
    shift = column["at"] - column["start"]
    number, original = column["key"], column["original"]
    source, starts, ends = _cover(number, column["start"], worth, original, shift, width)
    joined = (np.diff(number[source]) == 0) & (starts[1:] == ends[:-1])
    before, after = np.insert(~joined, 0, True), np.append(~joined, True)
    # Windows over the place where two passages meet have the second's original, too: it keeps them.
    low, high = starts - ~before * (width - 1), ends + ~after * (width - 1)
    moved = shift[source]
    return {
        "key": original[source],
        "low": low + moved,
        "high": high + moved,
        "number": number[source],
        "start": starts,
        "size": ends - starts,
        "at": starts + moved,
        "before": before,
        "after": after,
    }


@kernel
def _cover(
    numbers: Uint64s, starts: Int64s, worth: Int64s, originals: Uint64s, shifts: Int64s, width: Int
) -> tuple[Int64s, Int64s, Int64s]:
    """Divide what windows cover by the best of those over each byte: its row, start and end.

    Windows are sorted by document and start; the least `worth` is best.
    """
    source = np.zeros(2 * len(starts) + 1, np.int64)
    begins = np.empty(2 * len(starts), np.int64)
    ends = np.empty(2 * len(starts), np.int64)
    n = 0
    low = 0  # windows over `at` are low to high
    high = 0
    at = np.int64(0)
    while low < len(starts):
        if low == high:
            at = starts[low]
        while high < len(starts) and numbers[high] == numbers[low] and starts[high] <= at:
            high += 1
        best = low
        for k in range(low + 1, high):
            if worth[k] < worth[best]:
                best = k
        stop = starts[low] + width
        if high < len(starts) and numbers[high] == numbers[low]:
            stop = min(stop, starts[high])
        last = source[max(n - 1, 0)]
        joins = n > 0 and numbers[last] == numbers[best] and ends[n - 1] == at
        if joins and originals[last] == originals[best] and shifts[last] == shifts[best]:
            ends[n - 1] = stop
        else:
            source[n], begins[n], ends[n] = best, at, stop
            n += 1
        at = stop
        while low < high and starts[low] + width <= at:
            low += 1
    return source[:n], begins[:n], ends[:n]


def evidence(text: bytes, start: int, size: int, before: bool, after: bool) -> tuple[bytes, ...]:
    """Return what shows that an original is the same: hash of the copy, and the bytes beside it."""
    left = text[max(0, start - GAP) : start] if before else b""
    right = text[start + size : start + size + GAP] if after else b""
    return digest(text[start : start + size]), left, right


def digest(passage: bytes) -> bytes:
    """Return the hash by which an original and its copy are the same: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(passage, digest_size=_DIGEST).digest()


def grown(text: bytes, at: int, size: int, shown: Sequence[bytes]) -> tuple[int, int] | None:
    """Return by how many bytes a repeat is longer at each end; None if it is another text.

    Args:
        text: the original's document, which has the passage `at` that byte.
        shown: the `evidence` of the copy.
    """
    copy, before, after = shown
    end = at + size
    if digest(text[at:end]) != copy:
        return None
    left = _common(text[max(0, at - len(before)) : at][::-1], before[::-1])
    return left, _common(text[end : end + len(after)], after)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two strings begin with in common."""
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size], "little") ^ int.from_bytes(other[:size], "little")
    return ((differing & -differing).bit_length() - 1) // 8 if differing else size


class Copy(NamedTuple):
    """A passage of a document of which the original is elsewhere."""

    start: int  # bytes of the text
    end: int
    kept_id: str  # document that has the original


class Cutting(NamedTuple):
    """Texts without the passages that stand elsewhere."""

    texts: pa.Array  # [documents], large_string
    rows: npt.NDArray[np.int64]  # [cuts], document of each cut, ascending
    positions: npt.NDArray[np.int64]  # [cuts], byte in the text as it was
    cuts: pa.Array  # [cuts], large_string
    sizes: npt.NDArray[np.int64]  # [cuts], bytes
    kept_ids: list[str]  # [cuts], document in which a copy stays
    verdicts: Verdicts  # [documents]


def cut_passages(
    texts: Texts,
    found: Mapping[int, Sequence[Copy]],
    claimed: Mapping[int, Spans],
    settings: SubstringDedupSettings,
) -> Cutting:
    """Cut passages out of texts, at the ends of their units.

    Args:
        found: passages of each document of which there are originals.
        claimed: bytes of each document that are originals of copies elsewhere.

    A document that lost text and has too little left is removed (`substring.too_short`), unless
    something that is left of it is claimed.
    """
    buffers = text_buffers(texts)
    offsets, data = buffers

    def text(row: int) -> bytes:
        return data[offsets[row] : offsets[row + 1]].tobytes()

    spans_of = ((row, joined((c.start, c.end) for c in found[row])) for row in sorted(found))
    # Where no unit is whole, nothing goes, and it need not be known what is code.
    going = {row: spans for row, spans in spans_of if _whole(text(row), spans, settings.unit)}
    exempt = _exempt(texts, {r: found[r] for r in going}) if not settings.paths.get("code") else {}
    cuts, free = list[tuple[tuple[int, int, int], str]](), list[int]()
    for row, spans in going.items():
        raw, claims = text(row), claimed.get(row, [])
        stays = claims if settings.unit == "bytes" else []
        copies = _outer(found[row])
        spans = _without(spans, [*exempt.get(row, ()), *stays])
        # A whole line or two of a repeat that keeps its ends are no passage.
        whole = _without(_whole(raw, spans, settings.unit), stays)
        least = settings.min_bytes // 2
        spans = [s for s in whole if settings.unit == "bytes" or s[1] - s[0] >= least]
        if not _without(joined(claims), spans):
            free.append(row)
        places = [_character(raw, one.start, 1) for one in copies]
        own, name, following = list[tuple[tuple[int, int, int], str]](), "", -1
        for start, end in reversed(_parted(spans, places)):
            # What few windows have that begin before a longer passage is cut there, too.
            if settings.unit == "bytes" or not following == end < start + GAP:
                name = copies[bisect_right(places, start) - 1].kept_id
            own.append(((row, start, end), name))
            following = start
        cuts += reversed(own)
    rows, starts, ends = np.array([place for place, _ in cuts], np.int64).reshape(-1, 3).T
    out, gone = cut_out(buffers, rows, np.stack([starts, ends], 1) + offsets[rows, None])
    lost = np.bincount(rows, pc.utf8_length(gone), len(offsets) - 1).astype(np.int64)
    lost[np.setdiff1d(rows, free)] = 0
    short = too_short(out, lost, defaults(LineDedupSettings), "substring.too_short")
    return Cutting(out, rows, starts, gone, ends - starts, [name for _, name in cuts], short)


def _exempt(texts: Texts, found: Mapping[int, Sequence[Copy]]) -> dict[int, Spans]:
    """Return the bytes of these documents in lines of code and formulas; all of code as a whole."""
    rows, column = sorted(found), large_strings(texts)
    some = column.take(pa.array(rows, pa.int64()))
    listings = structure(some, np.zeros((len(rows), 1)))
    offsets = text_buffers(some).offsets
    spans: dict[int, Spans] = {row: [] for row in rows}
    for i in np.flatnonzero(document_paths(listings) == CODE_PATH).tolist():
        spans[rows[i]].append((0, int(offsets[i + 1] - offsets[i])))
    lines = np.flatnonzero(np.isin(listings.kinds, (CODE, FORMULA)))
    documents = np.searchsorted(listings.doc_offsets, lines, side="right") - 1
    edges = np.stack([listings.starts[lines], listings.ends[lines]], 1)
    edges -= offsets[documents][:, None]
    for i, (start, end) in zip(documents.tolist(), edges.tolist(), strict=True):
        spans[rows[i]].append((start, end))
    # Noise looks like code, and is slow to find: it is looked for where a listing would lose.
    # Escapes, the third kind, are no sign of it: programs have them, too.
    losing = [
        row
        for row, own in spans.items()
        if any(one.start < end and start < one.end for start, end in own for one in found[row])
    ]
    noisy = noise(column.take(pa.array(losing, pa.int64())))[:, [0, 1, 3]].sum(1) > MOST
    return spans | {row: [] for row, is_noise in zip(losing, noisy, strict=True) if is_noise}


def _outer(found: Iterable[Copy]) -> list[Copy]:
    """Return passages in order, without those inside others; those of a repeat as one."""
    outer: list[Copy] = []
    for one in sorted(found, key=lambda c: (c.start, -c.end, c.kept_id)):
        last = outer[-1] if outer else Copy(0, 0, "")
        if one.start < last.end < one.end and one.kept_id == last.kept_id:
            outer[-1] = last._replace(end=one.end)
        elif one.end > last.end:
            outer.append(one)
    return outer


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return spans in order, those that touch as one."""
    joined: Spans = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        elif start < end:
            joined.append((start, end))
    return joined


def _without(spans: Spans, others: Iterable[tuple[int, int]]) -> Spans:
    """Return what is left of joined spans outside others."""
    left: Spans = []
    borders = [border for other in joined(others) for border in other]
    for start, end in spans:
        low, high = bisect_right(borders, start), bisect_left(borders, end)
        # An odd number of borders before a place: it is inside another span.
        edges = [start] * (low % 2 == 0) + borders[low:high] + [end] * (high % 2 == 0)
        left += zip(edges[::2], edges[1::2], strict=True)
    return left


def _parted(spans: Spans, places: Sequence[int]) -> Spans:
    """Return joined spans, divided at ascending places: a cut each for repeats that touch."""
    parted: Spans = []
    for start, end in spans:
        inside = places[bisect_right(places, start) : bisect_left(places, end)]
        parted += pairwise([start, *dict.fromkeys(inside), end])
    return parted


def _whole(raw: bytes, spans: Spans, unit: str) -> Spans:
    """Return spans trimmed to whole characters, lines or sentences, with the space behind them."""
    if unit == "bytes":
        trimmed = [(_character(raw, a, 1), _character(raw, b, -1)) for a, b in spans]
    elif unit == "lines":
        trimmed = [_lines(raw, a, b) for a, b in spans]
    else:
        ends = _sentences(np.frombuffer(raw, np.uint8), properties())
        trimmed = [_sentence_span(raw, a, b, ends) for a, b in spans]
    return joined(trimmed)


def _character(raw: bytes, i: int, step: int) -> int:
    while 0 < i < len(raw) and raw[i] & 0xC0 == 0x80:
        i += step
    return i


def _lines(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the whole lines of a span, and blank ones behind or, at the end, before them."""
    if start and raw[start - 1] != by.LF:
        start = raw.find(b"\n", start, end) + 1 or end
    while start < end and raw[start] == by.LF:
        start += 1
    if end < len(raw):
        end = end + 1 if raw[end] == by.LF else raw.rfind(b"\n", start, end) + 1
    else:
        start = len(raw[:start].rstrip(b"\n")) if start < end else start
    blank = start == 0 or raw[max(0, start - 2) : start] == b"\n\n"
    while blank and start < end < len(raw) and raw[end] == by.LF:
        end += 1
    return start, end


def _sentence_span(
    raw: bytes, start: int, end: int, ends: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Return the whole sentences within a span, with the space behind the last."""
    while end < len(raw) and raw[end] in b" \n\t":
        end += 1
    low, high = np.searchsorted(ends, start), np.searchsorted(ends, end, side="right") - 1
    return (int(ends[low]), int(ends[high])) if low < high else (start, start)


@kernel
def _sentences(data: Bytes, properties: Uint16s) -> Int64s:
    """Return where sentences begin, 0 and the end of the text included; none goes over a line."""
    found = np.empty(len(data) + 2, np.int64)
    n = 0
    start = 0
    while start < len(data):
        end = start
        while end < len(data) and data[end] != by.LF:
            end += 1
        i: Int = start
        while i < end:
            found[n] = i
            n += 1
            i = strip_left(data, next_sentence(data, i, end, properties), end, properties)
        start = end + 1
    found[n] = len(data)
    return found[: n + 1]
