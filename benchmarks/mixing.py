"""Check mixes from the outside.

  python benchmarks/mixing.py draw --input RUN/classify --output FOLDER [--recipe llama3]
      [--budget 50000000] [--workers 1 2 4] [--set KEY=VALUE ...]
  python benchmarks/mixing.py curves [--documents 10000000]
  python benchmarks/mixing.py published [--documents 2000000]
  python benchmarks/mixing.py stops --input RUN/tokenize [--stops 1000]

`draw` draws a mix of a finished run at a token budget. It runs `mix` and `tokenize` once for each number of workers, each in its own folder below FOLDER, and
prints JSON: each domain's wanted share and the share that tiktoken counts in the documents drawn
(the vocabulary is the same, the encoder isn't ours), tokens found in the shards, whether all runs
gave the same bytes, and CPU seconds by step. The budget must be within the recipe's `max_epochs`;
`--epochs N` raises all of them.

`curves` draws made documents by Olmo 3's curve and compares copies with what is expected, in 20
buckets of quality. `published` draws one made corpus by each recipe of a published mix and prints a
table of wanted and drawn shares. `stops` reads token shards, stops at random steps and goes on with
other world sizes, and compares with a reader that was never stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from curation.mix import NARROW, plan_tables
from curation.mix import draw as draw_rows
from curation.mix.schedule import spans
from curation.recipe import load
from curation.schema import DOMAINS
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


def made(documents: int, sources: Sequence[str], domains: Sequence[str]) -> pa.Table:
    """Rows as a mix sees them, with lengths as web pages have them."""
    rng = np.random.default_rng(documents)
    columns = {
        "id_hash": rng.integers(0, 2**64, documents, np.uint64),
        "source": pa.array(np.array(sources)[rng.integers(0, len(sources), documents)]),
        "domain": pa.array(np.array(domains)[rng.integers(0, len(domains), documents)]),
        "quality": rng.random(documents) * 5,
        "date": pa.array(rng.integers(10**15, 17 * 10**14, documents), pa.timestamp("us", "UTC")),
        "cluster_size": np.minimum(rng.zipf(1.8, documents), 10**6),
        "variety": np.ones(documents, np.float32),
        "tokens": np.exp(rng.normal(6.3, 1, documents)).astype(np.int64) + 2,
    }
    empty = {f.name: pa.nulls(documents, f.type) for f in NARROW if f.name not in columns}
    return pa.table(columns | empty, schema=NARROW)


def check_curves(options: argparse.Namespace) -> dict[str, Any]:
    """Copies in 20 buckets of quality, and what Olmo 3's curve expects there."""
    table = made(options.documents, ["unnamed"], ["general"])
    curve = [[0, 0], [0.4, 0], [0.95, 2], [1, 7]]
    only = [f"mix.domains.{d}.share={int(d == 'general')}" for d in load("llama3").mix.domains]
    wanted = f"mix.repeats={{by: quality, curve: {curve}, mean: 1}}"
    weights = "mix.domains.multilingual.rank_weights=[]"
    settings = load("llama3", [*only, wanted, weights, "mix.topics={}"]).mix.mixture()
    repeats = draw_rows(table, plan_tables([table], settings)).repeats
    tokens = table.column("tokens").to_numpy()
    ranks = np.empty(len(table))
    ranks[np.argsort(table.column("quality").to_numpy())] = (np.arange(len(table)) + 0.5) / len(
        table
    )
    expected = np.interp(ranks, *zip(*curve, strict=True))
    expected *= tokens.sum() / (expected * tokens).sum()
    buckets = (ranks * 20).astype(int)
    rows = [
        {
            "bucket": bucket,
            "expected": float(expected[buckets == bucket].mean()),
            "copies": float(repeats[buckets == bucket].mean()),
        }
        for bucket in range(20)
    ]
    off = [abs(r["copies"] / r["expected"] - 1) for r in rows if r["expected"]]
    return {"documents": len(table), "buckets": rows, "largest_error": max(off)}


PUBLISHED = ("llama3", "llama3-schedule", "olmo3", "nemotron3", "fineweb2-rehydrated")


def check_published(options: argparse.Namespace) -> dict[str, Any]:
    """Wanted and drawn shares of each published mix, in all and in each of its phases."""
    mixes = {name: load(name).mix.mixture() for name in PUBLISHED}
    inputs = sorted({name for mix in mixes.values() for name in mix.inputs})
    found: dict[str, Any] = {}
    for name, mix in mixes.items():
        # Each document has a domain, and an input of those that the recipe knows.
        known = [n for n in inputs if n in mix.inputs] or ["unnamed"]
        table = made(options.documents, known, list(DOMAINS))
        settings = mix.model_copy(update={"budget": "auto", "on_shortage": "shrink"})
        result = draw_rows(table, plan_tables([table], settings))
        found[name] = shares_of(table, result, settings)
    errors = [abs(row["is"] - row["wanted"]) for rows in found.values() for row in rows]
    return {"documents": options.documents, "mixes": found, "largest_error": max(errors)}


def shares_of(table: pa.Table, result: Any, settings: Any) -> list[dict[str, Any]]:
    """Shares counted from the copies alone: of the whole mix, or by place in training."""
    names = table.column("source" if settings.inputs else "domain").to_numpy()
    rows = np.repeat(np.arange(len(table)), result.repeats)
    tokens, names = table.column("tokens").to_numpy()[rows], names[rows]
    if result.places is None:
        places = np.zeros(len(rows))
    else:
        places = result.places.flatten().to_numpy() / 2.0**64
    lines = []
    for span in spans(settings):
        inside = (places >= span.start) & (places < span.end)
        total = tokens[inside].sum()
        for name in settings.domains:
            got = float(tokens[inside & (names == name)].sum() / total)
            if span.share(name) or got:
                line = {"phase": span.name, "domain": name, "wanted": span.share(name), "is": got}
                lines.append(line)
    return lines


def check_stops(options: argparse.Namespace) -> dict[str, Any]:
    """Random stops at world sizes 1 to 8, each gone on with another; samples that differ."""
    rng = np.random.default_rng(7)
    whole = TokenShards(options.input, 1, seed=3)
    every = [hash(batch.tobytes()) for batch in whole] if whole.phases else []
    count = len(every) or 4 * whole.samples
    every = every or [hash(batch.tobytes()) for batch in islice(whole, count)]
    wrong = compared = 0
    for _ in range(options.stops):
        state, position = None, 0
        for _ in range(2):
            world, batch = int(rng.integers(1, 9)), int(rng.integers(1, 5))
            ranks = [TokenShards(options.input, batch, r, world, seed=3) for r in range(world)]
            if state is None:
                start = int(rng.integers(0, count // (world * batch)))
                state = ranks[0].state_dict(start)
                position = start * world * batch
                continue
            for reader in ranks:
                reader.load_state_dict(state)
            steps = min(5, (count - position) // (world * batch))
            streams = [iter(reader) for reader in ranks]
            rows = [row for _ in range(steps) for s in streams for row in next(s)]
            wanted = every[position : position + len(rows)]
            got = [hash(row.tobytes()) for row in rows]
            wrong += sum(a != b for a, b in zip(wanted, got, strict=True))
            compared += len(rows)
    return {"stops": options.stops, "samples_compared": compared, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    checks = {"curves": check_curves, "published": check_published, "stops": check_stops}
    parser.add_argument("what", nargs="?", choices=["draw", *checks], default="draw")
    parser.add_argument("--documents", type=int, default=2_000_000)
    parser.add_argument("--stops", type=int, default=1000)
    parser.add_argument("--input", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--recipe", default="llama3")
    parser.add_argument("--budget", type=int, default=50_000_000)
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--set", action="append", default=[], dest="assignments")
    options = parser.parse_args()
    if options.what in checks:
        print(json.dumps(checks[options.what](options), indent=1))
        return
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
