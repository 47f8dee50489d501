"""Return freed memory to the system at once."""

from __future__ import annotations

import ctypes
import functools
from contextlib import suppress

#: Of glibc's malloc.h.
_M_MMAP_THRESHOLD = -3
_BLOCK_BYTES = 1 << 20


@functools.cache
def return_large_blocks() -> None:
    """Have the C library take blocks of a megabyte and more from the system, and give them back.

    By itself glibc keeps them for later once one of that size was freed, up to 32 MB each, so that
    a process which met large documents stays several times as large as they are.
    """
    with suppress(OSError, AttributeError):  # not every C library has it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES)
