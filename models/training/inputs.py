"""Labelled examples from JSONL (plain, .gz, .zst) and Parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from curation.errors import InputError, first_line
from curation.models import sha256_of
from models.training.settings import LabelledTraining


@dataclass(frozen=True)
class Examples:
    """Labelled texts; all lists have one entry per example."""

    texts: list[str]
    labels: list[Any]
    groups: list[str]
    inputs: list[int]  # which of the files
    files: tuple[dict[str, Any], ...]  # name, sha256 and examples of each file

    def __len__(self) -> int:
        return len(self.texts)

    def weights(self, by_file: Sequence[float] | None) -> npt.NDArray[np.float64]:
        """Weight of every example, by its file, or 1: [examples]"""
        by_file = by_file or (1.0,) * len(self.files)
        if len(by_file) != len(self.files):
            raise InputError(
                f"file_weights: {len(by_file)} weights for {len(self.files)} files of examples"
            )
        return np.array(by_file, float)[self.inputs]

    def select(self, rows: Sequence[int]) -> Examples:
        """Some of the examples, of the same files."""
        return Examples(
            [self.texts[i] for i in rows],
            [self.labels[i] for i in rows],
            [self.groups[i] for i in rows],
            [self.inputs[i] for i in rows],
            self.files,
        )


def read_examples(
    paths: Sequence[Path | str],
    text_column: str,
    label_column: str,
    group_columns: Sequence[str],
    label: Any = None,
) -> Examples:
    """Read examples in the order of the files.

    With `label` every example gets that one (files of positives or negatives). A column that may
    have several names is given as `a|b`: the first that an example has counts. Raises InputError
    naming file and line when an example lacks text or label.
    """
    texts: list[str] = []
    labels: list[Any] = []
    groups: list[str] = []
    inputs: list[int] = []
    files = []
    for number, path in enumerate(map(Path, paths)):
        count = 0
        for place, row in rows(path):
            text = row.get(text_column)
            if not isinstance(text, str):
                raise InputError(f"{place}: no string {text_column!r}")
            names = label_column.split("|")
            value = label if label is not None else next((row[n] for n in names if n in row), None)
            if value is None:
                raise InputError(
                    f"{place}: no label {' or '.join(map(repr, names))} "
                    "(--set label_column=NAME reads another)"
                )
            texts.append(text)
            labels.append(value)
            groups.append(_group(row, group_columns) or place)
            inputs.append(number)
            count += 1
        files.append({"file": path.name, "sha256": sha256_of(path), "examples": count})
    if not texts:
        raise InputError("no training examples in " + ", ".join(map(str, paths)))
    return Examples(texts, labels, groups, inputs, tuple(files))


def read_labelled(
    settings: LabelledTraining,
    inputs: Sequence[Path | str],
    positive: Sequence[Path | str] = (),
    negative: Sequence[Path | str] = (),
) -> Examples:
    """Read examples with labels, then those of files of good (label 1) and of bad ones (0)."""
    columns = (settings.text_column, settings.label_column, settings.group_columns)
    kinds = ((inputs, None), (positive, 1), (negative, 0))
    return _join([read_examples(paths, *columns, label=label) for paths, label in kinds if paths])


def _join(parts: Sequence[Examples]) -> Examples:
    """Several sets of examples, one after the other."""
    inputs: list[int] = []
    files: tuple[dict[str, Any], ...] = ()
    for part in parts:
        inputs += [number + len(files) for number in part.inputs]
        files += part.files
    return Examples(
        [t for p in parts for t in p.texts],
        [v for p in parts for v in p.labels],
        [g for p in parts for g in p.groups],
        inputs,
        files,
    )


def _group(row: dict[str, Any], columns: Sequence[str]) -> str:
    for column in columns:
        value = row.get(column)
        if isinstance(value, str) and value:
            if column != "url":
                return value
            return urlsplit(value).netloc.lower().removeprefix("www.") or value
    return ""


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every row with its place, `file:line` (Parquet: `file, row n`)."""
    try:
        if path.suffix == ".parquet":
            row = 0
            for batch in pq.ParquetFile(path).iter_batches():
                for content in batch.to_pylist():
                    yield f"{path}, row {row}", content
                    row += 1
            return
        with pa.OSFile(str(path)) as raw:
            kind = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
            stream = pa.CompressedInputStream(raw, kind) if kind else raw
            for number, line in enumerate(io.BufferedReader(stream), 1):
                if line.strip():
                    yield f"{path}:{number}", _object(line, f"{path}:{number}")
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {first_line(error)}") from None


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise InputError(f"{place}: not a JSON object")
    return row
