"""Importing this module loads all that a worker needs, before workers are forked: code, kernels."""

import importlib
import sys

from curation.compiled import KernelCache
from curation.stages import known_stages


def load_kernels() -> int:
    """Load the kernels that are kept compiled; return how many.

    One that is not kept is compiled when it is called, as everywhere.
    """
    modules = [m for n, m in list(sys.modules.items()) if n.startswith("curation.")]
    held = [value for module in modules for value in vars(module).values()]
    kernels = {id(k): k for k in held if isinstance(getattr(k, "_cache", None), KernelCache)}
    loaded = 0
    for kernel in kernels.values():
        for signature in kernel._cache.signatures():
            kernel.compile(signature)
            loaded += 1
    return loaded


importlib.import_module("apache_beam.runners.worker.sdk_worker")
for _stage in known_stages().values():
    importlib.import_module(_stage.module)
load_kernels()
