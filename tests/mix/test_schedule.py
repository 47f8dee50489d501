"""Mixes that change while a model is trained: draws by phase, order, and readers."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.errors import ConfigError
from curation.mix.draw import draw
from curation.mix.levels import plan_tables
from curation.mix.mix_table import plan_table
from curation.mix.plan import MixPlan
from curation.mix.schedule import place_key, shares, spans
from curation.tokenize import TokenShards
from pipelines.cli import main
from tests.folders import differences
from tests.mix.test_mix import DOMAINS, mixing, narrow
from tests.mix.test_stage import documents

LATE = {"general": 0.2, "math_reasoning": 0.4, "code": 0.2, "multilingual": 0.2}
PHASES = [
    {"name": "main", "end": 800},
    {"name": "late", "end": 950, "shares": LATE, "change": "linear"},
    {"name": "annealing", "end": 1000, "shares": LATE, "seed": 9},
]


def table_of(rows: int = 40_000) -> pa.Table:
    return narrow(rows, 2, ("web",))


class Copies(NamedTuple):
    """One entry per copy."""

    document: np.ndarray
    place: np.ndarray  # in training, 0 to 1
    domain: np.ndarray
    tokens: np.ndarray

    def between(self, start: float, end: float) -> Copies:
        inside = (self.place >= start) & (self.place < end)
        return Copies._make(column[inside] for column in self)

    def of(self, domain: str) -> int:
        return int(self.tokens[self.domain == domain].sum())


def copies(table: pa.Table, mix: MixPlan) -> Copies:
    found = draw(table, MixPlan.from_dict(json.loads(json.dumps(mix.as_dict()))))
    assert found.places is not None
    documents = np.repeat(np.arange(len(table)), found.repeats)
    place = found.places.flatten().to_numpy() / 2.0**64
    columns = (np.array(table[name])[documents] for name in ("domain", "tokens"))
    return Copies(documents, place, *columns)


def test_each_phase_has_its_shares() -> None:
    table = table_of()
    mix = plan_tables([table], mixing(budget=4_000_000, phases=PHASES))
    drawn = copies(table, mix)
    for span, length in zip(spans(mix.settings), (0.8, 0.15, 0.05), strict=True):
        inside = drawn.between(span.start, span.end)
        for domain in DOMAINS:
            assert abs(inside.of(domain) - 4_000_000 * length * span.share(domain)) <= 2000
    assert mix.phase_rows()[2]["domains"]["code"]["kept_share"] == pytest.approx(0.2, abs=0.01)
    assert "annealing" in plan_table(mix)
    total = shares(mix.settings)
    assert total["math_reasoning"] == pytest.approx(0.8 * 0.25 + 0.15 * 0.325 + 0.05 * 0.4)


def test_shares_move_along_a_line() -> None:
    phases = [{"end": 1, "change": "linear", "shares": LATE}]
    table = table_of(60_000)
    mix = plan_tables([table], mixing(budget=40_000_000, phases=phases))
    drawn = copies(table, mix)
    (span,) = spans(mix.settings)
    for k in range(10):
        inside = drawn.between(k / 10, (k + 1) / 10)
        for domain in DOMAINS:
            wanted = span.first[domain] + (span.last[domain] - span.first[domain]) * (k + 0.5) / 10
            got = inside.of(domain) / inside.tokens.sum()
            assert got == pytest.approx(wanted, abs=0.03)


def test_phases_of_one_seed_go_through_all_documents_before_any_repeats() -> None:
    table = table_of(4000)
    phases = [{"end": 1}, {"end": 2}, {"end": 3}]
    budget = 2_000_000  # of general: about a third in each phase
    only = {d: {"share": float(d == "general"), "max_epochs": 4} for d in DOMAINS}
    mix = plan_tables([table], mixing(budget=budget, phases=phases, domains=only))
    seen = Counter(copies(table, mix).document.tolist())
    assert max(seen.values()) == 1
    plain = draw(table, plan_tables([table], mixing(budget=budget, domains=only))).repeats
    assert sorted(seen) == np.flatnonzero(plain).tolist()
    phases[2]["seed"] = 77
    mix = plan_tables([table], mixing(budget=budget, phases=phases, domains=only))
    assert max(Counter(copies(table, mix).document.tolist()).values()) > 1


def test_copies_within_a_phase_are_evenly_apart() -> None:
    """In a domain that is as dense all along; and one copy of each phase is no nearer to others."""
    table = table_of(300)
    shares = {d: float(d == "general") for d in DOMAINS}
    only = {d: {"share": share, "max_epochs": 9} for d, share in shares.items()}
    tokens = sum(r["tokens"] for r in table.to_pylist() if r["domain"] == "general")
    phases = [{"end": 4}, {"end": 5}]
    mix = plan_tables([table], mixing(budget=5 * tokens, phases=phases, domains=only))
    drawn = copies(table, mix)
    for document in np.unique(drawn.document):
        places = drawn.place[drawn.document == document]
        assert np.diff(places) == pytest.approx(np.full(4, 0.2), abs=1e-6)


def test_a_phase_may_prefer_recent_documents() -> None:
    recent = {"by": "date", "half_life": 200, "as_of": "2024-12-28"}
    phases = [{"end": 9}, {"end": 10, "repeats": recent}]
    table = table_of()
    mix = plan_tables([table], mixing(budget=2_000_000, phases=phases))
    drawn = copies(table, mix)
    dates = np.array(table["date"])
    late, early = (
        dates[drawn.between(*ends).document].astype(np.int64).mean()
        for ends in ((0.9, 1), (0, 0.9))
    )
    assert (late - early) / 86400e6 > 1000


@settings(max_examples=15)
@given(st.lists(st.integers(0, 500), max_size=4))
def test_partition_changes_nothing(cuts: list[int]) -> None:
    table = narrow(500, 3)
    s = mixing(budget=200_000, phases=PHASES)
    whole = plan_tables([table], s)
    places = [0, *sorted(cuts), 500]
    shards = [table.slice(a, b - a) for a, b in itertools.pairwise(places)]
    assert plan_tables(reversed(shards), s) == whole
    parts = [place for shard in shards for place in draw(shard, whole).places.to_pylist()]
    assert parts == draw(table, whole).places.to_pylist()


def test_ends_of_training_are_keys() -> None:
    assert place_key(0) == 0 and place_key(1) == 1 << 64
    for span in spans(mixing(phases=PHASES)):
        assert 0 <= span.low <= span.high < 1 << 64


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ([{"end": 1, "shares": {"general": 0.5}}], "shares sum to 0.5, not 1"),
        ([{"end": 1, "shares": {"coed": 1}}], "no domain 'coed' in the mix; did you mean 'code'"),
        ([{"end": 2}, {"end": 2}], r"phases\[1\] ends at 2, where it begins or before"),
    ],
)
def test_impossible_phases_are_refused(phases: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        mixing(phases=phases)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scheduled")
    (folder / "in").mkdir()
    for k in range(3):
        pq.write_table(documents(400, "web", k), folder / "in" / f"web-{k}.parquet")
    recipe = {
        "name": "scheduled",
        "description": "a test",
        "extends": "llama3",
        "mix": {"budget": 60_000, "phases": PHASES, "on_shortage": "relax"},
        "tokenize": {"context_length": 64, "shard_tokens": 9000},
    }
    (folder / "scheduled.yaml").write_text(yaml.safe_dump(recipe))
    return folder


def tokenized(corpus: Path, output: Path, workers: int) -> Path:
    command = ["run", str(corpus / "scheduled.yaml"), "--stages", "mix,tokenize", "--quiet"]
    command += ["--input", f"{corpus}/in", "--output", str(output), "--workers", str(workers)]
    assert main(command) == 0
    return output


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenized(corpus, tmp_path_factory.mktemp("run"), 0)


def test_shards_come_in_the_order_of_the_phases(run: Path) -> None:
    manifest = json.loads((run / "tokenize/manifest.json").read_text())
    noted = manifest["notes"]["phases"]
    shards = [shard for phase in noted for shard in phase["shards"]]
    assert shards == sorted(p.stem for p in (run / "tokenize").glob("*.bin"))
    assert len(noted[0]["shards"]) > 2
    domain = {}
    for path in (run / "mix/documents").glob("*.parquet"):
        for row in pq.read_table(path, columns=["id", "domain"]).to_pylist():
            domain[row["id"]] = row["domain"]
    for phase in noted:
        found: Counter[str] = Counter()
        for shard in phase["shards"]:
            index = pq.read_table(run / f"tokenize/index/{shard}.parquet")
            for row in index.select(["id", "length"]).to_pylist():
                found[domain[row["id"]]] += row["length"]
        assert found.total() == phase["kept"]
        for name, part in phase["domains"].items():
            assert found[name] == part["kept"]
    reader = TokenShards(run / "tokenize", 1)
    assert [name for name, _, _ in reader.phases] == ["main", "late", "annealing"]
    assert reader.phases[-1][2] == reader.samples


@pytest.mark.usefixtures("forked_processes")
def test_workers_change_no_byte(corpus: Path, run: Path, tmp_path: Path) -> None:
    for workers in (2, 4):
        assert differences(run, tokenized(corpus, tmp_path / str(workers), workers)) == []


def test_documents_without_their_mix_are_refused(
    corpus: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = ["--input", f"{run}/mix/documents/*.parquet", "--output", str(tmp_path), "--quiet"]
    loose += ["--workers", "0"]
    assert main(["tokenize", *loose, "--recipe", str(corpus / "scheduled.yaml")]) != 0
    assert "give its stage folder" in capsys.readouterr().err


def taken(readers: list[TokenShards], steps: int) -> list[list[int]]:
    """Rows of so many steps of all ranks, in the order of the stream."""
    streams = [iter(reader) for reader in readers]
    return [
        row
        for _ in range(steps)
        for stream in streams
        for row in next(stream, np.zeros(0)).tolist()
    ]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_reader_resumed_anywhere_sees_what_an_undisturbed_one_sees(
    run: Path, data: st.DataObject
) -> None:
    shuffle = data.draw(st.booleans())

    def readers(world: int, batch: int) -> list[TokenShards]:
        return [
            TokenShards(run / "tokenize", batch, rank, world, seed=5, shuffle=shuffle)
            for rank in range(world)
        ]

    whole = TokenShards(run / "tokenize", 1, seed=5, shuffle=shuffle)
    every = [row for batch in whole for row in batch.tolist()]
    assert len(every) == whole.samples
    state, position = None, 0
    for _ in range(data.draw(st.integers(1, 4))):
        world, batch = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
        ranks = readers(world, batch)
        for reader in ranks:
            if state is not None:
                reader.load_state_dict(state)
        left = (whole.samples - position) // (world * batch)
        steps = data.draw(st.integers(0, left))
        rows = taken(ranks, steps)
        assert rows == every[position : position + len(rows)]
        position += steps * world * batch
        state = ranks[-1].state_dict()
        assert state == ranks[0].state_dict()


def test_phases_are_gone_through_once(run: Path) -> None:
    with pytest.raises(ConfigError, match="a mix with phases is read once"):
        TokenShards(run / "tokenize", 1, epochs=2)
    reader = TokenShards(run / "tokenize", 4, seed=1)
    assert len(list(reader)) == len(reader) == reader.samples // 4
