"""AdamW for several models at once, each with its own learning rate and gradient norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_BETAS = (0.9, 0.95)
_EPSILON = 1e-8
_LARGEST_NORM = 1.0  # of a step's gradient


def update(
    values: Tensor,
    gradients: Tensor,
    mean: Tensor,
    square: Tensor,
    rates: Tensor,
    shrinking: Tensor,
    steps: Tensor,
) -> None:
    """Apply the gradients, and clear them.

    All are rows, [models, numbers]. `rates` is [models, 1], `shrinking` (the decay of each number)
    broadcasts; `steps` counts from 1, as a tensor, so that a compiled step serves all of them.
    """
    first, second = _BETAS
    norms = torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
    gradients.mul_((_LARGEST_NORM / (norms + 1e-6)).clamp(max=1.0))
    mean.lerp_(gradients, 1 - first)
    square.mul_(second).addcmul_(gradients, gradients, value=1 - second)
    whole = (1 - second**steps).sqrt()
    root = square.sqrt().add_(_EPSILON * whole)
    values.mul_(1 - rates * shrinking)
    values.sub_((mean / root).mul_(rates * whole / (1 - first**steps)))
    gradients.zero_()


class AdamW:
    """Decoupled weight decay (arXiv 1711.05101), of matrices alone.

    Values and gradients are rows, so that a step takes a handful of kernels however many layers
    there are.
    """

    def __init__(
        self,
        values: Tensor,
        gradients: Tensor,
        matrices: int,
        decay: Tensor,
        update: Callable[..., None] = update,
    ) -> None:
        """The first `matrices` numbers of a row shrink, by `decay` [models] times the rate."""
        is_matrix = torch.arange(values.shape[1], device=values.device) < matrices
        self.rows = values, gradients, torch.zeros_like(values), torch.zeros_like(values)
        self.shrinking = decay[:, None] * is_matrix
        self.steps = torch.zeros((), device=values.device)
        self.update = update

    def step(self, rates: Tensor) -> None:
        """Apply the gradients at `rates` [models], and clear them."""
        self.steps += 1
        self.update(*self.rows, rates[:, None], self.shrinking, self.steps)
