"""The extractor's model: class names, words and boosted trees, learned from labelled pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from curation.extract.features import Lexicons, features
from curation.extract.model import Lexicon, Model
from models.training.extract.boosting import fit
from models.training.extract.lexicons import EMPTY, NO_FOREST, lexicons_of, read_regions, statistics
from models.training.extract.pages import Example, labelled_examples, made_examples, text_examples
from models.training.extract.settings import ExtractTraining
from models.training.extract.skeletons import skeleton_examples


def train(
    data: Path,
    settings: ExtractTraining,
    whole: bool = True,
    cross_fit: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[tuple[int | None, Model]]:
    """Train on the sets of the settings: the model of all pages under None when `whole` is set.

    With `cross_fit` also, for each fold of sites, the model that saw none of them. The lexicons
    that an example is measured with are learned without its fold, or its own label would be in
    its features.
    """
    regions = read_regions(settings.region_list)
    texts = list(text_examples(data, settings))
    say(f"{len(texts)} pages and variants with gold text")
    texts += labelled_examples(data, settings)
    say(f"{len(texts)} with those whose blocks are labelled")
    texts += skeleton_examples(settings)
    say(f"{len(texts)} with those of our own")
    originals = [example for example in texts if not example.is_variant]
    for example in originals:
        example.statistics = statistics(example)
    made = list(made_examples(originals, settings))
    say(f"{len(made)} pages made from them")
    every = texts + made
    by_fold: list[tuple[Lexicon, Lexicon]] = []
    for fold in range(settings.folds):
        others = [e for e in originals if e.fold(settings.folds) != fold]
        by_fold.append(lexicons_of(others, settings))
        tables = Model(*by_fold[-1], regions, NO_FOREST).lexicons
        for example in every:
            if example.fold(settings.folds) == fold:
                example.measured = _measured(example, tables)
    say(f"{len(by_fold[0][0].keys)} class names, {len(by_fold[0][1].keys)} words")
    if whole:
        say("fitting on all pages")
        yield None, Model(*lexicons_of(originals, settings), regions, fit(every, settings))
    if cross_fit:
        for fold in range(settings.folds):
            say(f"fitting without fold {fold}")
            others = [e for e in every if e.fold(settings.folds) != fold]
            yield fold, Model(*by_fold[fold], regions, fit(others, settings))


def _measured(example: Example, tables: Lexicons) -> npt.NDArray[np.float32]:
    if example.wordless:
        empty = Model(EMPTY, EMPTY, EMPTY, NO_FOREST).lexicons
        tables = tables._replace(words=empty.words)
    return features(example.source, example.page, tables)


def model_name(fold: int | None, all_sets: bool) -> str:
    """File of a model: of all pages (None), or of those outside a fold."""
    if fold is None:
        return "blocks.npz"
    return f"all-sets-fold{fold}.npz" if all_sets else f"blocks-fold{fold}.npz"
