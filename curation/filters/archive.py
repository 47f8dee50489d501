"""Arrays in an .npz file whose bytes depend on the arrays alone."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the arrays by name; `np.savez` would write the time of day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            held = io.BytesIO()
            np.save(held, array)
            entry = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(entry, held.getvalue(), zipfile.ZIP_DEFLATED, 9)
