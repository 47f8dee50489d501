"""The explorer on a made run: time to the first answers, of every kind of click, of a dragged threshold.

    curate run sample --output out
    python benchmarks/explorer.py --from out --documents 10000000 --folder made

The run is made in `--folder`, once: signals are drawn from those of a finished run and shaken a
little, rules decide on them as in a run; a tenth are near-duplicates; texts are short. Then it is
prepared as by `curate view --prepare`, and a process of its own opens it and answers. `--compare`
adds a comparison of the run with itself, `--report` a report, `--browser` first visits to every
view in Chromium (needs Selenium): as soon as the funnel is drawn, while `curate view` still finds
out ahead what views ask for, and after that.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import threading
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
from pipelines.report.collect import collect
from pipelines.report.render import write_report
from pipelines.run_folder import RECIPE_FILE, run_recipe, run_settings
from pipelines.storage.files import Folder
from pipelines.storage.manifest import after, documents_of, read_manifest, write_manifest
from pipelines.storage.shards import TableWriter
from pipelines.view.explorer import Explorer, prepare
from pipelines.view.server import Server

_SHARD = 200_000
_STAGES = ("extract", "dedup-documents", "filter", "mix")
_EXTRACT_SHARE, _COPY_SHARE, _MIX_SHARE = 0.02, 0.1, 0.05
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
    fates = [
        chance < _EXTRACT_SHARE,
        chance < _EXTRACT_SHARE + _COPY_SHARE,
        pc.is_valid(reason).to_numpy(zero_copy_only=False),
        chance > 1 - _MIX_SHARE,
    ]
    stages = np.select(fates, range(len(fates)), len(fates))
    ids = table["id"].filter(pa.array(stages == len(fates)))
    reasons = ("extract.empty", "document.near", None, "mix.over_budget")
    found = {}
    for number, (stage, why) in enumerate(zip(_STAGES, reasons, strict=True)):
        mine = pa.array(stages == number)
        part = table.filter(mine)
        size = len(part)
        kept = pa.nulls(size, pa.string())
        if stage == "dedup-documents":
            kept = ids.take(pa.array(dice.zipf(1.5, size) % len(ids))).combine_chunks()
        names = pa.array([why] * size, pa.string()) if why else reason.filter(mine)
        value = pa.nulls(size, pa.float64()) if why else verdicts.verdicts.value.filter(mine)
        part = part.drop_columns(["signals"]) if number < _STAGES.index("filter") else part
        columns = {"stage": pa.array([stage] * size, pa.string()), "reason": names, "value": value}
        columns |= {
            "threshold": pa.nulls(size, pa.float64()),
            "kept_id": kept,
        }
        for name, column in columns.items():
            part = part.append_column(name, column)
        found[stage, "removed"] = part
    found["mix", "documents"] = table.filter(pa.array(stages == len(fates)))
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


def clicks(run: Path, prepared: Path, compare: bool) -> dict[str, Any]:
    """Seconds of everything that a reader does, each for the first time."""
    seconds = Seconds()
    other = str(run) if compare else None
    explorer = seconds.of(
        "open", lambda: Explorer(str(run), other, prepared=prepared, other_prepared=prepared)
    )

    def ask(label: str, question: str, **query: Any) -> Any:
        texts = {name: str(value) for name, value in query.items()}
        return seconds.of(label, lambda: explorer.questions[question](texts))

    ask("run", "run")
    ask("funnel", "funnel")
    ask("facets", "values", most=8)
    parts = [seconds[name] for name in ("open", "run", "funnel")]
    wall, cpu = map(sum, zip(*parts, strict=True))
    seconds["first paint: open, run, funnel"] = wall, cpu
    ask("funnel of a language", "funnel", language="de")
    ask("facets of a language", "values", language="de", most=8)
    ask("funnel of a host", "funnel", host="host17.example")
    ask("hosts", "hosts")
    ask("hosts by documents removed", "hosts", order="removed")
    clusters = ask("duplicates", "clusters")["clusters"]
    ask("duplicates of a language", "clusters", language="de")
    ask("a removed copy", "document", row=clusters[0]["first"])
    ask(
        "its difference",
        "difference",
        row=clusters[0]["first"],
        **{"with": clusters[0]["kept_row"]},
    )
    ask("documents", "documents", most=50)
    for column in ("characters", "host", "fate"):
        ask(f"documents by {column}", "documents", most=50, sort=column, down=1)
    ask("documents, page 2,000", "documents", most=50, first=100_000)
    ask("documents, by URL", "documents", q="host4711.example")
    ask("documents, by URL in vain", "documents", q="no-such-host.example")
    ask(
        "documents, by id",
        "documents",
        q=explorer.ledger.read(explorer.folder, [9], ["id"])[0]["id"],
    )
    ask("text, first answer", "text", q="lazy dog", rule="document.near")
    ask("text, first answer of a search in vain", "text", q="no such words")
    limits = ask("rules", "limits")["limits"]
    chosen = next(limit for limit in limits if limit["key"].endswith("rules.gopher.word_count.min"))
    number = chosen["limit"]
    ask("histogram", "signal", limit=number)
    ask("histogram of a language", "signal", limit=number, language="de")
    ask("threshold, first", "change", limit=number, threshold=60)
    drags = Seconds()
    for threshold in range(61, 81):
        query = {"limit": str(number), "threshold": str(threshold)}
        drags.of(str(threshold), lambda query=query: explorer.change(query))
    seconds["threshold, dragged (worst of 20)"] = max(drags.values())
    ask("ten documents of each side", "nearest", limit=number, threshold=70)
    ask("a document", "document", row=100_000)
    ask("a kept document", "document", row=len(explorer.ledger) - 9)
    for view in ("lines", "mix", "errors"):
        ask(view, view)
    ask("sample of a rule", "sample", of="gopher.word_count")
    ask("sample of the kept", "sample")
    if compare:
        ask("compare", "compare")
        ask("compare, by language, domain, topic", "sides")
        ask("compare, a signal", "compared", signal=chosen["signal"])
    return {"seconds": seconds, "peak_mb": peak_mb()}


def visits(run: Path, prepared: Path, compare: bool, at_once: bool) -> dict[str, Any]:
    """Seconds until each view is drawn whole in Chromium, the first time and again.

    `at_once` begins while answers are found out ahead, else they are there.
    """
    from selenium import webdriver

    other = str(run) if compare else None
    explorer = Explorer(str(run), other, prepared=prepared, other_prepared=prepared)
    options = webdriver.ChromeOptions()
    for name in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(name)
    drawn = (
        "const done = view => document.querySelector('main h1')?.textContent.toLowerCase() === view"
        " && !document.querySelector('.loading, [aria-busy=true]'); return done(arguments[0])"
    )
    views = ["signals", "duplicates", "hosts", "documents", "lines", "mix", "errors", "judge"]
    seconds = Seconds()
    with Server(explorer) as server, webdriver.Chrome(options=options) as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def visit(address: str, view: str) -> None:
            browser.execute_script("location = arguments[0]", address)
            while not browser.execute_script(drawn, view):
                time.sleep(0.01)

        seconds.of("funnel", lambda: visit(server.url, "funnel"))
        warming = threading.Thread(target=explorer.warm, daemon=True)
        warming.start()
        if not at_once:
            seconds.of("(found out ahead)", warming.join)
        for again in (" at once",) if at_once else ("", ", again"):
            for view in [*views, "compare"] if compare else views:
                seconds.of(f"{view}{again}", functools.partial(visit, f"#/{view}", view))
        server.shutdown()
    return {"seconds": seconds, "peak_mb": peak_mb()}


def report(run: Path) -> dict[str, Any]:
    """Seconds and bytes of the report of the run."""
    seconds = Seconds()
    facts = seconds.of("report: read", lambda: collect(str(run)))
    seconds.of("report: write", lambda: write_report(Folder(str(run)), facts))
    sizes = {name: (run / name).stat().st_size for name in ("report.html", "report.json")}
    return {"seconds": seconds, "peak_mb": peak_mb(), "bytes": sizes}


def peak_mb() -> int:
    """Peak memory of this process; getrusage would include the parent's."""
    status = Path("/proc/self/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, required=True, help="a finished run")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--compare", action="store_true", help="compare the run with itself, too")
    parser.add_argument("--report", action="store_true", help="write a report of the run, too")
    parser.add_argument("--browser", action="store_true", help="visit every view in Chromium, too")
    children = ["clicks", "visits", "visits at once", "report"]
    parser.add_argument("--child", choices=children, help=argparse.SUPPRESS)
    options = parser.parse_args()
    prepared = options.folder.with_name(f"{options.folder.name}.view")
    if options.child == "clicks":
        print(json.dumps(clicks(options.folder, prepared, options.compare)))
        return
    if options.child in ("visits", "visits at once"):
        at_once = options.child != "visits"
        print(json.dumps(visits(options.folder, prepared, options.compare, at_once)))
        return
    if options.child == "report":
        print(json.dumps(report(options.folder)))
        return
    if not options.folder.exists():
        write_run(options.source, options.folder, options.documents)
    if not prepared.exists():
        start = time.perf_counter()
        prepare(str(options.folder), prepared)
        spent = time.perf_counter() - start
        print(f"prepared in {spent:.0f} s, peak {peak_mb():,} MB")
    a_document = size_of(prepared) / options.documents
    real = size_of(options.source) / len(Explorer(str(options.source)).ledger)
    print(f"prepared: {size_of(prepared):,} bytes, {a_document:.0f} a document")
    print(f"the made run: {size_of(options.folder) / options.documents:,.0f} bytes a document")
    print(f"the run of its signals: {real:,.0f}, of which prepared {a_document / real:.2%}")
    print_child("clicks")
    if options.browser:
        print_child("visits at once")
        print_child("visits")
    if options.report:
        print_child("report")


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def print_child(child: str) -> None:
    """Measure in a process of its own, and print what it says."""
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--child", child], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    for label, (wall, cpu) in found["seconds"].items():
        print(f"{label:<40} {wall:8.3f} s, CPU {cpu:8.3f} s")
    print(f"{'peak memory':<40} {found['peak_mb']:8,} MB")
    for name, size in found.get("bytes", {}).items():
        print(f"{name:<40} {size:8,} bytes")


if __name__ == "__main__":
    main()
