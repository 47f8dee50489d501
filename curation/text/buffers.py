"""Text buffers in the one form that kernels are compiled for."""

from __future__ import annotations

import numpy as np

from curation.arrow import TextBuffers, Texts, text_buffers


def read_only(texts: Texts) -> TextBuffers:
    """`text_buffers`, always contiguous and read-only: kernels are compiled per array flavour."""
    offsets, data = text_buffers(texts)
    offsets = np.ascontiguousarray(offsets).view()
    data = data.view()
    offsets.flags.writeable = False
    data.flags.writeable = False
    return TextBuffers(offsets, data)
