"""Fuzz the parsers: damaged and crossed inputs, over and over, from a seed.

    python -m tests.fuzz --minutes 10 [--target NAME] [--seed 0] [--keep FOLDER]

`--minutes` are of CPU and for each target. Inputs begin as sound samples and as the shapes of
tests/shapes.py, and are flipped, cut, repeated and joined. Each is given twice, and must give
the same both times, raise nothing but what is declared, and take at most 20 CPU seconds per MB and
one second more (of whatever it decodes to). Exits with 1 on a finding, which `--keep` writes down.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from curation.dedup.dedup_settings import UrlDedupSettings, defaults
from curation.dedup.urls import canonical_url
from curation.errors import InputError
from curation.extract import Extractor, PageTooLargeError
from curation.extract.extractor import default_settings as extract_settings
from curation.readers import http
from curation.readers.charset import decode_html, decode_text
from curation.readers.read import read
from curation.readers.settings import ReaderSettings
from curation.readers.stream import Stream
from curation.resources import root
from tests import hostile_pages, shapes

SECONDS, SECONDS_PER_MB = 1.0, 20.0
_MOST = 1 << 16  # bytes of an input
_WORDS = (
    b"\r\n\r\n",
    b"WARC/1.0\r\n",
    b"Content-Length: ",
    b"\0",
    b"\xff\xff\xff\xff",
    b"<!--",
    b'"',
)

Target = Callable[[bytes], object]


def settings(**changes: object) -> ReaderSettings:
    given = yaml.safe_load((root() / "configs/defaults/readers.yaml").read_text())
    return ReaderSettings(**(given | changes))


def reading(name: str, folder: Path) -> Target:
    """Everything that is read from a file of this name; what it decodes to counts as its size."""
    limits = settings(max_record_bytes=1 << 20)

    def run(data: bytes) -> object:
        path = folder / name
        path.write_bytes(data)
        try:
            return list(read(str(path), limits))
        except InputError as error:
            return str(error)

    return run


class Decoded:
    """Counts what streams decode to, whether it becomes a page or damage."""

    def __init__(self) -> None:
        self.bytes = 0

    def count(self) -> None:
        step = Stream._step

        def counted(stream: Stream) -> None:
            before = stream.end
            step(stream)
            self.bytes += stream.end - before

        Stream._step = counted  # type: ignore[method-assign]


DECODED = Decoded()


def response(data: bytes) -> object:
    head = http.parse_head(data, 0, len(data))
    return head and http.decode_body(data[head.body :], head.fields, 1 << 20)


def extraction(data: bytes) -> object:
    try:
        return Extractor(extract_settings()).extract(data)
    except PageTooLargeError as error:
        return str(error)


def seeds(suffix: str) -> list[bytes]:
    """Files of one format, small ones."""
    return [file.make(1 << 11) for file in shapes.FILES.values() if file.name.endswith(suffix)]


def targets(folder: Path) -> dict[str, tuple[Target, list[bytes]]]:
    """What is fuzzed, and with which inputs it begins."""
    responses = [data.partition(b"\r\n\r\n")[2] for data in seeds(".warc")]
    pages = [make(0.0005)[:_MOST] for make in hostile_pages.CASES.values()]
    rules = defaults(UrlDedupSettings).canonical
    found: dict[str, tuple[Target, list[bytes]]] = {
        suffix: (reading(f"x{suffix}", folder), seeds(suffix))
        for suffix in (
            *(".warc", ".arc", ".warc.gz", ".warc.zst", ".warc.lz4", ".warc.bz2", ".warc.xz"),
            *(".wacz", ".jsonl", ".parquet", ".html", ".csv", ".arrow"),
        )
    }
    csv = [b"url,text\nhttp://a.b/,some text\n"]
    found["unknown"] = reading("x", folder), [*csv, *pages[:9], *seeds(".warc")[:9]]
    found["http"] = response, [data for data in responses if data.startswith(b"HTTP")]
    encoded = [make(1 << 10) for make in shapes.ENCODED.values()]
    found["charset"] = lambda data: (decode_html(data, None), decode_text(data, None)), encoded
    found["extract"] = extraction, pages
    addresses = [make(200).encode() for make in shapes.URLS.values()]
    found["url"] = lambda data: canonical_url(data.decode("utf-8", "replace"), rules), addresses
    for kind, parse in shapes.READ_RIGHTS.items():
        stated = [make(1 << 11) for name, make in shapes.RIGHTS.items() if name.startswith(kind)]
        found[f"rights-{kind}"] = parse, stated
    return found


def mutated(data: bytes, pool: list[bytes], chance: random.Random) -> bytes:
    held = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(held) + 1)
        count = min(1 << chance.randrange(12), len(held) - at)
        way = chance.randrange(8)
        if way == 0 and at < len(held):
            held[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            held[at : at + count] = b""
        elif way == 2:
            held[at:at] = chance.randbytes(count)
        elif way == 3:
            held[at:at] = held[at : at + count] * chance.randrange(1, 64)
        elif way == 4:
            held[at : at + len(word)] = (word := chance.choice(_WORDS))
        elif way == 5:
            other = chance.choice(pool)
            begin = chance.randrange(len(other) + 1)
            held[at:] = other[begin:]
        elif way == 6:
            held[at : at + 4] = chance.choice((0, 1, 255, 1 << 31, (1 << 32) - 1)).to_bytes(
                4, "little"
            )
        else:
            del held[at:]
    return bytes(held[:_MOST])


def problem_of(run: Target, data: bytes) -> str:
    """What is wrong with what an input gives; empty if nothing is."""
    start, decoded = time.process_time(), DECODED.bytes
    try:
        first = run(data)
        middle = time.process_time()
        second = run(data)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    # The first time may have compiled or loaded a kernel.
    spent = min(middle - start, time.process_time() - middle)
    size = len(data) + (DECODED.bytes - decoded) // 2
    if spent > SECONDS + SECONDS_PER_MB * size / 1e6:
        return f"{spent:.1f} CPU seconds for {size} bytes"
    return "" if first == second else "not the same twice"


def fuzz(
    run: Target, pool: list[bytes], seconds: float, chance: random.Random
) -> tuple[int, dict[str, bytes]]:
    """Number of inputs, and an input for each kind of finding."""
    found: dict[str, bytes] = {}
    count = 0
    end = time.process_time() + seconds
    while time.process_time() < end:
        data = mutated(chance.choice(pool), pool, chance)
        count += 1
        problem = problem_of(run, data)
        if problem:
            found.setdefault(problem[:60], data)
        elif chance.random() < 0.01 and data:
            pool.append(data)
    return count, found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--target", action="append", help="one target; all if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    DECODED.count()
    findings = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (run, pool) in targets(Path(folder)).items():
            if options.target and name not in options.target:
                continue
            chance = random.Random(f"{options.seed} {name}")
            count, found = fuzz(run, pool, options.minutes * 60, chance)
            print(f"{name:12} {count:9,} inputs, {len(found)} findings", flush=True)
            for number, (problem, data) in enumerate(found.items()):
                print(f"    {problem}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{name.strip('.')}-{number}").write_bytes(data)
            findings += len(found)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
