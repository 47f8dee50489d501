"""Importing this module loads all that a worker needs, before workers are forked: code, kernels."""

import contextlib
import importlib
import sys

from numba.core.dispatcher import Dispatcher

from curation.stages import known_stages


def load_kernels() -> int:
    """Load the compiled kernels that lie in the cache beside their modules; return how many.

    Numba has no public way to ask for this. One that is not in the cache is compiled when it is
    called, as everywhere.
    """
    modules = [m for n, m in list(sys.modules.items()) if n.startswith("curation.")]
    kernels = {k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
    loaded = 0
    for kernel in kernels:
        with contextlib.suppress(AttributeError, OSError, TypeError):
            for signature, *_ in kernel._cache._cache_file._load_index():  # type: ignore[attr-defined]
                kernel.compile(signature)
                loaded += 1
    return loaded


importlib.import_module("apache_beam.runners.worker.sdk_worker")
for _stage in known_stages().values():
    importlib.import_module(_stage.module)
load_kernels()
