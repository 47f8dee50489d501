"""Compile kernels into a wheel: `CURATION_KERNELS=x86-64-v3 pip wheel .`

The wheel then serves one version of Python on one kind of machine. Levels are in
`curation/kernels.py`; every machine has `generic`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LEVEL = os.environ.get("CURATION_KERNELS", "")


class Kernels(BuildHookInterface):  # type: ignore[misc]
    """Adds the kernels, and tables that take long to make, to a wheel."""

    def dependencies(self) -> list[str]:
        """Return what the build environment needs: with kernels, all that the toolkit does."""
        needed: list[str] = self.metadata.core.dependencies if _LEVEL else []
        return needed

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile all kernels and check their answers. Raises CalledProcessError if it fails.

        `NUMBA_CACHE_DIR` keeps what is compiled, for a build that is interrupted.
        """
        if not _LEVEL or version == "editable":
            return
        self._made = tempfile.TemporaryDirectory(prefix="curation-wheel-")
        folder = os.environ.get("NUMBA_CACHE_DIR") or self._made.name
        given = {n: v for n, v in os.environ.items() if not n.startswith("NUMBA_")}
        processor = {"NUMBA_CPU_NAME": _LEVEL, "NUMBA_CPU_FEATURES": ""}
        # What the build needs is where pip says: not in this Python's own packages.
        places = os.pathsep.join([self.root, *filter(None, [given.get("PYTHONPATH")])])
        folders = {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": places}
        command = [sys.executable, "-m", "pipelines.cli", "warm-up", "--quiet"]
        subprocess.run(command, check=True, cwd=self.root, env=given | processor | folders)
        for file in Path(folder, "curation").iterdir():
            build_data["force_include"][str(file)] = f"curation/_resources/kernels/{file.name}"
        build_data |= {"pure_python": False, "infer_tag": True}
