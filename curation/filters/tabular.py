"""Documents with tables: their prose is measured without the rows.

Names, numbers and addresses in the cells of a table are strange to the reference of a language,
which says nothing against the text around them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.reference import References, measure_references

#: Share of the characters that prose must have; a text with less is a table, and measured as one.
PROSE_SHARE = 1 / 3

# A line with the bars that extraction writes between cells, or a short one that a number begins or
# ends: a quantity, a score, a count.
_ROW = r"(?m)^(?:(?:.* )?\| .*|[^\pL\n]*\pN.{0,60}|.{0,60}\pN[^\pL\n]*)$\n?"


def divergences(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of every text without its tables -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text has no table, or
    little else.
    """
    found = np.full(len(texts), np.nan)
    prose = pc.replace_substring_regex(texts, _ROW, "")
    size, of_prose = (pc.utf8_length(t).to_numpy(zero_copy_only=False) for t in (texts, prose))
    measured = (of_prose < size) & (of_prose >= PROSE_SHARE * size)
    for number in np.unique(numbers[measured]):
        rows = np.flatnonzero(measured & (numbers == number))
        found[rows] = measure_references(prose.take(pa.array(rows)), references, int(number))[:, 0]
    return found
