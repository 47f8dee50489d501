"""AdamW for several models at once, each with its own learning rate and gradient norm."""

from __future__ import annotations

import torch
from torch import Tensor

_BETAS = (0.9, 0.95)
_EPSILON = 1e-8
_LARGEST_NORM = 1.0  # of a step's gradient


class AdamW:
    """Decoupled weight decay (arXiv 1711.05101), of matrices alone.

    Values and gradients are rows, [models, numbers], so that a step takes a handful of kernels
    however many layers there are.
    """

    def __init__(self, values: Tensor, gradients: Tensor, matrices: int, decay: Tensor) -> None:
        """The first `matrices` numbers of a row shrink, by `decay` [models] times the rate."""
        self.values, self.gradients = values, gradients
        self.matrices, self.decay = matrices, decay[:, None]
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)
        self.steps = 0

    def step(self, rates: Tensor) -> None:
        """Apply the gradients at `rates` [models], and clear them."""
        rates = rates[:, None]
        self.steps += 1
        norms = torch.linalg.vector_norm(self.gradients, dim=1, keepdim=True)
        self.gradients.mul_((_LARGEST_NORM / (norms + 1e-6)).clamp(max=1.0))
        self.values[:, : self.matrices].mul_(1 - rates * self.decay)
        first, second = _BETAS
        self.mean.lerp_(self.gradients, 1 - first)
        self.square.mul_(second).addcmul_(self.gradients, self.gradients, value=1 - second)
        root = self.square.div(1 - second**self.steps).sqrt_().add_(_EPSILON)
        self.values.sub_(torch.div(self.mean, root).mul_(rates / (1 - first**self.steps)))
        self.gradients.zero_()
