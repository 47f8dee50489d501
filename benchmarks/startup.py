"""CPU seconds of small runs and of commands that only read, warm.

    python benchmarks/startup.py [--pages 1004] [--repeats 3] [--input GLOB]

Writes that many generated pages (or takes the input), runs `llama3` on them twice, of which the
second run counts, and then each command. Every figure is the least of the repeats: user and system
time of the process and its workers. The last column is the ratio to importing Beam, Arrow and
numba alone, which tells a slow machine from slow code.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

#: What a command may take, in CPU seconds.
TARGETS = {
    "run, all pages": 14.0,
    "run again, finished": 1.5,
    "why": 0.8,
    "report": 0.8,
    "recipes": 0.4,
    "--help": 0.4,
    "extract-file, one page": 1.0,
}
_IMPORTS = "import apache_beam, pyarrow, numba"
_TOPICS = "harbour bread winter bicycle garden music river school engine paper market glass".split()
_WORDS = (
    "the of and to in that was his he it with is for as had you not be her on at by which have or "
    "from this him but all she they were my are me one their so an said them we who would been"
).split()


def cpu_seconds(command: Sequence[str], repeats: int = 1) -> float:
    """Least CPU time of a command, its children included. Exits where it fails."""
    found = []
    for _ in range(repeats):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout and process.stderr
        process.stdout.read()
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)}: {errors.decode()}")
        found.append(usage.ru_utime + usage.ru_stime)
    return min(found)


def write_pages(path: Path, pages: int) -> None:
    """Write rows with `html` and `url`: pages of some 300 words, a tenth of them copies."""
    dice = np.random.default_rng(1)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        body = ""
        for number in range(pages):
            if number % 10 or not body:
                body = "".join(f"<p>{_paragraph(dice)}</p>\n" for _ in range(6))
            title = f"{dice.choice(_TOPICS)} {number}"
            html = f"<html><title>{title}</title><body><article>{body}</article></body></html>"
            url = f"https://site{number % 40}.example/{number}"
            file.write(json.dumps({"url": url, "html": html}) + "\n")


def _paragraph(dice: np.random.Generator) -> str:
    words = np.where(dice.random(50) < 0.7, dice.choice(_WORDS, 50), dice.choice(_TOPICS, 50))
    return ". ".join(" ".join(words[i : i + 10]).capitalize() for i in range(0, 50, 10)) + "."


def curate(*arguments: str) -> list[str]:
    """The command line of the same checkout."""
    return [sys.executable, "-m", "pipelines.cli", *arguments]


def measure(folder: Path, given: Sequence[str], pages: int, repeats: int) -> dict[str, float]:
    """CPU seconds by name of the command."""
    rows, out = folder / "pages.jsonl.gz", str(folder / "out")
    if not given:
        write_pages(rows, pages)
    run = ["run", "llama3", "--output", out, "--input", *(given or [str(rows)])]
    page = folder / "page.html"
    page.write_text("<title>One</title><article><p>A page with a sentence or two.</p></article>")
    cpu_seconds(curate(*run))  # compiles the kernels
    found = {"run, all pages": cpu_seconds(curate(*run, "--fresh"))}
    found["run again, finished"] = cpu_seconds(curate(*run), repeats)
    documents = pq.read_table(Path(out) / "extract" / "documents", columns=["id"])
    document = documents["id"][0].as_py()
    found["why"] = cpu_seconds(curate("why", document, "--run", out), repeats)
    found["report"] = cpu_seconds(curate("report", "--run", out), repeats)
    found["recipes"] = cpu_seconds(curate("recipes"), repeats)
    found["--help"] = cpu_seconds(curate("--help"), repeats)
    found["extract-file, one page"] = cpu_seconds(curate("extract-file", str(page)), repeats)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=1004)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--input", nargs="+", default=[], metavar="GLOB")
    options = parser.parse_args()
    base = cpu_seconds([sys.executable, "-c", _IMPORTS], options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.input, options.pages, options.repeats)
    print(f"{'':24s} {'CPU s':>7s} {'target':>7s} {'ratio':>6s}")
    print(f"{'imports alone':24s} {base:7.2f} {'':>7s} {1:6.2f}")
    for name, seconds in found.items():
        print(f"{name:24s} {seconds:7.2f} {TARGETS[name]:7.2f} {seconds / base:6.2f}")
    return int(any(seconds > TARGETS[name] for name, seconds in found.items()))


if __name__ == "__main__":
    sys.exit(main())
