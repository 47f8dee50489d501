"""Plain decoders: pre-normalized blocks with RMSNorm, rotary positions and SwiGLU, tied embedding.

The layers are those of Llama (arXiv 2302.13971); no bias, no dropout. Several models of one size
are computed together, each with its own weights and its own texts: small models alone leave a GPU
idle. One model gives the same values alone as in company, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from models.ablate.layout import Layout, layout
from models.ablate.training import Size

_BASE = 10_000.0  # of the rotary frequencies (arXiv 2104.09864)
_DEVIATION = 0.02  # of weights at the start
_BLOCK = ("before_attention", "qkv", "out", "before_hidden", "up", "down")


def normalized(x: Tensor) -> Tensor:
    """Divide [models, tokens, width] by the root of the mean square (arXiv 1910.07467).

    The scales that follow are multiplied into the next matrix, which has fewer numbers.
    """
    return F.rms_norm(x, x.shape[-1:], eps=1e-5)


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate pairs of dimensions by their position: [..., length, dimensions]."""
    left, right = x.chunk(2, dim=-1)
    turned = (left * cosine - right * sine, left * sine + right * cosine)
    return torch.cat(turned, dim=-1).to(x.dtype)


def block(
    x: Tensor,
    cosine: Tensor,
    sine: Tensor,
    heads: int,
    before_attention: Tensor,
    qkv: Tensor,
    out: Tensor,
    before_hidden: Tensor,
    up: Tensor,
    down: Tensor,
) -> Tensor:
    """Attention and SwiGLU, each added to its input [models, tokens, width].

    Tokens are sequences end to end, as long as `cosine` [length, dimensions / 2] has positions.
    """
    length, width = len(cosine), x.shape[-1]
    projected = normalized(x) @ (before_attention[..., None] * qkv)
    parts = projected.view(-1, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    q, k = rotated(parts[:2], cosine, sine).unbind()
    mixed = F.scaled_dot_product_attention(q, k, parts[2], is_causal=True)
    x = x + mixed.transpose(1, 2).reshape(x.shape) @ out
    gate, value = (normalized(x) @ (before_hidden[..., None] * up)).chunk(2, dim=-1)
    return x + (F.silu(gate) * value) @ down


def head(x: Tensor, norm: Tensor, embedding: Tensor, wanted: Tensor) -> Tensor:
    """Return the nats of each token that follows, [models, tokens], in float32."""
    logits = normalized(x) @ (embedding * norm[:, None]).transpose(1, 2)
    nats = F.cross_entropy(logits.float().flatten(0, 1), wanted.flatten(), reduction="none")
    return nats.view(wanted.shape)


class Transformers:
    """Models of one size, one for each seed. A seed decides the weights at the start."""

    def __init__(self, size: Size, vocabulary: int, context: int, seeds: Sequence[int]) -> None:
        """`vocabulary`: ids, the mark of a document's beginning included."""
        self.layout = layout(size, vocabulary)
        self.size = size
        started = {seed: _started(size, self.layout, seed) for seed in dict.fromkeys(seeds)}
        self._place(torch.stack([started[seed] for seed in seeds]))
        half = size.width // size.heads // 2
        frequencies = _BASE ** (-torch.arange(half) / half)
        angles = torch.outer(torch.arange(context), frequencies)
        self.cosine, self.sine = angles.cos(), angles.sin()

    def _place(self, values: Tensor) -> None:
        """Make `values` [models, numbers] the weights, and as many gradients of nothing."""
        self.values, self.gradients = values, torch.zeros_like(values)
        self.weights = {}
        for name, slot in self.layout.slots.items():
            # Leaves of the graph that share memory with the rows, as do their gradients.
            weight = (
                values[:, slot.first : slot.end].unflatten(1, slot.shape).detach().requires_grad_()
            )
            weight.grad = self.gradients[:, slot.first : slot.end].unflatten(1, slot.shape)
            self.weights[name] = weight

    def to(self, device: str) -> Transformers:
        """Move the models to a device."""
        self._place(self.values.to(device))
        self.cosine, self.sine = self.cosine.to(device), self.sine.to(device)
        return self

    def nats(
        self,
        ids: Tensor,
        wanted: Tensor,
        block: Callable[..., Tensor] = block,
        head: Callable[..., Tensor] = head,
    ) -> Tensor:
        """Return the nats of `wanted`, what follows each of `ids`: all [models, batch, length].

        `block` and `head` may be compiled ones.
        """
        models, _, length = ids.shape
        rows, width = self.layout.slots["embedding"].shape
        first = rows * torch.arange(models, device=ids.device)
        table = self.weights["embedding"].reshape(-1, width)
        x = F.embedding(ids.flatten(1) + first[:, None], table)
        cosine, sine = self.cosine[:length], self.sine[:length]
        for k in range(self.size.layers):
            weights = (self.weights[f"{k}.{name}"] for name in _BLOCK)
            x = block(x, cosine, sine, self.size.heads, *weights)
        found = head(x, self.weights["norm"], self.weights["embedding"], wanted.flatten(1))
        return found.view(wanted.shape)


def _started(size: Size, places: Layout, seed: int) -> Tensor:
    """Return one model's weights; what is added to the stream shrinks with depth, as in GPT-2."""
    dice = torch.Generator().manual_seed(seed)
    values = torch.ones(places.count)
    for name, slot in places.slots.items():
        if len(slot.shape) > 1:
            shrunk = name.endswith((".out", ".down"))
            deviation = _DEVIATION / ((2 * size.layers) ** 0.5 if shrunk else 1)
            values[slot.first : slot.end].normal_(0, deviation, generator=dice)
    return values
