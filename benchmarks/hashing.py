"""Share of a run's CPU that hashing and page checksums take.

    python benchmarks/hashing.py --recipe llama3 --input 'crawl/*.warc.gz'

Runs the recipe in this process alone, with every hash function replaced by one that adds up the CPU
seconds it takes and the bytes it hashes. What is hashed twice is counted twice. Page checksums are
computed within Arrow: for them as many bytes as the outputs have are put through CRC-32.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xxhash

from curation.recipe import load
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args

_DIGESTS = (
    *((hashlib, name) for name in ("sha256", "blake2b")),
    *((xxhash, name) for name in ("xxh3_128", "xxh3_64")),
)
_AT_ONCE = (
    *((xxhash, f"{kind}_{form}digest") for kind in ("xxh3_64", "xxh3_128")
      for form in ("int", "hex")),
    (hashlib, "file_digest"),
)  # fmt: skip


class Spent:
    """CPU seconds and bytes of all hashing."""

    def __init__(self) -> None:
        self.seconds, self.bytes = 0.0, 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, counted."""

        def counted(*arguments: Any, **named: Any) -> Any:
            self.bytes += size(arguments[0]) if arguments else 0
            start = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.process_time() - start

        return counted


def size(data: Any) -> int:
    """Return the bytes of what is hashed: a buffer, a text, or a file that is read from here."""
    if isinstance(data, str):
        return len(data.encode())
    if hasattr(data, "fileno"):
        return os.fstat(data.fileno()).st_size - data.tell()
    return memoryview(data).nbytes


class Digest:
    """A hash object whose updates are counted."""

    def __init__(self, made: Any, spent: Spent) -> None:
        self._made, self.update = made, spent.timed(made.update)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def counting(spent: Spent) -> None:
    """Replace all hash functions by counted ones. Those that others imported by name are not."""
    for module, name in _DIGESTS:
        made = spent.timed(getattr(module, name))
        setattr(module, name, lambda *given, made=made: Digest(made(*given), spent))
    for module, name in _AT_ONCE:
        setattr(module, name, spent.timed(getattr(module, name)))


def main() -> int:
    """Run once and print the share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="llama3")
    parser.add_argument("--input", nargs="+", required=True)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    spent = Spent()
    with tempfile.TemporaryDirectory(prefix="curation-hashing-") as place:
        work = plan(load(options.recipe, options.set), place, options.input)
        counting(spent)
        before = os.times()
        with Executor(parse_beam_args([], 0)) as executor:
            run_plan(work, executor)
        after = os.times()
        written = sum(path.stat().st_size for path in Path(place).rglob("*.parquet"))
    cpu = sum(after[:4]) - sum(before[:4])
    block, begun = os.urandom(1 << 20), time.process_time()
    for _ in range(100):
        zlib.crc32(block)
    checksums = (time.process_time() - begun) / (100 << 20) * 2 * written
    print(f"CPU {cpu:.1f} s, of them hashing {spent.bytes / 1e6:,.0f} MB: {spent.seconds:.2f} s")
    print(f"checksums of {written / 1e6:,.0f} MB of Parquet, written and read: {checksums:.2f} s")
    print(f"share of CPU {(spent.seconds + checksums) / cpu:.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
