"""Documents in two languages: each part is measured by the reference of its own language.

Untranslated paragraphs and long quotations are strange to the reference of the document's language,
which says nothing against either part. A strange document is therefore measured again in pieces of
whole lines. A language is the document's second one if its reference fits a piece well that is
strange to the first. Each piece then belongs to the language that fits it better, and the
document's divergence is the mean of both parts' divergences, weighted by their characters.
Gibberish fits no reference well, and a document that is wholly in another language has nothing of
its own, so both stay strange. Of a very long document the second language is looked for in a sample
of the strange pieces.
"""

import bisect
import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import from_buffers, line_spans, text_buffers
from curation.filters.reference import References, measure_all, measure_references

#: Divergence from which a text is strange: articles of most languages stay below (docs/filters.md).
STRANGE = 3.0
#: Divergence up to which a piece is ordinary text of a language. Gibberish is above it in all.
ORDINARY = 1.5
#: By how much a piece must fit the second language better to be evidence for it.
MARGIN = 2.0
#: Characters of a piece; its last line may exceed them. Some 60 words, enough for a measurement.
PIECE = 400
#: Share of the characters that the own language must have; less is one piece that fits by chance.
OWN_SHARE = 0.1
#: Bytes of strange pieces in which the second language is looked for, and of one of them. Each is
#: measured by every reference, which would otherwise take a minute for a document of 10 MB.
SEARCHED, SEARCHED_PIECE = 1 << 17, 1 << 13

_ROUNDING = 1e-9


class _Pieces(NamedTuple):
    texts: pa.Array  # large_string; each with the line feed behind it
    sizes: npt.NDArray[np.int64]  # characters, without that line feed


def divergences(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of every text from its two languages -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text is not in two
    languages.
    """
    pieces, firsts = _pieces(texts)
    owners, of_own = np.repeat(numbers, np.diff(firsts)), np.empty(firsts[-1])
    for number in np.unique(owners).tolist():
        own = pieces.texts.filter(pa.array(owners == number))
        of_own[owners == number] = measure_references(own, references, number)[:, 0]
    out = np.full(len(texts), np.nan)
    for row, (first, past) in enumerate(itertools.pairwise(firsts)):
        its = _Pieces(pieces.texts.slice(first, past - first), pieces.sizes[first:past])
        out[row] = _divergence(its, of_own[first:past], int(numbers[row]), references)
    return out


def _divergence(
    pieces: _Pieces, of_own: npt.NDArray[np.float64], own: int, references: References
) -> float:
    other = _second_language(pieces, of_own, references)
    if other is None:
        return float("nan")
    of_other = measure_references(pieces.texts, references, other)[:, 0]
    characters = pieces.sizes.sum() + len(pieces.sizes) - 1
    if pieces.sizes[of_own <= of_other].sum() < OWN_SHARE * characters:
        return float("nan")
    in_other = of_other < of_own  # and what is too short to measure is in the own language
    found, weights = [], []
    for chosen, number in ((~in_other, own), (in_other, other)):
        offsets, data = text_buffers(pieces.texts.filter(pa.array(chosen)))
        part = from_buffers(offsets[[0, -1]], data)  # adjacent ones as one
        value = measure_references(part, references, number)[0, 0]
        found.append(np.nan_to_num(value))
        weights.append(0 if np.isnan(value) else pieces.sizes[chosen].sum() + chosen.sum() - 1)
    return float(np.average(found, weights=weights))


def _second_language(
    pieces: _Pieces, of_own: npt.NDArray[np.float64], references: References
) -> int | None:
    """The reference that fits most of what is strange to the own one, if it fits a piece well."""
    strange = np.flatnonzero(of_own >= MARGIN)  # a divergence is not negative
    lengths = np.minimum(pc.binary_length(pieces.texts).to_numpy()[strange], SEARCHED_PIECE)
    strange = strange[:: max(1, -(-int(lengths.sum()) // SEARCHED))]
    whole = pieces.texts.take(pa.array(strange)).to_pylist()
    texts = [text.encode()[:SEARCHED_PIECE].decode(errors="ignore") for text in whole]
    most, numbers = of_own[strange] - MARGIN + _ROUNDING, np.arange(len(references.unknown))
    for limits in (np.minimum(most, ORDINARY + _ROUNDING), most):  # few are looked at again
        found = measure_all(texts, references, numbers, limits)[:, :, 0]
        fits = of_own[strange] - found >= MARGIN
        likely = (fits & (found <= ORDINARY)).any(axis=1)
        if not likely.any():
            return None
        numbers, fits = numbers[likely], fits[likely]
    return int(numbers[(fits * pieces.sizes[strange]).sum(axis=1).argmax()])


def _pieces(texts: pa.Array) -> tuple[_Pieces, list[int]]:
    """Divide texts into pieces, which share their memory; also return the first of each text."""
    buffers = text_buffers(texts)
    starts, ends, lines = line_spans(buffers)
    bounds = np.append(starts, buffers.offsets[-1:])
    lengths = pc.utf8_length(from_buffers(bounds, buffers.data)).to_numpy().astype(np.int64)
    lengths -= ends < bounds[1:]  # the line feed
    before = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    chosen, firsts = list[int](), [0]
    for line, past in itertools.pairwise(lines.tolist()):
        while line <= past:
            chosen.append(line)
            line = bisect.bisect_left(before, before[line] + PIECE)
        firsts.append(len(chosen))
    edges = np.array([*chosen, len(starts)])
    sizes = np.diff(np.array(before)[edges]) + np.maximum(np.diff(edges) - 1, 0)
    return _Pieces(from_buffers(bounds[edges], buffers.data), sizes), firsts
