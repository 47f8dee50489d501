"""Repeated passages: bytes that stand at another place, too. All copies but one go.

Of each `GAP` windows of `min_bytes` bytes in a row the one with the least hash is chosen
(winnowing: Schleimer, Wilkerson and Aiken 2003), so every repeat of `min_bytes` + `GAP` - 1 bytes
has a window that is chosen in all its copies. Windows of one hash are copies; that in the first or
the best document is the original. What windows of a document cover that has its originals in one
place is a passage. It is checked against that place by a cryptographic hash, and grows to the ends
of the repeat. What is whole in units of it the document would lose. But an original may lose a part
of itself, because another window of it stands elsewhere. So each document asks its originals: what
stands there is cut, for what goes there its own original is asked, and what no answer finds within
a few turns stays. So every cut stands whole in a document that is kept. And of each `BLOCK` copies
one stays, so that no worker has to hold all copies of what is on every page.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, cut_out, large_strings, repeated, stable_order, text_buffers
from curation.bytes import ascii as by
from curation.columns import CODE_PATH, document_paths
from curation.compiled import Bools, Bytes, Int, Int64s, Uint16s, kernel
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

#: Windows of which one is chosen, and bytes around an original by which its copies may grow.
GAP = 100
#: Windows of one hash, in the order of their documents, of which one is the original.
BLOCK = 1 << 17
_BASE = np.uint64(0x9E3779B97F4A7C15)
_RING = 128  # a power of two above GAP
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


def copies(rows: pa.RecordBatch, width: int) -> dict[str, npt.NDArray[Any]]:
    """Return every window that has an original elsewhere, with that.

    What stands again within its own `width` bytes is a pattern, a row of signs or a table's, and no
    passage: where it does, it stays.

    Args:
        rows: windows with their hash as `key`, `rank` and `number` of the document, and `start`.

    -> `key`, the document's number, and `start`; `original`, the number of a document, and `at`.
    """
    column = {name: rows.column(name).to_numpy() for name in ("key", "rank", "number", "start")}
    order = stable_order(column["key"])
    same = np.diff(column["key"][order]) == 0
    shared = order[np.append(same, False) | np.insert(same, 0, False)] if len(order) else order
    found = {name: values[shared] for name, values in column.items()}
    again = np.diff(found["start"], append=1 << 62) <= max(width, GAP)
    again[run_starts(found["key"], found["number"])[1:] - 1] = False
    lone = ~again & ~np.roll(again, 1)
    shared, found = shared[lone], {name: values[lone] for name, values in found.items()}
    _, places = repeated(run_lengths(run_starts(found["key"]), len(shared)))
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
        "original": found["number"][originals],
        "at": found["start"][originals],
    }


def passages(rows: pa.RecordBatch, width: int) -> dict[str, npt.NDArray[Any]]:
    """Return the passages that windows cover which have their originals in one place, too.

    Args:
        rows: columns as `copies` returns them, in any order.
        width: bytes of a window.

    -> `key`, the original's number; `number` and `start` of the copy, its `size`, and `at`, where
    it begins in the original.
    """
    names = ("key", "original", "start", "at")
    number, original, start, at = (rows.column(name).to_numpy() for name in names)
    order = np.arange(len(start))
    for column in (start, at - start, original, number):
        order = order[stable_order(column[order])]
    number, original, start, at = (some[order] for some in (number, original, start, at))
    gaps = np.cumsum(np.diff(start, prepend=start[:1]) > width)
    first = run_starts(number, original, at - start, gaps)
    last = np.append(first[1:], len(start))[: len(first)] - 1
    found = {"key": original[first], "number": number[first], "start": start[first]}
    return found | {"size": start[last] + width - start[first], "at": at[first]}


def evidence(text: bytes, start: int, size: int, beside: int) -> tuple[bytes, bytes, bytes]:
    """Return what shows that an original is the same: hash of the copy, and the bytes beside it."""
    end = start + size
    return digest(text[start:end]), text[max(0, start - beside) : start], text[end : end + beside]


def digest(passage: bytes) -> bytes:
    """Return the hash by which an original and its copy are the same: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(passage, digest_size=16).digest()


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
    original: int = 0  # its number
    shift: int = 0  # bytes by which the original begins later in it

    def there(self, number: int) -> "Copy":
        """Return the passage as it is in the original, seen from the document of that number."""
        start, end = self.start + self.shift, self.end + self.shift
        return Copy(start, end, self.kept_id, number, -self.shift)


class Cutting(NamedTuple):
    """Texts without the passages that stand elsewhere."""

    texts: pa.Array  # [documents], large_string
    rows: npt.NDArray[np.int64]  # [cuts], document of each cut, ascending
    positions: npt.NDArray[np.int64]  # [cuts], byte in the text as it was
    cuts: pa.Array  # [cuts], large_string
    sizes: npt.NDArray[np.int64]  # [cuts], bytes
    kept_ids: list[str]  # [cuts], document in which a copy stays
    verdicts: Verdicts  # [documents]


def choose_cuts(
    texts: Texts, found: Mapping[int, Sequence[Copy]], settings: SubstringDedupSettings
) -> dict[int, list[Copy]]:
    """Return what texts would lose of passages of which there are originals, in whole units.

    Args:
        found: passages of each document, in any order.
    """
    offsets, data = text_buffers(texts)

    def whole(row: int, stays: Sequence[Copy]) -> list[Copy]:
        raw = data[offsets[row] : offsets[row + 1]].tobytes()
        return _whole(raw, some[row], stays, settings.unit)

    some = {row: _repeats(found[row]) for row in sorted(found)}
    # Where no unit is whole, nothing goes, and it need not be known what is code.
    going = {row: units for row in some if (units := whole(row, []))}
    if not settings.paths.get("code"):
        exempt = _exempt(texts, {row: some[row] for row in going})
        going |= {row: whole(row, _repeats(stays)) for row, stays in exempt.items() if stays}
    return {row: _apart(units, settings.min_bytes // 2) for row, units in going.items()}


def answer(
    asked: Copy, number: int, cuts: Sequence[Copy]
) -> tuple[list[Copy], list[tuple[int, Copy]]]:
    """Return the parts of a passage that stand in its original, and where the others may stand.

    Args:
        asked: the passage in its original, as `there` returns it.
        number: of the original's document.
        cuts: what that loses, in order and apart.

    -> parts as they are in the copy; and, with the number of the document, as in the originals of
    what this one loses.
    """
    low = bisect_right(cuts, asked.start, key=lambda cut: cut.end)
    cuts = cuts[low : bisect_left(cuts, asked.end, key=lambda cut: cut.start)]
    given = [part.there(number) for part in _outside(asked, cuts)]
    further = []
    for cut in cuts:
        part = cut._replace(start=max(cut.start, asked.start), end=min(cut.end, asked.end))
        moved = part.there(asked.original)._replace(shift=asked.shift - cut.shift)
        further.append((cut.original, moved))
    return given, further


def cut_passages(
    texts: Texts, found: Mapping[int, Sequence[Copy]], settings: SubstringDedupSettings
) -> Cutting:
    """Cut passages out of texts.

    Args:
        found: parts of what `choose_cuts` returned that stand in their originals, by document; and
            an empty one in documents that have originals of others' passages.

    A document that lost text and has too little left is removed (`substring.too_short`), unless it
    has originals.
    """
    buffers = text_buffers(texts)
    offsets, least = buffers.offsets, settings.min_bytes // 2
    cuts = [(r, c) for r in sorted(found) for c in _apart(_repeats(found[r]), least)]
    rows, starts, ends = np.array([(r, c.start, c.end) for r, c in cuts], np.int64).reshape(-1, 3).T
    out, gone = cut_out(buffers, rows, np.stack([starts, ends], 1) + offsets[rows, None])
    lost = np.bincount(rows, pc.utf8_length(gone), len(offsets) - 1).astype(np.int64)
    lost[[r for r in found if any(c.start == c.end for c in found[r])]] = 0
    short = too_short(out, lost, defaults(LineDedupSettings), "substring.too_short")
    return Cutting(out, rows, starts, gone, ends - starts, [c.kept_id for _, c in cuts], short)


def _exempt(texts: Texts, found: Mapping[int, Sequence[Copy]]) -> dict[int, list[Copy]]:
    """Return the bytes of these documents in lines of code and formulas; all of code as a whole."""
    rows, column = sorted(found), large_strings(texts)
    some = column.take(pa.array(rows, pa.int64()))
    listings = structure(some, np.zeros((len(rows), 1)))
    offsets = text_buffers(some).offsets
    spans: dict[int, list[Copy]] = {row: [] for row in rows}
    for i in np.flatnonzero(document_paths(listings) == CODE_PATH).tolist():
        spans[rows[i]].append(Copy(0, int(offsets[i + 1] - offsets[i]), ""))
    lines = np.flatnonzero(np.isin(listings.kinds, (CODE, FORMULA)))
    documents = np.searchsorted(listings.doc_offsets, lines, side="right") - 1
    edges = np.stack([listings.starts[lines], listings.ends[lines]], 1)
    edges -= offsets[documents][:, None]
    for i, (start, end) in zip(documents.tolist(), edges.tolist(), strict=True):
        spans[rows[i]].append(Copy(start, end, ""))
    # Noise looks like code, and is slow to find: it is looked for where a listing would lose.
    # Escapes, the third kind, are no sign of it: programs have them, too.
    losing = [
        row
        for row, own in spans.items()
        if any(one.start < o.end and o.start < one.end for o in own for one in found[row])
    ]
    noisy = noise(column.take(pa.array(losing, pa.int64())))[:, [0, 1, 3]].sum(1) > MOST
    return spans | {row: [] for row, is_noise in zip(losing, noisy, strict=True) if is_noise}


def _repeats(found: Iterable[Copy]) -> list[Copy]:
    """Return passages, those that overlap and go on in their original, too, as one."""
    joined: list[Copy] = []
    for one in sorted(found, key=lambda c: (c.original, c.shift, c.start)):
        last = joined[-1] if joined else one
        if one[2:] == last[2:] and one.start <= last.end:
            joined[-1:] = [last._replace(end=max(one.end, last.end))]
        else:
            joined.append(one)
    return joined


def _apart(found: Iterable[Copy], least: int) -> list[Copy]:
    """Return cuts in order, each of one passage: of those that overlap, up to the next.

    What is left of a repeat that keeps most, less than `least` bytes, is no passage.
    """
    runs: list[list[Copy]] = []
    for one in sorted(found, key=lambda c: (c.start, -c.end, c.kept_id)):
        if not runs or one.start > runs[-1][-1].end:
            runs.append([one])
        elif one.end > (last := runs[-1][-1]).end:
            runs[-1][-1:] = [last._replace(end=one.start), one]
    long = (run for run in runs if run[-1].end - run[0].start >= max(least, 1))
    return [one for run in long for one in run if one.start < one.end]


def _outside(one: Copy, others: Iterable[Copy]) -> list[Copy]:
    """Return what is left of a passage outside others, which are in order and apart."""
    borders = [border for other in others for border in other[:2]]
    low, high = bisect_right(borders, one.start), bisect_left(borders, one.end)
    # An odd number of borders before a place: it is inside another span.
    edges = [one.start] * (low % 2 == 0) + borders[low:high] + [one.end] * (high % 2 == 0)
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [one._replace(start=start, end=end) for start, end in pairs if start < end]


def _whole(raw: bytes, found: Iterable[Copy], stays: Sequence[Copy], unit: str) -> list[Copy]:
    """Return what doesn't stay of passages, trimmed to whole characters, lines or sentences."""
    ends = np.zeros(0, np.int64)
    if unit == "sentences":
        ends = _sentences(np.frombuffer(raw, np.uint8), properties())
    whole = []
    for one in chain.from_iterable(_outside(one, stays) for one in found) if stays else found:
        start, end = one.start, one.end
        if unit == "bytes":
            start, end = _character(raw, start, 1), _character(raw, end, -1)
        elif unit == "lines":
            start, end = _lines(raw, start, end)
        else:
            start, end = _sentence_span(raw, start, end, ends)
        if start < end:
            whole.append(one._replace(start=start, end=end))
    return whole


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
