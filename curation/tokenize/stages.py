"""Read the shards of several mixes one after the other, each with its own context length."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

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
        super().__init__(rank, world_size, seed, shuffle, torch)
        self.batch_tokens, self._stages = batch_tokens, []
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

    def state_dict(self, steps: int | None = None) -> dict[str, Any]:
        """Return the place in the stages, the same on every rank; `steps` as in `TokenShards`."""
        stage, position = self._place(steps)
        return {"stage": stage, "position": position} | self._stream()

    def _stream(self) -> dict[str, Any]:
        return {
            "samples": [shards.samples for shards in self._stages],
            "context_lengths": [shards.context_length for shards in self._stages],
        } | super()._stream()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was saved. Raises ConfigError if the data or order differ."""
        self._begin(state, state.get("stage"), state.get("position"))
