"""Documents in two languages: each part is measured by the reference of its own language.

Untranslated paragraphs and long quotations are strange to the reference of the document's language,
which says nothing against either part. A strange document is therefore measured again in pieces of
whole lines. A language is the document's second one if its reference fits a piece well that is
strange to the first. Each piece then belongs to the language that fits it better, and the
document's divergence is the mean of both parts' divergences, weighted by their characters.
Gibberish fits no reference well, and a document that is wholly in another language has nothing of
its own, so both stay strange.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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


def divergences(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of every text from its two languages -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text is not in two
    languages.
    """
    pieces = [_pieces(text) for text in texts.to_pylist()]
    of_text = np.repeat(np.arange(len(pieces)), [len(held) for held in pieces])
    flat = [piece for held in pieces for piece in held]
    from_own = np.empty(len(flat))
    for number in np.unique(numbers):
        rows = np.flatnonzero(numbers[of_text] == number)
        from_own[rows] = measure_references([flat[i] for i in rows], references, number)[:, 0]
    # no divergence is below 0, so only pieces as strange as the margin can be evidence
    strange = np.flatnonzero(from_own >= MARGIN)
    if not len(strange):
        return np.full(len(pieces), np.nan)
    from_all = measure_all_references([flat[i] for i in strange], references)
    sizes = np.array([len(piece) for piece in flat])
    out = np.full(len(pieces), np.nan)
    for row, held in enumerate(pieces):
        mine = of_text[strange] == row
        places = strange[mine]
        other = _second_language(from_own[places], from_all[:, mine], sizes[places])
        if other is not None:
            own = from_own[of_text == row]
            out[row] = _divergence(held, own, int(numbers[row]), other, references)
    return out


def _second_language(
    own: npt.NDArray[np.float64], others: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64]
) -> int | None:
    """The reference that fits most of what is strange to the own one, if it fits a piece well.

    Args:
        own: [pieces] divergences from the reference of the text's language.
        others: [references, pieces].
        sizes: [pieces], characters.
    """
    evidence = own - others >= MARGIN
    ordinary = (evidence & (others <= ORDINARY)).any(axis=1)
    covered = np.where(ordinary, (evidence * sizes).sum(axis=1), 0)
    best = int(covered.argmax())
    return best if covered[best] else None


def _divergence(
    pieces: list[str], of_own: npt.NDArray[np.float64], own: int, other: int, references: References
) -> float:
    """Mean divergence of the parts in two languages; NaN where the own one has hardly a part."""
    of_other = measure_references(pieces, references, other)[:, 0]
    sizes = np.array([len(piece) for piece in pieces])
    length = int(sizes.sum()) + len(pieces) - 1  # of the text
    if sizes[of_own <= of_other].sum() < OWN_SHARE * length:
        return float("nan")
    in_other = of_other < of_own  # and what is too short to measure is in the own language
    parts = [_joined(pieces, ~in_other), _joined(pieces, in_other)]
    found = [measure_references([parts[k]], references, (own, other)[k])[0, 0] for k in range(2)]
    weights = [
        0 if np.isnan(value) else len(part) for value, part in zip(found, parts, strict=True)
    ]
    return float(np.average(np.nan_to_num(found), weights=weights))


def _pieces(text: str) -> list[str]:
    pieces, lines, size = list[str](), list[str](), 0
    for line in text.split("\n"):
        lines.append(line)
        size += len(line)
        if size >= PIECE:
            pieces.append("\n".join(lines))
            lines, size = [], 0
    return [*pieces, "\n".join(lines)]


def _joined(pieces: list[str], chosen: npt.NDArray[np.bool_]) -> str:
    return "\n".join(text for text, taken in zip(pieces, chosen, strict=True) if taken)
