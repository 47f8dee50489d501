"""Settings of decontamination.

Fields of evaluation sets' rows, and mappings of well-known sets with licence and source.
"""

from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from curation.config import Settings, built_in_settings, nearest, read_values
from curation.errors import ConfigError
from curation.models import ModelFile
from curation.resources import NamedFile, NamedPath, root


class Fields(Settings):
    """Which fields of a row are the parts of an item."""

    question: tuple[str, ...] = Field(min_length=1, description="the first that is not empty")
    also: tuple[str, ...] = Field(
        default=(), description="fields that belong to the question, in order"
    )
    choices: tuple[str, ...] = Field(
        default=(), description="one field with a list, or a field each"
    )
    answer: tuple[str, ...] = Field(
        default=(), description="a text, a choice's letter or its position"
    )
    labels: tuple[str, ...] = Field(
        default=(), description="a list with the names by which the answer calls the choices"
    )
    first: int = Field(default=0, ge=0, le=1, description="position of the first choice: 0 or 1")
    passage: tuple[str, ...] = Field(default=(), description="the text that the question is about")
    id: tuple[str, ...] = Field(default=(), description="default: the row's number")


#: Names that many sets use, for those without a mapping.
COMMON = Fields(
    question=(
        *("question", "Question", "query", "prompt", "problem", "instruction", "input", "goal"),
        *("sentence", "ctx", "premise", "text", "content"),
    ),
    choices=("choices.text", "choices", "options", "endings", "mc1_targets.choices"),
    labels=("choices.label",),
    answer=(
        *("answer", "answers.text", "answers", "Answer", "answerKey", "target", "label", "gold"),
        *("output", "solution", "canonical_solution", "completion"),
    ),
    passage=("context", "passage", "story", "article", "background"),
    id=("id", "question_id", "task_id", "idx", "eval_instance_index", "ind"),
)


class Mapping(NamedTuple):
    """The mapping and metadata of an evaluation set."""

    title: str
    source: str  # where its publishers provide it
    licence: str
    fields: Fields
    splits: tuple[str, ...] = ()
    own: tuple[str, ...] = ()  # parts written for the set; empty: what the stage's `parts` says
    note: str = ""


def mapping_names() -> list[str]:
    """Return the names of all mappings, sorted."""
    return sorted(path.stem for path in (root() / "configs" / "evals").glob("*.yaml"))


def load_mapping(name: str) -> Mapping:
    """Return a mapping by name. Raises ConfigError with the nearest name."""
    if name not in mapping_names():
        raise ConfigError(f"no mapping {name!r} in configs/evals{nearest(name, mapping_names())}")
    return read_values(f"builtin:configs/evals/{name}.yaml", Mapping)


Action = Literal["remove", "cut", "mark"]
Part = Literal["question", "choices", "answer", "passage"]


class EvalSettings(Settings):
    """One evaluation set."""

    files: tuple[NamedPath, ...] = Field(min_length=1, description="paths or URLs")
    mapping: str | None = Field(None, description="a mapping of configs/evals by name")
    fields: Fields | None = Field(None, description="a custom mapping, in its place")
    action: Action | None = Field(None, description="null: that of the stage")
    threshold: float | None = Field(None, gt=0, le=1, description="null: that of the stage")

    @model_validator(mode="before")
    @classmethod
    def _files_alone(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"files": [value]}
        return {"files": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_mapping(self) -> Self:
        if self.mapping and self.fields:
            raise ValueError("name a mapping or fields, not both")
        return self


class ShortRules(NamedTuple):
    """A short item that is neither exact nor near its answer."""

    score: float  # share of its weight: about one edit
    bits: int  # information that a match has in ordinary text
    stretch: float  # length of the span, in those of the item
    in_runs: float  # of a longer span, share in equal n-grams
    long_answer: int  # tokens from which most of an answer is enough


class QuotationRules(NamedTuple):
    """A passage or a statement with the words of a question."""

    passage: float  # share of the span's n-grams in the passage
    asking: int  # first tokens, where a question asks
    choices: float  # share of a question that is not there


class CodeRules(NamedTuple):
    """A function that has nearly the words of another."""

    edited: float  # share of tokens that edits turn into others
    restyled: float  # share of words set in another case


class TemplateRules(NamedTuple):
    """Another item of the same template."""

    renumbered: float  # share of an item's numbers in whose places are others
    unlikely: float  # probability that edits alone gather so
    alike: int  # rivals that fit the place about as well
    less: float  # how much lower their score may be
    unique: float  # score from which they do not matter


class SourceRules(NamedTuple):
    """A sentence that a question asks about."""

    unlikely: float  # probability that edits alone gather so
    whole: float  # score from which a missing piece says nothing
    light: float  # weight of a template's piece, in the item's mean
    at_end: int  # words of a piece at an end
    inside: int  # words of another piece


class Rules(NamedTuple):
    """Limits of the rules that tell an item from other texts with its words."""

    numbers: float  # share of an item's numbers in the span
    short_words: int  # below, an exact match or the answer is needed
    answer_words: int  # how far from the span the answer may be
    least_bits: int  # information that a match has in ordinary text
    short: ShortRules
    quotation: QuotationRules
    code: CodeRules
    template: TemplateRules
    source: SourceRules


class DecontaminationSettings(Settings):
    """Which items to look for, when they count as found, and what to do with the document."""

    evals: dict[str, EvalSettings] = Field(description="evaluation sets by name")
    action: Action = Field(description="remove the document, cut the span, or only mark it")
    parts: tuple[Part, ...] = Field(
        min_length=1,
        description="parts of an item whose hits act, besides those that a mapping calls the set's "
        "`own`; the others are marked",
    )
    threshold: float = Field(gt=0, le=1, description="share of an item's weight")
    touched: float = Field(gt=0, le=1, description="share from which an item counts as touched")
    rules: NamedFile = Field(description="limits by which a match is another text")
    background: ModelFile = Field(description="counts of ordinary texts")

    def parts_of(self, name: str) -> tuple[str, ...]:
        """Return the parts of a set's items whose hits act."""
        mapping = self.evals[name].mapping
        return (*self.parts, *(load_mapping(mapping).own if mapping else ()))

    @field_validator("evals", mode="before")
    @classmethod
    def _named_by_their_files(cls, value: Any) -> Any:
        """A list of files: each is a set, named like the file."""
        if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
            return value
        names = [PurePosixPath(path).name.partition(".")[0] for path in value]
        return {
            name: [path for path, other in zip(value, names, strict=True) if other == name]
            for name in names
        }


def default_settings() -> DecontaminationSettings:
    """Return the settings of configs/defaults/decontaminate.yaml."""
    return built_in_settings(DecontaminationSettings, "defaults/decontaminate")
