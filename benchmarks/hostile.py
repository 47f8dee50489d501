"""Pages made to hurt: CPU time per byte, peak memory and outcome of each.

    python benchmarks/hostile.py [--data DIR] [--engine curation] [--scale 1.0] [--only NAME,NAME]

Each page is generated, and extracted in a process of its own. The allowance is ten times the median
time per byte of ordinary pages, those of DIR (`<set>/html/*.html`) or, without it, of pages made
here, and 500 MB of resident memory, interpreter and models included. Exits with 1 when a page goes
over it or ends its process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import resource
import statistics
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from curation.extract import Extractor, PageTooLargeError
from curation.extract.extractor import default_settings
from tests.hostile_pages import ARTICLE, CASES, PARAGRAPH, page

ALLOWED_RATIO = 10  # times the median time per byte
ALLOWED_BYTES = 500 * 10**6
_CPU_SECONDS = 60  # then the kernel ends the process


def _peak() -> int:
    """Highest resident memory since `_reset_peak`, in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _measure(answer: Connection, name: str, scale: float, extractor: Extractor) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    html = CASES[name](scale)
    extractor.extract(page(ARTICLE))  # a new process first copies the memory that it writes to
    _reset_peak()
    start = time.process_time()
    try:
        outcome = f"{len(extractor.extract(html).text):,} characters"
    except PageTooLargeError as error:
        outcome = str(error)
    except BaseException as error:
        outcome = f"error: {type(error).__name__}: {str(error)[:100]}"
    answer.send((len(html), time.process_time() - start, _peak(), outcome))


def measure(name: str, scale: float, extractor: Extractor) -> tuple[int, float, int, str]:
    """Bytes, CPU seconds, peak memory and outcome of a case, in a process of its own."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    process = context.Process(target=_measure, args=(theirs, name, scale, extractor))
    process.start()
    theirs.close()
    try:
        return mine.recv()  # type: ignore[no-any-return]
    except EOFError:
        process.join()
        return 0, float("inf"), 0, f"error: the process ended with {process.exitcode}"


def ordinary_pages(data: Path | None, most: int) -> list[bytes]:
    """Pages of a folder, or else made here."""
    if data:
        paths = sorted(data.glob("*/html/*.html"))
        if pages := [path.read_bytes() for path in paths[:: max(1, len(paths) // most)]]:
            return pages
    item = b'<li class="menu-item level-1"><a class="menu-link" href="/topic/a">A topic</a></li>\n'
    menu = b'<nav class="menu"><div class="inner"><ul>' + item * 60 + b"</ul></div></nav>"
    script = b"<script>" + b"var settings = {};" * 600 + b"</script>"
    card = b'<div class="card"><h3><a href="/b">Other news</a></h3><p>A few words.</p></div>'
    return [page(menu + script + ARTICLE + PARAGRAPH * n + card * 20 + menu) for n in range(100)]


def ordinary(data: Path | None, extractor: Extractor, most: int = 300) -> float:
    """Median seconds per byte of ordinary pages."""
    pages = ordinary_pages(data, most)
    spent = []
    for html in pages:
        start = time.process_time()
        extractor.extract(html)
        spent.append((time.process_time() - start) / max(len(html), 1))
    return statistics.median(spent)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="ordinary pages to compare with")
    parser.add_argument("--engine", default="curation")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the pages")
    parser.add_argument("--only", default="", metavar="NAME,NAME")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    extractor = Extractor(default_settings().model_copy(update={"engine": options.engine}))
    for warm_up in (ARTICLE, "<p>é</p>".encode() + b"<p>a" * 25_000):  # compiled code is loaded
        extractor.extract(page(warm_up))
    median = ordinary(options.data, extractor)
    print(
        f"ordinary pages: {median * 1e9:.1f} ns per byte (median); allowed: {ALLOWED_RATIO} times"
    )
    failed, figures = 0, {}
    for name in options.only.split(",") if options.only else CASES:
        size, seconds, peak, outcome = measure(name, options.scale, extractor)
        per_byte = seconds / max(size, 1)
        over = per_byte > ALLOWED_RATIO * median or peak > ALLOWED_BYTES
        bad = over or outcome.startswith("error")
        failed += bad
        figures[name] = {"bytes": size, "seconds": seconds, "peak": peak, "outcome": outcome}
        print(
            f"{'FAIL' if bad else 'ok':4} {name:29} {size / 1e6:6.1f} MB {seconds:7.2f} s "
            f"{per_byte * 1e9:8.1f} ns/byte {per_byte / median:6.1f} x {peak / 1e6:5.0f} MB  {outcome}",
            flush=True,
        )
    if options.json:
        report: dict[str, Any] = {"nanoseconds_per_byte": median * 1e9, "cases": figures}
        options.json.write_text(json.dumps(report, indent=1))
    print(f"{len(figures) - failed} of {len(figures)} within the allowance")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
