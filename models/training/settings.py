"""Settings of training; defaults with their sources in configs/train/."""

from __future__ import annotations

import functools
from typing import Literal, TypeVar

from pydantic import Field

from curation.config import Natural, Positive, Settings, Share, built_in_settings

Task = Literal["quality", "target", "domain", "topic", "format", "language", "corrector"]


class LabelledTraining(Settings):
    """Where the examples have text, label and group."""

    text_column: str = Field(min_length=1)
    label_column: str = Field(min_length=1)
    group_columns: tuple[str, ...] = Field(
        description="the first of these that an example has says what belongs together and never "
        "is on both sides of a split: a source, or of a `url` its host; an example with none "
        "is a group of its own"
    )
    seed: Natural


class TrainingSettings(LabelledTraining):
    """Trainings that are judged by cross-validation, with intervals."""

    folds: int = Field(ge=2, description="of the cross-validation by group")
    bootstrap: int = Field(ge=100, description="resamplings of groups for a confidence interval")
    confidence: float = Field(gt=0, lt=1, description="coverage of the intervals")
    bins: int = Field(ge=2, description="rows of the calibration table")


class OtherLanguages(Settings):
    """How the second part of a quality model is trained, for languages with few examples."""

    languages: tuple[str, ...] = Field(
        min_length=1, description="those that the first part judges; this one judges all others"
    )
    file_weights: tuple[float, ...] = Field(description="weight of the examples of each file")
    min_documents: Positive = Field(description="as for the first part")
    judged: tuple[int, ...] = Field(
        min_length=1, description="the files, counted from 0, by which this part is calibrated"
    )


class LinearTraining(TrainingSettings):
    """How a linear classifier is trained and judged."""

    max_bytes: int = Field(ge=100, description="how much of each text is read")
    min_documents: Positive = Field(description="buckets in fewer training documents are dropped")
    words_only: bool = Field(
        description="use only words of letters, not pairs of words or signs, weighted by inverse "
        "document frequency to unit length: fewer chance features when classes are many"
    )
    alpha: float = Field(gt=0, description="strength of the ridge penalty; texts have unit length")
    shape_share: float = Field(
        ge=0, description="squared length of the dense features against 1 of the words"
    )
    shape_features: tuple[str, ...] | None = Field(
        description="dense features that are used, by name; null uses all"
    )
    vary_with: tuple[str, ...] = Field(
        (),
        description="dense features that all weights may vary with, by name: every feature counts "
        "once more, times `vary_share` and the deviation of this one",
    )
    vary_share: float = Field(0.0, ge=0, description="how far they may vary")
    file_weights: tuple[float, ...] | None = Field(
        description="weight of the examples of each file, in the order of the files; null: 1"
    )
    judged_files: int | None = Field(
        ge=1,
        description="only the examples of this many first files are judged; of models of classes "
        "the others (written, generated) are in the training part of every split; null: all files",
    )
    balanced: Share = Field(
        description="how far classes are weighted towards equal totals: 0 not at all, 1 fully (the "
        "weight of a class is its size to the power of minus this)"
    )
    scale_classes: float | None = Field(
        ge=0,
        le=1,
        description="models of classes: calibrate with a slope and an offset per class, weighting "
        "classes by this power as `balanced` does, so that rare classes are found as well; null: "
        "one slope for all",
    )
    positive_grade: float | None = Field(
        description="quality: from this label on an example is good; null for models of classes"
    )
    highest_grade: float | None = Field(
        description="quality: the regression reads higher labels as this one, so that it separates "
        "poor pages from good ones rather than good ones from each other; null: all as they are"
    )
    others: OtherLanguages | None = Field(
        None,
        description="quality: a part of its own for other languages; null: one model judges all",
    )


class FastTextTraining(LabelledTraining):
    """How a fastText model is trained. One thread always: more are not reproducible."""

    dim: Positive = Field(description="size of the hidden layer")
    epochs: Positive
    learning_rate: float = Field(gt=0)
    loss: Literal["hs", "softmax", "ova"]
    min_n: Natural = Field(description="shortest character n-gram")
    max_n: Natural = Field(description="longest character n-gram")
    word_ngrams: Positive
    min_count: Positive = Field(description="rarer words are dropped")
    buckets: Positive = Field(description="hashed n-grams")
    characters: int = Field(ge=20, description="of each example, from its beginning")


class LanguageTraining(FastTextTraining, TrainingSettings):
    """How a fastText language model is trained and judged."""


class CloseTraining(Settings):
    """How the words are learned that tell close languages from each other."""

    groups: tuple[tuple[str, ...], ...] = Field(
        description="languages that are taken for each other; one may be in several groups"
    )
    words: Positive = Field(description="words of a group that are kept, those that say most")
    of_source: Positive = Field(description="words as which a source counts at most")
    of_list: Positive = Field(description="and a list of words by frequency")
    prior: float = Field(
        gt=0, description="words of average frequency that every language has in addition"
    )
    smoothing: float = Field(gt=0, description="added to the count of every word")
    large_counts: float = Field(
        gt=0, description="as how many texts one in a favoured language counts in the fit"
    )
    told_apart: Share = Field(
        description="pairs of which so many texts of every length are right without words are not "
        "on the card"
    )
    judged: Positive = Field(description="nor those with fewer held-out texts of either language")


class CorrectorTraining(FastTextTraining):
    """How a corrector of a language model is trained; its second model is a fastText model."""

    base: str = Field(min_length=1, description="the model that is corrected")
    held_out: tuple[tuple[str, ...], ...] = Field(
        min_length=2,
        description="lists of sources; each fold is judged on one list and trained without it. "
        "Sources that are in none are always trained on. A source's name ends at `:` or `/`",
    )
    unseen_every: int = Field(
        ge=2, description="every fold leaves out one in so many of the foreign languages"
    )
    lengths: tuple[int, ...] = Field(
        description="characters to which held-out texts are cut; 0: whole"
    )
    judged_per_source: Positive = Field(description="held-out texts of a language and source")
    per_label: Positive = Field(description="slices of a language, shared equally by its sources")
    per_source: Positive = Field(description="slices that a source gives at least, if it can")
    slice_min: Positive = Field(description="characters of the slices of examples")
    slice_max: int = Field(ge=2)
    whole: Positive = Field(description="characters of examples that are trained on as a whole")
    familiar_letters: Natural = Field(
        description="shorter texts don't say which runs of letters are usual"
    )
    given_characters: tuple[int, ...] = Field(
        description="characters to which texts are cut for the first model's answers"
    )
    page_score: float = Field(gt=0, le=1, description="from which a page's language is believed")
    pages_per_language: Natural
    smoothing: float = Field(gt=0, description="texts as which the answers to all texts count")
    favoured: tuple[str, ...] = Field(description="languages of most pages")
    everywhere: str = Field(
        min_length=1,
        description="language whose runs of letters are known on pages of every language",
    )
    strange_from: float = Field(
        description="deviations from a language's usual share of known runs of letters from which "
        "a text speaks for another language"
    )
    fitted: int = Field(ge=100, description="held-out texts on which the weights are fitted")
    large_share: float = Field(
        gt=0, lt=1, description="as which share of them texts in the favoured languages count"
    )
    unknown_share: float = Field(
        gt=0, lt=1, description="as which languages that no model knows count in the fit"
    )
    floor: float = Field(gt=0, description="added to probabilities before their logarithm")
    close: CloseTraining


Training = TypeVar("Training", LinearTraining, LanguageTraining, CorrectorTraining)


@functools.cache
def default_settings(task: Task, kind: type[Training]) -> Training:
    """Return the settings of configs/train/<task>.yaml."""
    return built_in_settings(kind, f"train/{task}")
