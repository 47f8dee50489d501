"""Train a corrector of a language model: a second model and how the two are weighed.

See `curation.language.corrector`. Examples whose label the first model does not have teach what a
foreign language looks like; half of these languages are held out whole, so that the metrics speak
of languages that the corrector has never seen as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import xxhash
from scipy.sparse.csgraph import connected_components

from curation.errors import ConfigError, InputError
from curation.language.corrector import OTHER, Corrector
from curation.language.familiar import Familiarity
from curation.language.fasttext import FastText, load_fasttext
from curation.language.windows import cut, letters_only
from curation.models import ModelFile, locate
from curation.train.familiar import learn
from curation.train.heldout import class_metrics, folds_of
from curation.train.inputs import Examples, read_examples, rows
from curation.train.language import fit_lines
from curation.train.metrics import accuracy, macro_f1
from curation.train.report import About, Report, write_card
from curation.train.settings import CorrectorTraining, default_settings

FILE = "corrector.npz"

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SHINGLE = 40  # characters that near-duplicates share
_SAMPLE = 4  # one shingle in so many is looked at


def train_corrector(
    inputs: Sequence[Path | str],
    output: Path | str,
    about: About,
    settings: CorrectorTraining | None = None,
    pages: Sequence[Path | str] = (),
) -> Report:
    """Train on texts with labels and write `corrector.npz` and `card.yaml`.

    Labels that the first model does not have count as another language. `pages` are texts without
    labels (of the web, say) from which the second model learns what the first is sure of. Metrics
    are of predictions for texts of which no near-duplicate had been seen.
    Same examples and settings, same bytes. Raises InputError when no example has one of the first
    model's labels, or all have.
    """
    settings = settings or default_settings("corrector", CorrectorTraining)
    path, _ = locate(ModelFile(path=settings.base, sha256=None))
    base = load_fasttext(path, settings.base)
    names = (*base.labels, OTHER)
    for name in (*settings.favoured, settings.everywhere):
        if name not in base.labels:
            raise ConfigError(f"{settings.base} has no language {name!r} (favoured, everywhere)")
    data = _Data.read(inputs, pages, base, settings)
    if len(set(data.truth.tolist())) < 2 or OTHER not in {names[i] for i in data.truth}:
        raise InputError(f"examples are needed in languages of {settings.base} and in others")

    whole = _corrector(base, data, np.arange(len(data)), settings)
    target = Path(output) / FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    whole.save(target)

    probabilities = np.zeros((len(data), len(names)))
    for train, test in folds_of(data.examples.groups, settings, data.truth):
        corrector = _corrector(base, data, train, settings)
        second = corrector.model.probabilities([data.lines[i] for i in test])
        lines = [data.lines[i] for i in test]
        probabilities[test] = corrector.combine(
            data.first[test], second.astype(np.float64), lines, np.arange(len(test) + 1)
        )
    found = probabilities.argmax(1)
    metrics = class_metrics(data.truth, found, probabilities.max(1), data.examples, names, settings)
    metrics |= _as_stage(data, probabilities, names, settings)
    return write_card(
        target, "corrector", about, data.examples.files, settings.model_dump(mode="json"), metrics
    )


def _as_stage(
    data: _Data, probabilities: Floats, names: tuple[str, ...], settings: CorrectorTraining
) -> dict[str, Any]:
    """Shares that a threshold of 1/2 accepts, of the first model alone and of both together."""
    foreign = data.truth == len(names) - 1
    large = np.isin(data.truth, [names.index(n) for n in settings.favoured])
    table: dict[str, Any] = {}
    for title, scores in (("first_model", data.first), ("corrected", probabilities)):
        best = scores.argmax(1)
        accepted = (scores.max(1) >= 0.5) & (best < len(names) - 1)
        truth, guess = data.truth[~foreign], best[~foreign]
        table[title] = {
            "macro_f1": round(macro_f1(truth, guess), 4),
            "accuracy": round(accuracy(truth, guess), 4),
            "accuracy_favoured": round(accuracy(data.truth[large], best[large]), 4),
            "accepted": round(float(accepted[~foreign].mean()), 4),
            "other_accepted": round(float(accepted[foreign].mean()), 4),
            "other_seen_accepted": round(float(accepted[foreign & ~data.unseen].mean()), 4),
            "other_unseen_accepted": round(float(accepted[foreign & data.unseen].mean()), 4),
        }
    return {"at_threshold_0.5": table}


def _corrector(base: FastText, data: _Data, train: Ints, settings: CorrectorTraining) -> Corrector:
    names = (*base.labels, OTHER)
    offsets = np.zeros(len(names))
    offsets[[names.index(n) for n in settings.favoured]] = settings.favour
    offsets[-1] = settings.other_offset
    with tempfile.TemporaryDirectory() as folder:
        second = _fit(data, train, names, settings, Path(folder) / "second.bin")
    return Corrector(
        model=_in_order(second, names),
        familiar=_familiar(data, train, base.labels, settings.everywhere),
        given=_given(data, train, settings),
        first_weight=settings.first_weight,
        second_weight=settings.second_weight,
        offsets=offsets,
        strange_from=settings.strange_from,
        strange_weight=settings.strange_weight,
        floor=settings.floor,
        settled=settings.slice_min,
    )


def _familiar(data: _Data, train: Ints, labels: tuple[str, ...], everywhere: str) -> Familiarity:
    """Runs of letters of the first model's languages, from examples and sure pages."""
    own = train[data.truth[train] < len(labels)]
    lines = [*(data.lines[i] for i in own), *(line for _, line in data.more)]
    truth = [*data.truth[own].tolist(), *(label for label, _ in data.more)]
    return learn(lines, np.array(truth, np.int64), len(labels), labels.index(everywhere))


class _Data:
    """Training texts with what the first model says of them."""

    def __init__(
        self,
        examples: Examples,
        truth: Ints,
        unseen: npt.NDArray[np.bool_],
        lines: list[str],
        first: Floats,
        more: list[Any],
    ) -> None:
        self.examples, self.truth, self.lines, self.first = examples, truth, lines, first
        self.unseen = unseen  # texts whose language stands in one fold alone
        self.more = more  # (label, line) of pages without labels

    def __len__(self) -> int:
        return len(self.lines)

    @classmethod
    def read(
        cls,
        inputs: Sequence[Path | str],
        pages: Sequence[Path | str],
        base: FastText,
        settings: CorrectorTraining,
    ) -> _Data:
        examples = read_examples(
            inputs, settings.text_column, settings.label_column, settings.group_columns
        )
        windows = cut(examples.texts, 1, settings.characters)
        spoken = np.flatnonzero(np.diff(windows.firsts))
        examples = examples.select(spoken.tolist())
        index = {name: i for i, name in enumerate(base.labels)}
        other = len(base.labels)
        truth = np.array([index.get(str(v), other) for v in examples.labels], np.int64)
        near = _near_duplicates(windows.texts.to_pylist())
        # of every second foreign language all texts stand in one fold: it is judged unseen
        foreign = sorted(
            {str(v) for v, t in zip(examples.labels, truth, strict=True) if t == other}
        )
        alone = set(foreign[::2])
        unseen = np.array([str(v) in alone for v in examples.labels], bool)
        groups = [
            str(v) if apart else f"near-duplicates {g}"
            for v, apart, g in zip(examples.labels, unseen, near, strict=True)
        ]
        return cls(
            replace(examples, groups=groups),
            truth,
            unseen,
            letters_only(windows.texts).to_pylist(),
            base.probabilities(windows.texts).astype(np.float64),
            _sure(pages, base, settings),
        )


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


def _near_duplicates(lines: list[str]) -> Ints:
    """Number of the group of each line; lines that share a shingle are of one group."""
    lines_of: list[int] = []
    keys: list[int] = []
    for number, line in enumerate(lines):
        letters = "".join(c for c in line.lower() if c.isalnum())
        for i in range(max(1, len(letters) - _SHINGLE + 1)):
            key = xxhash.xxh64_intdigest(letters[i : i + _SHINGLE].encode())
            if key % _SAMPLE == 0:
                lines_of.append(number)
                keys.append(key)
    _, codes = np.unique(np.array(keys, np.uint64), return_inverse=True)
    size = len(lines) + (int(codes.max()) + 1 if len(codes) else 0)
    graph = sp.csr_matrix((np.ones(len(codes)), (lines_of, len(lines) + codes)), (size, size))
    _, group = connected_components(graph, directed=False)
    return np.asarray(group[: len(lines)], np.int64)


def _fit(
    data: _Data, train: Ints, names: tuple[str, ...], settings: CorrectorTraining, path: Path
) -> FastText:
    """The second model: each line whole and one slice of it, so that short texts count too."""
    lines = [data.lines[i] for i in train]
    truth = data.truth[train].tolist()
    for i in train:
        line = data.lines[i]
        random = np.random.default_rng((settings.seed, int(i)))
        size = int(random.integers(settings.slice_min, settings.slice_max))
        if len(line) > size + settings.slice_min // 2:
            begin = int(random.integers(0, len(line) - size))
            lines.append(line[begin : begin + size])
            truth.append(int(data.truth[i]))
    for label, line in data.more:
        lines.append(line)
        truth.append(label)
    return fit_lines(lines, np.array(truth), np.arange(len(lines)), names, settings, path)


def _in_order(model: FastText, names: tuple[str, ...]) -> FastText:
    """The same model with its labels in the order of `names`; those it lacks are never given."""
    file = model.file
    outputs = np.zeros((len(names), file.outputs.shape[1]), np.float32)
    for label, row in zip(file.labels, file.outputs, strict=True):
        outputs[names.index(label)] = row
    return replace(model, file=replace(file, labels=names, outputs=outputs))


def _given(data: _Data, train: Ints, settings: CorrectorTraining) -> Floats:
    """How the first model answers texts of each label, smoothed by its answers to all."""
    labels = data.first.shape[1]
    sums = np.zeros((labels + 1, labels))
    np.add.at(sums, data.truth[train], data.first[train])
    counts = np.bincount(data.truth[train], minlength=labels + 1)[:, None]
    prior = data.first[train].mean(0)
    return np.asarray((sums + settings.smoothing * prior) / (counts + settings.smoothing))
