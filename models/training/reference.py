"""Train the reference distribution of a language from files, for KL divergence."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from curation.arrow import text_buffers
from curation.config import Natural, Positive, built_in_settings
from curation.errors import InputError
from curation.filters.reference import (
    CLASSES,
    LENGTHS,
    LONGEST_TOKEN,
    PAIR_SCALE,
    PARTS,
    SCALE,
    Reference,
    measure_references,
    reference_tables,
    token_lengths,
)
from curation.text.words import words
from models.training.by_language import TextSettings, add_to_card, batches
from models.training.reference_counts import (
    PairCounts,
    Units,
    WordCounts,
    Words,
    choose_units,
    merge_words,
    vocabulary,
)
from models.training.report import About, Report, file_facts
from models.training.saving import save_reference
from models.training.word_classes import exchange

_REMOVED = (0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
_FOLDS = 2  # each half of the corpus is calibrated on what the other half says
_RUN = 8  # texts in a row that go to the same half, since neighbours often share a source
_SMOOTHING = 5.0  # pairs added to those found and to those expected by chance
_ENOUGH = 100  # texts of a length from which shorter ones are not joined
_FEWEST = 20  # texts of a length without which the next shorter length stands for it
#: Least spreads of words, outliers and pairs: those of English web pages, since sentences and
#: handbooks are more even than the Web.
_LEAST_SPREAD = (0.8, 0.02, 0.14)


class ReferenceTraining(TextSettings):
    """How a reference distribution is counted; defaults in configs/train/reference.yaml."""

    words: Positive = Field(description="most frequent words, with a probability of their own")
    neighbours: Positive = Field(description="most frequent words that get a class by neighbours")
    endings: Natural = Field(description="most frequent endings of all other words")
    min_count: Positive = Field(description="rarer words and endings are not kept")
    rounds: Positive = Field(description="passes over all words to find their classes")
    word_list: str | None = Field(
        description="file of `word count` lines that adds words the texts lack; null: none"
    )
    word_list_share: float = Field(gt=0, lt=1, description="weight of the word list")
    outlier_share: float = Field(
        gt=0, lt=1, description="share of running words of other texts beyond the bound"
    )


@functools.cache
def default_reference() -> ReferenceTraining:
    """Return the settings of configs/train/reference.yaml."""
    return built_in_settings(ReferenceTraining, "train/reference")


@dataclass(frozen=True)
class _Half:
    """One half of the corpus."""

    words: Words
    pairs: npt.NDArray[np.float64]  # [CLASSES, CLASSES] pairs of adjacent classes


def train_reference_files(
    inputs: Sequence[Path | str],
    language: str,
    output: Path | str,
    about: About,
    settings: ReferenceTraining | None = None,
) -> Report:
    """Count the words of JSONL or Parquet files and write `<language>.npz` into `output`.

    The folder's `card.yaml` is created or gets the language added. Each half of the texts is
    measured by a reference of the other half, which gives median and spread by length, and the
    metrics' `calibration`: the thresholds that would remove shares of these texts, by length.
    Raises InputError where a row has no text or where no row is of the language.
    """
    settings = settings or default_reference()
    counts = [WordCounts() for _ in range(_FOLDS)]
    documents = 0
    for fold, batch in _folds(inputs, language, settings):
        counts[fold].add(batch)
        documents += len(batch)
    if not documents:
        raise InputError(f"no texts of language {language!r} in " + ", ".join(map(str, inputs)))
    parts = [held.words() for held in counts]
    corpus = merge_words(parts)
    listed = _listed(settings)
    units = choose_units(corpus, settings.neighbours, settings.endings, settings.min_count)
    if units.count == 1:
        raise InputError(f"reference for {language}: no word occurs {settings.min_count} times")
    adjacent = [PairCounts(corpus, units) for _ in range(_FOLDS)]
    for fold, batch in _folds(inputs, language, settings):
        adjacent[fold].add(batch)
    tables, classes = _class_pairs([held.pairs() for held in adjacent], units, settings.rounds)
    halves = [_Half(held, table) for held, table in zip(parts, tables, strict=True)]

    def reference(held: Words, table: npt.NDArray[np.float64]) -> Reference:
        return _reference(language, held, listed, units, classes, table, settings)

    folds = [reference(half.words, half.pairs) for half in halves]
    bound = _bound(folds, halves, settings.outlier_share)
    measured = _measure_halves([replace(f, bound=bound) for f in folds], inputs, language, settings)
    curve = _curve(measured)
    trained = replace(
        reference(corpus, halves[0].pairs + halves[1].pairs), bound=bound, curve=curve
    )
    path = Path(output) / f"{language}.npz"
    save_reference(trained, path)
    metrics = {
        "documents": documents,
        "words": trained.trained,
        "frequent_words": len(trained.words),
        "unknown_words": round(float(np.exp(-trained.unknown / SCALE)), 4),
        "tokens": len(trained.tokens),
        "outlier_cost": bound / SCALE,
        "calibration": _calibration(measured, curve),
    }
    return add_to_card(
        "reference",
        "reference distributions of tokens by language, for KL divergence",
        path,
        language,
        about,
        file_facts([*inputs, *([settings.word_list] if settings.word_list else [])]),
        settings.model_copy(update={"word_list": None}),
        metrics,
    )


def _folds(
    inputs: Sequence[Path | str], language: str, settings: ReferenceTraining
) -> Iterator[tuple[int, list[str]]]:
    """Yield the texts of each half, batch by batch."""
    number = 0
    for batch in batches(inputs, language, settings):
        split: list[list[str]] = [[] for _ in range(_FOLDS)]
        for text in batch:
            split[number // _RUN % _FOLDS].append(text)
            number += 1
        for fold, texts in enumerate(split):
            if texts:
                yield fold, texts


def _listed(settings: ReferenceTraining) -> Words | None:
    if settings.word_list is None:
        return None
    try:
        lines = Path(settings.word_list).read_text(encoding="utf-8").splitlines()
        rows = [line.rsplit(maxsplit=1) for line in lines if line.strip()]
        counts = WordCounts()
        counts.add([word for word, _ in rows], [float(count) for _, count in rows])
    except (OSError, ValueError) as error:
        raise InputError(
            f"{settings.word_list}: not a list of `word count` lines: {error}"
        ) from None
    return counts.words()


def _class_pairs(
    adjacent: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]],
    units: Units,
    rounds: int,
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.int64]]:
    """Counts of adjacent classes in each half, and the class of every unit."""
    keys = np.concatenate([pairs[:, 0] * units.count + pairs[:, 1] for pairs, _ in adjacent])
    kept, places = np.unique(keys, return_inverse=True)
    weights = np.concatenate([counts for _, counts in adjacent])
    total = np.bincount(places, weights, len(kept)).astype(np.int64)
    pairs = np.stack(np.divmod(kept, units.count), 1)
    classes = exchange(pairs, total, units.count, CLASSES, rounds)
    tables = []
    for found, counts in adjacent:
        table = np.zeros((CLASSES, CLASSES))
        np.add.at(table, (classes[found[:, 0]], classes[found[:, 1]]), counts)
        tables.append(table)
    return tables, classes


def _reference(
    language: str,
    held: Words,
    listed: Words | None,
    units: Units,
    classes: npt.NDArray[np.int64],
    pairs: npt.NDArray[np.float64],
    settings: ReferenceTraining,
) -> Reference:
    """Return the distribution of these counts, without calibration."""
    counted = held
    if listed is not None:
        share = settings.word_list_share
        weight = held.counts.sum() / listed.counts.sum() * share / (1 - share)
        counted = merge_words([held, replace(listed, counts=listed.counts * weight)])
    kept = _frequent(counted, settings)
    outside = ~np.isin(held.hashes, counted.hashes[kept])
    unknown = max(held.counts[outside].sum(), 1.0) / (held.counts.sum() + 1.0)
    known = counted.counts[kept] / counted.counts[kept].sum() * (1 - unknown)
    tokens = _token_costs(counted)
    chance = np.outer(pairs.sum(1), pairs.sum(0)) / max(pairs.sum(), 1.0)
    ratio = np.log((pairs + _SMOOTHING) / (chance + _SMOOTHING))
    endings, firsts = np.unique(_halves(units.endings), return_index=True)
    ending_classes = classes[1 + len(units.words) :][firsts]
    return Reference(
        language,
        _halves(counted.hashes[kept]),
        _steps(known),
        _classes(counted, kept, units, classes).astype(np.uint8),
        int(_steps(np.array([unknown * tokens.last]))[0]),
        tokens.seen.astype(np.uint32),
        tokens.costs,
        tokens.unseen,
        endings,
        ending_classes.astype(np.uint8),
        np.clip(np.round(ratio * PAIR_SCALE), -127, 127).astype(np.int8),
        0,
        np.zeros((len(LENGTHS), len(PARTS), 2), np.float32),
        int(held.counts.sum()),
    )


def _halves(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    return (hashes >> np.uint64(32)).astype(np.uint32)


def _frequent(counted: Words, settings: ReferenceTraining) -> npt.NDArray[np.int64]:
    """Indices of the most frequent words, in the order of their hashes, whose halves all differ."""
    order = np.lexsort((counted.hashes, -counted.counts))[: settings.words]
    kept = np.sort(order[counted.counts[order] >= settings.min_count])
    _, firsts = np.unique(_halves(counted.hashes[kept]), return_index=True)
    found: npt.NDArray[np.int64] = kept[firsts]
    return found


def _classes(
    counted: Words, kept: npt.NDArray[np.int64], units: Units, classes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Class of every word kept: by its neighbours, else by its ending, else 0."""
    found = np.zeros(len(kept), np.int64)
    first = 1
    for keys, own in ((units.words, counted.hashes[kept]), (units.endings, counted.endings[kept])):
        order = np.argsort(keys)
        place = np.minimum(np.searchsorted(keys, own, sorter=order), max(len(keys) - 1, 0))
        if len(keys):
            number = order[place]
            match = (keys[number] == own) & (found == 0)
            found[match] = first + number[match]
        first += len(keys)
    return classes[found]


@dataclass(frozen=True)
class _Tokens:
    """Costs of the tokens of unknown words."""

    seen: npt.NDArray[np.int64]  # ids
    costs: npt.NDArray[np.uint8]  # of those seen
    unseen: npt.NDArray[np.uint8]  # [LONGEST_TOKEN + 1] of all others, by bytes
    last: float  # probability that a token ends its word


def _token_costs(counted: Words) -> _Tokens:
    """Distribution of tokens over distinct words: one for tokens that begin with a space and so
    begin a word, one for all others, each behind another token."""
    tokens = vocabulary().tokens
    lengths = token_lengths(tokens)
    counts = replace(counted, counts=np.ones(len(counted.counts))).token_counts(len(tokens))
    seen = np.flatnonzero(counts > 0)
    begins = np.array([token.startswith(b" ") for token in tokens])
    last = (len(counted.counts) + 1) / (counts.sum() + 2)
    # Good and Turing: tokens met once give the mass of those not met, and their lengths
    once = counts == 1
    mass = max(once.sum(), 1.0) / (counts.sum() + 1)
    by_length = 1.0 + np.bincount(lengths[once], minlength=LONGEST_TOKEN + 1)
    absent = np.bincount(lengths[counts == 0], minlength=LONGEST_TOKEN + 1)
    unseen = mass * by_length / by_length.sum() / np.maximum(absent, 1)
    total = np.where(begins, counts[begins].sum(), counts[~begins].sum() / (1 - last))
    known = counts[seen] / total[seen] * (1 - mass)
    return _Tokens(seen, _steps(known), _steps(unseen), float(last))


def _steps(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    return np.clip(np.round(-np.log(probabilities) * SCALE), 0, 255).astype(np.uint8)


def _bound(folds: Sequence[Reference], halves: Sequence[_Half], share: float) -> int:
    """Return the cost that a share of the running words of the other half exceed."""
    lengths = token_lengths(vocabulary().tokens)
    costs, counts = [], []
    for reference, half in zip(folds, reversed(halves), strict=True):
        by_token = reference.unseen[lengths]
        by_token[reference.tokens] = reference.costs
        own = half.words.costs(by_token) + reference.unknown
        if len(reference.words):
            keys = _halves(half.words.hashes)
            place = np.minimum(np.searchsorted(reference.words, keys), len(reference.words) - 1)
            known = reference.words[place] == keys
            own[known] = reference.word_costs[place[known]]
        costs.append(own)
        counts.append(half.words.counts)
    cost, count = np.concatenate(costs), np.concatenate(counts)
    order = np.argsort(cost, kind="stable")
    place = np.searchsorted(np.cumsum(count[order]), (1 - share) * count.sum())
    return int(cost[order][min(place, len(order) - 1)])


def _measure_halves(
    folds: Sequence[Reference],
    inputs: Sequence[Path | str],
    language: str,
    settings: ReferenceTraining,
) -> list[npt.NDArray[np.float64]]:
    """For each of LENGTHS, PARTS of texts of so many words by the other half's reference."""
    tables = [reference_tables([reference]) for reference in reversed(folds)]
    whole: list[list[npt.NDArray[np.float64]]] = [[] for _ in LENGTHS]
    joined: list[list[npt.NDArray[np.float64]]] = [[] for _ in LENGTHS]
    for fold, batch in _folds(inputs, language, settings):
        for k, length in enumerate(LENGTHS):
            for target, texts in zip((whole, joined), cut(batch, length), strict=True):
                if texts:
                    target[k].append(measure_references(texts, tables[fold], parts=True))
    none = np.zeros((0, len(PARTS)))
    return [
        np.concatenate([none, *own])
        if sum(map(len, own)) >= _ENOUGH
        else np.concatenate([none, *own, *others])
        for own, others in zip(whole, joined, strict=True)
    ]


def cut(texts: Sequence[str], length: int) -> tuple[list[str], list[str]]:
    """Return the first `length` words of every text that has them, and of shorter texts joined."""
    spans = words(texts)
    offsets, data = text_buffers(texts)
    whole: list[str] = []
    joined: list[str] = []
    held: list[str] = []
    size = 0
    for first, last, start, end in zip(
        spans.doc_offsets[:-1], spans.doc_offsets[1:], offsets[:-1], offsets[1:], strict=True
    ):
        enough = last - first >= length
        need = length if enough else length - size
        stop = spans.ends[first + need - 1] if last - first >= need else end
        piece = data[start:stop].tobytes().decode()
        if enough:
            whole.append(piece)
            continue
        held.append(piece)
        size += last - first
        if size >= length:
            joined.append("\n".join(held))
            held, size = [], 0
    return whole, joined


def _curve(measured: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float32]:
    """Median and spread of each part by length; too few texts take those of the shorter length."""
    curve = np.zeros((len(LENGTHS), len(PARTS), 2), np.float32)
    curve[:, :, 1] = _LEAST_SPREAD
    for k, table in enumerate(measured):
        if len(table) >= _FEWEST:
            median, high = np.quantile(table, [0.5, 0.95], axis=0)
            curve[k] = np.stack([median, np.maximum(high - median, _LEAST_SPREAD)], 1)
        elif k:
            curve[k] = curve[k - 1]
    return curve


def _calibration(
    measured: Sequence[npt.NDArray[np.float64]], curve: npt.NDArray[np.float32]
) -> list[dict[str, Any]]:
    """For texts of each length: how many there are, and the values that shares of them exceed.

    `removed_1.0%` of `kl_divergence` is the threshold that would remove one in a hundred.
    """
    rows = []
    for length, table, (*levels,) in zip(LENGTHS, measured, curve, strict=True):
        if not len(table):
            continue
        medians, spreads = np.array(levels, np.float64).T
        excess = np.maximum((table - medians) / spreads, 0)
        found = {
            "kl_divergence": excess[:, :2].max(1) + excess[:, 2],
            "outlier_token_ratio": table[:, PARTS.index("outliers")],
        }
        row: dict[str, Any] = {"words": length, "texts": len(table)}
        row["median_and_spread"] = {
            part: [round(float(v), 3) for v in level]
            for part, level in zip(PARTS, levels, strict=True)
        }
        for name, values in found.items():
            limits = np.quantile(values, [1 - share for share in _REMOVED]).round(3)
            row[name] = {
                f"removed_{share:.1%}": float(v) for share, v in zip(_REMOVED, limits, strict=True)
            }
        rows.append(row)
    return rows


def calibration_table(rows: Sequence[dict[str, Any]]) -> str:
    """Format the calibration of a trained reference as a table for reading."""
    heads = [f"removes {share:.1%}" for share in _REMOVED]
    lines = [
        f"{'threshold of':20} {'words':>6} {'texts':>7} " + " ".join(f"{h:>13}" for h in heads)
    ]
    for name in ("kl_divergence", "outlier_token_ratio"):
        for row in rows:
            values = " ".join(f"{v:13.3f}" for v in row[name].values())
            lines.append(f"{name:20} {row['words']:6,} {row['texts']:7,} {values}")
    return "\n".join(lines)
