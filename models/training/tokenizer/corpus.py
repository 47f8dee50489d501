"""Read training text for vocabularies from files."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curation.arrow import Texts
from curation.errors import InputError
from curation.text.surrogates import well_formed

Group = tuple[str, str]  # language, source
#: Texts of one group, and how often each occurs (once each where that is left out).
Batch = tuple[Group, Texts] | tuple[Group, Texts, npt.NDArray[np.int64]]

_LINES = 10_000  # JSON lines per batch
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


def read_corpus(files: Iterable[str]) -> Iterator[Batch]:
    """Texts of the files in batches of one (language, source) each.

    Rows of JSON may have `count`: how often the text, for instance a word, occurs.

    Raises InputError, naming file and line (of Parquet: row, from 0), on a row without `text` and
    on what can't be read; and on unknown file types.
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


def _lines(file: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line, with its line end."""
    number = 0
    opened = gzip.open if file.endswith(".gz") else open
    try:
        # Bytes that are no UTF-8 come as surrogates, so that their line is known.
        with opened(file, "rt", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                number += 1
                if not line.isascii() and _NOT_UTF8.search(line):
                    raise InputError(f"{file}: line {number}: not UTF-8")
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        place = f"{file}: line {number + 1}" if number else file
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{place}: {reason}") from None


def _parquet(file: str) -> Iterator[Batch]:
    row = 0
    try:
        with pq.ParquetFile(file) as table:
            names = table.schema_arrow.names
            if "text" not in names:
                raise InputError(f"{file}: no column `text`")
            columns = ["text", *(["language"] if "language" in names else [])]
            for batch in table.iter_batches(columns=columns):
                texts = _strings(batch, "text", file)
                if texts.null_count:
                    first = pc.index(pc.is_null(texts), True).as_py()
                    raise InputError(f"{file}: row {row + first}: no `text`")
                row += len(texts)
                if len(columns) == 1:
                    yield ("", "parquet"), texts
                    continue
                languages = pc.fill_null(_strings(batch, "language", file), "")
                for language in sorted(pc.unique(languages).to_pylist()):
                    yield (language, "parquet"), texts.filter(pc.equal(languages, language))
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file}: not readable as Parquet from row {row} on: {error}") from None


def _strings(batch: pa.RecordBatch, name: str, file: str) -> pa.Array:
    column = batch.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InputError(f"{file}: the column `{name}` has {kind}, not strings")
    return column.cast(pa.large_string())


def _json_lines(file: str) -> Iterator[Batch]:
    groups: dict[Group, list[tuple[str, int]]] = {}
    held = 0
    for number, line in _lines(file):
        group, text, count = _row(line, f"{file}: line {number}")
        groups.setdefault(group, []).append((text, count))
        held += 1
        if held == _LINES:
            yield from _batches(groups)
            groups, held = {}, 0
    yield from _batches(groups)


def _row(line: str, place: str) -> tuple[Group, str, int]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise InputError(f"{place}: no JSON object with a string `text`")
    names = []
    for keys in (("language", "lang"), ("source",)):
        key = next((k for k in keys if row.get(k)), keys[0])
        value = row.get(key) or ""
        if not isinstance(value, str):
            raise InputError(f"{place}: `{key}` is not a string")
        names.append(well_formed(value))
    count = row.get("count", 1)
    if type(count) is not int or not 0 < count < 1 << 40:
        raise InputError(f"{place}: `count` is not a positive whole number below 2^40")
    return (names[0], names[1]), well_formed(row["text"]), count


def _batches(groups: dict[Group, list[tuple[str, int]]]) -> Iterator[Batch]:
    for group in sorted(groups):
        texts, counts = zip(*groups[group], strict=True)
        yield group, pa.array(texts, pa.large_string()), np.array(counts, np.int64)


def _plain(file: str) -> Iterator[Batch]:
    language = Path(file).name.split(".")[0]
    lines = (line for _, line in _lines(file))
    while batch := list(islice(lines, _LINES)):
        yield (language, "text"), pa.array(batch, pa.large_string())
