"""Peak memory of every stage on large documents.

    python benchmarks/memory.py [--pages 4] [--megabytes 20] [--stages extract,filter]
        [--allow MB] [--folder DIR]
    python benchmarks/memory.py --pages 512 --megabytes 4 --allow 1500

Writes an archive of so many generated pages of that size, runs every stage on it with one worker,
and prints the most resident memory that the worker (or the driver, if that is more) had,
interpreter and models included. The allowance is 400 MB and six times the largest document, unless
`--allow` names another. Exits with 1 when a stage goes over it. The first column is that of one
small page: run it twice where kernels were not compiled yet, which takes memory, too. With
`--folder`, archives and outputs stay there, and stages are not done again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from curation.recipe import STAGES

_BASE = 400 * 10**6
_TIMES = 6
_MB = 10**6
#: Whose documents a stage reads; those of `extract` have no language yet, which some need.
_READS = {"identify-language": "extract", "mix": "classify"}

#: Named apart, another reader of the same, and one that does nothing without a user's evaluations.
_LEFT_OUT = ("extract", "identify-language", "read-tables", "decontaminate")

_COMMON = (
    "the of and to in that was his he it with is for as had you not be her on at by which have or "
    "from this him but all she they were my are me one their so an said them we who would been "
    "will no when there if more out up into any your what has man could other than our some very "
    "time upon about may its only now like little then can made should did us such great before"
).split()


def words(dice: np.random.Generator) -> np.ndarray:
    """A vocabulary, common words first."""
    letters = np.array(list("etaoinshrdlu"))
    rare = {"".join(dice.choice(letters, dice.integers(4, 11))) for _ in range(20_000)}
    return np.array([*_COMMON, *sorted(rare)], dtype=object)


def page(dice: np.random.Generator, vocabulary: np.ndarray, size: int) -> bytes:
    """HTML of about so many bytes: paragraphs of sentences, no two pages alike."""
    parts, length = ["<!doctype html><title>A long page</title><article>"], 0
    while length < size:
        common = dice.integers(0, len(_COMMON), 4000)
        rare = dice.integers(len(_COMMON), len(vocabulary), 4000)
        chosen = vocabulary[np.where(dice.random(4000) < 0.6, common, rare)]
        sentences = [" ".join(chosen[i : i + 16]).capitalize() for i in range(0, 4000, 16)]
        text = "".join(f"<p>{'. '.join(sentences[i : i + 5])}.</p>\n" for i in range(0, 250, 5))
        parts.append(text)
        length += len(text)
    return "".join(parts).encode()


def write_archive(path: Path, pages: int, size: int) -> None:
    """A WARC file of generated pages."""
    dice = np.random.default_rng(20260101)
    vocabulary = words(dice)
    with path.open("wb") as file:
        for number in range(pages):
            body = page(dice, vocabulary, size)
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body
            head = (
                "WARC/1.0\r\nWARC-Type: response\r\n"
                f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012d}>\r\n"
                f"WARC-Target-URI: https://host{number}.example/{number}\r\n"
                "WARC-Date: 2024-01-01T00:00:00Z\r\n"
                "Content-Type: application/http; msgtype=response\r\n"
                f"Content-Length: {len(http)}\r\n\r\n"
            )
            file.write(head.encode() + http + b"\r\n\r\n")


def peaks(folder: Path, stages: list[str], pages: int, size: int) -> Iterator[tuple[str, int]]:
    """Peak resident bytes of every stage, in the order of the stages."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "pages.warc"
    if not archive.exists():
        write_archive(archive, pages, size)
    for stage in stages:
        before = folder / "out" / _READS.get(stage, "identify-language")
        source = archive if stage == "extract" else before
        command = [sys.executable, "-m", "pipelines.cli", stage, "--input", str(source)]
        command += ["--output", str(folder / "out"), "--workers", "1", "--quiet"]
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{stage} failed: exit code {process.returncode}")
        yield stage, usage.ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--megabytes", type=float, default=20)
    order = [
        "extract",
        "identify-language",
        *(s for s in STAGES if s not in _LEFT_OUT),
    ]
    parser.add_argument("--stages", type=lambda text: text.split(","), default=order)
    parser.add_argument("--allow", type=float, metavar="MB")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    size = int(options.megabytes * _MB)
    allowed = options.allow * _MB if options.allow else _BASE + _TIMES * size
    worst = 0
    with tempfile.TemporaryDirectory() as scratch:
        small = dict(peaks(Path(scratch), options.stages, 1, 10_000))
        print(f"{options.pages} pages of {options.megabytes:g} MB; allowed {allowed / _MB:,.0f} MB")
        folder = options.folder or Path(scratch) / "large"
        for stage, peak in peaks(folder, options.stages, options.pages, size):
            over = peak > allowed
            base = small[stage]
            times = (peak - base) / size
            figures = f"{base / _MB:5,.0f} MB {peak / _MB:7,.0f} MB {times:6.1f} times a page"
            print(f"{stage:18} {figures}{'  over' * over}", flush=True)
            worst = max(worst, peak)
    return int(worst > allowed)


if __name__ == "__main__":
    sys.exit(main())
