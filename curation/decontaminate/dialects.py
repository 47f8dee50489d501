"""Published ways to find contamination, as their authors describe them.

Each is built from the items to look for and finds those in a text. docs/decontamination.md compares
them with the stage's own method; words are runs of what is neither white space nor
punctuation, in lower case, where a description names no tokenizer.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from curation.decontaminate.items import Item

_WORD = re.compile(r"[^\W_]+")
Ngram = tuple[str, ...]


def dialect_words(text: str) -> list[str]:
    """Words in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def _ngrams(words: Sequence[str], n: int) -> list[Ngram]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _owners(grams: Iterable[Iterable[Ngram]]) -> dict[Ngram, set[int]]:
    """Return the numbers of the items that have each n-gram, from the n-grams of each item."""
    owners: dict[Ngram, set[int]] = defaultdict(set)
    for number, own in enumerate(grams):
        for gram in own:
            owners[gram].add(number)
    return owners


class Match(NamedTuple):
    """An item found in a text."""

    item: int
    score: float


class Dialect(ABC):
    """A way to find items in texts."""

    name: ClassVar[str]

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = list(items)

    @abstractmethod
    def find(self, text: str) -> list[Match]:
        """Return the items that this method finds in the text."""

    def flags(self, text: str) -> bool:
        """Return whether this method finds any item in the text."""
        return bool(self.find(text))


class Gpt3(Dialect):
    """GPT-3 (Brown et al. 2020, appendix C): any N-gram of the item.

    N is the length in words of an item at the 5th percentile of its set, from 8 to 13. Each match
    goes from the training text with 200 characters on each side. Pieces under 200 characters go
    too, and so does the document if there would be more than 10 pieces.
    """

    name = "gpt3"
    WINDOW, LEAST_PIECE, MOST_PIECES = 200, 200, 10

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__(items)
        lengths: dict[str, list[int]] = defaultdict(list)
        words = [dialect_words(item.question) for item in self.items]
        for item, own in zip(self.items, words, strict=True):
            lengths[item.set].append(len(own))
        self.sizes = {name: self._size(sorted(found)) for name, found in lengths.items()}
        self._owners = _owners(
            _ngrams(own, self.sizes[item.set]) for item, own in zip(self.items, words, strict=True)
        )

    @staticmethod
    def _size(lengths: Sequence[int]) -> int:
        return min(13, max(8, lengths[len(lengths) // 20]))

    def find(self, text: str) -> list[Match]:
        words = dialect_words(text)
        grams = (g for n in set(self.sizes.values()) for g in _ngrams(words, n))
        found = {number for g in grams if g in self._owners for number in self._owners[g]}
        return [Match(number, 1.0) for number in sorted(found)]

    def clean(self, text: str) -> list[str]:
        """Return the pieces of the text that stay."""
        places = [m.span() for m in _WORD.finditer(text)]
        words = dialect_words(text)
        cuts = sorted(
            (places[i][0] - self.WINDOW, places[i + n - 1][1] + self.WINDOW)
            for n in set(self.sizes.values())
            for i, gram in enumerate(_ngrams(words, n))
            if gram in self._owners
        )
        pieces, at = [], 0
        for start, end in cuts:
            if start > at:
                pieces.append(text[at:start])
            at = max(at, end)
        pieces.append(text[at:])
        if not cuts:
            return pieces
        pieces = [piece for piece in pieces if len(piece) >= self.LEAST_PIECE]
        return [] if len(pieces) > self.MOST_PIECES else pieces


class _Shares(Dialect):
    """Those that measure how much of an item's 8-grams a text has."""

    N: ClassVar[int] = 8

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__(items)
        self._grams = [_ngrams(dialect_words(item.question), self.N) for item in self.items]
        self._owners = _owners(self._grams)

    def find(self, text: str) -> list[Match]:
        present = {g for g in _ngrams(dialect_words(text), self.N) if g in self._owners}
        touched = sorted({number for gram in present for number in self._owners[gram]})
        scores = [Match(n, self.share([g in present for g in self._grams[n]])) for n in touched]
        return [match for match in scores if match.score >= self.threshold(self.items[match.item])]

    @abstractmethod
    def share(self, found: Sequence[bool]) -> float:
        """Return the measure, of which n-grams of an item are found."""

    @abstractmethod
    def threshold(self, item: Item) -> float:
        """Return the least share at which the item counts as found."""


class Llama3(_Shares):
    """Llama 3 (section 5.1.4): the share of an item's tokens that are in a shared 8-gram.

    Thresholds are per set, chosen by the gain that they show; without one, half of the tokens.
    """

    name = "llama3"

    def __init__(
        self, items: Iterable[Item], thresholds: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(items)
        self.thresholds = thresholds or {}

    def share(self, found: Sequence[bool]) -> float:
        covered = [
            any(found[max(0, i - self.N + 1) : i + 1]) for i in range(len(found) + self.N - 1)
        ]
        return sum(covered) / len(covered)

    def threshold(self, item: Item) -> float:
        return self.thresholds.get(item.set, 0.5)


class Palm(_Shares):
    """PaLM (Chowdhery et al. 2022, section 8): at least 70 % of an item's 8-grams."""

    name = "palm"

    def share(self, found: Sequence[bool]) -> float:
        return sum(found) / len(found)

    def threshold(self, item: Item) -> float:
        return 0.7


class Decon(Dialect):
    """decon (OLMo 3): 5-grams of which every 10th is looked up, then extended on both sides.

    A cluster ends after 11 misses in a row. The score is the share of the question's distinct
    n-grams in it, weighted by their rarity among the items; 0.8 is enough, below 20 tokens only 1.
    Where the item has an answer, its words must be near, within twice its length or 50 tokens.
    """

    name = "decon"
    N, EVERY, MISSES, ENOUGH, SHORT, REACH = 5, 10, 11, 0.8, 20, 50

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__(items)
        self._words = [dialect_words(item.question) for item in self.items]
        self._grams = [set(_ngrams(words, self.N)) for words in self._words]
        self._owners = _owners(self._grams)
        counts = Counter({gram: len(owners) for gram, owners in self._owners.items()})
        self._idf = {g: math.log(1 + len(self.items) / n) for g, n in counts.items()}

    def find(self, text: str) -> list[Match]:
        words = dialect_words(text)
        grams = _ngrams(words, self.N)
        best: dict[int, float] = {}
        for place in range(0, len(grams), self.EVERY):
            for number in self._owners.get(grams[place], ()):
                first, last = self._extended(grams, place, self._grams[number])
                score = self._score(number, grams[first : last + 1])
                if score > best.get(number, 0) and self._answered(number, words, first, last):
                    best[number] = score
        return [Match(n, s) for n, s in sorted(best.items()) if s >= self._least(n)]

    def _extended(self, grams: Sequence[Ngram], place: int, own: set[Ngram]) -> tuple[int, int]:
        ends = []
        for step, limit in ((-1, -1), (1, len(grams))):
            end, misses, at = place, 0, place + step
            while at != limit and misses < self.MISSES:
                misses = 0 if grams[at] in own else misses + 1
                end = at if not misses else end
                at += step
            ends.append(end)
        return ends[0], ends[1]

    def _score(self, number: int, grams: Sequence[Ngram]) -> float:
        own = self._grams[number]
        total = math.fsum(self._idf[g] for g in own)  # in the order of a set, which differs by run
        return math.fsum(self._idf[g] for g in own & set(grams)) / total

    def _least(self, number: int) -> float:
        return self.ENOUGH if len(self._words[number]) >= self.SHORT else 1.0

    def _answered(self, number: int, words: Sequence[str], first: int, last: int) -> bool:
        answer = dialect_words(self.items[number].answer)
        reach = max(self.REACH, 2 * len(answer))
        near = words[max(0, first - reach) : last + self.N + reach]
        return not answer or tuple(answer) in set(_ngrams(near, len(answer)))


class Marin(Dialect):
    """marin: a paragraph (a line) of which at least half of the 13-grams are an item's.

    A paragraph of fewer words counts as one n-gram. (marin keeps the n-grams in a Bloom filter with
    one false positive in 10^9; here they are exact.) Found are the items with most of them.
    """

    name = "marin"
    N, ENOUGH = 13, 0.5

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__(items)
        self._owners = _owners(
            [gram for line in item.question.split("\n") for gram in self._of(line)]
            for item in self.items
        )

    def _of(self, line: str) -> list[Ngram]:
        words = dialect_words(line)
        return _ngrams(words, min(self.N, len(words))) if words else []

    def find(self, text: str) -> list[Match]:
        best: dict[int, float] = {}
        for line in text.split("\n"):
            grams = self._of(line)
            found = [self._owners[g] for g in grams if g in self._owners]
            if not found or len(found) < self.ENOUGH * len(grams):
                continue
            counts = Counter(number for owners in found for number in owners)
            most = max(counts.values())
            for number in (n for n, count in counts.items() if count == most):
                best[number] = max(best.get(number, 0), len(found) / len(grams))
        return [Match(number, score) for number, score in sorted(best.items())]


#: All dialects by name.
DIALECTS: dict[str, type[Dialect]] = {d.name: d for d in (Gpt3, Llama3, Palm, Decon, Marin)}
