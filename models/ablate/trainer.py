"""Train transformers, each on a run with a seed, and measure them."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, require
from models.ablate.experiment import Experiment
from models.ablate.layout import layout
from models.ablate.order import stream
from models.ablate.training import SIZES, Training, rate_at
from models.ablate.windows import (
    Measured,
    Window,
    curve_bytes,
    curve_windows,
    task_windows,
    text_windows,
)

_SCORED_AT_ONCE = 4_096  # tokens of windows, padded, by all models on a CPU
_SCORED_AT_ONCE_BY_GPU = 32_768
#: Bytes that a model needs on a GPU: for a weight (itself, gradient, two means, a copy in
#: bfloat16), for a layer's value of a token, for a token's logit. The last two are rounded up.
_OF_WEIGHT, _OF_VALUE, _OF_LOGIT = 18, 160, 20


def torch_module() -> Any:
    """Return PyTorch. Raises ConfigError where it is not installed."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with it
    return require("torch", "curate ablate (without --instant)")


def device_of(name: str) -> str:
    """Return `cpu` or `cuda`; `auto` takes a GPU where there is one. Raises ConfigError."""
    there = torch_module().cuda.is_available()
    if name == "cuda" and not there:
        raise ConfigError("--device cuda: PyTorch finds no GPU")
    return ("cuda" if there else "cpu") if name == "auto" else name


def machine(device: str) -> dict[str, str]:
    """Return what decides the last bits: the device's name and PyTorch's version."""
    torch = torch_module()
    name = torch.cuda.get_device_name() if device == "cuda" else device
    return {"device": name, "torch": torch.__version__}


def room(experiment: Experiment, training: Training) -> int:
    """Return how many models fit into half of the GPU's free memory, at least one."""
    size = SIZES[training.size]
    weights = layout(size, experiment.vocabulary_size + 1)
    rows = weights.slots["embedding"].shape[0]
    values = size.layers * size.width * _OF_VALUE + rows * _OF_LOGIT
    needed = weights.count * _OF_WEIGHT + training.context * training.batch * values
    free, _ = torch_module().cuda.mem_get_info()
    return max(1, int(free // 2 // needed))


@dataclass(frozen=True)
class Job:
    """A model to train: on which run, with which seed, how."""

    run: int
    seed: int
    training: Training


def train(experiment: Experiment, jobs: Sequence[Job], device: str) -> list[Measured]:
    """Train models together and measure them; they differ in run, seed, rate and decay at most.

    Seed and run decide everything: the weights at the start and the order of documents are the
    same for all runs. A CPU gives the same bits again, for which one thread does all.
    """
    torch = torch_module()
    from models.ablate.optimizer import AdamW, update
    from models.ablate.steps import Repeated
    from models.ablate.transformer import Transformers, block, head

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=device == "cuda")
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing reads it
    # Gradients are rows of one array, by choice: see `Transformers`.
    warnings.filterwarnings("ignore", "grad and param do not obey the gradient layout")
    training, mark = jobs[0].training, experiment.vocabulary_size
    seeds = [job.seed for job in jobs]
    models = Transformers(SIZES[training.size], mark + 1, training.context, seeds).to(device)
    decay = torch.tensor([job.training.weight_decay for job in jobs], device=device)
    rows = models.values, models.gradients
    optimizer = AdamW(*rows, models.layout.matrices, decay, compiled(update, device))
    rates = [[rate_at(job.training, step) for job in jobs] for step in range(training.steps)]
    rates = torch.tensor(rates, dtype=torch.float32, device=device)
    streams = _streams(experiment, jobs, device)
    read = training.context * training.batch  # by a step
    inputs = torch.empty(len(jobs), read + 1, dtype=torch.int64, device=device)
    rate = torch.empty(len(jobs), device=device)
    shape = (len(jobs), training.batch, training.context)
    nats = functools.partial(
        models.nats, block=compiled(block, device), head=compiled(head, device)
    )

    def once() -> None:
        with _precision(device):
            found = nats(inputs[:, :-1].reshape(shape), inputs[:, 1:].reshape(shape))
        found.flatten(1).mean(1).sum().backward()  # of models that share nothing
        optimizer.step(rate)

    step = Repeated(once) if device == "cuda" else once
    curve = curve_windows(experiment, training.context)
    whole = curve_bytes(experiment)
    points: list[list[tuple[int, float]]] = [[] for _ in jobs]
    marks = {round(training.steps * (k + 1) / training.points) for k in range(training.points)}
    for done in range(1, training.steps + 1):
        # Nothing here waits for the device.
        inputs.copy_(streams[:, (done - 1) * read : done * read + 1])
        rate.copy_(rates[done - 1])
        step()
        if done in marks and curve:
            for found, bits in zip(points, _bits(models, curve, len(curve), device), strict=True):
                found.append((done * read, float(bits.sum()) / whole))
    return _measured(models, experiment, training, device, points)


@functools.cache
def compiled(function: Callable[..., Any], device: str) -> Callable[..., Any]:
    """Fuse what is between matrix products on a GPU; TORCHDYNAMO_DISABLE=1 leaves it as it is."""
    if device == "cpu":
        return function
    torch = torch_module()
    torch._dynamo.config.suppress_errors = True  # without a C compiler nothing is fused
    compiled: Callable[..., Any] = torch.compile(function, dynamic=False)
    return compiled


def _precision(device: str) -> contextlib.AbstractContextManager[Any]:
    """Multiply in bfloat16 on a GPU, in float32 on a CPU."""
    if device == "cpu":
        return contextlib.nullcontext()
    context: contextlib.AbstractContextManager[Any] = torch_module().autocast(
        device,
        torch_module().bfloat16,
        cache_enabled=False,  # each weight is used once
    )
    return context


def _streams(experiment: Experiment, jobs: Sequence[Job], device: str) -> Any:
    """Return all that the models read, and a token more, on the device: int32 [models, tokens]."""
    torch = torch_module()
    training, mark = jobs[0].training, experiment.vocabulary_size
    count = training.steps * training.batch * training.context + 1
    of = functools.cache(
        lambda run, seed: stream(experiment.corpora[run], count, seed, mark, training.context)
    )
    sent = np.stack([of(job.run, job.seed) for job in jobs]).astype(np.int32)
    return torch.from_numpy(sent).to(device)


def _measured(
    models: Any,
    experiment: Experiment,
    training: Training,
    device: str,
    curves: list[list[tuple[int, float]]],
) -> list[Measured]:
    mark, context = experiment.vocabulary_size, training.context
    texts = {
        s.label: _bits(
            models, list(text_windows(s.documents, mark, context)), len(s.documents), device
        )
        for s in experiment.texts
    }
    tasks = {
        s.label: _bits(models, list(task_windows(s, mark, context)), len(s.items), device)
        for s in experiment.tasks
    }
    return [
        Measured(
            {label: bits[k] for label, bits in texts.items()},
            {label: bits[k] for label, bits in tasks.items()},
            curve,
        )
        for k, curve in enumerate(curves)
    ]


def _bits(
    models: Any, windows: Sequence[Window], owners: int, device: str
) -> npt.NDArray[np.float64]:
    """Return the bits of each owner's scored tokens, by each model: float64 [models, owners]."""
    torch = torch_module()
    count = len(models.values)
    most = _SCORED_AT_ONCE if device == "cpu" else _SCORED_AT_ONCE_BY_GPU // count
    found = np.zeros((count, max(owners, 1 + max((w.owner for w in windows), default=-1))))
    with torch.no_grad():
        for some in _similar(windows, most):
            padded, scored = _padded(some)
            ids = torch.from_numpy(padded).to(device).expand(count, -1, -1)
            with _precision(device):
                nats = models.nats(ids[..., :-1], ids[..., 1:])
            rows = (nats.double().cpu().numpy() * scored).sum(2) / math.log(2)
            for model in range(count):
                np.add.at(found[model], [window.owner for window in some], rows[model])
    return found


def _similar(windows: Sequence[Window], most: int) -> Iterator[list[Window]]:
    """Yield windows of about one length, `most` tokens together."""
    some: list[Window] = []
    for window in sorted(windows, key=lambda window: -len(window.ids)):
        if some and (len(some) + 1) * len(some[0].ids) > most:
            yield some
            some = []
        some.append(window)
    if some:
        yield some


def _padded(windows: Sequence[Window]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return ids [windows, length] and which of the ids after the first are scored."""
    longest = max(len(window.ids) for window in windows)
    ids = np.zeros((len(windows), longest), np.int64)
    scored = np.zeros((len(windows), longest - 1), np.bool_)
    for row, window in enumerate(windows):
        length = len(window.ids)
        ids[row, :length] = window.ids
        scored[row, length - 1 - window.scored : length - 1] = True
    return ids, scored
