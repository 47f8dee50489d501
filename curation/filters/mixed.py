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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.reference import References, measure_references

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


class _Pieces(NamedTuple):
    texts: list[str]
    sizes: npt.NDArray[np.int64]  # characters
    divergences: npt.NDArray[np.float64]  # [references, pieces]


def divergences(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of every text from its two languages -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text is not in two
    languages.
    """
    pairs = zip(texts.to_pylist(), numbers.tolist(), strict=True)
    return np.array([_divergence(text, number, references) for text, number in pairs])


def _divergence(text: str, own: int, references: References) -> float:
    pieces = _measured(text, references)
    other = _second_language(pieces, own)
    if other is None:
        return float("nan")
    of_own, of_other = pieces.divergences[own], pieces.divergences[other]
    if pieces.sizes[of_own <= of_other].sum() < OWN_SHARE * len(text):
        return float("nan")
    in_other = of_other < of_own  # and what is too short to measure is in the own language
    parts = [_joined(pieces, ~in_other), _joined(pieces, in_other)]
    found = [measure_references([parts[k]], references, (own, other)[k])[0, 0] for k in range(2)]
    sizes = [0 if np.isnan(value) else len(part) for value, part in zip(found, parts, strict=True)]
    return float(np.average(np.nan_to_num(found), weights=sizes))


def _second_language(pieces: _Pieces, own: int) -> int | None:
    """The reference that fits most of what is strange to the own one, if it fits a piece well."""
    evidence = pieces.divergences[own] - pieces.divergences >= MARGIN
    ordinary = (evidence & (pieces.divergences <= ORDINARY)).any(axis=1)
    covered = np.where(ordinary, (evidence * pieces.sizes).sum(axis=1), 0)
    best = int(covered.argmax())
    return best if covered[best] else None


def _measured(text: str, references: References) -> _Pieces:
    texts = _pieces(text)
    measured = [
        measure_references(texts, references, n)[:, 0] for n in range(len(references.unknown))
    ]
    return _Pieces(texts, np.array([len(piece) for piece in texts]), np.array(measured))


def _pieces(text: str) -> list[str]:
    pieces, lines, size = list[str](), list[str](), 0
    for line in text.split("\n"):
        lines.append(line)
        size += len(line)
        if size >= PIECE:
            pieces.append("\n".join(lines))
            lines, size = [], 0
    return [*pieces, "\n".join(lines)]


def _joined(pieces: _Pieces, chosen: npt.NDArray[np.bool_]) -> str:
    return "\n".join(text for text, taken in zip(pieces.texts, chosen, strict=True) if taken)
