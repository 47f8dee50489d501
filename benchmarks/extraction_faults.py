"""What is wrong with extracted text apart from its score: holes, titles, stock endings, joined words."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field

from curation.extract.blocks import TITLE
from models.training.extract.pages import block_texts, scanned

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_HAN}]|[^\\W{_HAN}]+")
_LONGEST = 4  # words of the runs that lines are compared by
_SHORTEST = 2  # words; shorter lines occur anywhere
_FOUND = 0.5  # share of a line's runs of words that makes it one the text has
_ENDING = 8  # words of a stock ending at most
_TITLE = 30  # words of a title at most
_SOFT_HYPHEN = "\u00ad"
_JOINED = 6  # letters at least; shorter words are too often others joined
_UNSEEN = re.compile(rb"<!--.*?-->|<wbr\b[^>]*>|<(script|style)\b.*?</\1", re.I | re.S)
_TAG = re.compile(rb"<[/!?a-zA-Z][^>]*>")

Run = tuple[str, ...]


def words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def runs(found: list[str], size: int) -> list[Run]:
    return [tuple(found[i : i + size]) for i in range(len(found) - size + 1)]


class Runs:
    """The runs of words of a text, by length."""

    def __init__(self, text: str) -> None:
        found = words(text)
        self.of = [set(runs(found, size)) for size in range(1, _LONGEST + 1)]

    def have(self, line: list[str]) -> bool:
        """Whether the text has the line, or at least half of it."""
        size = min(_LONGEST, len(line))
        listed = runs(line, size)
        return sum(run in self.of[size - 1] for run in listed) >= _FOUND * len(listed)


@dataclass(frozen=True)
class Shown:
    """What a page has, whatever becomes of it."""

    runs: Runs  # of all its blocks
    title: Runs
    words: frozenset[str]  # that no tag interrupts

    @classmethod
    def of(cls, source: bytes) -> Shown:
        """Read a page (UTF-8)."""
        page = scanned(source)
        title = source[page.facts[TITLE] : page.facts[TITLE + 1]].decode("utf-8", "replace")
        typed = _TAG.sub(b" ", _UNSEEN.sub(b"", source)).decode("utf-8", "replace")
        return cls(
            Runs("\n".join(block_texts(page))),
            Runs(html.unescape(title)),
            frozenset(words(html.unescape(typed).replace(_SOFT_HYPHEN, ""))),
        )


@dataclass
class Faults:
    """Pages with each fault, and the pages that could have it."""

    found: Counter[str] = field(default_factory=Counter)
    pages: Counter[str] = field(default_factory=Counter)

    def add(self, gold: str, answer: str, shown: Shown) -> None:
        """Count a page by its gold text, the answer and what it shows."""
        lines = [line for text in gold.splitlines() if len(line := words(text)) >= _SHORTEST]
        given = Runs(answer)
        lines = [line for line in lines if shown.runs.have(line)]  # some gold is not on the page
        kept = [given.have(line) for line in lines]
        if sum(kept) >= 2:
            first, last = kept.index(True), len(kept) - kept[::-1].index(True)
            self._count("holes inside kept runs", not all(kept[first:last]))
        if kept and len(lines[0]) <= _TITLE and shown.title.have(lines[0]):
            self._count("title lost", not kept[0])
        if found := words(answer):
            last_line = words(answer.rstrip().rpartition("\n")[2])
            short = 0 < len(last_line) <= _ENDING
            self._count("stock ending", short and not Runs(gold).have(last_line))
            self._count("joined words", bool(joined(found, words(gold)) - shown.words))

    def _count(self, fault: str, there: bool) -> None:
        self.pages[fault] += 1
        self.found[fault] += there

    def __iadd__(self, other: Faults) -> Faults:
        self.found += other.found
        self.pages += other.pages
        return self

    def __str__(self) -> str:
        return ", ".join(
            f"{fault} {self.found[fault]}/{count} = {self.found[fault] / count:.3f}"
            for fault, count in self.pages.items()
        )


def joined(answer: list[str], gold: list[str]) -> set[str]:
    """Words of the answer that are two neighbours of the gold text without what parted them.

    Most of them the page itself has in one piece elsewhere, in an address, a name in code or another
    spelling (`webpage`, `web page`), or its gold text parts at a soft hyphen.
    """
    pairs = {a + b for a, b in itertools.pairwise(gold) if len(a + b) >= _JOINED}
    return (set(answer) & pairs) - set(gold)
