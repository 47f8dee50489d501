"""CPU seconds of compiling kernels, by package and kernel, from an empty cache.

    python benchmarks/compilation.py [--recipe sample] [--top 40] [--write]

Runs the stages of the recipe on the samples, each in a process of its own, then `decontaminate`,
which no built-in recipe has, with items made of the samples' texts, and two stages on input with
what the samples lack. Prints what was compiled and
what it cost, and which kernels are compiled for several types of arguments. `--write` writes the
list that `curate warm-up` works through (`configs/kernels.jsonl`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
_LIST = ROOT / "configs" / "kernels.jsonl"


class Recorder:
    """Notes every kernel that this process compiles or loads, its cost, and what it calls."""

    def __init__(self) -> None:
        from numba.core import event

        from curation import compiled

        self.rows: list[dict[str, Any]] = []
        self._under_way: list[dict[str, Any]] = []
        self._describe = compiled.describe_type
        self._load, self._call = compiled.KernelCache.load_overload, compiled._call
        compiled.KernelCache.load_overload = self._loading(self._load)
        compiled._call = self._calling
        listener = event.Listener
        watch = type("Watch", (listener,), {"on_start": self._start, "on_end": self._end})
        event.register("numba:compile", watch())

    def _loading(self, load: Any) -> Any:
        def loading(cache: Any, sig: Any, target_context: Any) -> Any:
            found = load(cache, sig, target_context)
            if found is not None:
                self.rows.append(self._row(cache.name, cache.is_part, sig) | {"loaded": True})
                if not self._under_way:
                    self.rows[-1]["entry"] = True
            return found

        return loading

    def _calling(self, part: Any, args: Any, kws: Any) -> Any:
        answer = self._call(part, args, kws)
        if self._under_way:  # answer[2]: the arguments after defaults are filled in
            row = self._row(_name(part()), True, answer[2])
            self._under_way[-1]["calls"].append(row["key"])
        return answer

    def _row(self, kernel: str, is_part: bool, args: Any) -> dict[str, Any]:
        types = [self._describe(a) for a in getattr(args, "args", args)]
        key = f"{kernel} {json.dumps([is_part, *types])}"
        row = {"key": key, "kernel": kernel, "types": types, "is_part": is_part}
        return row | {"calls": [], "inner": 0.0}

    def _start(self, event: Any) -> None:
        dispatcher = event.data["dispatcher"]
        is_part = getattr(dispatcher._cache, "is_part", False)
        row = self._row(_name(dispatcher), is_part, event.data["args"])
        row["entry"] = not self._under_way
        row["begun"] = time.thread_time()
        self._under_way.append(row)

    def _end(self, event: Any) -> None:
        row = self._under_way.pop()
        row["seconds"] = time.thread_time() - row.pop("begun")
        if self._under_way:
            self._under_way[-1]["inner"] += row["seconds"]
            if not row["kernel"].startswith("curation"):
                self._under_way[-1]["calls"] += row["calls"]
        row["seconds"] -= row.pop("inner")
        self.rows.append(row)


def _name(dispatcher: Any) -> str:
    return f"{dispatcher.py_func.__module__}:{dispatcher.py_func.__qualname__}"


def record(arguments: list[str], into: str) -> None:
    """Run a command of `curate` in this process, and write what it compiled."""
    recorder = Recorder()
    from pipelines.cli import main

    code = main(arguments)
    Path(into).write_text(json.dumps(recorder.rows))
    sys.exit(code)


def measure(recipe: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of every stage of a recipe on the samples."""
    from curation.recipe import load

    found = {}
    stages = load(recipe).stages
    for number, stage in enumerate(stages, 1):
        command = ["run", recipe, "--output", str(folder / recipe)]
        inputs = [] if recipe == "sample" else ["--input", str(ROOT / "data_samples")]
        arguments = [*command, *inputs, "--stages", ",".join(stages[:number])]
        found[stage] = _rows_of(stage, arguments, folder)
    return found


def measure_decontaminate(done: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of the stage on the documents of a finished one."""
    evals, stage = folder / "evals.jsonl", "decontaminate"
    texts = pq.read_table(done / "documents", columns=["text"])["text"].to_pylist()
    evals.write_text("".join(json.dumps(item) + "\n" for item in _items(texts)), encoding="utf-8")
    command = [stage, "--input", str(done), "--output", str(folder / stage), "--recipe", "llama3"]
    arguments = [*command, "--set", f"decontaminate.evals=[{evals}]"]
    return {stage: _rows_of(stage, arguments, folder)}


#: A page with what is rare: text decoded wrongly and written again, a link to its licence.
_PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Caf\u00c3\u00a9</title></head>
<body><h1>Caf\u00c3\u00a9 Zw\u00c3\u00b6lf</h1>
<p>It\u00e2\u20ac\u2122s a small caf\u00c3\u00a9 behind the harbour, na\u00c3\u00afve and old.</p>
<!-- Copyright 2024 the authors -->
<p>Licence: <a rel="license" href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a></p>
<script>var note = "Copyright 2024";</script><p>\u00a9 2024 The authors. <a href="/terms">Terms</a></p>
</body></html>
"""
_STATED = """<!DOCTYPE html><html><body><div id="app"></div><script id="__NEXT_DATA__" type="application/json">
%s</script></body></html>"""
_MANY = 3000  # documents, of which two are near duplicates: a graph with few nodes


def measure_rare(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of stages on what the samples lack."""
    page, table, odd = folder / "page.html", folder / "many.jsonl", folder / "odd.jsonl"
    page.write_text(_PAGE, encoding="utf-8")
    told = "".join(
        f"<p>The ferry left the harbour at {n}, and gulls followed it.</p>" for n in range(40)
    )
    page.with_name("state.html").write_text(_STATED % json.dumps({"props": {"body": told}}))
    line = "The fer\u00adry left the har\u00adbour at six, and the gulls went with it."
    odd.write_text(json.dumps({"text": "\n".join([line, "lorem {ipsum}", *[line] * 9])}) + "\n")
    words = [f"word{number}" for number in range(60)]
    texts = [" ".join(words), " ".join([*words[:-1], "other"])]
    texts += [f"Text {number} of its own, {number * number}." for number in range(_MANY)]
    table.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    found = {}
    of = {"extract": page.with_name("*.html"), "dedup-documents": table, "filter": odd}
    of["dedup-substrings"] = table
    for stage, source in of.items():
        output = str(folder / f"rare-{stage}")
        inputs = ["--recipe", "llama3", "--input", str(source), "--output", output]
        found[stage] = _rows_of(stage, [stage, *inputs], folder)
    return found


def _items(texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Items that the texts have whole, with words replaced, and in part; with choices; and code."""
    for number, text in enumerate(texts):
        words = text.split()[:60]
        if number % 3:
            words[20 : 20 + number % 3] = [f"Word{number}"]
        choices = [" ".join(words[i : i + 4]) for i in range(0, 12, 4)]
        item = {"question": " ".join(words), "answer": text[-200:], "choices": choices}
        yield item | {"passage": text[:2000]}
        yield {"question": f"def f{number}(a):\n    return a + {number} * len(a)\n", "answer": "3"}


def _rows_of(stage: str, arguments: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    into = folder / "rows.json"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels"), "PYTHONPATH": str(ROOT)}
    child = [sys.executable, __file__, "--record", str(into), *arguments, "--workers", "0"]
    subprocess.run([*child, "--quiet"], check=True, env=environment, cwd=ROOT)
    found: list[dict[str, Any]] = json.loads(into.read_text())
    print(f"{stage}: {sum(r.get('seconds', 0.0) for r in found):.1f} s", flush=True)
    return found


def report(rows: Iterable[dict[str, Any]], top: int) -> None:
    """Print costs by package and kernel."""
    seconds, times = Counter[str](), Counter[str]()
    packages, counts = Counter[str](), Counter[str]()
    types = defaultdict(set)
    for row in rows:
        if row.get("loaded"):
            continue
        package = ".".join(row["kernel"].partition(":")[0].split(".")[:2])
        packages[package] += row["seconds"]
        counts[package] += 1
        seconds[row["kernel"]] += row["seconds"]
        times[row["key"]] += 1
        types[row["kernel"]].add(row["key"].partition(" ")[2])
    print(f"\n{sum(packages.values()):8.1f} s {sum(counts.values()):5} compilations")
    for package, cost in packages.most_common():
        print(f"{cost:8.1f} s {counts[package]:5} {package}")
    print()
    for kernel, cost in seconds.most_common(top):
        print(f"{cost:8.2f} s {len(types[kernel]):5} {kernel}")
    print("\nfor several types of arguments:")
    for kernel, cost in seconds.most_common():
        if len(types[kernel]) > 1 and kernel.startswith("curation"):
            print(f"{cost:8.2f} s {kernel}")
            for described in sorted(types[kernel]):
                print(f"                {described[:300]}")
    again = [key for key, n in times.items() if n > 1 and key.startswith("curation")]
    print("\ncompiled twice:", *(again or ["none"]), sep="\n  ")


def write(stages: dict[str, list[dict[str, Any]]]) -> None:
    """Write the list of kernels: each after those that it calls."""
    rows: dict[str, dict[str, Any]] = {}
    for name, found in stages.items():
        for row in found:
            if not row["kernel"].startswith("curation."):
                continue
            known = rows.setdefault(row["key"], row | {"stages": []})
            known["calls"] = known["calls"] or row["calls"]
            if row.get("entry") and name not in known["stages"]:
                known["stages"].append(name)
    order: dict[str, int] = {}

    def place(key: str) -> None:
        if key in rows and key not in order:
            for called in sorted(set(rows[key]["calls"])):
                if called != key:
                    place(called)
            order[key] = len(order)

    for key in sorted(rows):
        place(key)
    with _LIST.open("w", encoding="utf-8") as out:
        for key in order:
            row = rows[key]
            calls = sorted({order[c] for c in row["calls"] if c in order and c != key})
            line = {name: row[name] for name in ("kernel", "types", "is_part")}
            out.write(json.dumps(line | {"calls": calls, "stages": row["stages"]}) + "\n")
    print(f"{_LIST}: {len(order)} kernels")


def main() -> None:
    if sys.argv[1:2] == ["--record"]:
        record(sys.argv[3:], sys.argv[2])
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--recipe", action="append", help="default: sample")
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    stages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for recipe in options.recipe or ["sample"]:
            done = measure(recipe, place)
            done |= measure_decontaminate(place / recipe / "filter", place)
            for stage, rows in (*done.items(), *measure_rare(place).items()):
                stages[stage] += rows
    report((row for rows in stages.values() for row in rows), options.top)
    if options.write:
        write(stages)


if __name__ == "__main__":
    main()
