"""Read training text for vocabularies from files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.errors import InputError

Group = tuple[str, str]  # language, source

_LINES = 10_000  # JSON lines per batch


def read_corpus(files: Iterable[str]) -> Iterator[tuple[Group, pa.Array]]:
    """Texts of the files in batches of one (language, source) each.

    Raises InputError, naming file and line, on a row without `text` and on unknown file types.
    """
    for file in files:
        if file.endswith(".parquet"):
            yield from _parquet(file)
        elif file.endswith((".jsonl", ".jsonl.gz")):
            yield from _json_lines(file)
        elif file.endswith((".txt", ".txt.gz")):
            yield from _plain(file)
        else:
            raise InputError(f"{file}: corpus files are .parquet, .jsonl, .jsonl.gz, .txt, .txt.gz")


def _open(file: str) -> IO[str]:
    try:
        if file.endswith(".gz"):
            return gzip.open(file, "rt", encoding="utf-8")
        return open(file, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def _parquet(file: str) -> Iterator[tuple[Group, pa.Array]]:
    try:
        table = pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{file}: not readable as Parquet: {error}") from None
    names = table.schema_arrow.names
    if "text" not in names:
        raise InputError(f"{file}: no column `text`")
    columns = ["text", *(["language"] if "language" in names else [])]
    for batch in table.iter_batches(columns=columns):
        if len(columns) == 1:
            yield ("", "parquet"), batch.column("text")
            continue
        languages = pc.fill_null(batch.column("language"), "")
        for language in sorted(pc.unique(languages).to_pylist()):
            yield (
                (language, "parquet"),
                batch.column("text").filter(pc.equal(languages, language)),
            )


def _json_lines(file: str) -> Iterator[tuple[Group, pa.Array]]:
    groups: dict[Group, list[str]] = {}
    held = 0
    with _open(file) as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                text = row["text"]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file}: line {number}: no JSON with `text`: {error}") from None
            language = row.get("language") or row.get("lang") or ""
            groups.setdefault((language, row.get("source") or ""), []).append(text)
            held += 1
            if held == _LINES:
                yield from _batches(groups)
                groups, held = {}, 0
    yield from _batches(groups)


def _batches(groups: dict[Group, list[str]]) -> Iterator[tuple[Group, pa.Array]]:
    for group in sorted(groups):
        yield group, pa.array(groups[group], pa.large_string())


def _plain(file: str) -> Iterator[tuple[Group, pa.Array]]:
    language = Path(file).name.split(".")[0]
    with _open(file) as lines:
        while batch := list(_some(lines)):
            yield (language, "text"), pa.array(batch, pa.large_string())


def _some(lines: IO[str]) -> Iterator[str]:
    for _, line in zip(range(_LINES), lines, strict=False):
        yield line
