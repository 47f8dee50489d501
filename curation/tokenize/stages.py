"""Read the shards of several mixes one after the other, each with its own context length."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import Any

from curation.errors import ConfigError
from curation.tokenize.reader import TokenShards, as_torch, loader_worker, register


class TokenStages:
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
        self.batch_tokens, self.rank, self.world_size = batch_tokens, rank, world_size
        self.seed, self.shuffle = seed, shuffle
        self._torch = torch
        self._stages: list[TokenShards] = []
        self._stage = self._position = 0
        for path in paths:
            shards = TokenShards(path, 1, rank, world_size, seed, shuffle, 1)
            unit = world_size * shards.context_length
            if batch_tokens < 1 or batch_tokens % unit:
                raise ConfigError(
                    f"batch_tokens {batch_tokens}: not a multiple of {unit}, which is world_size "
                    f"{world_size} times the context length {shards.context_length} of {path}"
                )
            shards.batch_size = batch_tokens // unit
            self._stages.append(shards)
        if torch:
            register(TokenStages)

    @property
    def stages(self) -> list[tuple[int, int, int]]:
        """Context length of each stage, its first step and the one after its last."""
        ends = list(accumulate(map(len, self._stages)))
        lengths = [shards.context_length for shards in self._stages]
        return list(zip(lengths, [0, *ends[:-1]], ends, strict=True))

    def __len__(self) -> int:
        """Steps of all stages, from the beginning."""
        return sum(map(len, self._stages))

    def __iter__(self) -> Iterator[Any]:
        """Batches [samples, context length] from the current sample on.

        In a worker of torch's DataLoader, every so-many-th of these, as many as there are workers.
        """
        worker, workers = loader_worker() if self._torch else (0, 1)
        for turn in count():
            stage, position = self._after(0)
            shards = self._stages[stage]
            size = shards.batch_size * self.world_size
            if position + size > shards.samples:
                return
            # Advance first: a state saved while the batch is in use must not give it again.
            self._stage, self._position = stage, position + size
            if turn % workers == worker:
                first = position + self.rank * shards.batch_size
                batch = shards.take(shards.sequence_numbers(first, shards.batch_size))
                yield as_torch(batch) if self._torch else batch

    def state_dict(self, steps: int = 0) -> dict[str, Any]:
        """Return the place after `steps` more batches, the same on every rank.

        Iteration in this process counts its batches itself. With a DataLoader's workers, give the
        number of batches that came since the last `load_state_dict`, or the beginning.
        """
        stage, position = self._after(steps)
        return {
            "stage": stage,
            "position": position,
            "samples": [shards.samples for shards in self._stages],
            "context_lengths": [shards.context_length for shards in self._stages],
            "seed": self.seed,
            "shuffle": self.shuffle,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was saved. Raises ConfigError if the data or order differ."""
        own = self.state_dict()
        known = ("samples", "context_lengths", "seed", "shuffle")
        wrong = [f"{k} {state.get(k)} is not {own[k]}" for k in known if state.get(k) != own[k]]
        stage, position = state.get("stage"), state.get("position")
        if not isinstance(stage, int) or not isinstance(position, int):
            wrong.append("no position")
        elif not 0 <= stage < len(self._stages) or position < 0:
            wrong.append(f"stage {stage}, position {position}")
        if wrong:
            raise ConfigError(f"the saved state is of another stream: {', '.join(wrong)}")
        self._stage, self._position = int(state["stage"]), int(state["position"])

    def _after(self, steps: int) -> tuple[int, int]:
        """Stage and position after `steps` full steps, at the beginning of a stage if one is over.

        At the end of all: the last stage, where fewer samples are left than a step takes.
        """
        stage, position = self._stage, self._position
        while True:
            shards = self._stages[stage]
            size = shards.batch_size * self.world_size
            left = max(0, shards.samples - position) // size
            if steps < left or stage == len(self._stages) - 1:
                return stage, position + min(steps, left) * size
            stage, position, steps = stage + 1, 0, steps - left

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        if self._torch:
            register(TokenStages)
