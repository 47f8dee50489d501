"""Steps that a GPU repeats, with a stand-in for the GPU."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


class _Device:
    """What a graph does here: while it records, steps are kept and have no effect."""

    def __init__(self, can_record: bool) -> None:
        self.can_record = can_record
        self.recording: list[Callable[[], None]] | None = None
        self.done = 0

    def step(self) -> None:
        if self.recording is None:
            self.done += 1
        else:
            self.recording.append(self.step)
            if not self.can_record:
                raise RuntimeError("operation not permitted when stream is capturing")

    @contextlib.contextmanager
    def graph(self, graph: types.SimpleNamespace) -> Iterator[None]:
        self.recording = kept = []
        try:
            yield
        finally:
            self.recording = None
        graph.replay = lambda: [step() for step in kept]


@pytest.mark.parametrize("can_record", [True, False])
def test_every_call_is_a_step(monkeypatch: pytest.MonkeyPatch, can_record: bool) -> None:
    from models.ablate import steps

    device = _Device(can_record)
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", types.SimpleNamespace)
    monkeypatch.setattr(torch.cuda, "graph", device.graph)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda some: contextlib.nullcontext())
    repeated = steps.Repeated(device.step)
    said = contextlib.nullcontext() if can_record else pytest.warns(match="can't be recorded")
    with said:
        for call in range(1, steps.WARM + 4):
            repeated()
            assert device.done == call
