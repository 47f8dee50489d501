"""Settings of classification; defaults with their sources in configs/defaults/classify.yaml."""

import functools
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from curation.columns import DOCUMENT_COLUMNS, LABEL_COLUMNS, ByContent, Domain
from curation.config import Settings, Share, built_in_settings, read_values
from curation.models import ModelFile
from curation.resources import NamedFile
from curation.user_code import CodeSettings, UserCode

ColumnName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
#: What stages add to documents.
_ADDED = ("language_score", "quality", "signals", "path", "tokens", "repeats")


class FastTextQuality(Settings):
    """A supervised fastText model whose probability of one label is the quality."""

    model: ModelFile = Field(description="any supervised one, e.g. DCLM's")
    label: str = Field(min_length=1, description="without its prefix; DCLM's is `hq`")
    characters: int = Field(ge=20, description="read of each document, from its beginning")


class PageEvidence(NamedTuple):
    """A logistic regression's weights of columns that `extract` adds to pages.

    The log odds of quality change by `offset` plus each column times its weight; those of documents
    without one of the columns don't change.
    """

    offset: float
    content_score: float
    link_share: float

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the columns that have a weight."""
        return cls._fields[1:]


class FormatEvidence(NamedTuple):
    """A logistic regression's weights of the probabilities of a document's formats.

    The log odds of quality change by `offset` plus each probability times its weight. A format
    without a weight counts 0, and a model of formats that has none of these changes nothing.
    """

    offset: float
    weights: dict[str, float]


class Evidence(NamedTuple):
    """What else than a text says something of its quality; None: nothing."""

    page: PageEvidence | None = None
    format: FormatEvidence | None = None


class ClassifierCode(UserCode):
    """A function of texts that returns a score or a label for each."""

    group: ClassVar[str] = "curation.classifiers"


class CustomClassifier(CodeSettings):
    """A classifier that adds a column, by which documents can be removed.

    Either code of the user's own, or a view of quality: a model whose probability is the score.
    """

    python: ClassifierCode | None = Field(
        None, description="function of texts that returns a score or a label for each"
    )
    model: ModelFile | None = Field(
        None,
        description="in its place: made by `curate train quality` or `curate train target`",
    )
    gives: Literal["score", "label"] = "score"
    min: float | None = Field(None, description="score below which a document is removed")
    max: float | None = Field(None, description="score above which a document is removed")
    drop: tuple[str, ...] = Field((), description="labels whose documents are removed")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.python is None) == (self.model is None):
            raise ValueError("give either python or model")
        if self.gives == "label" and (self.min is not None or self.max is not None or self.model):
            raise ValueError("model, min and max need `gives: score`; for labels use drop")
        if self.gives == "score" and self.drop:
            raise ValueError("drop needs `gives: label`")
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class ClassifySettings(Settings):
    """Which models score documents, and which scores remove one."""

    quality: ModelFile = Field(description="made by `curate train quality`")
    fasttext: FastTextQuality | None = Field(
        description="a fastText classifier that gives `quality` in place of that model; null: none"
    )
    evidence: NamedFile | None = Field(
        description="weights by which a page's blocks and a document's format change the quality "
        "that the model gives its text; null: they don't. Not for `fasttext`"
    )
    domain: ModelFile = Field(description="made by `curate train domain`")
    topic: ModelFile = Field(description="made by `curate train topic`")
    format: ModelFile = Field(description="made by `curate train format`")
    domain_at_least: dict[ByContent, Share] = Field(
        description="probability from which a document is of that domain by its content, the more "
        "probable of the two where both reach it; a domain not named is never given"
    )
    multilingual_excludes: tuple[str, ...] = Field(
        description="languages that do not count as multilingual. Documents in any other are "
        "multilingual, unless they are mathematics or code by content: these come first"
    )
    min_quality: dict[Domain, Share] = Field(
        description="quality below which a document is removed (quality.low_score), by domain; "
        "domains not named keep everything"
    )
    paths: bool = Field(
        description="documents that are code or formulas from end to end are not judged by "
        "quality, whose model reads prose; false: all are"
    )
    drop_topics: tuple[str, ...] = Field(
        description="topics whose documents are removed (topic.dropped); to take fewer of a topic "
        "rather than none is the mix's work"
    )
    drop_formats: tuple[str, ...] = Field(
        description="formats (kinds of text) whose documents are removed (format.dropped)"
    )

    classifiers: dict[ColumnName, CustomClassifier] = Field(
        description="further classifiers by the name of the column that each adds"
    )

    @model_validator(mode="after")
    def _columns_are_new(self) -> Self:
        for name in self.classifiers:
            if name in (*DOCUMENT_COLUMNS, *LABEL_COLUMNS, *_ADDED):
                raise ValueError(
                    f"classifiers.{name}: documents have a column of this name already"
                )
        return self

    @property
    def weights(self) -> Evidence:
        """The weights of the evidence. Raises ConfigError."""
        return Evidence() if self.evidence is None else read_values(self.evidence, Evidence)

    @property
    def views(self) -> dict[str, ModelFile]:
        """The models among the further classifiers, by column."""
        return {n: own.model for n, own in self.classifiers.items() if own.model is not None}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


@functools.cache
def default_settings() -> ClassifySettings:
    """Return the settings of configs/defaults/classify.yaml."""
    return built_in_settings(ClassifySettings, "defaults/classify")
