"""Transforms that compare documents, on made shards: as the stages, whatever arrives when."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.pipeline import PipelineVisitor

from curation.recipe import load
from curation.schema import DOCUMENTS
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.storage.files import Folder
from pipelines.storage.shards import read_batches
from pipelines.transforms import ReadDocuments, ShardKey, Tokenize
from tests.transforms.test_stages import check_same, transforms, write_all

TEXTS = [pa.field(n, pa.string()) for n in ("language", "domain", "topic", "format")]
SCHEMA = pa.schema([*DOCUMENTS, *TEXTS, pa.field("quality", pa.float32())])
#: Rows of each shard: one has several row groups, one is empty.
SHARDS = {"alpha": 4700, "beta": 600, "gamma": 0, "delta": 90}

DEDUP_DOCUMENTS = [
    (),
    ("dedup-documents.verify.method=signature",),
    ("dedup-documents.verify.method=none",),
    ("dedup-documents.minhash.enabled=false",),
    ("dedup-documents.exact.enabled=false", "dedup-documents.per_language=false"),
    (
        'dedup-documents.survivor.policy=["preferred_source","longest"]',
        'dedup-documents.survivor.preferred_sources=["f3*"]',
    ),
]
DEDUP_LINES = [
    (),
    ("dedup-lines.rule=pattern", "dedup-lines.min_hosts=2", "dedup-lines.bucket_documents=1000"),
    ("dedup-lines.rule=published", "dedup-lines.keep_first=true"),
]
VARIED = ("mix.min_variety=0.95",)
CASES = [
    ("dedup-urls", ()),
    *(("dedup-documents", settings) for settings in DEDUP_DOCUMENTS),
    *(("dedup-lines", ("dedup-lines.max_occurrences=5", *settings)) for settings in DEDUP_LINES),
    ("mix", ()),
    ("mix", VARIED),
]


def documents() -> list[dict[str, Any]]:
    """Documents of which some are copies, nearly copies, captures of a page, or share lines."""
    rng = random.Random(7)
    vocabulary = ["".join(rng.choices("abcdefghiklmnoprstuvw", k=6)) for _ in range(3000)]
    shared = [" ".join(rng.choices(vocabulary, k=4)) for _ in range(12)]
    made: list[dict[str, Any]] = []
    for number in range(sum(SHARDS.values())):
        words = rng.choices(vocabulary, k=rng.randrange(20, 60))
        text = "\n".join(" ".join(words[i : i + 11]) for i in range(0, len(words), 11))
        host = rng.randrange(40)
        url = f"http://h{host}.example/{number}"
        if made and (fate := rng.random()) < 0.3:
            other = rng.choice(made)
            text = other["text"]
            if fate < 0.1:
                text = text.replace(text.split()[3], rng.choice(vocabulary), 1)
            elif fate < 0.15:
                url = other["url"]
        if rng.random() < 0.3:
            own = text if rng.random() < 0.8 else rng.choice(vocabulary)
            text = f"{shared[host % 11]}\n{own}\n{shared[host % 12]}"
        if number % 50 == 0:
            text = "\n".join([text] * 3)
        made.append(
            {
                "id": f"d{number}",
                "url": url,
                "date": datetime.datetime(2024, 1, rng.randrange(1, 28), tzinfo=datetime.UTC),
                "text": text,
                "title": "",
                "source": {"file": f"f{number % 5}", "offset": number},
                "language": rng.choice(["en", "en", "de"]),
                "domain": rng.choice(["general", "code", "math_reasoning", "multilingual"]),
                "topic": "t",
                "format": "f",
                "quality": rng.random(),
            }
        )
    rng.shuffle(made)
    return made


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rows = tmp_path_factory.mktemp("made"), documents()
    for name, count in SHARDS.items():
        table = pa.Table.from_pylist(rows[:count], SCHEMA)
        pq.write_table(table, folder / f"{name}.parquet")
        rows = rows[count:]
    return folder


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, shards: Path) -> Any:
    """Run a stage on the made shards, once for each settings."""
    done: dict[Any, Path] = {}
    with Executor(parse_beam_args([], 0)) as executor:

        def run(name: str, settings: tuple[str, ...]) -> Path:
            if (name, settings) not in done:
                folder = tmp_path_factory.mktemp("run")
                recipe, inputs = load("llama3", settings), [f"{shards}/*.parquet"]
                run_plan(plan(recipe, str(folder), inputs, [name]), executor, strict=False)
                done[name, settings] = folder / name
            return done[name, settings]

        yield run


def shuffled(folder: Path) -> list[tuple[ShardKey, pa.RecordBatch]]:
    """All batches of the made shards, in any order."""
    found = []
    for name, count in SHARDS.items():
        row = 0
        for batch in read_batches(Folder(str(folder)), f"{name}.parquet"):
            found.append((ShardKey(name, row), batch))
            row += batch.num_rows
        if not count:
            found.append((ShardKey(name, 0), pa.RecordBatch.from_pylist([], SCHEMA)))
    return [found[i] for i in np.random.default_rng(3).permutation(len(found))]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_transforms_decide_what_stages_decide(
    stage: Callable[..., Path], shards: Path, tmp_path: Path, name: str, settings: tuple[str, ...]
) -> None:
    transform = transforms(load("llama3", settings))[name]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        write_all(pipeline | beam.Create(shuffled(shards)) | transform(), tmp_path)
    check_same(tmp_path, stage(name, settings))
    decided = [kind / "alpha.parquet" for kind in tmp_path.iterdir() if kind.name != "documents"]
    assert sum(pq.read_metadata(file).num_rows for file in decided) > 0


def test_documents_of_low_variety_are_not_drawn(stage: Callable[..., Path]) -> None:
    removed = pq.read_table(stage("mix", VARIED) / "removed", columns=["reason"])
    assert removed["reason"].to_pylist().count("mix.low_variety") > 50


@pytest.mark.parametrize("name", ["dedup-urls", "dedup-documents", "dedup-lines", "mix"])
def test_documents_are_read_again_for_each_pass(
    stage: Callable[..., Path], shards: Path, tmp_path: Path, name: str
) -> None:
    settings = next(s for n, s in CASES if n == name)
    source = ReadDocuments(f"{shards}/*.parquet")
    transform = transforms(load("llama3", settings))[name](source=source)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        write_all(pipeline | transform, tmp_path)
    check_same(tmp_path, stage(name, settings))


class Consumers(PipelineVisitor):
    """Which transforms read what a pass over the documents gives; whether they wait for others."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[bool]] = {}

    def visit_transform(self, applied: Any) -> None:
        for given in applied.inputs:
            if given.producer is not None and given.producer.full_label.endswith("/Read"):
                label = given.producer.full_label
                self.waiting.setdefault(label, []).append(bool(applied.side_inputs))


@pytest.mark.parametrize(
    ("name", "passes"),
    [("dedup-urls", 2), ("dedup-documents", 3), ("dedup-lines", 3), ("mix", 2)],
)
def test_documents_that_are_read_again_need_not_be_kept(
    shards: Path, name: str, passes: int
) -> None:
    source = ReadDocuments(f"{shards}/*.parquet")
    pipeline, consumers = beam.Pipeline(), Consumers()
    _ = pipeline | transforms(load("llama3"))[name](source=source)
    pipeline.visit(consumers)
    assert len(consumers.waiting) == passes
    for waits in consumers.waiting.values():  # all at once, or one that waits
        assert not any(waits) or len(waits) == 1


def test_tokens_are_the_same_bytes(
    stage: Callable[..., Path], shards: Path, tmp_path: Path
) -> None:
    settings = ("tokenize.shard_tokens=100000",)
    recipe = load("llama3", settings)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        made = pipeline | beam.Create(shuffled(shards))
        _ = made | Tokenize(str(tmp_path), recipe.tokenize)
    check_same(tmp_path, stage("tokenize", settings))
    assert len(list(tmp_path.glob("*.bin"))) > 1
