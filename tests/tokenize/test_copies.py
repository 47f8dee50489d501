"""Copies of a document are in different sequences, as far apart as the order allows."""

from __future__ import annotations

import csv
import io
import itertools
import json
import lzma
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.tokenize import TokenShards
from curation.tokenize import shard as shard_module
from curation.tokenize.pack import Spans, best_fit
from curation.tokenize.shard import clusters, document_keys
from curation.tokenize.tokenize_settings import TokenizeSettings
from pipelines.cli import main
from tests.conftest import curate
from tests.tokenize.packed import write_shard

NEARDUP = Path(__file__).resolve().parents[3] / "shared/data/neardup"


class Documents(NamedTuple):
    """Documents as they are packed."""

    lengths: np.ndarray
    groups: np.ndarray


@st.composite
def copied(draw: st.DrawFn) -> Documents:
    """Few texts, each several times, in any order."""
    texts = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=16))
    lengths = [length for length, times in texts for _ in range(times)]
    groups = [number for number, (_, times) in enumerate(texts) for _ in range(times)]
    order = draw(st.permutations(range(len(lengths))))
    numbers = np.array([lengths, groups], np.int64).reshape(2, -1)[:, order]
    return Documents(numbers[0], numbers[1])


def sequences_of(spans: Spans, groups: np.ndarray) -> dict[int, list[int]]:
    """Sequence of every span, by group."""
    found = defaultdict(list)
    for sequence, document in zip(spans.sequences, spans.documents, strict=True):
        found[int(groups[document])].append(int(sequence))
    return found


def check_apart(spans: Spans, documents: Documents, context: int) -> None:
    """Only texts with more copies than there are sequences share one; nothing is lost."""
    taken = np.zeros(len(documents.lengths), np.int64)
    ends: dict[int, int] = {}
    for sequence, start, length, document, offset in zip(*spans, strict=True):
        assert length > 0 and offset + length <= documents.lengths[document]
        assert start == ends.get(sequence, 0)
        ends[sequence] = start + length
        taken[document] += length
    assert taken.tolist() == documents.lengths.tolist()
    assert all(end <= context for end in ends.values())
    assert sorted(ends) == list(range(spans.sequence_count))
    copies = Counter(documents.groups.tolist())
    for group, found in sequences_of(spans, documents.groups).items():
        if copies[group] <= spans.sequence_count:
            assert len(set(found)) == len(found)


def plain_best_fit(
    documents: Documents, context: int, parts: int, limit: int
) -> tuple[list[int], float]:
    """Bin of each piece, in the order of documents, and fewest copies, by trying every bin."""
    before, pieces = 0, []
    for document, length in enumerate(documents.lengths.tolist()):
        part = before * parts // max(1, int(documents.lengths.sum()))
        for offset in range(0, length, context):
            pieces.append((part, -min(context, length - offset), len(pieces), document))
        before += length
    copies = Counter(documents.groups.tolist())
    bins: list[dict[str, Any]] = []
    found, fewest = [0] * len(pieces), float("inf")
    for turn, (part, size, number, document) in enumerate(sorted(pieces)):
        group = int(documents.groups[document])
        fits = [b for b in bins if b["room"] >= -size and b["opened"] >= part - 1]
        apart = [b for b in fits if group not in b["groups"]]
        if not apart and fits and copies[group] > limit:
            apart, fewest = fits, min(fewest, copies[group])
        if not apart:
            bins.append({"number": len(bins), "room": context, "opened": part, "groups": set()})
            apart = bins[-1:]
        best = min(apart, key=lambda b: (b["room"], -b.get("turn", 0)))
        best["room"] += size
        best["turn"] = turn
        best["groups"].add(group)
        found[number] = best["number"]
    return found, fewest


def plain_sequences(documents: Documents, context: int) -> list[int]:
    """Sequence of each piece: the finest of the divisions that needs few sequences."""
    most = max(Counter(documents.groups.tolist()).values(), default=1)
    needed = -(-int(documents.lengths.sum()) // context)
    best: list[int] | None = None
    for parts in [8 * most >> k for k in range(7)] if most > 1 else [1]:
        limit, count, fewest = needed, needed, 0.0
        while fewest <= count:
            bins, fewest = plain_best_fit(documents, context, parts, limit)
            limit = count = max(bins, default=-1) + 1
        if best is None or count < max(best, default=-1) + 1:
            best = bins
        if max(best, default=-1) + 1 <= needed * 1.003:
            break
    assert best is not None
    order = {number: place for place, number in enumerate(dict.fromkeys(best))}
    return [order[number] for number in best]


def drawn(count: int, times: int, seed: int, median: float = 550) -> Documents:
    """Documents of lengths as on the web, drawn and put into order as a mix does it."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.normal(np.log(median), 1, count)).astype(np.int64) + 2
    repeats = rng.integers(1, times + 1, count).astype(np.int32)
    keys = document_keys([f"{seed} {k}" for k in range(count)], repeats, 7)
    groups = np.repeat(np.arange(count), repeats)[np.argsort(keys, kind="stable")]
    return Documents(lengths[groups], groups)


@pytest.mark.parametrize(("count", "times"), [(3000, 4), (1500, 7), (600, 16), (4000, 2)])
def test_copies_cost_little_padding_and_stay_apart(count: int, times: int) -> None:
    documents = drawn(count, times, count)
    least = best_fit(documents.lengths, 8192).sequence_count
    spans = best_fit(documents.lengths, 8192, documents.groups)
    assert spans.sequence_count <= least * 1.003
    check_apart(spans, documents, 8192)
    copies = Counter(documents.groups.tolist())
    gaps = [
        min(b - a for a, b in itertools.pairwise(sorted(found)))
        / (spans.sequence_count / copies[group])
        for group, found in sequences_of(spans, documents.groups).items()
        if copies[group] == len(found) > 1
    ]
    assert min(gaps) > 0.3 and np.quantile(gaps, 0.05) > 0.6


def test_members_of_a_large_cluster_are_apart() -> None:
    documents = drawn(5000, 1, 3)
    documents = documents._replace(groups=np.where(documents.groups < 100, 0, documents.groups))
    spans = best_fit(documents.lengths, 8192, documents.groups)
    check_apart(spans, documents, 8192)
    assert spans.sequence_count <= 1.02 * documents.lengths.sum() / 8192


def test_without_copies_packing_is_best_fit_decreasing() -> None:
    documents = drawn(2000, 1, 5)
    with_groups = best_fit(documents.lengths, 4096, documents.groups)
    assert all(map(np.array_equal, with_groups, best_fit(documents.lengths, 4096)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(0, 99))
def test_keys_of_copies_are_evenly_apart(times: list[int], seed: int) -> None:
    ids = [f"document {k}" for k in range(len(times))]
    keys = [int(key) for key in document_keys(ids, np.array(times, np.int32), seed)]
    once = [int(key) for key in document_keys(ids, np.ones(len(times), np.int32), seed)]
    assert len(keys) == sum(times)
    for first, count in zip(once, times, strict=True):
        own, keys = keys[:count], keys[count:]
        for number, key in enumerate(own):
            assert abs(key - (first + number * (1 << 64)) // count) <= count


def test_names_of_clusters() -> None:
    def of(**columns: list[Any]) -> list[str | None]:
        return clusters(pa.RecordBatch.from_pydict({"id": ["a", "b", "c"]} | columns)).to_pylist()

    assert of() == [None] * 3
    assert of(cluster_id=["x", None, ""]) == ["x", None, None]
    assert of(minhash_cluster_id=[4, -1, 0]) == ["4", None, "0"]
    assert of(cluster_id=["x", None, "y"], minhash_cluster_id=[1, 1, 1]) == ["x", None, "y"]


def shared_sequences(index: pa.Table) -> int:
    """Sequences that have several spans of a document or cluster."""
    names = [row["cluster"] or row["id"] for row in index.select(["cluster", "id"]).to_pylist()]
    pairs = Counter(zip(index["sequence"].to_pylist(), names, strict=True))
    return len({sequence for (sequence, _), count in pairs.items() if count > 1})


def test_no_sequence_of_the_sample_has_two_copies(sample_run: Path) -> None:
    (path,) = (sample_run / "tokenize/index").glob("*.parquet")
    index = pq.read_table(path)
    manifest = json.loads((sample_run / "tokenize/manifest.json").read_text())
    counts = manifest["counts"]
    assert max(Counter(index["id"].to_pylist()).values()) == 4
    assert shared_sequences(index) == counts["copies_together"] == 0
    assert counts["sequences"] == -(-counts["tokens"] // 8192)  # none more than the tokens need
    first = {(r["id"], r["repeat"]): r["length"] for r in index.to_pylist()}
    assert counts["distinct_tokens"] == sum(n for (_, k), n in first.items() if k == 0)
    assert manifest["notes"]["blocks"] == 16
    # In the order in which a reader gives them they are apart, too.
    place = np.empty(counts["sequences"], np.int64)
    reader = TokenShards(sample_run / "tokenize", 1, seed=2)
    place[reader.sequence_numbers(0, reader.samples)] = np.arange(reader.samples)
    places = defaultdict(list)
    for row in index.to_pylist():
        places[row["id"]].append(int(place[row["sequence"]]))
    gaps = [b - a for p in places.values() for a, b in itertools.pairwise(sorted(p))]
    assert min(gaps) >= 1 and np.mean(gaps) > 4


def tokenized(sample_run: Path, output: Path, *assignments: str) -> tuple[Path, str]:
    command = ["run", "sample", "--stages", "tokenize", "--input", sample_run / "mix"]
    done = curate(*command, "--output", output, "--workers", "0", *assignments)
    assert done.returncode == 0
    return output, " ".join(done.stdout.split())


def test_verify_finds_copies_in_a_sequence(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "best_fit", lambda lengths, size, _: best_fit(lengths, size))
    run, _ = tokenized(sample_run, tmp_path / "out")
    done = curate("verify", "--run", run)
    assert done.returncode == 1
    assert "tokens-00000-of-00001, sequence 0: more than one copy of " in done.stdout
    assert curate("verify", "--run", sample_run).returncode == 0


def test_a_run_says_that_it_has_fewer_sequences_than_copies(
    sample_run: Path, tmp_path: Path
) -> None:
    run, said = tokenized(sample_run, tmp_path / "out", "--set=tokenize.context_length=65536")
    (path,) = (run / "tokenize/index").glob("*.parquet")
    index = pq.read_table(path)
    together = Counter(zip(index["sequence"].to_pylist(), index["id"].to_pylist(), strict=True))
    found = sum(count - 1 for count in together.values())
    copies = Counter(r["id"] for r in index.to_pylist() if r["document_offset"] == 0)
    assert found > 0
    sequences = max(index["sequence"].to_pylist()) + 1
    assert all(copies[name] > sequences for (_, name), count in together.items() if count > 1)
    told = f"tokenize: {found} copies are in a sequence with another copy of their"
    assert told in said
    checked = curate("verify", "--run", run)
    assert checked.returncode == 0 and told in checked.stdout


def test_clusters_of_a_table_are_apart(tmp_path: Path) -> None:
    texts = [f"Page {k} of one manual, that is almost the same as the others." for k in range(6)]
    texts += [f"Something else, number {k}, of another length {'and more ' * k}" for k in range(60)]
    names = ["manual"] * 6 + [""] * 60
    table = {"id": [f"d{k}" for k in range(66)], "text": texts, "cluster_id": names}
    pq.write_table(pa.table(table), tmp_path / "pages.parquet")
    command = ["run", "llama3", "--stages", "read-tables,tokenize", "--quiet", "--workers", "0"]
    command += ["--input", str(tmp_path / "pages.parquet"), "--output", str(tmp_path / "out")]
    assert main([*command, "--set", "tokenize.context_length=512"]) == 0
    (path,) = (tmp_path / "out/tokenize/index").glob("*.parquet")
    index = pq.read_table(path)
    assert {r["cluster"] for r in index.to_pylist()} == {"manual", None}
    manual = [r["sequence"] for r in index.to_pylist() if r["cluster"] == "manual"]
    assert len(manual) == len(set(manual)) == 6
    assert shared_sequences(index) == 0


@pytest.mark.skipif(not NEARDUP.exists(), reason="real documents are not here")
def test_near_duplicates_of_real_pages_are_apart() -> None:
    with lzma.open(NEARDUP / "docs.jsonl.xz", "rt") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, 1500)]
    parents = {row["id"]: row["id"] for row in rows}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    with open(NEARDUP / "pairs.tsv") as file:
        for pair in csv.DictReader(file, delimiter="\t"):
            if float(pair["jaccard"]) >= 0.8 and {pair["id1"], pair["id2"]} <= parents.keys():
                parents[root(pair["id1"])] = root(pair["id2"])
    batch = pa.RecordBatch.from_pydict(
        {
            "id": list(parents),
            "url": [None] * len(rows),
            "text": pa.array([row["text"] for row in rows], pa.large_string()),
            "source": [{"file": "a", "offset": k} for k in range(len(rows))],
            "cluster_id": [root(name) for name in parents],
            "repeats": pa.array([1 + k % 3 for k in range(len(rows))], pa.int32()),
        }
    )
    values = {"tokenizer": "curation-128k", "context_length": 2048}
    values |= {"bos": True, "eos": True, "shard_tokens": 1 << 30, "seed": 7}
    chosen = TokenizeSettings.model_validate(values)
    index, stats = write_shard([batch], chosen, io.BytesIO(), io.BytesIO())
    sizes = Counter(row["cluster"] for row in index.to_pylist())
    assert len(sizes) < len(rows) and max(sizes.values()) > 10
    assert shared_sequences(pa.Table.from_batches([index])) == stats.copies_together == 0
    assert stats.padding <= 0.005 * stats.tokens
