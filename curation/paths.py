"""Paths of documents: code and mathematics have their own rules; everything else is prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from curation.config import Settings, Share

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from curation.text.structure import Structure

PROSE_PATH, CODE_PATH, MATH_PATH = 0, 1, 2
PATHS = ("prose", "code", "mathematics")


__all__ = ["CODE_PATH", "MATH_PATH", "PATHS", "PROSE_PATH", "PathSettings", "document_paths"]


class PathSettings(Settings):
    """Thresholds above which a whole document is code or mathematics."""

    code: Share = Field(description="least share of the characters that are in lines of code")
    mathematics: float = Field(
        ge=0,
        description="least number of marks of mathematics (TeX commands, powers, symbols) "
        "per character",
    )


def document_paths(found: Structure, settings: PathSettings) -> npt.NDArray[np.uint8]:
    """Return the path of every document: uint8 [texts], an index into `PATHS`."""
    import numpy as np

    out = np.full(len(found.code_share), PROSE_PATH, np.uint8)
    out[found.math_ratio >= settings.mathematics] = MATH_PATH
    out[found.code_share >= settings.code] = CODE_PATH
    return out
