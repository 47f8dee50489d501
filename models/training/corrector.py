"""Train a corrector of a language model: a second model and how the two are weighed.

See `curation.language.corrector`. How much either counts is fitted, and judged, on sources that no
model of the fold was trained on; a part of the foreign languages is held out entirely, so that the
metrics speak of languages that nobody knows as well.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, InputError
from curation.language.close import CloseLanguages
from curation.language.corrector import Corrector, softmax
from curation.language.evidence import KNOTS, REFUSAL, WEIGHED, Evidence
from curation.language.familiar import Familiarity
from curation.language.fasttext import FastText, load_fasttext, prepare
from curation.language.windows import cut, letters_only
from curation.models import ModelFile, locate
from curation.resources import ModelPath
from models.training import close
from models.training.evidence import fit_refusal, fit_weights, learn
from models.training.inputs import Examples, read_labelled, rows
from models.training.language import fit_lines
from models.training.metrics import macro_f1
from models.training.report import About, Report, write_card
from models.training.saving import save_corrector
from models.training.settings import CloseTraining, CorrectorTraining, default_settings
from models.training.slices import Split, balanced, family, pieces, splits

FILE = "corrector.npz"

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def train_corrector(
    inputs: Sequence[Path | str],
    output: Path | str,
    about: About,
    settings: CorrectorTraining | None = None,
    pages: Sequence[Path | str] = (),
    words: Sequence[Path | str] = (),
) -> Report:
    """Train on texts with labels and write `corrector.npz` and `card.yaml`.

    Labels that the first model does not have become labels of the corrector. `pages` are texts
    without labels (of the web, say) from which the second model learns what the first is sure of.
    `words` are lists of words by frequency, one a row: the label and `words`, an object of counts.
    Metrics are of predictions for sources that had not been seen, with weights fitted on the other
    folds. Same examples and settings, same bytes. Raises InputError when no example has one of the
    first model's labels, or all have.
    """
    settings = settings or default_settings("corrector", CorrectorTraining)
    path, _ = locate(ModelFile(path=ModelPath(settings.base), sha256=None))
    base = load_fasttext(path, settings.base)
    of_groups = (name for name in itertools.chain(*settings.close.groups) if "_" not in name)
    for name in (*settings.favoured, settings.everywhere, *of_groups):
        if name not in base.labels:
            raise ConfigError(
                f"{settings.base} has no language {name!r} (favoured, everywhere, close.groups)"
            )
    data = _Data.read(inputs, pages, words, base, settings)
    settings = settings.model_copy(update={"close": _groups_of(settings.close, data.names)})
    folds = splits(data.examples, data.truth, len(base.labels), settings)
    judged = [_judged(base, data, split, settings) for split in folds]
    metrics: dict[str, Any] = {"documents": len(data.truth), "labels": len(data.names)}
    fitted = []
    for number in range(len(judged)):
        others = [p for i, p in enumerate(judged) if i != number] or judged
        fitted.append(_fitted(others, settings))
    both = list(zip(judged, fitted, strict=True))
    metrics |= _metrics([(part, _probabilities(part, w)) for part, w in both], data, settings)
    metrics["close_languages"] = _pairs(both, data, settings)
    whole = _with(
        _corrector(base, data, np.arange(len(data.truth)), settings), _fitted(judged, settings)
    )
    target = Path(output) / FILE
    save_corrector(whole, target)
    return write_card(target, "corrector", about, data.examples.files, settings, metrics)


def _groups_of(settings: CloseTraining, names: Sequence[str]) -> CloseTraining:
    """Return the settings with groups of these labels alone: not all examples are in all of
    them."""
    groups = [tuple(n for n in group if n in names) for group in settings.groups]
    return settings.model_copy(update={"groups": tuple(g for g in groups if len(g) > 1)})


@dataclass(frozen=True, eq=False)
class _Data:
    """Training texts, one line each."""

    names: tuple[str, ...]
    examples: Examples
    truth: Ints
    texts: list[str]
    lines: list[str]  # letters only
    more: list[tuple[int, str]]  # (label, line) of pages without labels
    words: list[tuple[int, close.Source]]  # lists by label

    @classmethod
    def read(
        cls,
        inputs: Sequence[Path | str],
        pages: Sequence[Path | str],
        words: Sequence[Path | str],
        base: FastText,
        settings: CorrectorTraining,
    ) -> _Data:
        examples = read_labelled(settings, inputs)
        windows = cut(examples.texts, 1, settings.characters)
        examples = examples.select(np.flatnonzero(np.diff(windows.firsts)).tolist())
        labels = list(map(str, examples.labels))
        foreign = sorted(set(labels) - set(base.labels))
        if not foreign or not set(labels) & set(base.labels):
            raise InputError(f"examples are needed in languages of {settings.base} and in others")
        names = (*base.labels, *foreign)
        index = {name: i for i, name in enumerate(names)}
        return cls(
            names,
            examples,
            np.array([index[label] for label in labels], np.int64),
            windows.texts.to_pylist(),
            letters_only(windows.texts).to_pylist(),
            _sure(pages, base, settings),
            _lists(words, index, settings),
        )


@dataclass(frozen=True, eq=False)
class _Judged:
    """Held-out texts of a fold, cut to a length, and what its models say of them."""

    corrector: Corrector
    first: Floats
    second: Floats
    lines: list[str]
    truth: Ints  # len(labels) for a language that the fold has not seen
    length: Ints  # characters; 0: whole
    by_source: Mask
    key: Ints  # of label and source together


def _judged(base: FastText, data: _Data, split: Split, settings: CorrectorTraining) -> _Judged:
    corrector = _corrector(base, data, split.train, settings)
    unknown = len(data.names)
    chosen, counts = [], dict[tuple[int, str], int]()
    for place in np.random.default_rng(settings.seed).permutation(len(split.test)).tolist():
        row = int(split.test[place])
        key = (int(data.truth[row]), family(data.examples.groups[row]))
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= settings.judged_per_source:
            chosen.append(place)
    places = np.sort(np.array(chosen, np.int64))
    test = split.test[places]
    truth = np.where(split.unseen[places], unknown, data.truth[test])
    texts = [data.texts[i][: size or None].strip() for size in settings.lengths for i in test]
    lines = letters_only(texts).to_pylist()
    times = len(settings.lengths)
    second = corrector.model.probabilities(lines).astype(np.float64)
    second[:, np.bincount(data.truth[split.train], minlength=unknown) == 0] = 0
    return _Judged(
        corrector,
        base.probabilities(texts).astype(np.float64),
        second,
        lines,
        np.tile(truth, times),
        np.repeat(settings.lengths, len(test)),
        np.tile(split.by_source[places], times),
        np.tile(data.truth[test], times),
    )


@dataclass(frozen=True, eq=False)
class _Weights:
    """What is fitted: how much models and words count."""

    evidence: Evidence
    close: Floats


def _with(corrector: Corrector, weights: _Weights) -> Corrector:
    """Return the corrector, weighed so."""
    close = replace(corrector.close, weights=weights.close)
    return replace(corrector, evidence=weights.evidence, close=close)


def _fitted(parts: Sequence[_Judged], settings: CorrectorTraining) -> _Weights:
    """Return how much models and words count, from texts that they were not trained on."""
    corrector = parts[0].corrector
    chosen = [
        np.sort(
            np.random.default_rng(settings.seed).permutation(len(part.truth))[
                : settings.fitted // len(parts)
            ]
        )
        for part in parts
    ]
    columns = []
    for part, some in zip(parts, chosen, strict=True):
        known = some[part.truth[some] < len(corrector.labels)]
        one, two = part.corrector.logarithms(part.first[known], part.second[known])
        sizes = np.array([len(part.lines[i].encode()) for i in known])
        columns.append((one, two, sizes, part.truth[known]))
    one, two, sizes, truth = (np.concatenate(c) for c in zip(*columns, strict=True))
    large, foreign = corrector.favoured, corrector.foreign
    counts = _counts(large[truth], settings.large_share)
    weights = fit_weights(one, two, sizes, truth, counts, large, foreign)
    evidence = Evidence(weights, np.zeros(len(REFUSAL)), settings.strange_from)
    weights_of_words = close.fit(
        [
            judged
            for part in parts
            for number, group in enumerate(corrector.close.groups)
            if len((judged := _of_group(part, evidence, number, group)).truth)
        ],
        settings.close,
    )
    found = _Weights(evidence, weights_of_words)
    seen, labels = [], []
    for part, some in zip(parts, chosen, strict=True):
        fitted = _with(part.corrector, found)
        first, second = part.first[some], part.second[some]
        lines = [part.lines[i] for i in some]
        firsts = np.arange(len(lines) + 1)
        one, two = fitted.logarithms(first, second)
        best = fitted.weighed(one, two, lines, firsts)
        seen.append(fitted.seen(one, two, best, lines, firsts))
        labels.append(part.truth[some])
    truth = np.concatenate(labels)
    unknown = truth == len(large)
    refusal = fit_refusal(np.concatenate(seen), unknown, settings.unknown_share)
    return replace(found, evidence=replace(evidence, refusal=refusal))


def _of_group(
    part: _Judged, evidence: Evidence, number: int, group: tuple[int, ...]
) -> close.Judged:
    """Texts of sources held out in the languages of a group, as models and words see them."""
    corrector, members = part.corrector, np.array(group)
    rows = np.flatnonzero(np.isin(part.truth, members) & part.by_source)
    lines = [part.lines[i] for i in rows]
    sizes = np.array([len(line.encode()) for line in lines], np.int64)
    one, two = corrector.logarithms(part.first[rows], part.second[rows])
    large = corrector.favoured
    likely = softmax(evidence.scores(one, two, sizes, large, corrector.foreign))[:, members]
    firsts = np.arange(len(rows) + 1)
    return close.Judged(
        likely / likely.sum(1, keepdims=True),
        corrector.close.words(number, lines, firsts, np.arange(len(rows))),
        sizes,
        np.array([group.index(label) for label in part.truth[rows]], np.int64),
        part.length[rows],
        large[members],
    )


def _counts(large: Mask, share: float) -> Floats:
    """As how many texts each counts, so that those in large languages are this share of all."""
    weight = np.where(
        large, share / max(large.mean(), 1e-9), (1 - share) / max(1 - large.mean(), 1e-9)
    )
    return np.asarray(weight)


def _probabilities(part: _Judged, weights: _Weights) -> Floats:
    corrector = _with(part.corrector, weights)
    firsts = np.arange(len(part.lines) + 1)
    return corrector.combine(part.first, part.second, part.lines, firsts)


def _metrics(
    parts: Sequence[tuple[_Judged, Floats]], data: _Data, settings: CorrectorTraining
) -> dict[str, Any]:
    """Of both models together and the first alone, by length, on sources held out."""
    k = parts[0][0].first.shape[1]
    truth = np.concatenate([p.truth for p, _ in parts])
    length = np.concatenate([p.length for p, _ in parts])
    source = np.concatenate([p.by_source for p, _ in parts])
    first = np.concatenate([p.first for p, _ in parts])
    found = np.concatenate([f for _, f in parts])
    large = np.isin(truth, [data.names.index(n) for n in settings.favoured])
    table: dict[str, Any] = {}
    for title, scores, names in (
        ("first_model", first, k),
        ("corrected", found, k),
        ("all", found, len(data.names)),
    ):
        best, score = scores[:, :names].argmax(1), scores[:, :names].max(1)
        named = scores[:, names:].sum(1) <= 0.5  # as the stage decides
        best = np.where(named, best, len(data.names))
        accepted = named & (score >= 0.5)
        for size in settings.lengths:
            at, row = length == size, {}
            row["large"] = _share(best == truth, at & large & source)
            if not size:
                own = at & (truth < names)
                for name, judged in (("macro_f1", own), ("macro_f1_by_source", own & source)):
                    f1 = macro_f1(truth[judged], best[judged]) if judged.any() else None
                    row[name] = None if f1 is None else round(f1, 4)
            row["accepted"] = _share(accepted, at & source & (truth < names))
            row["unseen_accepted"] = _share(accepted, at & (truth == len(data.names)))
            if names < len(data.names):  # labels of the corrector that can't be given here
                foreign = at & (truth >= names) & (truth < len(data.names))
                row["foreign_accepted"] = _share(accepted, foreign)
                row["foreign_accepted_by_source"] = _share(accepted, foreign & source)
            table.setdefault(title, {})[str(size or "whole")] = row
    return {"held_out_sources": table}


def _pairs(
    parts: Sequence[tuple[_Judged, _Weights]], data: _Data, settings: CorrectorTraining
) -> dict[str, Any]:
    """Return how often one of two close languages is told from the other, without words and with
    them."""
    found: dict[str, Any] = {}
    for number, names in enumerate(settings.close.groups):
        group = tuple(data.names.index(name) for name in names)
        judged = [(_of_group(p, w.evidence, number, group), w.close) for p, w in parts]
        found |= close.pair_accuracy(judged, names, settings.close)
    return found


def _share(values: Mask, where: Mask) -> float | None:
    return round(float(values[where].mean()), 4) if where.any() else None


def _corrector(base: FastText, data: _Data, train: Ints, settings: CorrectorTraining) -> Corrector:
    taken = balanced(
        data.examples, data.truth, train, settings.per_label, settings.per_source, settings.seed
    )
    lines, owners = pieces(data.lines, taken, settings)
    truth = [int(data.truth[row]) for row in owners]
    lines += [line for _, line in data.more]
    truth += [label for label, _ in data.more]
    with tempfile.TemporaryDirectory() as folder:
        labels = np.array(truth, np.int64)
        path = Path(folder) / "second.bin"
        second = fit_lines(lines, labels, np.arange(len(lines)), data.names, settings, path)
    none = np.zeros((len(WEIGHED), len(KNOTS)))
    return Corrector(
        model=_in_order(second, data.names),
        familiar=_familiar(data, taken, settings),
        given=_given(base, data, taken, settings),
        evidence=Evidence(none, np.zeros(len(REFUSAL)), settings.strange_from),
        close=_close(data, train, settings),
        favoured=np.isin(data.names, settings.favoured),
        floor=settings.floor,
    )


def _familiar(
    data: _Data, taken: Sequence[tuple[int, int]], settings: CorrectorTraining
) -> Familiarity:
    """Runs of letters of every language, from examples and sure pages."""
    own = [row for row, _ in taken if len(data.lines[row]) >= settings.familiar_letters]
    lines = [*(data.lines[row] for row in own), *(line for _, line in data.more)]
    truth = [*data.truth[own].tolist(), *(label for label, _ in data.more)]
    return learn(
        lines,
        np.array(truth, np.int64),
        len(data.names),
        data.names.index(settings.everywhere),
    )


def _close(data: _Data, train: Ints, settings: CorrectorTraining) -> CloseLanguages:
    """Words of close languages, from all texts of the fold and from lists."""
    groups = [[data.names.index(name) for name in group] for group in settings.close.groups]
    lines: dict[tuple[int, str], list[str]] = {}
    members = [label for group in groups for label in group]
    for row in train[np.isin(data.truth[train], members)].tolist():
        key = (int(data.truth[row]), family(data.examples.groups[row]))
        lines.setdefault(key, []).append(data.lines[row])
    sources: dict[int, list[close.Source]] = {}
    for (label, _), found in sorted(lines.items()):
        sources.setdefault(label, []).append(close.source_of(found))
    for label, words in data.words:
        sources.setdefault(label, []).append(words)
    return close.learn(groups, sources, settings.close)


def _lists(
    paths: Sequence[Path | str], labels: dict[str, int], settings: CorrectorTraining
) -> list[tuple[int, close.Source]]:
    """Lists of words in close languages."""
    wanted = {name for group in settings.close.groups for name in group}
    found = []
    for path in paths:
        for place, row in rows(Path(path)):
            label, counts = row.get(settings.label_column), row.get("words")
            if not isinstance(counts, dict):
                raise InputError(f"{place}: no object 'words'")
            if label in wanted:
                words = letters_only(list(counts)).to_pylist()
                numbers = np.array(list(counts.values()), np.float64)
                found.append((labels[label], close.source_of(words, numbers)))
    return found


def _sure(
    pages: Sequence[Path | str], base: FastText, settings: CorrectorTraining
) -> list[tuple[int, str]]:
    """Windows of pages of whose language the first model is sure, a limited number of each."""
    texts = [
        row[settings.text_column]
        for page in pages
        for _, row in rows(Path(page))
        if isinstance(row.get(settings.text_column), str)
    ]
    windows = cut(texts, 3, settings.characters // 3).texts
    first = base.probabilities(windows)
    found: list[tuple[int, str]] = []
    counts = np.zeros(len(base.labels), np.int64)
    for scores, line in zip(first, letters_only(windows).to_pylist(), strict=True):
        label = int(scores.argmax())
        sure = scores[label] > settings.page_score and len(line) >= settings.slice_max
        if sure and counts[label] < settings.pages_per_language:
            counts[label] += 1
            found.append((label, line))
    return found


def _in_order(model: FastText, names: tuple[str, ...]) -> FastText:
    """Return the same model with its labels in the order of `names`; those it lacks are never
    given."""
    file = model.file
    outputs = np.zeros((len(names), file.outputs.shape[1]), np.float32)
    for label, row in zip(file.labels, file.outputs, strict=True):
        outputs[names.index(label)] = row
    counts = np.ones(len(names), np.int64)
    return prepare(replace(file, labels=names, counts=counts, outputs=outputs))


def _given(
    base: FastText, data: _Data, taken: Sequence[tuple[int, int]], settings: CorrectorTraining
) -> Floats:
    """Return how the first model answers texts of each label, smoothed by its answers to all."""
    texts = [data.texts[row] for row, _ in taken]
    sizes = np.random.default_rng(settings.seed).choice(settings.given_characters, len(texts))
    truth = data.truth[[row for row, _ in taken]]
    answers = base.probabilities([t[:n] for t, n in zip(texts, sizes.tolist(), strict=True)])
    sums = np.zeros((len(data.names), answers.shape[1]))
    np.add.at(sums, truth, answers)
    counts = np.bincount(truth, minlength=len(data.names))[:, None]
    prior = answers.mean(0)
    return np.asarray((sums + settings.smoothing * prior) / (counts + settings.smoothing))
