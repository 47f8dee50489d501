"""How much of a document is new: the distinct part of its runs of tokens.

A long document may be long by repetition alone: a list, a table, a log, a page that quotes itself.
Of such a one few of the runs of `RUN` tokens are distinct; of prose nearly all are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.compiled import kernel
from curation.tokenize.vocabulary import scramble

RUN = 13


@kernel
def _varieties(tokens, offsets, run):  # type: ignore[no-untyped-def]
    """Distinct part of the runs of each document, by a hash table as large as it needs."""
    out = np.ones(len(offsets) - 1, np.float32)
    power = np.uint64(1)
    for _ in range(run - 1):
        power *= np.uint64(0x9E3779B97F4A7C15)
    for k in range(len(out)):
        first, last = offsets[k], offsets[k + 1]
        runs = last - first - run + 1
        if runs <= 0:
            continue
        rows = np.int64(4)
        while rows < 2 * runs:
            rows *= 2
        table = np.zeros(rows, np.uint64)
        mask = np.uint64(rows - 1)
        distinct = 0
        rolling = np.uint64(0)
        for place in range(first, last):
            if place - first >= run:
                rolling -= (np.uint64(tokens[place - run]) + np.uint64(1)) * power
            rolling = rolling * np.uint64(0x9E3779B97F4A7C15)
            rolling += np.uint64(tokens[place]) + np.uint64(1)
            if place - first < run - 1:
                continue
            key = scramble(rolling) | np.uint64(1)
            row = scramble(key) & mask
            while table[row] != 0 and table[row] != key:
                row = (row + np.uint64(1)) & mask
            if table[row] == 0:
                table[row] = key
                distinct += 1
        out[k] = distinct / runs
    return out


def varieties(tokens: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Return the distinct part of every document's runs of tokens: float32 [documents], 0 to 1.

    Tokens of document i are `tokens[offsets[i]:offsets[i + 1]]`. A document without a run has 1.
    """
    return pa.array(_varieties(tokens, offsets, RUN).round(4))
