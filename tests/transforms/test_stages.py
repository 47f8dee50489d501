"""Each transform decides what the stage of the same name decided, and writes the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from curation.recipe import Recipe, load
from pipelines.transforms import (
    Classify,
    DeduplicateDocuments,
    DeduplicateLines,
    DeduplicateUrls,
    Extract,
    Filter,
    IdentifyLanguage,
    Judged,
    Mix,
    ReadPages,
    Tokenize,
    WriteDocuments,
)
from tests.folders import digests, external_workers

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
    """Of each kind of file that transforms wrote, the stage wrote the same, byte for byte."""
    assert sorted(p.name for p in made.iterdir() if p.name == ".work" and any(p.iterdir())) == []
    written = digests(made)
    ends = {(name.partition("/")[0] if "/" in name else Path(name).suffix) for name in written}
    known = {
        name: digest
        for name, digest in digests(stage).items()
        if (name.partition("/")[0] if "/" in name else Path(name).suffix) in ends
    }
    assert written and written == known


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load("sample")


def test_pages_that_cannot_be_read_are_set_aside(
    sample_run: Path, recipe: Recipe, tmp_path: Path
) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        pages = pipeline | ReadPages(recipe.inputs, recipe.readers)
        _ = pages.set_aside | WriteDocuments(str(tmp_path / "set_aside"))
    made, known = (
        sorted(r["source"]["offset"] for f in sorted(p.glob("*.parquet")) for r in rows(f))
        for p in (tmp_path / "set_aside", sample_run / "extract" / "set_aside")
    )
    assert made and made == known


def rows(file: Path) -> list[dict[str, Any]]:
    return pq.read_table(file).to_pylist()


def composed(pipeline: beam.Pipeline, recipe: Recipe, folder: Path) -> None:
    """All stages in one pipeline; what each keeps and removes is written to the stage's folder."""
    pages = pipeline | ReadPages(recipe.inputs, recipe.readers)
    extracted = pages.pages | Extract(recipe.extract)
    write_all(Judged(extracted.documents, extracted.removed), folder / "extract", "extract")
    documents = extracted.documents
    for stage in ORDER[1:-1]:
        outputs = documents | transforms(recipe)[stage]()
        write_all(outputs, folder / stage, stage)
        documents = outputs.documents
    _ = documents | Tokenize(str(folder / "tokenize"), recipe.tokenize)


def check_composed(made: Path, run: Path) -> None:
    for stage in ORDER:
        check_same(made / stage, run / stage)


@pytest.mark.parametrize("runner", ["FnApiRunner", "DirectRunner"])
def test_one_pipeline_does_what_the_stages_do(
    sample_run: Path, recipe: Recipe, tmp_path: Path, runner: str
) -> None:
    with beam.Pipeline(runner=runner) as pipeline:
        composed(pipeline, recipe, tmp_path)
    check_composed(tmp_path, sample_run)


def test_workers_in_another_process_do_the_same(
    sample_run: Path, recipe: Recipe, tmp_path: Path
) -> None:
    with (
        external_workers() as (_, *options),
        beam.Pipeline(options=PipelineOptions(options)) as pipeline,
    ):
        composed(pipeline, recipe, tmp_path)
    check_composed(tmp_path, sample_run)
