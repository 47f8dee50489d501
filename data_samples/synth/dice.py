"""Seeded choices that give the same result on every Python version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A stream of numbers drawn from SHA-256 of a name and a counter."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = 0

    def below(self, limit: int) -> int:
        """An integer in [0, limit)."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._name}/{self._drawn}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        return self.shuffled(items)[:count]

    def hex(self, digits: int) -> str:
        return "".join(self.pick("0123456789abcdef") for _ in range(digits))
