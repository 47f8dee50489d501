"""What one document that kills its worker costs: CPU seconds of a shard with it and without it.

    python benchmarks/poison.py [--stages identify-language,filter] [--documents 4000]

A shard of generated documents of 5 KB goes through each stage with one local worker: as it is, and
with a document in its middle that ends the process which works on it. The allowance is that the
document costs as much again as twice the shard's own work. Exits with 1 beyond it.
"""

from __future__ import annotations

import argparse
import functools
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.memory import words
from curation.schema import DOCUMENTS
from pipelines.cli import main as curate
from pipelines.runners import local
from tests.engine import poison

_ALLOWED = 2
_BYTES = 5000


def write_shard(path: Path, count: int, deadly: str) -> None:
    """Documents of words, one of them with the mark `deadly`, which may be empty."""
    dice = np.random.default_rng(20260101)
    vocabulary = words(dice)
    schema = pa.schema([*DOCUMENTS, pa.field("language", pa.string())])
    rows = []
    for number in range(count):
        lines = (" ".join(dice.choice(vocabulary, 12)) for _ in range(_BYTES // 90))
        text = "\n".join(f"{line.capitalize()}." for line in lines)
        text = f"{deadly} {text}" if number == count // 2 else text
        place = {"file": path.name, "offset": number}
        row = {"id": str(number), "url": f"https://a.example/{number}", "text": text}
        rows.append({**row, "title": "", "source": place, "language": "en"})
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(stage: str, inputs: Path, output: Path) -> float:
    """CPU seconds of the workers in one run of a stage."""
    before = _spent()
    command = [stage, "--input", str(inputs), "--output", str(output), "--workers", "1", "--quiet"]
    if curate(command):
        raise SystemExit(f"{stage} failed")
    return _spent() - before


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--stages", type=lambda text: text.split(","), default=["identify-language", "filter"]
    )
    parser.add_argument("--documents", type=int, default=4000)
    options = parser.parse_args()
    local._start_worker = functools.partial(poison.start_deadly_worker)
    worst = 0.0
    for stage in options.stages:
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch)
            write_shard(place / "sound/a.parquet", options.documents, "")
            write_shard(place / "deadly/a.parquet", options.documents, f"abort in {stage}")
            seconds(stage, place / "sound", place / "first")  # kernels are compiled
            sound = seconds(stage, place / "sound", place / "out")
            deadly = seconds(stage, place / "deadly", place / "out2")
        ratio = (deadly - sound) / sound
        print(
            f"{stage:18} {sound:6.1f} s, with it {deadly:6.1f} s: costs {ratio:.2f} times the shard"
        )
        worst = max(worst, ratio)
    return int(worst > _ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
