"""The hash of the toolkit's own code."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path


def source_sha256(packages: Sequence[Path]) -> str:
    """Return one SHA-256 of all Python files of packages, by their names and contents."""
    found = hashlib.sha256()
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            name = f"{package.name}/{path.relative_to(package).as_posix()}"
            found.update(f"{digest}  {name}\n".encode())
    return found.hexdigest()
