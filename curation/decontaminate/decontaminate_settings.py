"""Settings of decontamination."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from curation.config import Natural, Positive, Settings, Share, built_in_settings
from curation.decontaminate.mappings import Fields
from curation.models import ModelFile
from curation.resources import NamedPath

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


class ShortRules(Settings):
    """A short item that is neither exact nor near its answer."""

    score: float = Field(gt=0, le=1, description="share of its weight: about one edit")
    bits: Natural = Field(description="information that a match has in ordinary text")
    stretch: float = Field(ge=1, description="length of the span, in those of the item")
    in_runs: Share = Field(description="of a longer span, share in equal n-grams")
    long_answer: Positive = Field(description="tokens from which most of an answer is enough")


class QuotationRules(Settings):
    """A passage or a statement with the words of a question."""

    passage: Share = Field(description="share of the span's n-grams in the passage")
    asking: Natural = Field(description="first tokens, where a question asks")
    choices: Share = Field(description="share of a question that is not there")


class CodeRules(Settings):
    """A function that has nearly the words of another."""

    edited: Share = Field(description="share of tokens that edits turn into others")
    restyled: Share = Field(description="share of words set in another case")


class TemplateRules(Settings):
    """Another item of the same template."""

    unlikely: Share = Field(description="probability that edits alone gather so")
    alike: Positive = Field(description="rivals that fit the place about as well")
    less: Share = Field(description="how much lower their score may be")
    unique: Share = Field(description="score from which they do not matter")


class SourceRules(Settings):
    """A sentence that a question asks about."""

    unlikely: Share = Field(description="probability that edits alone gather so")
    whole: Share = Field(description="score from which a missing piece says nothing")
    light: float = Field(ge=0, description="weight of a template's piece, in the item's mean")
    at_end: Positive = Field(description="words of a piece at an end")
    inside: Positive = Field(description="words of another piece")


class Rules(Settings):
    """Limits of the rules that tell an item from other texts with its words."""

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
        min_length=1, description="parts of an item whose hits act; the others are marked"
    )
    threshold: float = Field(gt=0, le=1, description="share of an item's weight")
    touched: float = Field(gt=0, le=1, description="share from which an item counts as touched")
    numbers: Share = Field(description="share of an item's numbers in the span")
    short_words: Natural = Field(description="below, an exact match or the answer is needed")
    answer_words: Natural = Field(description="how far from the span the answer may be")
    least_bits: Natural = Field(description="information that a match has in ordinary text")
    rules: Rules = Field(description="limits by which a match is another text")
    margin: Natural = Field(description="bytes cut on each side of a span, to white space")
    background: ModelFile = Field(description="counts of ordinary texts")

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
