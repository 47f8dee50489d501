"""Read the shards of several mixes one after the other, each with its own context length."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy.typing as npt

from curation.errors import ConfigError
from curation.tokenize.reader import BatchReader, TokenShards


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
        self.batch_tokens, self.rank, self.world_size = batch_tokens, rank, world_size
        self.seed, self.shuffle = seed, shuffle
        super().__init__(torch)
        self._stages: list[TokenShards] = []
        self._start = (0, 0)  # stage and position
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

    @property
    def stages(self) -> list[tuple[int, int, int]]:
        """Context length of each stage, its first step and the one after its last."""
        ends = list(accumulate(map(len, self._stages)))
        lengths = [shards.context_length for shards in self._stages]
        return list(zip(lengths, [0, *ends[:-1]], ends, strict=True))

    def __len__(self) -> int:
        """Steps of all stages, from the beginning."""
        return sum(map(len, self._stages))

    def _left(self) -> int:
        stage, position = self._start
        sizes = ((s.samples, s.step) for s in self._stages[stage:])
        return sum(
            max(0, samples - (0 if k else position)) // step
            for k, (samples, step) in enumerate(sizes)
        )

    def batch(self, number: int) -> npt.NDArray | None:
        """Return a batch of this rank [samples, context length]; None behind the last."""
        stage, position = self._after(number)
        shards = self._stages[stage]
        if position + shards.step > shards.samples:
            return None
        first = position + self.rank * shards.batch_size
        return shards.take(shards.sequence_numbers(first, shards.batch_size))

    def state_dict(self, steps: int | None = None) -> dict[str, Any]:
        """Return the place in the stages, the same on every rank; `steps` as in `TokenShards`."""
        stage, position = self._after(self._count(steps))
        return {"stage": stage, "position": position} | self._stream()

    def _stream(self) -> dict[str, Any]:
        return {
            "samples": [shards.samples for shards in self._stages],
            "context_lengths": [shards.context_length for shards in self._stages],
            "seed": self.seed,
            "shuffle": self.shuffle,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was saved. Raises ConfigError if the data or order differ."""
        stage, position = state.get("stage"), state.get("position")
        known = (
            isinstance(stage, int)
            and isinstance(position, int)
            and 0 <= stage < len(self._stages)
            and 0 <= position <= self._stages[stage].samples
        )
        self._begin(state, "" if known else f"stage {stage}, position {position}")
        self._start = int(state["stage"]), int(state["position"])

    def _after(self, steps: int) -> tuple[int, int]:
        """Stage and position after `steps` full steps, at the beginning of a stage if one is over.

        At the end of all: the last stage, where fewer samples are left than a step takes.
        """
        stage, position = self._start
        while True:
            shards = self._stages[stage]
            left = max(0, shards.samples - position) // shards.step
            if steps < left or stage == len(self._stages) - 1:
                return stage, position + min(steps, left) * shards.step
            stage, position, steps = stage + 1, 0, steps - left
