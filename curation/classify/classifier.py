"""Score documents: quality, domain, topic and format from one pass over the text.

Quality may come from any fastText classifier (DCLM's)."""

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, large_strings
from curation.classify.classify_settings import (
    ClassifySettings,
    FastTextQuality,
    FormatEvidence,
    PageEvidence,
    default_settings,
)
from curation.classify.features import measure
from curation.classify.linear import LinearModel, load, sigmoid, softmax
from curation.columns import BY_CONTENT, PROSE_PATH, document_paths
from curation.config import nearest
from curation.errors import ConfigError
from curation.kernels import kept
from curation.language.fasttext import FastText, load_fasttext
from curation.language.identifier import with_language
from curation.language.language_settings import default_settings as language_defaults
from curation.language.windows import cut
from curation.models import ModelFile, locate
from curation.schema import conformed
from curation.tables import as_given, known, texts_of
from curation.text.plain import plain
from curation.text.structure import structure


def _word_scores(texts: Texts, settings: FastTextQuality) -> npt.NDArray[np.float64]:
    """Probability of the label for every text: [texts]; 0 for a text without letters."""
    model = _load_words(settings)
    windows = cut(texts, 1, settings.characters)
    found = np.zeros(len(windows.firsts) - 1)
    column = model.labels.index(settings.label)
    found[np.flatnonzero(np.diff(windows.firsts))] = model.probabilities(windows.texts)[:, column]
    return np.minimum(found, 1.0)


@functools.cache
def _load_words(settings: FastTextQuality) -> FastText:
    """Load the model, once per process. Raises ConfigError when it is none or lacks the label."""
    path, _ = locate(settings.model)
    model = load_fasttext(path, settings.model.path)
    if settings.label not in model.labels:
        known = ", ".join(model.labels[:5])
        raise ConfigError(f"{settings.model.path}: no label {settings.label!r}; it has {known}")
    return model


GENERAL, MULTILINGUAL = "general", "multilingual"

#: Scores are rounded, so that bytes of outputs do not depend on the last bits of a sum.
DECIMALS = 4


@dataclass(frozen=True)
class ClassifyResult:
    """Scores of a batch; all have one entry per document."""

    quality: pa.Array  # float32: probability of a high grade
    domain: pa.Array  # string
    topic: pa.Array  # string
    topic_score: pa.Array  # float32: probability of the topic
    format: pa.Array  # string
    format_score: pa.Array  # float32: probability of the format
    views: dict[str, pa.Array]  # float32 by name: probability of a high grade in another view
    #: [documents]: neither code nor formulas from end to end; also true where quality removes none
    prose: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.quality)


@dataclass(frozen=True)
class Classifier:
    """Scores documents; cheap to make, as models are loaded once per process."""

    settings: ClassifySettings

    def apply(
        self,
        texts: Texts,
        languages: pa.Array | None = None,
        of_pages: Mapping[str, pa.Array] | None = None,
    ) -> ClassifyResult:
        """Score every text.

        `languages` (string) decides which part of the quality model judges, and what is
        multilingual; without it, or where it is null, the part for the model's own languages
        does, and a document is general, mathematics or code by content alone. `of_pages` has the
        columns of `PageEvidence` (float), null where a text's page isn't known. Raises ConfigError
        when a model is absent, wrong, or of another kind.
        """
        models = self._linear_models()
        quality_model, domain_model, topic_model, format_model = models
        views = {name: _load(file, "quality") for name, file in self.settings.views.items()}
        read = plain(texts)
        sizes = {model.max_bytes for model in (*models, *views.values())}
        measured = {size: measure(read, size) for size in sizes}
        foreign = quality_model.of_others(languages, len(texts))
        graded = quality_model.graded(measured[quality_model.max_bytes], languages)
        evidence = self.settings.weights
        formats = softmax(format_model.outputs(measured[format_model.max_bytes]))
        of_formats = format_log_odds(formats, format_model.labels, evidence.format)
        of_formats[foreign] = 0
        of_page = page_log_odds(of_pages or {}, evidence.page)
        quality = sigmoid(graded[:, 1] + of_page + of_formats)
        if self.settings.fasttext is not None:
            quality = _word_scores(texts, self.settings.fasttext)
        domains = softmax(domain_model.outputs(measured[domain_model.max_bytes]))
        topics = softmax(topic_model.outputs(measured[topic_model.max_bytes]))
        topic, topic_score = _best(topics, topic_model.labels)
        form, form_score = _best(formats, format_model.labels)
        return ClassifyResult(
            quality=_float32(quality),
            prose=self._prose(read, _float32(quality)),
            domain=decide_domains(domains, domain_model.labels, languages, self.settings),
            topic=topic,
            topic_score=topic_score,
            format=form,
            format_score=form_score,
            views={
                name: _float32(sigmoid(model.graded(measured[model.max_bytes], languages)[:, 1]))
                for name, model in views.items()
            },
        )

    def apply_to(self, batch: pa.RecordBatch) -> ClassifyResult:
        """Score documents by `text`, and by `language` and what their pages say if they have it."""
        columns = {name: batch.column(name) for name in batch.schema.names}
        return self.apply(columns["text"], columns.get("language"), columns)

    def load(self) -> None:
        """Load the models now. Raises ConfigError when one is absent, or not what it should be."""
        settings = self.settings
        self._linear_models()
        for file in settings.views.values():
            _load(file, "quality")
        _ = settings.weights
        if settings.fasttext is not None:
            _load_words(settings.fasttext)

    def labels(self, kind: Literal["topic", "format"]) -> tuple[str, ...]:
        """Return every topic, or format, that the model knows."""
        return _load(getattr(self.settings, kind), "classes").labels

    def _linear_models(self) -> tuple[LinearModel, LinearModel, LinearModel, LinearModel]:
        """Of quality, domain, topic and format."""
        settings = self.settings
        classes = (settings.domain, settings.topic, settings.format)
        domain, topic, form = (_load(file, "classes") for file in classes)
        return _load(settings.quality, "quality"), domain, topic, form

    def _prose(self, texts: Texts, quality: pa.Array) -> npt.NDArray[np.bool_]:
        prose = np.ones(len(texts), bool)
        if self.settings.paths:
            most = np.float32(max(self.settings.min_quality.values(), default=0))
            rows = np.flatnonzero(quality.to_numpy() < most)
            some = large_strings(texts).take(pa.array(rows))
            prose[rows] = document_paths(structure(some)) == PROSE_PATH
        return prose


def quality_of(
    texts: Texts, model: ModelFile, languages: pa.Array | None
) -> npt.NDArray[np.float64]:
    """Return the quality of every text by one model: float64 [texts].

    As `Classifier` gives it where it knows nothing of pages.
    """
    held = _load(model, "quality")
    graded = held.graded(measure(texts, held.max_bytes), languages)
    return sigmoid(graded[:, 1]).round(DECIMALS)


def page_log_odds(
    of_pages: Mapping[str, pa.Array], evidence: PageEvidence | None
) -> float | npt.NDArray[np.float64]:
    """Return what the columns of pages add to the log odds of quality: [documents], or 0.

    It is 0 for documents without one of the columns.
    """
    if evidence is None or not all(name in of_pages for name in evidence.columns()):
        return 0.0
    added: float | npt.NDArray[np.float64] = evidence.offset
    for name in evidence.columns():
        column = pc.cast(of_pages[name], pa.float64()).to_numpy(zero_copy_only=False)
        added = added + getattr(evidence, name) * np.clip(column, 0, 1)
    return np.nan_to_num(added)


def format_log_odds(
    probabilities: npt.NDArray[np.float64],
    labels: tuple[str, ...],
    evidence: FormatEvidence | None,
) -> npt.NDArray[np.float64]:
    """Return what probabilities of formats [texts, labels] add to the log odds of quality: [texts].

    It is 0 where the model of formats has none of those that the evidence weighs.
    """
    if evidence is None or not set(labels) & set(evidence.weights):
        return np.zeros(len(probabilities))
    weights = np.array([evidence.weights.get(label, 0.0) for label in labels])
    # by rows, so that the last bits don't depend on the batch
    return evidence.offset + (probabilities * weights).sum(1)


def decide_domains(
    probabilities: npt.NDArray[np.float64],
    labels: tuple[str, ...],
    languages: pa.Array | None,
    settings: ClassifySettings,
) -> pa.Array:
    """Domain (string) of every document, from probabilities [documents, labels] and language."""
    rows = len(probabilities)
    domain = np.full(rows, GENERAL, object)
    if languages is not None:
        encoded = languages.cast(pa.string()).dictionary_encode()
        other = [n not in settings.multilingual_excludes for n in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(other)).to_numpy(zero_copy_only=False)
        domain[np.array([*other, False])[codes]] = MULTILINGUAL
    best = np.zeros(rows)
    for name in BY_CONTENT:
        floor = settings.domain_at_least.get(name)  # type: ignore[call-overload]
        if floor is None or name not in labels:
            continue
        score = probabilities[:, labels.index(name)].round(DECIMALS)
        taken = (score >= floor) & (score > best)
        domain[taken] = name
        best[taken] = score[taken]
    return pa.array(domain, pa.string())


def _best(
    probabilities: npt.NDArray[np.float64], labels: tuple[str, ...]
) -> tuple[pa.Array, pa.Array]:
    """Return the most probable label (string) of every text, and its probability (float32)."""
    best = probabilities.argmax(1)
    return (
        pa.array(np.array(labels, object)[best], pa.string()),
        _float32(probabilities[np.arange(len(best)), best]),
    )


def check_labels(kind: str, names: Iterable[str], known: Collection[str], key: str) -> None:
    """Raise ConfigError, naming the recipe's key, for a topic or format that no model knows."""
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{key}: the model has no {kind} {name!r}{nearest(name, known)} "
                f"(it has: {', '.join(sorted(known))})"
            )


def _float32(values: npt.NDArray[np.float64]) -> pa.Array:
    return pa.array(values.round(DECIMALS), pa.float32())


@functools.cache
def _load(file: ModelFile, kind: str) -> LinearModel:
    path, _ = locate(file)
    model = kept(load)(path, file.path)
    if model.kind != kind:
        raise ConfigError(f"{file.path}: a model of kind {model.kind!r} where {kind!r} is needed")
    return model


def score(texts: Any, settings: ClassifySettings | None = None) -> Any:
    """Return a table with one row per text: `quality`, `domain`, `topic` and `format`.

    `quality` is float32, the probability of a high grade; the others are strings. Arrow comes
    back, or pandas or polars where that went in.

    Args:
        texts: strings, or a table with a column `text` or `content`. The language, which decides
            what is multilingual, is the column `language`, and identified where there is none.
        settings: default: those of configs/defaults/classify.yaml.

    Raises ConfigError when a model is absent, InputError for a table without texts.
    """
    given = as_given(texts)
    columns = {"text": texts_of(given.table).fill_null("")}
    for name in ("language", *PageEvidence.columns()):
        if (column := known(given.table, name)) is not None:
            columns[name] = column
    batch = conformed(pa.RecordBatch.from_pydict(columns))
    batch = with_language(batch, language_defaults())
    found = Classifier(settings or default_settings()).apply_to(batch)
    names = ("quality", "domain", "topic", "format")
    return given.result({name: getattr(found, name) for name in names})
