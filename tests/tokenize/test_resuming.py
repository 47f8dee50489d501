"""Readers go on exactly where they stopped, whoever took the batches."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.errors import ConfigError
from curation.tokenize import TokenShards, TokenStages
from curation.tokenize.megatron import IndexedWriter
from curation.tokenize.reader import BatchReader
from tests.conftest import ROOT
from tests.tokenize.torch_standin import IterableDataset, Torch, install

#: Context length and sequences of each stage.
STAGES = ((2, 90), (4, 50), (16, 20))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    return install(monkeypatch)


def write_shards(folder: Path, rows: int, length: int = 4) -> None:
    """Two shards whose tokens tell the number of their sequence."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.arange(rows, dtype=np.int32)
    for name, part in (("a", numbers[:7]), ("b", numbers[7:])):
        with (
            open(folder / f"{name}.bin", "wb") as bin_file,
            open(folder / f"{name}.idx", "wb") as idx_file,
        ):
            writer = IndexedWriter(bin_file, np.dtype(np.int32))
            writer.write(np.repeat(part[:, None], length, axis=1))
            writer.finish(idx_file)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_shards(tmp_path / "tokenize", 37)
    return tmp_path / "tokenize"


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    for length, rows in STAGES:
        write_shards(tmp_path / str(length), rows, length)
    return [tmp_path / str(length) for length, _ in STAGES]


@pytest.fixture(params=["shards", "stages"])
def make(request: pytest.FixtureRequest, shards: Path, folders: list[Path]) -> Callable[..., Any]:
    """Make a reader of some batches: TokenShards or TokenStages."""
    if request.param == "shards":
        return lambda **options: TokenShards(shards, 2, epochs=5, **{"seed": 3, **options})
    return lambda **options: TokenStages(folders, 32, **{"seed": 3, **options})


def rows(batches: Iterator[Any]) -> list[Any]:
    return [batch.tolist() for batch in batches]


def test_the_snippet_of_the_docs_loses_and_repeats_nothing(
    shards: Path, torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """250 stops at random batches, each gone on with other workers, ranks and batch sizes."""
    section = (ROOT / "docs/open-a-run.md").read_text().split("\n## torch\n")[1]
    (block,) = re.findall(r"^```python\n(.*?)^```$", section.split("\n## ")[0], re.M | re.S)
    monkeypatch.chdir(tmp_path)
    replaced = {
        '"out/tokenize"': f'"{shards}"',
        "batch_size=4, rank=0, world_size=1": "batch_size=size, rank=rank, world_size=world",
        "epochs=1": "epochs=800",
        "num_workers=2": "num_workers=workers",
        "taken += 1": "taken += 1; got.append(batch)",
    }
    for old, new in replaced.items():
        assert block.count(old) == 1
        block = block.replace(old, new)
    code = compile(block, "docs/open-a-run.md", "exec")
    rng = np.random.default_rng(0)
    seen: list[int] = []
    for _ in range(250):
        workers, world = int(rng.choice([0, 1, 3])), int(rng.integers(1, 9))
        size, torch.stop = int(rng.integers(1, 4)), int(rng.integers(0, 4))
        torch.forked = bool(rng.integers(0, 2))
        before = Path("state.json").read_bytes() if Path("state.json").exists() else None
        got: list[list[np.ndarray]] = []
        states = set()
        for rank in range(world):
            got.append([])
            names = {"size": size, "rank": rank, "world": world, "workers": workers}
            exec(code, {"__name__": "example", "got": got[-1], **names})
            states.add(Path("state.json").read_bytes())
            if before is not None and rank < world - 1:
                Path("state.json").write_bytes(before)
            elif rank < world - 1:
                Path("state.json").unlink()
        assert len(states) == 1
        assert {len(batches) for batches in got} == {torch.stop}
        for step in zip(*got, strict=True):
            seen += [int(row[0]) for batch in step for row in batch]
    assert len(seen) > 75 * 37
    whole = [int(b[0, 0]) for b in TokenShards(shards, 1, seed=1, epochs=800)]
    assert seen == whole[: len(seen)]
    assert sorted(seen[:37]) == list(range(37))


@pytest.mark.parametrize("forked", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_workers_take_turns(
    make: Callable[..., Any], torch: Torch, workers: int, forked: bool
) -> None:
    torch.forked = forked
    plain = rows(make(rank=1, world_size=2))
    reader = make(rank=1, world_size=2, torch=True)
    assert isinstance(reader, IterableDataset)
    assert len(plain) > 2 and rows(torch.data_loader(reader, None, workers)) == plain


def test_batches_of_this_process_are_counted_once(make: Callable[..., Any]) -> None:
    plain, reader = rows(make()), make()
    for taken, _ in enumerate(reader, 1):
        assert reader.state_dict(taken) == reader.state_dict()
        for wrong in (taken - 1, taken + 1, 2 * taken):
            with pytest.raises(ConfigError, match=rf"\({wrong}\): this process took {taken} bat"):
                reader.state_dict(wrong)
        other = make()
        other.load_state_dict(json.loads(json.dumps(reader.state_dict(taken))))
        assert rows(other) == plain[taken:]
    assert taken == len(plain)


def test_the_count_begins_with_a_loaded_state(make: Callable[..., Any]) -> None:
    plain, reader = rows(make()), make()
    steps = iter(reader)
    next(steps), next(steps)
    reader.load_state_dict(reader.state_dict(2))
    next(steps)
    assert reader.state_dict(1) == reader.state_dict()
    assert rows(steps) == plain[3:]


def test_impossible_counts_and_places_are_refused(make: Callable[..., Any]) -> None:
    steps = len(rows(make()))
    for wrong in (-1, steps + 1):
        with pytest.raises(ConfigError, match=rf"\({wrong}\): the stream has fewer batches"):
            make().state_dict(wrong)
    state = make().state_dict(steps)
    for position in (-1, state["position"] + 1000, None, "1", 2.0):
        with pytest.raises(ConfigError, match=f"position {position}"):
            make().load_state_dict(state | {"position": position})
    end = make()
    end.load_state_dict(state)
    assert rows(end) == [] and end.state_dict(0) == state
    with pytest.raises(ConfigError, match="the stream has fewer batches"):
        end.state_dict(1)


def test_only_whole_numbers_and_states_are_taken(make: Callable[..., Any]) -> None:
    for wrong in (2.0, "2", [2]):
        with pytest.raises(ConfigError, match=r"the number of batches .*: expected a whole number"):
            make().state_dict(wrong)
    for none in (None, "state", 2):
        with pytest.raises(ConfigError, match=r"expected what state_dict\(\) gave"):
            make().load_state_dict(none)
    for seed in (-1, 1 << 64, 0.5, None):
        with pytest.raises(ConfigError, match="seed"):
            make(seed=seed)
    with pytest.raises(ConfigError, match=r"stage \[0\]"):
        make().load_state_dict(make().state_dict() | {"stage": [0]})
    two = np.int64(2)
    state = make(world_size=two, seed=two).state_dict(two)
    assert json.loads(json.dumps(state)) == make(world_size=2, seed=2).state_dict(2)


@pytest.mark.parametrize("forked", [True, False])
def test_batches_of_workers_need_a_count(
    make: Callable[..., Any], torch: Torch, monkeypatch: pytest.MonkeyPatch, forked: bool
) -> None:
    torch.forked = forked
    if not forked:  # as while another process is started
        monkeypatch.setattr("curation.tokenize.reader.get_spawning_popen", object)
    reader, plain = make(torch=True), rows(make())
    loader = torch.data_loader(reader, None, 2)
    next(loader), next(loader), next(loader)
    with pytest.raises(ConfigError, match="give the number of batches that it returned"):
        reader.state_dict()
    state = reader.state_dict(3)
    reader.load_state_dict(state)
    assert reader.state_dict() == state
    assert rows(torch.data_loader(reader, None, 3)) == plain[3:]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_other_processes_are_noticed(shards: Path, torch: Torch, context: str) -> None:
    """With real processes; `sum` in a worker of a DataLoader, `len` where its module is unknown."""
    if context == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork")
    reader = TokenShards(shards, 2, epochs=1, torch=context == "fork")

    def in_worker() -> None:
        torch.in_worker(0, 2, lambda: rows(reader))

    processes = multiprocessing.get_context(context)
    process = (
        processes.Process(target=in_worker)
        if context == "fork"
        else processes.Process(target=len, args=(reader,))
    )
    process.start()
    process.join()
    assert process.exitcode == 0
    with pytest.raises(ConfigError, match="give the number"):
        reader.state_dict()
    assert reader.state_dict(2)["position"] == 4


def stateful(torch: Torch, reader: BatchReader, workers: int, states: list[Any]) -> Iterator[Any]:
    """Batches, each with the states of all workers, as torchdata's StatefulDataLoader has them.

    It calls `state_dict` in each worker when it begins and after each batch, and gives it to the
    same worker when it goes on, where the next turn is kept, too.
    """
    states = states or [None] * (workers + 1)
    copies = [torch.copied(reader) for _ in range(workers)]
    turn, streams = states[-1] or 0, []
    for number, copy in enumerate(copies):
        if states[number] is not None:
            torch.in_worker(number, workers, lambda c=copy, n=number: c.load_state_dict(states[n]))
        streams.append(iter(copy))
    found = [torch.in_worker(n, workers, copy.state_dict) for n, copy in enumerate(copies)]
    while True:
        number = turn % workers
        batch = torch.in_worker(number, workers, lambda n=number: next(streams[n], None))
        if batch is None:
            return
        found[number] = torch.in_worker(number, workers, copies[number].state_dict)
        turn += 1
        yield batch, json.loads(json.dumps([*found, turn]))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_stateful_data_loader_goes_on(
    make: Callable[..., Any], torch: Torch, workers: int
) -> None:
    plain = rows(make())
    rng, states, got = np.random.default_rng(workers), [], []
    while len(got) < len(plain):
        batches = stateful(torch, make(torch=True), workers, states)
        for _ in range(int(rng.integers(1, 9))):
            batch, states = next(batches, (None, states))
            if batch is not None:
                got.append(batch.tolist())
    assert got == plain
    assert next(stateful(torch, make(torch=True), workers, states), None) is None


@pytest.mark.parametrize("blocks", [16, 64])
def test_blocks_come_in_order_and_are_shuffled_within(shards: Path, blocks: int) -> None:
    files = {path.name: {"bytes": path.stat().st_size, "rows": 1} for path in shards.iterdir()}
    manifest = {"files": files, "notes": {"blocks": blocks}}
    (shards / "manifest.json").write_text(json.dumps(manifest))
    drawn = [int(b[0, 0]) for b in TokenShards(shards, 1, seed=3, epochs=40)]
    epochs = np.array(drawn).reshape(40, 37)
    edges = np.unique(np.arange(blocks + 1) * 37 // blocks)
    for epoch in epochs:
        for low, high in itertools.pairwise(edges.tolist()):
            assert sorted(epoch[low:high]) == list(range(low, high))
    assert (len({tuple(epoch) for epoch in epochs}) > 30) == (blocks < 37)
    assert TokenShards(shards, 40, shuffle=False).take(np.arange(37))[:, 0].tolist() == sorted(
        epochs[0].tolist()
    )
