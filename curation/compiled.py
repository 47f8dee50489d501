"""How parts of kernels are compiled."""

from __future__ import annotations

import numba

#: Functions that read and fill arrays of their callers. Numba would count references: two atomic
#: operations per array and call, which is more than most of them do.
borrowing = numba.njit(cache=True, nogil=True, _nrt=False)
#: The same, compiled into the caller: parts of one loop.
inlined = numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)
