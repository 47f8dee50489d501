"""What benchmarks look at in a run folder."""

from __future__ import annotations

from pathlib import Path


def stage_at_work(output: Path) -> str:
    """The stage that has begun and has no manifest; empty between stages."""
    folders = (p.parent for p in output.glob("*/.work"))
    return ",".join(sorted(f.name for f in folders if not (f / "manifest.json").exists()))
