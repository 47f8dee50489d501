"""Stages of training with context lengths of their own, read one after the other."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from curation.errors import ConfigError, InputError
from curation.tokenize import TokenShards, TokenStages
from curation.tokenize.megatron import IndexedWriter

#: Context length and sequences of each stage; the third has fewer than most steps take.
STAGES = ((2, 900), (4, 500), (8, 3), (16, 200))


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Folders of shards whose tokens tell their number."""
    for length, rows in STAGES:
        folder = tmp_path / str(length)
        folder.mkdir()
        with open(folder / "a.bin", "wb") as bin_file, open(folder / "a.idx", "wb") as idx_file:
            writer = IndexedWriter(bin_file, np.dtype(np.int32))
            writer.write(np.repeat(np.arange(rows, dtype=np.int32)[:, None], length, axis=1))
            writer.finish(idx_file)
    return [tmp_path / str(length) for length, _ in STAGES]


def test_batches_have_equally_many_tokens(folders: list[Path]) -> None:
    reader = TokenStages(folders, 64, rank=1, world_size=2, seed=1)
    shapes = [batch.shape for batch in reader]
    assert shapes == [(16, 2)] * 28 + [(8, 4)] * 31 + [(2, 16)] * 50
    assert len(reader) == len(shapes)
    assert reader.stages == [(2, 0, 28), (4, 28, 59), (8, 59, 59), (16, 59, 109)]
    assert list(reader) == []


def test_stopping_and_resuming_with_other_world_sizes(folders: list[Path]) -> None:
    """250 stops at random steps: each stage goes on as if it had never been stopped."""
    whole = [
        [int(batch[0, 0]) for batch in TokenShards(folder, 1, seed=5, epochs=1)]
        for folder in folders
    ]
    assert all(sorted(rows) == list(range(len(rows))) for rows in whole)
    assert whole[0] != sorted(whole[0])
    rng = np.random.default_rng(0)
    fresh = json.dumps(TokenStages(folders, 16, seed=5).state_dict())
    state, got, passes = fresh, [[] for _ in STAGES], 0
    for _ in range(250):
        world = int(rng.integers(1, 9))
        tokens = world * 16 * int(rng.integers(1, 3))
        readers = [TokenStages(folders, tokens, rank, world, seed=5) for rank in range(world)]
        for reader in readers:
            reader.load_state_dict(json.loads(state))
        ranks = [iter(reader) for reader in readers]
        for _ in range(int(rng.integers(1, 12))):
            batches = [next(rank, None) for rank in ranks]
            assert len({batch is None for batch in batches}) == 1
            for batch in batches:
                if batch is not None:
                    stage = [length for length, _ in STAGES].index(batch.shape[1])
                    got[stage].extend(batch[:, 0].tolist())
        states = {json.dumps(reader.state_dict()) for reader in readers}
        assert len(states) == 1
        (state,) = states
        if batches[0] is None:
            for rows, (length, count), wanted in zip(got, STAGES, whole, strict=True):
                assert rows == wanted[: len(rows)] and count - len(rows) < 256 // length
            state, got, passes = fresh, [[] for _ in STAGES], passes + 1
    assert passes > 2


def test_the_state_after_steps_that_workers_took(folders: list[Path]) -> None:
    for steps in (0, 1, 27, 28, 29, 59, 60, 108, 109):
        reader = TokenStages(folders, 64)
        iterated = TokenStages(folders, 64)
        for _, _ in zip(range(steps), iterated, strict=False):
            pass
        ahead = TokenStages(folders, 64)
        ahead.load_state_dict(reader.state_dict(steps))
        rest, expected = [b.tolist() for b in ahead], [b.tolist() for b in iterated]
        assert rest == expected and len(rest) == max(0, 109 - steps)


def test_pickled_readers_go_on(folders: list[Path]) -> None:
    reader = TokenStages(folders, 64)
    next(iter(reader))
    copy = pickle.loads(pickle.dumps(reader))
    assert [b.tolist() for b in copy] == [b.tolist() for b in reader]


def test_wrong_use_is_refused(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"batch_tokens 96: not a multiple of 64, which is world"):
        TokenStages(folders, 96, world_size=4)
    with pytest.raises(ConfigError, match="no folder"):
        TokenStages([], 64)
    with pytest.raises(InputError, match="no shards"):
        TokenStages([*folders, tmp_path / "nothing"], 64)
    state = TokenStages(folders, 64).state_dict()
    with pytest.raises(ConfigError, match=r"context_lengths \[2, 4, 8, 16\] is not \[2, 4\]"):
        TokenStages(folders[:2], 64).load_state_dict(state)
    with pytest.raises(ConfigError, match="stage 9"):
        TokenStages(folders, 64).load_state_dict(state | {"stage": 9})
