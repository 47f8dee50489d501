"""Run a recipe up to the mixture, and read what became of each of its documents."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from curation.recipe import load as load_recipe

#: Stages that choose among good documents or only encode them.
LAST = ("mix", "tokenize")
#: Stages whose removals cost nothing that is not kept elsewhere.
DUPLICATES = ("dedup-urls", "dedup-documents")


@dataclass
class Fate:
    """What a tool made of one document.

    `before` is the text that extraction gave, `after` the text at the end (None: removed, by
    `stage` and `reason`). Documents removed as a copy of another have `duplicate` set.
    """

    before: str
    after: str | None = None
    stage: str = ""
    reason: str = ""
    duplicate: bool = False


def run(recipe: str, inputs: Sequence[Path], output: Path, settings: Sequence[str]) -> None:
    """Run the recipe's stages before the mixture in its own order; resume what is complete."""
    stages = [stage for stage in load_recipe(recipe).stages if stage not in LAST]
    command = [sys.executable, "-m", "pipelines.cli", "run", recipe, "--quiet"]
    command += ["--output", str(output), "--stages", ",".join(stages)]
    command += ["--input", *map(str, inputs)]
    for assignment in settings:
        command += ["--set", assignment]
    subprocess.run(command, check=True)


def order(output: Path) -> list[str]:
    """Return the stages of a finished run in its recipe's order, without mixture and tokens."""
    recipe = yaml.safe_load((output / "recipe.yaml").read_text(encoding="utf-8"))
    stages = [stage for stage in recipe["stages"] if stage not in LAST]
    missing = [stage for stage in stages if not (output / stage / "manifest.json").exists()]
    if missing:
        raise SystemExit(f"{output}: not complete: {', '.join(missing)}; run the recipe first")
    return stages


def fates(output: Path) -> dict[tuple[str, int], Fate]:
    """Return what a finished run made of each extracted document, by input file name and row."""
    stages = order(output)
    found: dict[str, Fate] = {}
    where: dict[str, tuple[str, int]] = {}
    for row in _rows(output / stages[0] / "documents", ["id", "text", "source"]):
        found[row["id"]] = Fate(row["text"])
        where[row["id"]] = (Path(row["source"]["file"]).name, row["source"]["offset"])
    for stage in stages[1:]:
        for row in _rows(output / stage / "removed", ["id", "reason"]):
            fate = found[row["id"]]
            fate.stage, fate.reason = stage, row["reason"]
            fate.duplicate = stage in DUPLICATES
    for row in _rows(output / stages[-1] / "documents", ["id", "text"]):
        found[row["id"]].after = row["text"]
    return {where[key]: fate for key, fate in found.items()}


def _rows(folder: Path, columns: list[str]) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file, columns=columns).to_pylist()]
