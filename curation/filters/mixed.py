"""Documents in two languages: how far the part in the document's own language lies from it.

Untranslated paragraphs and long quotations are strange to the reference of the document's language,
which says nothing against either part. A strange document is therefore measured again in pieces of
whole lines. Where the strange pieces together fit another language's reference and the rest is a
fair share of the text, the divergence is that of the rest alone. Gibberish fits no reference, and
a document that is wholly in another language has nothing of its own, so both stay strange.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.reference import References, measure_references

#: Divergence from which a text is strange: articles of most languages stay below (docs/filters.md).
STRANGE = 3.0
#: Characters of a piece; its last line may exceed them. Some 60 words, enough for a measurement.
PIECE = 400
#: Share of the characters that the own language must have; less is one piece that fits by chance.
OWN_SHARE = 0.2


def own_divergences(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of the own-language part of every text -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text is not in two
    languages.
    """
    pairs = zip(texts.to_pylist(), numbers.tolist(), strict=True)
    return np.array([_own_divergence(text, number, references) for text, number in pairs])


def _own_divergence(text: str, number: int, references: References) -> float:
    pieces = _pieces(text)
    strange = measure_references(pieces, references, number)[:, 0] > STRANGE
    if strange.all() or not strange.any():
        return float("nan")
    own = _joined(pieces, ~strange)
    if len(own) < OWN_SHARE * len(text):
        return float("nan")
    if not _fits_another(_joined(pieces, strange), number, references):
        return float("nan")
    return float(measure_references([own], references, number)[0, 0])


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
    return "\n".join(piece for piece, taken in zip(pieces, chosen, strict=True) if taken)


def _fits_another(text: str, number: int, references: References) -> bool:
    others = (n for n in range(len(references.unknown)) if n != number)
    return any(measure_references([text], references, n)[0, 0] <= STRANGE for n in others)
