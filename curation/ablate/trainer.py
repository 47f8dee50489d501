"""Train the transformer on one run with one seed, and measure."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.ablate.experiment import Corpus, Experiment
from curation.ablate.order import stream
from curation.ablate.training import SIZES, Training, rate_at
from curation.ablate.windows import (
    Measured,
    Window,
    curve_bytes,
    curve_windows,
    task_windows,
    text_windows,
)
from curation.errors import ConfigError

_SCORED_AT_ONCE = 4_096  # tokens of windows, padded
_LARGEST_NORM = 1.0  # of a step's gradient
_BETAS = (0.9, 0.95)


def torch_module() -> Any:
    """Return PyTorch. Raises ConfigError where it is not installed."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with it
    try:
        import torch
    except ImportError:
        raise ConfigError(
            "curate ablate trains with PyTorch, which is not installed: "
            "pip install 'curation[ablate]', or compare by n-grams with --instant"
        ) from None
    return torch


def device_of(name: str) -> str:
    """Return `cpu` or `cuda`; `auto` takes a GPU where there is one. Raises ConfigError."""
    there = torch_module().cuda.is_available()
    if name == "cuda" and not there:
        raise ConfigError("--device cuda: PyTorch finds no GPU")
    return ("cuda" if there else "cpu") if name == "auto" else name


def train(
    experiment: Experiment, corpus: Corpus, training: Training, seed: int, device: str
) -> Measured:
    """Train one model and measure it.

    Seed and corpus decide everything: the weights at the start and the order of documents are the
    same for all corpora. A CPU gives the same bits again, for which one thread does all.
    """
    torch = torch_module()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=device == "cuda")
    torch.manual_seed(seed)
    model = _model(experiment, training).to(device)
    optimizer = _optimizer(model, training)
    curve = curve_windows(experiment, training.context)
    whole = curve_bytes(experiment)
    steps, points = training.steps, []
    marks = {round(steps * (k + 1) / training.points) for k in range(training.points)}
    for step, (ids, wanted) in enumerate(_batches(experiment, corpus, training, seed)):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(training, step)
        with _precision(device):
            logits = model(ids.to(device))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.to(device).flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), _LARGEST_NORM)
        optimizer.step()
        if step + 1 in marks and curve:
            bits = float(_bits(model, curve, len(curve), device).sum())
            points.append(((step + 1) * training.context * training.batch, bits / whole))
    return _measured(model, experiment, training, device, points)


def parameters(experiment: Experiment, training: Training) -> int:
    """Return the number of weights."""
    torch_module()
    return _model(experiment, training).parameter_count()


def _model(experiment: Experiment, training: Training) -> Any:
    from curation.ablate.transformer import Transformer

    size = SIZES[training.size]
    return Transformer(size, experiment.vocabulary_size + 1, training.context)


def _optimizer(model: Any, training: Training) -> Any:
    """AdamW; matrices shrink, scales don't."""
    torch = torch_module()
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    scales = [weight for weight in model.parameters() if weight.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": training.weight_decay},
        {"params": scales, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=training.peak, betas=_BETAS)


def _precision(device: str) -> contextlib.AbstractContextManager[Any]:
    """Multiply in bfloat16 on a GPU, in float32 on a CPU."""
    if device == "cpu":
        return contextlib.nullcontext()
    context: contextlib.AbstractContextManager[Any] = torch_module().autocast(
        device, torch_module().bfloat16
    )
    return context


def _batches(
    experiment: Experiment, corpus: Corpus, training: Training, seed: int
) -> Iterator[tuple[Any, Any]]:
    """Yield ids and the ids that follow them, int64 [batch, context]."""
    torch = torch_module()
    shape = (training.steps, training.batch, training.context)
    ids = stream(corpus, math.prod(shape) + 1, seed, experiment.vocabulary_size).astype(np.int64)
    before, after = ids[:-1].reshape(shape), ids[1:].reshape(shape)
    for step in range(training.steps):
        yield torch.from_numpy(before[step]), torch.from_numpy(after[step])


def _measured(
    model: Any,
    experiment: Experiment,
    training: Training,
    device: str,
    curve: list[tuple[int, float]],
) -> Measured:
    mark, context = experiment.vocabulary_size, training.context
    texts = {
        s.label: _bits(
            model, list(text_windows(s.documents, mark, context)), len(s.documents), device
        )
        for s in experiment.texts
    }
    tasks = {
        s.label: _bits(model, list(task_windows(s, mark, context)), len(s.items), device)
        for s in experiment.tasks
    }
    return Measured(texts, tasks, curve)


def _bits(
    model: Any, windows: Sequence[Window], owners: int, device: str
) -> npt.NDArray[np.float64]:
    """Return the bits of each owner's scored tokens: float64 [owners]."""
    torch = torch_module()
    found = np.zeros(max(owners, 1 + max((w.owner for w in windows), default=-1)))
    model.eval()
    with torch.no_grad():
        for some in _similar(windows):
            ids, scored = _padded(some)
            with _precision(device):
                logits = model(torch.from_numpy(ids[:, :-1]).to(device))
            wanted = torch.from_numpy(ids[:, 1:]).to(device).flatten()
            nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted, reduction="none")
            rows = nats.double().cpu().numpy().reshape(len(some), -1) * scored
            np.add.at(found, [window.owner for window in some], rows.sum(1) / math.log(2))
    model.train()
    return found


def _similar(windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Yield windows of about one length."""
    some: list[Window] = []
    for window in sorted(windows, key=lambda window: -len(window.ids)):
        if some and (len(some) + 1) * len(some[0].ids) > _SCORED_AT_ONCE:
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
