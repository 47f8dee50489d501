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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import from_buffers, text_buffers
from curation.filters.reference import (
    References,
    measure_all_references,
    measure_references,
)

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

_LINE_FEED, _ROUNDING = 0x0A, 1e-9


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
    return np.array(
        [
            _divergence(_pieces(texts.slice(row, 1)), number, references)
            for row, number in enumerate(numbers.tolist())
        ]
    )


def _divergence(pieces: _Pieces, own: int, references: References) -> float:
    of_own = measure_references(pieces.texts, references, own)[:, 0]
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
        part = _joined(pieces.texts.filter(pa.array(chosen)))
        value = measure_references(part, references, number)[0, 0]
        found.append(np.nan_to_num(value))
        size = pieces.sizes[chosen].sum() + chosen.sum() - 1
        weights.append(0 if np.isnan(value) else size)
    return float(np.average(found, weights=weights))


def _second_language(
    pieces: _Pieces, of_own: npt.NDArray[np.float64], references: References
) -> int | None:
    """The reference that fits most of what is strange to the own one, if it fits a piece well."""
    strange = np.flatnonzero(of_own >= MARGIN)  # a divergence is not negative
    if not len(strange):
        return None
    offsets, data = text_buffers(pieces.texts)
    lengths = np.minimum(np.diff(offsets)[strange], SEARCHED_PIECE)
    strange = strange[:: max(1, -(-int(lengths.sum()) // SEARCHED))]
    texts = pa.array(
        [
            data[start : min(end, start + SEARCHED_PIECE)].tobytes().decode(errors="ignore")
            for start, end in zip(offsets[strange], offsets[strange + 1], strict=True)
        ],
        pa.large_string(),
    )
    found = measure_all_references(texts, references, of_own[strange] - MARGIN + _ROUNDING)
    evidence = of_own[strange] - found >= MARGIN
    ordinary = (evidence & (found <= ORDINARY)).any(axis=1)
    covered = np.where(ordinary, (evidence * pieces.sizes[strange]).sum(axis=1), 0)
    best = int(covered.argmax())
    return best if covered[best] else None


def _pieces(text: pa.Array) -> _Pieces:
    """Divide a text into pieces, which share its memory."""
    (begin, end), data = text_buffers(text)
    data = data[begin:end]
    starts = np.concatenate([[0], np.flatnonzero(data == _LINE_FEED) + 1])
    bounds = np.append(starts, len(data))
    lengths = pc.utf8_length(from_buffers(bounds, data)).to_numpy().astype(np.int64)
    lengths[:-1] -= 1  # the line feed
    before = np.concatenate([[0], np.cumsum(lengths)])
    lines, line = [0], 0
    while (line := int(np.searchsorted(before, before[line] + PIECE))) < len(before):
        lines.append(line)
    lines.append(len(starts))
    sizes = np.diff(before[lines]) + np.maximum(np.diff(lines) - 1, 0)
    return _Pieces(from_buffers(bounds[lines], data), sizes)


def _joined(texts: pa.Array) -> pa.Array:
    """Return adjacent texts as one."""
    offsets, data = text_buffers(texts)
    return from_buffers(offsets[[0, -1]], data)
