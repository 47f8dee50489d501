"""Compare run folders byte by byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

#: Files that tell of the machine and the hour; everything else must be equal.
VARYING = {"timings.json", "report.json", "report.html"}


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file below, by relative path."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in VARYING
    }


def differences(left: Path, right: Path) -> list[str]:
    """Paths of files that differ or stand on one side only."""
    a, b = digests(left), digests(right)
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
