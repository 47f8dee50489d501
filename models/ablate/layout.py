"""Where the weights of a transformer are in one row of numbers; needs no PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from models.ablate.training import Size

_MULTIPLE = 64  # rows of the embedding, and hidden units, are padded to it


def padded(number: int) -> int:
    """Return the next multiple of what matrix units like."""
    return -(-number // _MULTIPLE) * _MULTIPLE


@dataclass(frozen=True)
class Slot:
    """The place of a weight."""

    first: int
    shape: tuple[int, ...]

    @property
    def end(self) -> int:
        """One past its last number."""
        return self.first + math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """All weights of a model: matrices, then scales."""

    slots: dict[str, Slot]
    matrices: int  # numbers in matrices
    count: int  # of numbers


def layout(size: Size, vocabulary: int) -> Layout:
    """Return the layout for ids below `vocabulary`, the mark of a document's beginning included."""
    slots: dict[str, Slot] = {}
    end = matrices = 0
    for name, shape in (*_matrices(size, vocabulary), *_scales(size)):
        slots[name] = Slot(end, shape)
        end = slots[name].end
        if len(shape) > 1:
            matrices = end
    return Layout(slots, matrices, end)


def _matrices(size: Size, vocabulary: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Matrices are [inputs, outputs]; the embedding, also the output layer, is [ids, width]."""
    width, hidden = size.width, padded(size.width * 8 // 3)
    yield "embedding", (padded(vocabulary), width)
    for k in range(size.layers):
        yield f"{k}.qkv", (width, 3 * width)
        yield f"{k}.out", (width, width)
        yield f"{k}.up", (width, 2 * hidden)
        yield f"{k}.down", (hidden, width)


def _scales(size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    for k in range(size.layers):
        yield f"{k}.before_attention", (size.width,)
        yield f"{k}.before_hidden", (size.width,)
    yield "norm", (size.width,)
