"""A training step that a GPU repeats without being told each kernel: small models' wait most."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

WARM = 3  # steps before the recording: libraries set themselves up, code is compiled


class Repeated:
    """A step without arguments or results, recorded as a CUDA graph and then replayed.

    All calls are steps, the first and the recorded one too. It must work in place, on the same
    tensors every time. Where it can't be recorded it is called again and again.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._calls = 0
        self._aside = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do the step."""
        self._calls += 1
        if self._calls == WARM + 1:
            self._record()
        if self._graph:
            self._graph.replay()
        elif self._calls <= WARM:
            self._beside()
        else:
            self._step()

    def _beside(self) -> None:
        """Do the step in a stream of its own, as what is recorded later will be."""
        here = torch.cuda.current_stream()
        self._aside.wait_stream(here)
        with torch.cuda.stream(self._aside):
            self._step()
        here.wait_stream(self._aside)

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._step()
        except RuntimeError as error:
            warnings.warn(f"steps can't be recorded, and are slower: {error}", stacklevel=2)
        else:
            self._graph = graph
