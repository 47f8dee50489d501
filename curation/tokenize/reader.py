"""Read packed shards for training: shuffled, divided among ranks, resumable at the exact sample.

`TokenStages` reads the shards of several mixes in turn, each with its own context length."""

from __future__ import annotations

import json
import mmap
import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, InputError, require
from curation.hashing import mix64
from curation.tokenize.megatron import read_index

_ROUNDS = 6


def permute(places: npt.NDArray[np.int64], n: int, seed: int) -> npt.NDArray[np.int64]:
    """Return where each place of 0..n-1 goes: a bijection that depends on n and seed alone.

    A balanced Feistel network over the least even number of bits that holds n; values outside walk
    on along their cycle until they are inside (Black and Rogaway 2002, "Ciphers with arbitrary
    finite domains"), fewer than four steps on average.
    """
    half = np.uint64(max(1, -(-max(n - 1, 1).bit_length() // 2)))
    low = (np.uint64(1) << half) - np.uint64(1)
    keys = mix64(np.uint64(seed) + mix64(np.arange(1, _ROUNDS + 1, dtype=np.uint64)))
    out, outside = places.astype(np.uint64), np.arange(len(places))
    while len(outside):
        left, right = out[outside] >> half, out[outside] & low
        for key in keys:
            left, right = right, left ^ (mix64(right ^ key) & low)
        out[outside] = left << half | right
        outside = outside[out[outside] >= n]
    return out.astype(np.int64)


#: Name of a shard that tells how many there are: `tokens-00000-of-00004.bin`.
_NUMBERED = re.compile(r"(.*-)(\d+)-of-(\d+)\.bin")


def _whole(value: Any, name: str) -> int:
    """Return a whole number as Python's, which JSON can write. Raises ConfigError for others."""
    try:
        return int(operator.index(value))
    except TypeError:
        raise ConfigError(f"{name} {value!r}: expected a whole number") from None


class BatchReader:
    """Gives numbered batches of one folder of shards after the other.

    Numbers begin where the reader begins, or where a state was loaded. Each batch is counted once,
    in whichever process it is taken.
    """

    _stages: Sequence[TokenShards]

    def __init__(self, rank: int, world_size: int, seed: int, shuffle: bool, torch: bool) -> None:
        self.rank, self.world_size = _whole(rank, "rank"), _whole(world_size, "world_size")
        self.seed, self.shuffle = _whole(seed, "seed"), shuffle
        if not 0 <= self.seed < 1 << 64:
            raise ConfigError(f"seed {seed}: expected a whole number from 0 to 2^64 - 1")
        self._start, self._taken = (0, 0), 0  # stage and sample, batches since then
        self._by_workers = mmap.mmap(-1, 1)  # whether a DataLoader's do; shared with forked ones
        self._torch = torch
        if torch:
            register(self.__class__)

    def __iter__(self) -> Iterator[Any]:
        """Batches [batch_size, context_length] from the current sample on.

        In a worker of torch's DataLoader, every so-many-th of these, as many as there are workers.
        """
        worker = loader_worker() if self._torch else None
        if worker is not None:
            self._by_workers[0] = 1
        first, workers = worker or (0, 1)
        while (batch := self.batch(self._taken + first)) is not None:
            # Advance first: a state saved while the batch is in use must not give it again.
            self._taken += workers
            yield as_torch(batch) if self._torch else batch

    def batch(self, number: int) -> npt.NDArray | None:
        """Return a batch of this rank [batch_size, context_length]; None behind the last."""
        stage, first = self._after(number)
        shards = self._stages[stage]
        if first + shards.step > shards.end:
            return None
        first += self.rank * shards.batch_size
        return shards.take(shards.sequence_numbers(first, shards.batch_size))

    def _after(self, steps: int) -> tuple[int, int]:
        """Stage and sample after `steps` full steps, at the beginning of a stage if one is over.

        At the end of all: the last stage, where fewer samples are left than a step takes.
        """
        stage, first = self._start
        while True:
            shards = self._stages[stage]
            left = max(0, shards.end - first) // shards.step
            if steps < left or stage == len(self._stages) - 1:
                return stage, first + min(steps, left) * shards.step
            stage, first, steps = stage + 1, 0, steps - left

    def _place(self, steps: int | None) -> tuple[int, int]:
        """Stage and sample after the batches taken, counted here or given. Raises ConfigError."""
        steps = None if steps is None else _whole(steps, "state_dict: the number of batches")
        if steps is None and self._by_workers[0] and not (self._torch and loader_worker()):
            raise ConfigError(
                "state_dict(): a DataLoader's workers read ahead; give the number of batches that "
                "it returned since the beginning or the last load_state_dict"
            )
        if steps is not None and self._taken not in (0, steps):
            raise ConfigError(
                f"state_dict({steps}): this process took {self._taken} batches, and counts them; "
                "give no number, or that of all since the beginning or the last load_state_dict"
            )
        if steps and (steps < 0 or self.batch(steps - 1) is None):
            raise ConfigError(f"state_dict({steps}): the stream has fewer batches")
        return self._after(self._taken if steps is None else steps)

    def _stream(self) -> dict[str, Any]:
        """Return what a state must agree on."""
        return {"seed": self.seed, "shuffle": self.shuffle}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was saved. Raises ConfigError if the data or order differ."""
        if not isinstance(state, Mapping):
            raise ConfigError(f"load_state_dict: expected what state_dict() gave, not {state!r}")
        own = self._stream()
        stage: Any = state.get("stage", 0)
        first: Any = state.get("position")
        wrong = [f"{k} {state.get(k)} is not {v}" for k, v in own.items() if state.get(k) != v]
        ends = {number: shards.end for number, shards in enumerate(self._stages)}
        given = isinstance(stage, int) and isinstance(first, int)
        if not given or not 0 <= first <= ends.get(stage, -1):
            wrong.append(f"stage {stage}, position {first}")
        if wrong:
            raise ConfigError(f"the saved state is of another stream: {', '.join(wrong)}")
        self._start, self._taken, self._by_workers[0] = (stage, first), 0, 0

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:  # on the way to a worker that is not forked
            self._by_workers[0] = 1
        # Shards are opened anew: pickled, they would be copied.
        return {k: v for k, v in self.__dict__.items() if k not in ("_by_workers", "_shards")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._by_workers = mmap.mmap(-1, 1)
        if self._torch:
            register(self.__class__)


class TokenShards(BatchReader):
    """Iterates batches of sequences from the `.bin`/`.idx` shards of a folder.

    Samples form one endless stream: epoch after epoch, each a permutation of all sequences that
    depends on seed and epoch (or file order without `shuffle`). A step takes the next
    `world_size * batch_size` samples of the stream, of which rank r gets the r-th run of
    `batch_size`; a batch is always full and may span two epochs. With `epochs` given the stream
    ends there, and the samples left after the last full step are left out, so that all ranks take
    equally many steps; `__len__` counts them.

    Shards of a mix with phases come in the order of the phases, once: `epochs` is 1, and shuffling
    goes no further than a shard. Where documents repeat, it goes no further than a block, of which
    their manifest says how many there are, so that the copies of a document stay apart.

    `state_dict()` is the number of samples that all ranks together have taken, so a run may go on
    with another world size or batch size, with no sample lost or repeated.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        epochs: int | None = None,
        torch: bool = False,
    ) -> None:
        """`path` is a folder with `*.bin` and `*.idx`, taken in order of name: those that its
        `manifest.json` names, or, of shards copied without one, all.

        With `torch`, batches are int64 torch tensors. Raises ConfigError on an impossible rank or
        size or where torch is not installed, InputError on shards that are missing, damaged or of
        unequal sequence length.
        """
        batch_size = _whole(batch_size, "batch_size")
        epochs = None if epochs is None else _whole(epochs, "epochs")
        super().__init__(rank, world_size, seed, shuffle, torch)
        if batch_size < 1 or self.world_size < 1 or not 0 <= self.rank < self.world_size:
            raise ConfigError(
                f"batch_size {batch_size}, rank {rank}, world_size {world_size}: sizes must be at "
                "least 1 and the rank below world_size"
            )
        if epochs is not None and epochs < 1:
            raise ConfigError(f"epochs is {epochs}: give at least 1, or none for an endless stream")
        self.batch_size, self.epochs, self._stages = batch_size, epochs, [self]
        self._path = Path(path)
        self._firsts = np.cumsum([0, *(len(rows) for rows in self._shards)])
        self._phases, blocks = _notes(self._path)
        self._blocks = np.unique(np.arange(blocks + 1) * self.samples // blocks)
        if self._phases:
            if epochs not in (None, 1):
                raise ConfigError(f"epochs is {epochs}, but a mix with phases is read once")
            self.epochs, self._blocks = 1, self._firsts

    @cached_property
    def _shards(self) -> list[npt.NDArray]:
        return _open_shards(self._path)

    @property
    def samples(self) -> int:
        """Sequences of all shards: samples of one epoch."""
        return int(self._firsts[-1])

    @property
    def end(self) -> int:
        """Samples of the stream; of an endless one, more than anybody takes."""
        return self.samples * (1 << 40 if self.epochs is None else self.epochs)

    @property
    def step(self) -> int:
        """Samples that all ranks together take at a time."""
        return self.batch_size * self.world_size

    @property
    def context_length(self) -> int:
        """Tokens of a sequence."""
        return int(self._shards[0].shape[1])

    @property
    def phases(self) -> list[tuple[str, int, int]]:
        """Name of each phase of the mix, its first sample and the one after its last."""
        ends = list(accumulate(sequences for _, sequences in self._phases))
        return [
            (name, end - sequences, end)
            for (name, sequences), end in zip(self._phases, ends, strict=True)
        ]

    def __len__(self) -> int:
        """Steps from the first sample on. Raises TypeError for an endless stream."""
        if self.epochs is None:
            raise TypeError("an endless stream has no length: give `epochs`")
        return self.end // self.step

    def sequence_numbers(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """Sequence numbers over all shards of `count` samples of the stream from `first` on."""
        epochs, places = np.divmod(np.arange(first, first + count, dtype=np.int64), self.samples)
        if not self.shuffle:
            return places
        out = np.empty(count, np.int64)
        blocks = np.searchsorted(self._blocks, places, side="right") - 1
        every = len(self._blocks) - 1
        draws = epochs * every + blocks
        for draw in np.unique(draws).tolist():
            inside, low = draws == draw, self._blocks[draw % every]
            rows = int(self._blocks[draw % every + 1] - low)
            seed = _draw_seed(self.seed, draw)
            out[inside] = low + permute(places[inside] - low, rows, seed)
        return out

    def take(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray:
        """Return rows of the given sequence numbers: [n, context_length], a copy."""
        out = np.empty((len(numbers), self.context_length), self._shards[0].dtype)
        shards = np.searchsorted(self._firsts, numbers, side="right") - 1
        rows = numbers - self._firsts[shards]
        for k, (shard, row) in enumerate(zip(shards.tolist(), rows.tolist(), strict=True)):
            out[k] = self._shards[shard][row]
        return out

    def state_dict(self, steps: int | None = None) -> dict[str, int | bool]:
        """Return the position in the stream, the same on every rank.

        Iteration in this process counts its batches itself. Of a DataLoader's workers, give the
        number of batches that came since the beginning or the last `load_state_dict`; it is the
        same number in either case. Raises ConfigError where it can't be right.
        """
        return {"position": self._place(steps)[1]} | self._stream()

    def _stream(self) -> dict[str, Any]:
        return {"samples": self.samples} | super()._stream()


def as_torch(batch: npt.NDArray) -> Any:
    """Return a batch as an int64 tensor."""
    import torch

    return torch.from_numpy(batch.astype(np.int64))


def register(reader: type) -> None:
    """Let torch's DataLoader know that a reader is iterated. Raises ConfigError."""
    require("torch.utils.data", reader.__name__).IterableDataset.register(reader)


def loader_worker() -> tuple[int, int] | None:
    """Return the number and count of workers where this is one of a DataLoader, else None."""
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    return None if info is None else (info.id, info.num_workers)


@lru_cache(maxsize=64)
def _draw_seed(seed: int, draw: int) -> int:
    """Seed of the permutation of a block in an epoch: blocks are counted on over epochs."""
    salts = mix64(np.array([seed, draw], np.uint64))
    return int(mix64(salts[:1] + np.uint64(1) + salts[1:])[0])


def _shard_files(folder: Path) -> list[Path]:
    """Return the `.bin` files of all shards, in order of name.

    Raises InputError where some are missing, as the manifest or the shards' names tell.
    """
    manifest = folder / "manifest.json"
    if manifest.exists():
        try:
            files = json.loads(manifest.read_bytes())["files"]
            sizes = {name: int(files[name]["bytes"]) for name in files if "/" not in name}
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{manifest}: damaged, or not the manifest of token shards; run the stage again"
            ) from None
        for name, size in sizes.items():
            path = folder / name
            found = path.stat().st_size if path.exists() else None
            if found != size:
                actual = "missing" if found is None else f"{found} bytes"
                raise InputError(f"{path}: {actual}, but manifest.json says {size} bytes")
        return [folder / name for name in sorted(sizes) if name.endswith(".bin")]
    # A stage folder has commit records in `shards`; its manifest is written last.
    if any((folder / name).is_dir() for name in ("shards", ".work")):
        raise InputError(f"{folder}: no manifest.json: the stage is not complete; run it again")
    paths = sorted(path for path in folder.glob("*.bin") if not path.name.startswith("."))
    names = {path.name for path in paths}
    matches = [match for name in names if (match := _NUMBERED.fullmatch(name))]
    for stem, digits, count in sorted({(m[1], len(m[2]), m[3]) for m in matches}):
        for number in range(int(count)):
            name = f"{stem}{number:0{digits}d}-of-{count}.bin"
            if name not in names:
                raise InputError(f"{folder / name}: missing; other shards are there")
    return paths


def _notes(folder: Path) -> tuple[list[tuple[str, int]], int]:
    """Name and sequences of each phase, and blocks in which samples are shuffled, by manifest."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes()) if path.exists() else {}
    notes = manifest.get("notes", {})
    phases = [
        (phase["phase"], sum(manifest["files"][f"{s}.bin"]["rows"] for s in phase["shards"]))
        for phase in notes.get("phases", [])
    ]
    return phases, int(notes.get("blocks", 1))


def _open_shards(folder: Path) -> list[npt.NDArray]:
    """Return rows [sequences, context_length] of every shard, memory-mapped."""
    shards: list[npt.NDArray] = []
    for path in _shard_files(folder):
        index = read_index(path.with_suffix(".idx"))
        if not len(index.lengths):
            continue
        length = int(index.lengths[0])
        expected = np.arange(len(index.lengths)) * length * index.dtype.itemsize
        if (index.lengths != length).any() or (index.pointers != expected).any():
            raise InputError(f"{path}: sequences are not all of one length, end to end")
        size = len(index.lengths) * length * index.dtype.itemsize
        if path.stat().st_size != size:
            raise InputError(f"{path}: {path.stat().st_size} bytes, but its index says {size}")
        if shards and (shards[0].shape[1] != length or shards[0].dtype != index.dtype):
            raise InputError(
                f"{path}: sequences of {length} {index.dtype} tokens, in other shards "
                f"{shards[0].shape[1]} {shards[0].dtype}"
            )
        rows = np.memmap(path, index.dtype, "r", shape=(len(index.lengths), length))
        shards.append(np.asarray(rows))
    if not shards:
        raise InputError(f"{folder}: no shards (*.bin with sequences) here")
    return shards


class TokenStages(BatchReader):
    """Iterates batches of equally many tokens from folders of shards, each read once.

    A step takes the next `batch_tokens` tokens of a stage: `batch_tokens / context length` samples,
    of which each rank gets equally many. Samples left after the last full step of a stage are left
    out. `state_dict()` is the stage and the number of its samples that all ranks together have
    taken, so a run may go on with another world size or other `batch_tokens`, within a stage or
    between two, with no sample lost or repeated.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        batch_tokens: int,
        rank: int = 0,
        world_size: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        torch: bool = False,
    ) -> None:
        """`paths` are folders that `TokenShards` reads, in the order of training.

        Raises ConfigError where a step of a stage can't be divided among the ranks, and what
        TokenShards raises.
        """
        if not paths:
            raise ConfigError("no folder of token shards is given")
        super().__init__(rank, world_size, seed, shuffle, torch)
        batch_tokens = self.batch_tokens = _whole(batch_tokens, "batch_tokens")
        self._stages = []
        for path in paths:
            shards = TokenShards(path, 1, rank, world_size, seed, shuffle, 1)
            unit = self.world_size * shards.context_length
            if batch_tokens < 1 or batch_tokens % unit:
                raise ConfigError(
                    f"batch_tokens {batch_tokens}: not a multiple of {unit}, which is world_size "
                    f"{world_size} times the context length {shards.context_length} of {path}"
                )
            shards.batch_size = batch_tokens // unit
            self._stages.append(shards)

    @property
    def stages(self) -> list[tuple[int, int, int]]:
        """Context length of each stage, its first step and the one after its last."""
        ends = list(accumulate(map(len, self._stages)))
        lengths = [shards.context_length for shards in self._stages]
        return list(zip(lengths, [0, *ends[:-1]], ends, strict=True))

    def __len__(self) -> int:
        """Steps of all stages, from the beginning."""
        return sum(map(len, self._stages))

    def state_dict(self, steps: int | None = None) -> dict[str, Any]:
        """Return the place in the stages, the same on every rank; `steps` as in `TokenShards`."""
        stage, position = self._place(steps)
        return {"stage": stage, "position": position} | self._stream()

    def _stream(self) -> dict[str, Any]:
        return {
            "samples": [shards.samples for shards in self._stages],
            "context_lengths": [shards.context_length for shards in self._stages],
        } | super()._stream()
