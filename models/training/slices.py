"""Texts of languages by source: what is trained on, what is held out, and slices of all lengths."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from models.training.inputs import Examples
from models.training.settings import CorrectorTraining

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_EVERYWHERE = -1  # fold of sources that are in the training part of every split
_PIECES_PER_TEXT = 6
_WORD = 20  # characters within which a slice begins at a word


def family(source: str) -> str:
    """Return the source without its parts: `udhr:deu` is `udhr`, `owner/repository:file` is
    `owner`."""
    return re.split("[:/]", source, maxsplit=1)[0]


@dataclass(frozen=True, eq=False)
class Split:
    """Which texts a fold trains on and which it judges."""

    train: Ints
    test: Ints  # of sources, or of languages, that the fold doesn't train on
    by_source: Mask  # [test] the whole source is held out, not only the text
    unseen: Mask  # [test] so is the whole language


def splits(examples: Examples, truth: Ints, known: int, settings: CorrectorTraining) -> list[Split]:
    """Return one split for each list of sources in `held_out`.

    Languages with sources in fewer than two of the lists are split by text. Of the labels from
    `known` on, every fold leaves out one in `unseen_every` entirely.
    """
    folds = len(settings.held_out)
    fold_of = {name: i for i, names in enumerate(settings.held_out) for name in names}
    fold = np.array([fold_of.get(family(g), _EVERYWHERE) for g in examples.groups], np.int64)
    has = defaultdict(set)
    for label, number in zip(truth.tolist(), fold.tolist(), strict=True):
        has[label].add(number)
    alone = np.array([len(has[label] - {_EVERYWHERE}) < 2 for label in truth.tolist()], bool)
    hashes = np.array([xxhash.xxh32_intdigest(t.encode()) % folds for t in examples.texts])
    fold[alone] = hashes[alone]
    apart = np.where(truth >= known, (truth - known) % settings.unseen_every, -1)
    found = []
    for number in range(folds):
        unseen = apart == number
        test = np.flatnonzero((fold == number) | unseen)
        train = np.flatnonzero((fold != number) & ~unseen)
        found.append(Split(train, test, ~alone[test], unseen[test]))
    return found


def balanced(
    examples: Examples, truth: Ints, rows: Ints, per_label: int, least: int, seed: int
) -> list[tuple[int, int]]:
    """Return rows of every label with how often each is taken, equally many of each of its sources.

    No source gives fewer than `least`, none a text more than a few times.
    """
    by: defaultdict[int, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in np.random.default_rng(seed).permutation(rows).tolist():
        by[int(truth[row])][family(examples.groups[row])].append(row)
    found = []
    for _, sources in sorted(by.items()):
        quota = max(least, per_label // len(sources))
        for _, texts in sorted(sources.items()):
            times = min(_PIECES_PER_TEXT, -(-quota // len(texts)))
            found += [(row, times) for row in texts[:quota]]
    return found


def pieces(
    lines: Sequence[str], taken: Sequence[tuple[int, int]], settings: CorrectorTraining
) -> tuple[list[str], list[int]]:
    """Slices of the lines, and the row of each: lengths spread evenly over their logarithm."""
    found: list[str] = []
    rows: list[int] = []
    low, high = np.log(settings.slice_min), np.log(settings.slice_max)
    for row, times in taken:
        line = lines[row]
        random = np.random.default_rng((settings.seed, row))
        whole = line[: settings.whole]
        parts = {whole} | {
            _cut(line, round(float(np.exp(random.uniform(low, high)))), random)
            for _ in range(times)
        }
        for part in sorted(parts - {""}):
            found.append(part)
            rows.append(row)
    return found, rows


def _cut(line: str, size: int, random: np.random.Generator) -> str:
    """Return a slice somewhere in the line, half of the time from the beginning of a word."""
    if len(line) <= size:
        return line
    begin = int(random.integers(0, len(line) - size + 1))
    if random.random() < 0.5:
        space = line.find(" ", begin, begin + _WORD)
        begin = space + 1 if begin and space >= 0 else begin
    return line[begin : begin + size].strip()
