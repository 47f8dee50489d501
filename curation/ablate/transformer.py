"""A plain decoder: pre-normalized blocks with RMSNorm, rotary positions and SwiGLU, tied embedding.

The layers are those of Llama (arXiv 2302.13971); no bias, no dropout.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from curation.ablate.training import Size

_BASE = 10_000.0  # of the rotary frequencies (arXiv 2104.09864)
_MULTIPLE = 64  # rows of the embedding, and hidden units, are padded to it


def padded(number: int) -> int:
    """Return the next multiple of what matrix units like."""
    return -(-number // _MULTIPLE) * _MULTIPLE


class RMSNorm(nn.Module):
    """Scale by the root of the mean square (arXiv 1910.07467)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """[..., width] in any type; the mean is taken in float32."""
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
        return (wide * self.weight).to(x.dtype)


class Block(nn.Module):
    """Attention and SwiGLU, each added to its input."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width, hidden = size.width, padded(size.width * 8 // 3)
        self.heads = size.heads
        self.before_attention, self.before_hidden = RMSNorm(width), RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """[batch, length, width]."""
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(self.before_attention(x)).view(shape).permute(2, 0, 3, 1, 4)
        q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, value = self.up(self.before_hidden(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate pairs of dimensions by their position: [batch, heads, length, dimensions]."""
    left, right = x.chunk(2, dim=-1)
    turned = (left * cosine - right * sine, left * sine + right * cosine)
    return torch.cat(turned, dim=-1).to(x.dtype)


class Transformer(nn.Module):
    """Ids to logits."""

    def __init__(self, size: Size, vocabulary: int, context: int) -> None:
        """`vocabulary`: ids, the mark of a document's beginning included."""
        super().__init__()
        self.embedding = nn.Embedding(padded(vocabulary), size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = RMSNorm(size.width)
        half = size.width // size.heads // 2
        frequencies = _BASE ** (-torch.arange(half) / half)
        angles = torch.outer(torch.arange(context), frequencies)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)
        self.apply(_initialize)
        for block in self.blocks:  # what is added to the stream shrinks with depth, as in GPT-2
            for layer in (block.out, block.down):
                nn.init.normal_(layer.weight, std=0.02 / (2 * size.layers) ** 0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """[batch, length] to logits [batch, length, ids] in float32."""
        x = self.embedding(ids)
        cosine, sine = self.cosine[: ids.shape[1]], self.sine[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, cosine, sine)
        return F.linear(self.norm(x), self.embedding.weight).float()

    def parameter_count(self) -> int:
        """Return the number of weights."""
        return sum(weight.numel() for weight in self.parameters())


def _initialize(module: Any) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
