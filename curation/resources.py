"""Locate the files shipped with the toolkit: recipes, lists, models and samples.

In a checkout they are top-level folders (`configs/`, `models/`, `data_samples/`); a wheel carries
them inside the package. Paths in recipes reach them as `builtin:configs/lists/...`.
"""

from __future__ import annotations

import functools
from pathlib import Path

from curation.errors import ConfigError

PREFIX = "builtin:"


@functools.cache
def root() -> Path:
    """Return the folder that contains `configs`, `models` and `data_samples`."""
    package = Path(__file__).resolve().parent
    packed = package / "_resources"
    return packed if packed.is_dir() else package.parent


def resolve(path: str) -> str:
    """Turn `builtin:models/x` into a local path; return any other path unchanged.

    Raises ConfigError when a built-in file does not exist. Globs are not expanded here.
    """
    if not path.startswith(PREFIX):
        return path
    local = root() / path.removeprefix(PREFIX)
    if "*" not in path and not local.exists():
        raise ConfigError(f"{path}: no such built-in file")
    return str(local)
