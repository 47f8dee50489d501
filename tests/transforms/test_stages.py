"""Each transform decides what the stage of the same name decided, and writes the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.recipe import Recipe, load
from pipelines.transforms import (
    Classify,
    DeduplicateDocuments,
    DeduplicateLines,
    DeduplicateUrls,
    Extract,
    Filter,
    IdentifyLanguage,
    Mix,
    ReadDocuments,
    ReadPages,
    Tokenize,
    WriteDocuments,
)
from tests.folders import digests

ORDER = (
    *("extract", "dedup-urls", "identify-language", "dedup-documents"),
    *("classify", "dedup-lines", "filter", "mix", "tokenize"),
)


def transforms(recipe: Recipe) -> dict[str, Callable[..., beam.PTransform]]:
    return {
        "dedup-urls": lambda **more: DeduplicateUrls(recipe.dedup_urls, **more),
        "identify-language": lambda: IdentifyLanguage(recipe.identify_language),
        "dedup-documents": lambda **more: DeduplicateDocuments(recipe.dedup_documents, **more),
        "classify": lambda: Classify(recipe.classify),
        "dedup-lines": lambda **more: DeduplicateLines(recipe.dedup_lines, **more),
        "filter": lambda: Filter(recipe.filter),
        "mix": lambda **more: Mix(recipe.mix, recipe.tokenize, **more),
    }


def write_all(outputs: Any, folder: Path, label: str = "") -> None:
    """Write every output of a transform to the folder of its name."""
    for kind in outputs._fields:
        write = WriteDocuments(str(folder / kind))
        _ = getattr(outputs, kind) | f"Write {label} {kind}" >> write


def check_same(made: Path, stage: Path) -> None:
    """Every file that the transforms wrote has the bytes of the stage's."""
    written = digests(made)
    assert written
    assert {n: h for n, h in digests(stage).items() if n in written} == written
    folders = {name.partition("/")[0] for name in written}
    assert {n for n in digests(stage) if n.partition("/")[0] in folders} == set(written)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load("sample")


def test_pages_are_extracted_as_by_the_stage(
    sample_run: Path, recipe: Recipe, tmp_path: Path
) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        pages = pipeline | ReadPages(recipe.inputs, recipe.readers)
        extracted = pages.pages | Extract(recipe.extract)
        write_all(extracted._replace(set_aside=pages.set_aside), tmp_path)
    for kind in ("documents", "removed"):
        check_same(tmp_path / kind, sample_run / "extract" / kind)
    made, known = (
        sorted(r["source"]["offset"] for f in sorted(p.glob("*.parquet")) for r in rows(f))
        for p in (tmp_path / "set_aside", sample_run / "extract" / "set_aside")
    )
    assert made == known


def rows(file: Path) -> list[dict[str, Any]]:
    return pq.read_table(file).to_pylist()


@pytest.mark.parametrize("stage", ORDER[1:-1])
def test_each_stage_gives_the_same_files(
    sample_run: Path, recipe: Recipe, tmp_path: Path, stage: str
) -> None:
    before = sample_run / ORDER[ORDER.index(stage) - 1]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        documents = pipeline | ReadDocuments(str(before))
        write_all(documents | transforms(recipe)[stage](), tmp_path)
    check_same(tmp_path, sample_run / stage)


def test_tokens_are_the_same_bytes(sample_run: Path, recipe: Recipe, tmp_path: Path) -> None:
    shards: list[str] = []
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        documents = pipeline | ReadDocuments(str(sample_run / "mix"))
        _ = documents | Tokenize(str(tmp_path), recipe.tokenize)
    known = digests(sample_run / "tokenize")
    made = {n: h for n, h in digests(tmp_path).items() if not n.startswith(".work")}
    assert {n for n in known if n.endswith((".bin", ".idx"))} <= set(made)
    assert {n: known[n] for n in made} == made
