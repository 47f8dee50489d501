"""Pairs of corpora of which the better is known: how often does `curate ablate --instant` name it?

One of a pair has good English pages as readers copied them, the other the same with a part of the
text spoiled. Each is made and compared as the command would, over as many tokens of both.
"""

from __future__ import annotations

import itertools
import json
import lzma
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from yields.pages import Label, Page, read_labels, read_pages
from yields.tables import GOOD, percent, table

from curation.tokenize.tokenizer import Tokenizer
from models.ablate.compare import count_all
from models.ablate.instant import CALIBRATION
from models.ablate.prepare import Text, experiment
from models.ablate.statistics import Interval, Measure, estimate, measures
from proofs.pages import (
    ARTICLES,
    DOCUMENTATION,
    KINDS,
    OTHER_LANGUAGES,
    apart,
    distinct,
    gold_of,
    kind_of,
    plain_text,
)  # fmt: skip

SIZES = (0.02, 0.1, 0.5)  # of the text that a kind of pair spoils
DRAWS = 3
#: One document in so many is in a pair, drawn anew for each.
ONE_IN = 4
#: Bits per byte: differences are counted up to each of these, and above.
EDGES = (0.001, 0.003, 0.01)
ENGLISH_KINDS = (ARTICLES, *dict.fromkeys(KINDS.values()))
FOREIGN = ("de", "es", "fr", "ru")
NOISE = 0.2  # of the letters of a noisy text
Spoil = Callable[[Page, Text, random.Random], Text]


@dataclass(frozen=True)
class Found:
    """What one pair showed: bits per byte of the worse corpus less those of the better one."""

    kind: str
    size: float
    gap: Interval
    by_gold: Mapping[str, float]


def spoiled(data: Path, pages: Sequence[Page], labels: Mapping[str, Label]) -> dict[str, Spoil]:
    """Return what makes a text worse, by the name of a kind of pair."""
    rubbish = [_text(p) for p in pages if labels[p.key].grade < 2 and kind_of(labels[p.key]) != OTHER_LANGUAGES]  # fmt: skip
    foreign = list(_foreign(data))

    def instead(others: Sequence[str]) -> Spoil:
        return lambda _, text, dice: replace(text, text=_filled(len(text.text), others, dice))

    return {
        "boilerplate put back": lambda page, text, _: replace(text, text=plain_text(page)),
        "copies, twice": lambda _, text, __: replace(text, repeats=2),
        "copies, four times": lambda _, text, __: replace(text, repeats=4),
        "words shuffled": lambda _, text, dice: replace(text, text=_shuffled(text.text, dice)),
        "other languages": instead(foreign),
        "noise": lambda _, text, dice: replace(text, text=_noisy(text.text, dice)),
        "code without signs": lambda _, text, __: replace(text, text=_bare(text.text)),
        "grades 0 and 1 for 3 to 5": instead(rubbish),
    }


def _text(page: Page) -> str:
    return page.gold or page.text or ""


def _foreign(data: Path) -> Iterator[str]:
    with lzma.open(data / "multilingual" / "train.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["lang"] in FOREIGN:
                yield row["text"]


def _filled(length: int, others: Sequence[str], dice: random.Random) -> str:
    found = ""
    while len(found) < length:
        found += " " + dice.choice(others)
    return found[: length + 1]


def _shuffled(text: str, dice: random.Random) -> str:
    words = text.split()
    dice.shuffle(words)
    return " ".join(words)


def _noisy(text: str, dice: random.Random) -> str:
    return "".join(chr(dice.randrange(0xA1, 0x100)) if dice.random() < NOISE else c for c in text)


def _bare(text: str) -> str:
    return re.sub(r"[^\w\s]+", " ", text)


class Instrument:
    """What all pairs share."""

    def __init__(self, data: Path, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.labels = tokenizer, read_labels()
        pages = [page for page in read_pages(data) if page.key in self.labels]
        self.gold = [g for g in gold_of(pages, self.labels) if g.kind != OTHER_LANGUAGES]
        pages = [page for page in apart(pages, self.gold) if _text(page).strip()]
        self.kinds = spoiled(data, pages, self.labels)
        good = [page for page in pages if self._is_good(self.labels[page.key])]
        self.good = distinct(good, self.gold)

    def _is_good(self, label: Label) -> bool:
        return label.grade >= GOOD and kind_of(label) != OTHER_LANGUAGES

    def pairs(self) -> Iterator[Found]:
        """Yield what every pair shows."""
        for kind in self.kinds:
            for size in SIZES:
                for draw in range(DRAWS):
                    yield self._pair(kind, size, random.Random(f"{kind} {size} {draw}"))

    def same(self) -> Iterator[Found]:
        """Yield how much two draws of the same pages differ, neither of which is better."""
        for draw in range(DRAWS * len(SIZES)):
            drawn = self._drawn(random.Random(f"same {draw}"), 2 * len(self.good) // ONE_IN)
            half = len(drawn) // 2
            yield self._compared("same", 1, drawn[:half], drawn[half:])

    def _drawn(self, dice: random.Random, count: int) -> list[tuple[Page, Text]]:
        return [(p, Text(_text(p), p.url)) for p in dice.sample(self.good, count)]

    def _pair(self, kind: str, size: float, dice: random.Random) -> Found:
        better = self._drawn(dice, len(self.good) // ONE_IN)
        able = [self._able(kind, page) for page, _ in better]
        left = size * sum(len(text.text) for (_, text), a in zip(better, able, strict=True) if a)
        worse = []
        for (page, text), is_able in zip(better, able, strict=True):
            if is_able and left > 0:
                left -= len(text.text)
                text = self.kinds[kind](page, text, dice)
            worse.append((page, text))
        return self._compared(kind, size, better, worse)

    def _able(self, kind: str, page: Page) -> bool:
        if kind.startswith("code"):
            return self.labels[page.key].domain == "code"
        return not kind.startswith("boilerplate") or page.html is not None

    def _compared(self, kind: str, size: float, *corpora: Sequence[tuple[Page, Text]]) -> Found:
        runs = [
            (name, [text.one_line() for _, text in texts])
            for name, texts in zip(("better", "worse"), corpora, strict=True)
        ]
        gold = [("gold", [Text(text.text, text.url).one_line() for text in self.gold])]
        found = experiment(self.tokenizer, runs, gold, [])
        outcome = count_all(found, found.least_tokens, (1, 2, 3), lambda _: None)
        (measure,) = measures(found, outcome.found)
        of = np.array([text.kind for text in self.gold])
        wanted = (DOCUMENTATION,) if kind.startswith("code") else ENGLISH_KINDS
        gap = _gap(measure, np.isin(of, wanted))
        return Found(kind, size, gap, {k: _gap(measure, of == k).value for k in wanted})


def _gap(measure: Measure, chosen: npt.NDArray[np.bool_]) -> Interval:
    some = replace(
        measure,
        values=measure.values[:, :, chosen],
        weights=measure.weights[chosen],
        groups=measure.groups[chosen],
    )
    gap = estimate(some).differences[0, 1]
    return Interval(-gap.value, -gap.high, -gap.low)


def calibrate(data: Path, tokenizer: Tokenizer) -> None:
    """Print how the pairs are ordered; write by how much they differ for `curate ablate`."""
    instrument = Instrument(data, tokenizer)
    found = []
    for one in instrument.pairs():
        found.append(one)
        print(f"{one.kind}, {one.size:.0%}: {_shown(one.gap)}", flush=True)
    header = ("pairs", "ordered rightly", "95 %", "said to be better, rightly", "wrongly", "mean")
    rows = [
        _row(
            name, [one for one in found if name in (one.kind, f"{one.size:.0%} of the text", "all")]
        )
        for name in (*instrument.kinds, *(f"{size:.0%} of the text" for size in SIZES), "all")
    ]
    table("Pairs of which the better one is known", header, rows)
    golds = [[(k, one.by_gold[k]) for k in one.by_gold] for one in found]
    rows = [
        (kind, _share([gap > 0 for some in golds for name, gap in some if name == kind]))
        for kind in ENGLISH_KINDS
    ]
    table("By kind of gold text", ("gold", "ordered rightly"), rows)
    bins = [
        (most, [one.gap.value > 0 for one in found if least <= abs(one.gap.value) < most])
        for least, most in itertools.pairwise((0.0, *EDGES, math.inf))
    ]
    rows = [(f"less than {most}", _share(right)) for most, right in bins]
    table("By how much they differ", ("bits per byte", "ordered rightly"), rows)
    same = [one.gap for one in instrument.same()]
    shown = sum(gap.low > 0 or gap.high < 0 for gap in same)
    reach = max(abs(gap.value) for gap in same)
    print(
        f"\nTwo draws of the same pages: {shown} of {len(same)} said to differ, up to {reach:.4f}."
    )
    content = {
        "difference below, named, pairs": [
            (most if most < math.inf else None, sum(right), len(right)) for most, right in bins
        ],
        "two draws of the same pages": round(reach, 4),
    }
    CALIBRATION.write_text(json.dumps(content) + "\n", encoding="utf-8")


def _shown(gap: Interval) -> str:
    return f"{gap.value:+.4f} ({gap.low:+.4f} to {gap.high:+.4f})"


def _row(name: str, found: Sequence[Found]) -> tuple[object, ...]:
    right = [one.gap.value > 0 for one in found]
    low, high = _wilson(sum(right), len(right))
    return (
        name,
        _share(right),
        f"{low:.0%} to {high:.0%}",
        sum(one.gap.low > 0 for one in found),
        sum(one.gap.high < 0 for one in found),
        f"{np.mean([one.gap.value for one in found]):+.4f}",
    )


def _share(right: Iterable[bool]) -> str:
    values = list(right)
    return f"{sum(values)} of {len(values)}, {percent(sum(values), len(values))}"


def _wilson(right: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    z = 1.96
    middle, share = 1 + z * z / of, right / of
    reach = z * math.sqrt(share * (1 - share) / of + (z / (2 * of)) ** 2)
    return (share + z * z / (2 * of) - reach) / middle, (share + z * z / (2 * of) + reach) / middle
