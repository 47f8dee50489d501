"""Train fastText models of languages.

The method is that of lid.176: a linear classifier over hashed character n-grams (Joulin et al.,
Bag of Tricks for Efficient Text Classification, 2016). Threads of fastText race for the weights
without locks, which is never reproducible and may end in NaN, so one thread trains.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import fasttext
import numpy as np
import numpy.typing as npt

from curation.errors import ConfigError, InputError
from curation.language.fasttext import FastText, load_fasttext
from curation.language.fasttext_file import PREFIX
from curation.language.windows import cut
from models.training.heldout import class_metrics, folds_of
from models.training.inputs import read_labelled
from models.training.report import About, Report, write_card
from models.training.settings import FastTextTraining, LanguageTraining, default_settings

Ints = npt.NDArray[np.int64]


def train_language(
    inputs: Sequence[Path | str],
    output: Path | str,
    about: About,
    settings: LanguageTraining | None = None,
) -> Report:
    """Train a language model on texts with labels and write `language.bin` and `card.yaml`.

    Labels become the codes that identification gives. Metrics are of predictions for texts whose
    group the model had not seen, by cross-validation. Same examples and settings, same bytes.
    Raises InputError when a label has white space or there is only one, ConfigError when the
    settings make training diverge.
    """
    settings = settings or default_settings("language", LanguageTraining)
    examples = read_labelled(settings, inputs)
    labels = [str(v) for v in examples.labels]
    names = tuple(sorted(set(labels)))
    _check(names)
    windows = cut(examples.texts, 1, settings.characters)
    spoken = np.flatnonzero(np.diff(windows.firsts))  # texts with letters, whose windows these are
    lines = [t.replace(PREFIX, "") for t in windows.texts.to_pylist()]  # else read as a label
    truth = np.array([names.index(labels[i]) for i in spoken], np.int64)
    examples, read = examples.select(spoken.tolist()), len(examples)

    found = np.zeros(len(lines), np.int64)
    scores = np.zeros(len(lines))
    path = Path(output) / "language.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for train, test in folds_of(examples.groups, settings, truth):
            model = fit_lines(lines, truth, train, names, settings, Path(folder) / path.name)
            found[test], scores[test] = _predict(model, [lines[i] for i in test], names)
    fit_lines(lines, truth, np.arange(len(lines)), names, settings, path)
    metrics = {
        "without_letters": read - len(examples),
        **class_metrics(truth, found, scores, examples, names, settings),
    }
    return write_card(path, "language", about, examples.files, settings, metrics)


def _check(names: tuple[str, ...]) -> None:
    if len(names) < 2:
        raise InputError(f"all examples have the same label, {names[0]!r}")
    for name in names:
        if not name or name.split() != [name]:
            raise InputError(f"label {name!r}: it can't be empty or hold white space")


def fit_lines(
    lines: list[str],
    truth: Ints,
    rows: Ints,
    names: tuple[str, ...],
    settings: FastTextTraining,
    path: Path,
) -> FastText:
    """Train on some lines, write the model to `path`, and return it as read from there."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        # fastText reads in this order: one language after the other would be unlearnt again
        for row in np.random.default_rng(settings.seed).permutation(rows):
            file.write(f"{PREFIX}{names[truth[row]]} {lines[row]}\n")
        file.flush()
        try:
            model = fasttext.train_supervised(
                file.name,
                dim=settings.dim,
                epoch=settings.epochs,
                lr=settings.learning_rate,
                loss=settings.loss,
                minn=settings.min_n,
                maxn=settings.max_n,
                wordNgrams=settings.word_ngrams,
                minCount=settings.min_count,
                bucket=settings.buckets,
                seed=settings.seed,
                thread=1,
                verbose=0,
            )
        except (RuntimeError, ValueError) as error:  # the trainer notices NaN in its loss
            raise ConfigError(f"training failed: {error} (learning_rate: a lower one?)") from None
    if not np.isfinite(model.get_output_matrix()).all():
        raise ConfigError("training ended in NaN; learning_rate must be lower")
    model.save_model(str(path))
    return load_fasttext(path, path.name)


def _predict(
    model: FastText, lines: list[str], names: tuple[str, ...]
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Best label of every line, as an index into `names`, and its probability."""
    probabilities = model.probabilities(lines)
    best = probabilities.argmax(1)
    of_model = np.array([names.index(label) for label in model.labels], np.int64)
    return of_model[best], probabilities[np.arange(len(best)), best].astype(np.float64)
