"""Pages with very many blocks: which of them are judged, and which others they represent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from curation.compiled import Int, Int32s, Uint64s, kernel
from curation.extract.blocks import Page
from curation.extract.containers import kinds_of

_LEVELS = 3  # elements that are alike around blocks of one kind
_KINDS = 4096  # kinds of blocks distinguished; a power of two


@kernel
def _stand_in(keys: Uint64s, every: Int) -> Int32s:
    out = np.empty(len(keys), np.int32)
    seen = np.zeros(_KINDS, np.int32)
    last = np.zeros(_KINDS, np.int32)
    for b, key in enumerate(keys):
        kind = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(_KINDS - 1))
        if seen[kind] % every == 0:
            last[kind] = b
        seen[kind] += 1
        out[b] = last[kind]
    return out


def representatives(page: Page, most: int) -> npt.NDArray[np.int32]:
    """The block [n] that is judged in place of each block of an enormous page, or itself.

    Blocks of one kind (the same element, parent and grandparent by tag and class) share the
    judgement of one among them, so many that about `most` are judged: at most `most` and one for
    each of the 4,096 kinds distinguished.
    """
    every = -(-len(page.b_start) // most)
    return _stand_in(kinds_of(page.b_element, page.e_parent, page.e_signature, _LEVELS), every)
