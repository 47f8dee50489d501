"""The explorer on a made run: time to the first answers, of every kind of click, of a dragged threshold.

    curate run sample --output out
    python benchmarks/explorer.py --from out --documents 10000000 --folder made

The run is made in `--folder`, once: signals are drawn from those of a finished run and shaken a
little, rules decide on them as in a run; texts are short. Then it is prepared as by `curate view
--prepare`, and a process of its own opens it and answers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from curation.filters.filter_settings import FilterSettings
from curation.filters.rules import RuleBook
from pipelines.run_folder import RECIPE_FILE, run_recipe, run_settings
from pipelines.storage.files import Folder
from pipelines.storage.manifest import after, documents_of, read_manifest, write_manifest
from pipelines.storage.shards import TableWriter
from pipelines.view.explorer import Explorer, prepare

_SHARD = 200_000
_STAGES = ("extract", "filter", "mix")
_EXTRACT_SHARE, _MIX_SHARE = 0.02, 0.05
_NOISE = 0.05


def read_signals(run: Path) -> pa.Table:
    """Documents of the mix stage's input, with signals."""
    files = [*(run / "filter" / "documents").glob("*"), *(run / "filter" / "removed").glob("*")]
    columns = ["signals", "language", "domain", "topic", "format", "quality"]
    return pa.concat_tables(pq.read_table(f, columns=columns) for f in sorted(files))


def shard(real: pa.Table, number: int, rows: int) -> pa.Table:
    """Documents with the signals of real ones, shaken."""
    dice = np.random.default_rng(number)
    taken = real.take(pa.array(dice.integers(0, len(real), rows)))
    signals = taken["signals"].combine_chunks()
    columns = []
    for field in signals.type:
        values = signals.field(field.name).to_numpy(zero_copy_only=False)
        shaken = values * (1 + _NOISE * dice.standard_normal(rows))
        whole = bool(np.nanmax(np.abs(values - np.rint(values)), initial=0) == 0)
        columns.append(pa.array(np.rint(shaken) if whole else shaken))
    first = number * _SHARD
    hosts = dice.zipf(1.3, rows) % 500_000
    ids = [f"{h:016x}{i:016x}" for i, h in enumerate(dice.integers(0, 1 << 62, rows), first)]
    lengths = dice.lognormal(3.5, 0.7, rows).astype(int) + 1
    text = "the quick brown fox jumps over the lazy dog and runs away " * 40
    return pa.table(
        {
            "id": ids,
            "url": [f"https://host{h}.example/path/{i}.html" for i, h in enumerate(hosts, first)],
            "date": pa.array(dice.integers(1.5e15, 1.7e15, rows), pa.timestamp("us", "UTC")),
            "text": pa.array([text[:n] for n in lengths], pa.large_string()),
            "title": [f"Title {i}" for i in range(first, first + rows)],
            "source": pa.array(
                [{"file": f"crawl-{number % 40:05d}.warc.gz", "offset": i} for i in range(rows)]
            ),
            **{name: taken[name] for name in real.column_names if name != "signals"},
            "signals": pa.StructArray.from_arrays(columns, fields=list(signals.type)),
            "tokens": pa.array(lengths // 4 + 1, pa.int64()),
        }
    )


def write_run(source: Path, folder: Path, documents: int) -> None:
    """Make the run of stages extract, filter and mix."""
    origin = Folder(str(source))
    recipe = run_recipe(origin) | {"stages": list(_STAGES)}
    folder.mkdir(parents=True)
    (folder / RECIPE_FILE).write_text(yaml.safe_dump(recipe, sort_keys=False))
    rules = RuleBook(FilterSettings.model_validate(run_settings(origin, "filter")))
    real = read_signals(source)
    files: dict[str, dict[str, Any]] = {stage: {} for stage in _STAGES}
    counts = {stage: [0, 0] for stage in _STAGES}
    for number in range(-(-documents // _SHARD)):
        table = shard(real, number, min(_SHARD, documents - number * _SHARD))
        parts = divided(table, rules, np.random.default_rng(number + (1 << 32)))
        for (stage, kind), part in parts.items():
            name = f"{kind}/crawl-{number:05d}.parquet"
            record = write_part(Folder(str(folder / stage), sync=False), name, part)
            files[stage][name] = record
            counts[stage][kind == "documents"] += part.num_rows
        print(f"{number + 1} shards", file=sys.stderr)
    write_manifests(folder, origin, files, counts, documents)


def divided(
    table: pa.Table, rules: RuleBook, dice: np.random.Generator
) -> dict[tuple[str, str], pa.Table]:
    """The rows that each stage removes, and those that the last one keeps."""
    chance = dice.random(len(table))
    verdicts = rules.judge(table["signals"].combine_chunks(), table["language"].combine_chunks())
    reason = verdicts.verdicts.reason
    lost = chance < _EXTRACT_SHARE
    drawn = chance > 1 - _MIX_SHARE
    stages = np.where(lost, 0, np.where(pc.is_valid(reason), 1, np.where(drawn, 2, 3)))
    removed = [("extract", "extract.empty"), ("filter", None), ("mix", "mix.over_budget")]
    found = {}
    for number, (stage, why) in enumerate(removed):
        mine = pa.array(stages == number)
        part = table.filter(mine)
        size = len(part)
        names = pa.array([why] * size, pa.string()) if why else reason.filter(mine)
        value = pa.nulls(size, pa.float64()) if why else verdicts.verdicts.value.filter(mine)
        part = part.drop_columns(["signals"]) if stage == "extract" else part
        columns = {"stage": pa.array([stage] * size, pa.string()), "reason": names, "value": value}
        columns |= {
            "threshold": pa.nulls(size, pa.float64()),
            "kept_id": pa.nulls(size, pa.string()),
        }
        for name, column in columns.items():
            part = part.append_column(name, column)
        found[stage, "removed"] = part
    found["mix", "documents"] = table.filter(pa.array(stages == 3))
    return found


def write_part(place: Folder, name: str, part: pa.Table) -> dict[str, Any]:
    with TableWriter(place, name, part.schema) as writer:
        for batch in part.to_batches(512):
            writer.write(batch)
    return writer.record.as_dict()


def write_manifests(folder: Path, origin: Folder, files: Any, counts: Any, documents: int) -> None:
    left = documents
    before: tuple[str, Any] | None = None
    for stage in _STAGES:
        place = Folder(str(folder / stage))
        manifest = read_manifest(origin / stage) | {"files": files[stage], "records": {}}
        removed = counts[stage][0]
        manifest["counts"] = {
            "documents_in": left,
            "documents": left - removed,
            "documents_removed": removed,
        }
        left -= removed
        manifest.pop("after", None)
        if before is not None:
            manifest["after"] = after(*before)
        write_manifest(place, manifest)
        before = stage, documents_of(manifest)


class Seconds(dict[str, tuple[float, float]]):
    """Wall and CPU seconds by label: on a busy machine the second ones are the machine's own."""

    def of(self, label: str, action: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = action()
        self[label] = time.perf_counter() - wall, time.process_time() - cpu
        return answer


def clicks(run: Path, prepared: Path) -> dict[str, Any]:
    """Seconds of everything that a reader does, each for the first time."""
    seconds = Seconds()
    explorer = seconds.of("open", lambda: Explorer(str(run), prepared=prepared))
    ask = explorer.questions
    seconds.of("run", lambda: ask["run"]({}))
    seconds.of("funnel", lambda: ask["funnel"]({}))
    seconds.of("facets", lambda: ask["values"]({"most": "8"}))
    parts = [seconds[name] for name in ("open", "run", "funnel")]
    seconds["first paint: open, run, funnel"] = tuple(map(sum, zip(*parts, strict=True)))
    seconds.of("funnel of a language", lambda: ask["funnel"]({"language": "de"}))
    seconds.of("facets of a language", lambda: ask["values"]({"language": "de", "most": "8"}))
    seconds.of("hosts", lambda: ask["hosts"]({}))
    seconds.of("duplicates", lambda: ask["clusters"]({}))
    seconds.of("documents", lambda: ask["documents"]({"most": "50"}))
    query = {"most": "50", "sort": "characters", "down": "1"}
    seconds.of("documents, sorted", lambda: ask["documents"](query))
    seconds.of("documents, by URL", lambda: ask["documents"]({"q": "host4711.example"}))
    limits = seconds.of("rules", lambda: ask["limits"]({}))["limits"]
    chosen = next(limit for limit in limits if limit["key"].endswith("rules.gopher.word_count.min"))
    number = str(chosen["limit"])
    seconds.of("histogram", lambda: ask["signal"]({"limit": number}))
    seconds.of("threshold, first", lambda: ask["change"]({"limit": number, "threshold": "60"}))
    drags = Seconds()
    for threshold in range(61, 81):
        query = {"limit": number, "threshold": str(threshold)}
        drags.of(str(threshold), lambda query=query: ask["change"](query))
    seconds["threshold, dragged (worst of 20)"] = max(drags.values())
    query = {"limit": number, "threshold": "70"}
    seconds.of("ten documents of each side", lambda: ask["nearest"](query))
    seconds.of("a document", lambda: ask["document"]({"row": "100000"}))
    status = Path("/proc/self/status").read_text()  # what getrusage says includes the parent's
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return {"seconds": seconds, "peak_mb": round(peak)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, required=True, help="a finished run")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--clicks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    prepared = options.folder.with_name(f"{options.folder.name}.view")
    if options.clicks:
        print(json.dumps(clicks(options.folder, prepared)))
        return
    if not options.folder.exists():
        write_run(options.source, options.folder, options.documents)
    start = time.perf_counter()
    size = prepare(str(options.folder), prepared)
    spent = time.perf_counter() - start
    whole = sum(f.stat().st_size for f in options.folder.rglob("*") if f.is_file())
    print(f"prepared in {spent:.0f} s: {size:,} bytes, {size / options.documents:.0f} a document")
    print(f"the made run: {whole:,} bytes, {whole / options.documents:.0f} a document")
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--clicks"], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    for label, (wall, cpu) in found["seconds"].items():
        print(f"{label:<40} {wall:8.3f} s, CPU {cpu:8.3f} s")
    print(f"{'peak memory':<40} {found['peak_mb']:8,} MB")


if __name__ == "__main__":
    main()
