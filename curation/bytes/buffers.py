"""Text buffers in the one form that kernels are compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from curation.compiled import Bytes, Int, borrowing

if TYPE_CHECKING:
    from curation.arrow import TextBuffers, Texts


def read_only(texts: Texts) -> TextBuffers:
    """`text_buffers`, always contiguous and read-only: kernels are compiled per array flavour."""
    from curation.arrow import TextBuffers, text_buffers  # Arrow, which a page alone needs not

    offsets, data = text_buffers(texts)
    offsets = np.ascontiguousarray(offsets).view()
    data = data.view()
    offsets.flags.writeable = False
    data.flags.writeable = False
    return TextBuffers(offsets, data)


@borrowing
def copy_bytes(data: Bytes, start: Int, end: Int, out: Bytes, at: Int) -> Int:
    """Write data[start:end] to out[at:]; return where it ends. For kernels.

    Numba compiles seconds of messages about shapes for an assignment to a slice.
    """
    for i in range(start, end):
        out[at + i - start] = data[i]
    return at + end - start
