"""What readers use of torch, and a DataLoader as torch's: its wheel is too large for tests."""

from __future__ import annotations

import pickle
from abc import ABC
from collections import deque
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

#: Batches that each worker has ready before they are asked for, torch's `prefetch_factor`.
_AHEAD = 2


class IterableDataset(ABC):  # noqa: B024
    """What torch's DataLoader iterates."""


class Torch:
    """The modules `torch` and `torch.utils.data`."""

    IterableDataset = IterableDataset

    def __init__(self) -> None:
        self.info: SimpleNamespace | None = None
        #: Batches after which a training stops, and whether workers are forked.
        self.stop: int | None = None
        self.forked = True

    def get_worker_info(self) -> SimpleNamespace | None:
        return self.info

    @staticmethod
    def from_numpy(batch: np.ndarray) -> np.ndarray:
        return batch

    def data_loader(self, dataset: Any, batch_size: None, num_workers: int) -> Iterator[Any]:
        """Batches in the order of torch's: workers, each with a copy, take turns, and run ahead."""
        assert isinstance(dataset, IterableDataset) and batch_size is None
        if not num_workers:
            return self._stopped(iter(dataset))
        copies = [self.copied(dataset) for _ in range(num_workers)]
        return self._stopped(self._turns([iter(copy) for copy in copies]))

    def copied(self, dataset: Any) -> Any:
        """A worker's copy. A forked process has the objects, and shares memory that is shared."""
        if not self.forked:
            return pickle.loads(pickle.dumps(dataset))
        copy = object.__new__(type(dataset))
        copy.__dict__ |= dataset.__dict__
        return copy

    def in_worker(self, number: int, workers: int, call: Any) -> Any:
        """Call something as worker of a DataLoader."""
        self.info = SimpleNamespace(id=number, num_workers=workers)
        try:
            return call()
        finally:
            self.info = None

    def _turns(self, streams: list[Iterator[Any]]) -> Iterator[Any]:
        ready = [deque[Any]() for _ in streams]
        over, worker = object(), 0
        while True:
            for number, stream in enumerate(streams):
                while len(ready[number]) < _AHEAD:
                    call = lambda stream=stream: next(stream, over)  # noqa: E731
                    ready[number].append(self.in_worker(number, len(streams), call))
            batch = ready[worker].popleft()
            if batch is over:
                return
            yield batch
            worker = (worker + 1) % len(streams)

    def _stopped(self, batches: Iterator[Any]) -> Iterator[Any]:
        taken = 0
        while self.stop is None or taken < self.stop:
            batch = next(batches, None)
            if batch is None:
                return
            taken += 1
            yield batch


def install(monkeypatch: pytest.MonkeyPatch) -> Torch:
    """Let readers find the stand-in."""
    torch = Torch()
    for name in ("torch", "torch.utils", "torch.utils.data"):
        module = ModuleType(name)
        for attribute in ("IterableDataset", "get_worker_info", "from_numpy"):
            setattr(module, attribute, getattr(torch, attribute))
        module.DataLoader = torch.data_loader  # type: ignore[attr-defined]
        monkeypatch.setitem(__import__("sys").modules, name, module)
    return torch
