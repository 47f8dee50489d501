"""Curation: build training corpora with pure functions on strings and Arrow arrays.

`run` applies a recipe to a small table; it is `pipelines.table.run`, found on first use, as are the
packages (`curation.filters`, ...).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.table import Curated as Curated
    from pipelines.table import run as run

__version__ = "0.2.0"

_PACKAGES = ("classify", "dedup", "extract", "filters", "language", "tokenize")


def __getattr__(name: str) -> Any:
    if name in ("Curated", "run"):
        return getattr(importlib.import_module("pipelines.table"), name)
    if name in _PACKAGES:
        return importlib.import_module(f"curation.{name}")
    raise AttributeError(f"module 'curation' has no attribute {name!r}")
