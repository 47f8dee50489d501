"""Arrays in .npz files, for models and other numeric data."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, first_line


def read_arrays(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays by name. Use it inside `read_as`, as zip and NumPy raise own errors."""
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def read_headed(path: str | Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the JSON in the array `head`, and the other arrays. Use it inside `read_as`."""
    arrays = read_arrays(path)
    return json.loads(arrays.pop("head").tobytes()), arrays


@contextmanager
def read_as(name: str | Path, kind: str) -> Iterator[None]:
    """Turn any error while reading a file into a ConfigError: `name: not kind: reason`."""
    try:
        yield
    except Exception as error:
        reason = first_line(error)
        raise ConfigError(f"{name}: not {kind}: {reason}") from None
