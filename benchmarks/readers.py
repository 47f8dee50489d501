"""Readers against warcio and FastWARC: records found, bodies decoded, encodings.

    python benchmarks/readers.py FOLDER [--charset FOLDER]

For every archive below FOLDER: the number of records that this toolkit, warcio and FastWARC find,
and where they differ, why (worked out from what the file is and what the tools report). Bodies of
pages are compared with those warcio decodes. `--charset` takes a folder with one folder per
encoding and prints how many pages are read right.
"""

from __future__ import annotations

import argparse
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import chardet
import charset_normalizer
import yaml
from fastwarc.warc import ArchiveIterator as FastIterator
from resiliparse.parse.encoding import detect_encoding as resiliparse_detect
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from curation.readers.charset import decode_html, detect_encoding
from curation.readers.read import read
from curation.readers.records import Damage, Page
from curation.readers.settings import ReaderSettings
from curation.resources import root

ARCHIVE = re.compile(r"\.(warc|arc|wet|wat|wacz)(\.|$)")
NO_RECORD = re.compile(r"garbage|file\.|wacz\.|^(gzip|zstd|lz4)\.")


class Found(NamedTuple):
    """What a tool found in a file."""

    records: int
    error: str
    bodies: dict[str, bytes]  # by WARC-Record-ID
    notes: Counter[str]


def ours(path: Path, settings: ReaderSettings) -> Found:
    records = 0
    bodies: dict[str, bytes] = {}
    notes: Counter[str] = Counter()
    for event in read(str(path), settings):
        if isinstance(event, Damage):
            notes[event.reason] += 1
            records += not NO_RECORD.search(event.reason) or event.url is not None
            continue
        records += 1
        if isinstance(event, Page):
            if event.mended:
                notes[event.mended] += 1
            elif event.kind == "html":
                bodies[event.record_id] = event.content
            if event.offset < 0:
                notes["inside a member"] += 1
    return Found(records, "", bodies, notes)


def warcio(path: Path) -> Found:
    records = 0
    bodies: dict[str, bytes] = {}
    error = ""
    with path.open("rb") as file:
        try:
            for record in WarcioIterator(file, arc2warc=True):
                records += 1
                name = record.rec_headers.get_header("WARC-Record-ID") or ""
                if record.rec_type == "response":
                    try:
                        bodies[name] = record.content_stream().read()
                    except Exception:  # its own failure on this body
                        bodies.pop(name, None)
        except Exception as problem:
            error = " ".join(str(problem).split())[:90] or type(problem).__name__
    return Found(records, error, bodies, Counter())


def fastwarc(path: Path) -> Found:
    records = 0
    error = ""
    try:
        for _ in FastIterator(str(path), parse_http=False):
            records += 1
    except Exception as problem:
        error = " ".join(str(problem).split())[:90] or type(problem).__name__
    return Found(records, error, {}, Counter())


def explain(path: Path, mine: Found, other: Found, tool: str) -> str:
    """Why another tool finds another number of records."""
    head = path.read_bytes()[:4096]
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(31).decompress(head, 4096)
        except zlib.error:
            head = b""
    if mine.records == other.records:
        return "same" + (f" (and then: {other.error})" if other.error else "")
    if head.startswith(b"PK"):
        return "does not open packages"
    if tool == "fastwarc" and head.startswith(b"filedesc:"):
        return "does not read ARC"
    if head.startswith(b"\x04\x22\x4d\x18"):
        return "does not read LZ4"
    if other.records < mine.records:
        if "non-chunked gzip" in other.error or (not other.error and mine.notes["inside a member"]):
            return "stops in a gzip member with several records"
        wrong = [reason for reason in mine.notes if reason.endswith(".bad_length")]
        if wrong:
            return f"loses its place at a wrong length ({', '.join(wrong)}); {other.error}"
        return f"stops: {other.error}" if other.error else "passes over records in silence"
    damages = ", ".join(f"{reason} {count}" for reason, count in sorted(mine.notes.items()))
    return f"counts what is no record here ({damages or 'no damage'})"


def archives(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*")) if p.is_file() and ARCHIVE.search(p.name.lower()))


def compare(folder: Path, settings: ReaderSettings) -> None:
    totals: Counter[str] = Counter()
    print(f"{'ours':>6} {'warcio':>6} {'fastw.':>6}  file")
    for path in archives(folder):
        mine, theirs, fast = ours(path, settings), warcio(path), fastwarc(path)
        print(f"{mine.records:6} {theirs.records:6} {fast.records:6}  {path.relative_to(folder)}")
        for tool, other in (("warcio", theirs), ("fastwarc", fast)):
            totals[tool] += other.records
            why = explain(path, mine, other, tool)
            if why != "same":
                print(f"{'':21}  {tool}: {why}")
            totals[f"files where {tool} finds more"] += other.records > mine.records
            totals[f"files where {tool} finds fewer"] += other.records < mine.records
        if mine.notes:
            print(f"{'':21}  notes: {dict(sorted(mine.notes.items()))}")
        shared = mine.bodies.keys() & theirs.bodies.keys() - {""}
        equal = sum(mine.bodies[name] == theirs.bodies[name] for name in shared)
        totals["bodies compared with warcio"] += len(shared)
        totals["bodies equal"] += equal
        if equal < len(shared):
            print(f"{'':21}  {len(shared) - equal} bodies differ from warcio's")
        totals["files"] += 1
        totals["ours"] += mine.records
    print()
    for name, count in totals.items():
        print(f"{count:8} {name}")


PYTHON_NAMES = {
    "Big5": "big5hkscs", "CP932": "cp932", "EUC-KR": "cp949", "GB2312": "gb18030",
    "IBM855": "cp855", "IBM866": "cp866", "Johab": "johab", "MacCyrillic": "mac-cyrillic",
    "MacRoman": "mac-roman", "SHIFT_JIS": "cp932", "TIS-620": "cp874",
}  # fmt: skip
DECLARATION = re.compile(rb"encoding\s*=\s*[\"'][^\"']*[\"']|charset\s*=\s*[\"']?[\w-]+", re.I)


def charset_table(folder: Path) -> None:
    """Pages read without a wrong character: with their declarations, and with these removed."""

    def normalizer(data: bytes) -> str | None:
        best = charset_normalizer.from_bytes(data).best()
        return best.encoding if best else None

    detectors: dict[str, Any] = {
        "decode_html": None,
        "our detection alone": detect_encoding,
        "chardet": lambda data: chardet.detect(data)["encoding"],
        "charset-normalizer": normalizer,
        "resiliparse": resiliparse_detect,
    }
    right = {name: Counter[str]() for name in detectors}
    seconds = dict.fromkeys(detectors, 0.0)
    pages = 0
    for path in sorted(folder.glob("*/*")):
        plain = re.match(r"(?:iso-8859|windows)-\d+", path.parent.name)
        encoding = PYTHON_NAMES.get(path.parent.name) or (plain[0] if plain else path.parent.name)
        pages += 1
        for case, data in (
            ("declared", path.read_bytes()),
            ("masked", DECLARATION.sub(b"", path.read_bytes())),
        ):
            expected = data.decode(encoding, "replace").removeprefix("\ufeff")
            for name, detector in detectors.items():
                begin = time.process_time()
                if detector is None:
                    text = decode_html(data, None)[0]
                else:
                    try:
                        text = data.decode(detector(data) or "windows-1252", "replace")
                    except LookupError:
                        text = ""
                seconds[name] += time.process_time() - begin
                right[name][case] += text.removeprefix("\ufeff") == expected
    print(f"\n{pages} labelled pages{'declared':>14}{'masked':>8}{'CPU ms':>9}")
    for name, counts in right.items():
        each = seconds[name] / pages / 2 * 1e3
        print(f"{name:20} {counts['declared']:12} {counts['masked']:7} {each:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--charset", type=Path, help="folder with one folder per encoding")
    arguments = parser.parse_args()
    defaults = yaml.safe_load((root() / "configs/defaults/readers.yaml").read_text())
    settings = ReaderSettings(**defaults)
    compare(arguments.folder, settings)
    if arguments.charset:
        charset_table(arguments.charset)


if __name__ == "__main__":
    main()
