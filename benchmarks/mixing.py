"""Draw a mix of a finished run at a token budget, and check it from the outside.

  python benchmarks/mixing.py --input RUN/classify --output FOLDER [--recipe llama3]
      [--budget 50000000] [--workers 1 2 4] [--set KEY=VALUE ...]

Runs `mix` and `tokenize` once for each number of workers, each in its own folder below FOLDER, and
prints JSON: each domain's wanted share and the share that tiktoken counts in the documents drawn
(the vocabulary is the same, the encoder isn't ours), tokens found in the shards, whether all runs
gave the same bytes, and CPU seconds by step. The budget must be within the recipe's `max_epochs`;
`--epochs N` raises all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml

from curation.recipe import load
from curation.tokenize import TokenShards, load_tokenizer

SKIPPED = ("timings.json", "report.html", "report.json", ".lock")


def draw(options: argparse.Namespace, workers: int) -> Path:
    """Run both stages; the run folder."""
    folder = options.output / f"workers-{workers}"
    assignments = [f"mix.budget={options.budget}", *options.assignments]
    if options.epochs:
        domains = load(options.recipe).mix.domains
        assignments += [f"mix.domains.{d}.max_epochs={options.epochs}" for d in domains]
    command = [sys.executable, "-m", "pipelines.cli", "run", options.recipe, "--quiet", "--fresh"]
    command += ["--stages", "mix,tokenize", "--input", str(options.input), "--output", str(folder)]
    command += ["--workers", str(workers)]
    for assignment in assignments:
        command += ["--set", assignment]
    subprocess.run(command, check=True)
    return folder


def counted(folder: Path) -> Counter[str]:
    """Tokens by domain in the drawn documents, as often as they repeat, by tiktoken."""
    settings = yaml.safe_load((folder / "recipe.yaml").read_text())["tokenize"]
    encoding = load_tokenizer(settings["tokenizer"]).to_tiktoken()
    found: Counter[str] = Counter()
    for path in sorted((folder / "mix/documents").glob("*.parquet")):
        table = pq.read_table(path, columns=["text", "domain", "repeats"])
        for row in table.to_pylist():
            tokens = len(encoding.encode_ordinary(row["text"])) + settings["bos"] + settings["eos"]
            found[row["domain"]] += tokens * row["repeats"]
    return found


def tokens_in_shards(folder: Path) -> int:
    """Tokens in all sequences that are not padding."""
    settings = yaml.safe_load((folder / "recipe.yaml").read_text())["tokenize"]
    pad = load_tokenizer(settings["tokenizer"]).pad
    shards = TokenShards(folder / "tokenize", 1, shuffle=False)
    rows = (shards.take(np.array([k])) for k in range(shards.samples))
    return sum(int((row != pad).sum()) for row in rows)


def files(folder: Path) -> dict[str, bytes]:
    """Content of every file that must be the same."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in SKIPPED
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recipe", default="llama3")
    parser.add_argument("--budget", type=int, default=50_000_000)
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--set", action="append", default=[], dest="assignments")
    options = parser.parse_args()
    folders = [draw(options, workers) for workers in options.workers]
    tokens = counted(folders[0])
    total = sum(tokens.values())
    manifest = json.loads((folders[0] / "mix/manifest.json").read_text())
    shares = {row["domain"]: row["share"] for row in manifest["notes"]["mix"]}
    rows = {
        domain: {
            "wanted": share,
            "is": round(tokens[domain] / options.budget, 6),
            "off": round(tokens[domain] / options.budget - share, 6),
        }
        for domain, share in shares.items()
    }
    first = files(folders[0])
    seconds: dict[str, Any] = {
        stage: json.loads((folders[0] / stage / "timings.json").read_text())["steps"]
        for stage in ("mix", "tokenize")
    }
    result = {
        "budget": options.budget,
        "tokens": total,
        "tokens_in_shards": tokens_in_shards(folders[0]),
        "shares": rows,
        "largest_error": max(abs(row["off"]) for row in rows.values()),
        "workers": options.workers,
        "same_bytes": all(files(folder) == first for folder in folders[1:]),
        "cpu_seconds": {
            s: {k: round(v["cpu"], 2) for k, v in t.items()} for s, t in seconds.items()
        },
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
