"""Settings of the three deduplication stages. Defaults are in `configs/defaults/dedup-*.yaml`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from curation import resources
from curation.config import Natural, Positive, Settings, Share, built_in_settings, read_yaml
from curation.resources import NamedFile, RunFolder

NORMALIZATIONS = "builtin:configs/lists/normalizations.yaml"

OrderRule = Literal[
    "newest",
    "oldest",
    "longest",
    "shortest",
    "highest_quality",
    "preferred",
    "id",
]

#: What may become of a frequent line, in the order of the numbers in `patterns`.
VERDICTS = (
    "",
    "cut: edge",
    "cut: sentence",
    "cut: between",
    "kept: heading",
    "kept: item",
    "kept: inside",
)

#: Share of cut text that is good, by verdict, from reading (docs/dedup.md): 7 of 620 lines at edges
#: were arguable. Too few of the other kinds were met, so the same is assumed of them.
GOOD_SHARE = 0.012


class TextNormalization(Settings):
    """Differences between two texts that are ignored in comparisons.

    Rules act on one code point at a time; see `curation.dedup.characters`.
    """

    case: Literal["keep", "lower", "fold"] = Field(
        description="lower: as str.lower, but final sigma is sigma everywhere; "
        "fold: Unicode full case folding (also ß = SS)"
    )
    digits: Literal["keep", "each_to_zero", "number_to_zero"] = Field(
        description="Decimal digits: as they are, each one as 0, or a whole number such as "
        "12,345 or 3.14 as one 0"
    )
    punctuation: Literal["keep", "space", "delete"] = Field(
        description="Punctuation and symbols (Unicode categories P and S)"
    )
    marks: Literal["keep", "decompose", "delete"] = Field(
        description="decompose: canonical decomposition, so that é equals e + accent; "
        "delete: the same, then drop non-spacing marks"
    )
    controls: Literal["keep", "delete"] = Field(
        description="Control and format characters (Cc and Cf) other than white space"
    )
    whitespace: Literal["strip", "collapse"] = Field(
        description="strip: at both ends only; collapse: also each inner run to one space"
    )
    keep: str = Field(description="Punctuation and symbols that remain parts of words nevertheless")
    delete: str = Field(description="Further characters to delete")


@functools.cache
def normalizations() -> dict[str, TextNormalization]:
    """Return the built-in normalizations by name."""
    return {
        name: TextNormalization.model_validate(rules)
        for name, rules in read_yaml(Path(resources.resolve(NORMALIZATIONS))).items()
    }


def _named_normalization(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    known = normalizations()
    if value not in known:
        raise ValueError(f"no normalization named {value!r}; known: {', '.join(sorted(known))}")
    return known[value]


Normalization = Annotated[TextNormalization, BeforeValidator(_named_normalization)]


class UrlSettings(Settings):
    """Which parameters of a URL make no other page (`curation.dedup.urls`)."""

    tracking_parameters: NamedFile | None = Field(
        description="File of query parameter names to drop, one per line, '*' ends a prefix"
    )


class SurvivorSettings(Settings):
    """Which document of a group of duplicates is kept."""

    policy: tuple[OrderRule, ...] = Field(
        min_length=1,
        description="Rules in order of weight; a later one decides between equals of the former. "
        "`preferred`: the greatest number in the column `preference`, which a stage of your own "
        "makes. The document's id decides last, whatever the policy",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the policy reads besides those that every document has."""
        read = {"highest_quality": "quality", "preferred": "preference"}
        return tuple(read[rule] for rule in self.policy if rule in read)


class EarlierSettings(Settings):
    """Which finished runs to compare with."""

    against: tuple[RunFolder, ...] = Field(
        description="Finished stage folders, the one with priority first: what is in them goes "
        "here; the folders are not changed"
    )


class IndexSettings(EarlierSettings):
    """Whether to write an index for later runs, too."""

    write: bool = Field(description="Leave an index of what was kept")


class UrlDedupSettings(Settings):
    canonical: UrlSettings
    survivor: SurvivorSettings
    index: IndexSettings


class ExactSettings(Settings):
    enabled: bool = Field(description="Remove documents whose normalised text is the same")
    normalization: Normalization


class MinHashSettings(Settings):
    """Signatures and bands; a pair of Jaccard similarity s meets in some band with
    probability 1 - (1 - s^rows)^bands.
    """

    enabled: bool = Field(description="Remove near duplicates")
    normalization: Normalization
    ngram: int = Field(
        ge=1, le=64, description="Words of a shingle; a document with fewer is no near duplicate"
    )
    num_perm: int = Field(ge=1, le=4096, description="Hash functions per signature")
    seed: int = Field(ge=0, lt=2**32, description="Seed of the hash functions")
    bands: Positive = Field(description="Bands of a signature")
    rows: Positive = Field(description="Hash values per band")

    @model_validator(mode="after")
    def _bands_fit(self) -> MinHashSettings:
        if self.bands * self.rows > self.num_perm:
            raise ValueError(
                f"bands x rows = {self.bands} x {self.rows} = {self.bands * self.rows} "
                f"is more than num_perm = {self.num_perm}"
            )
        return self


class VerifySettings(Settings):
    """Which candidate pairs count as duplicates."""

    method: Literal["none", "jaccard"] = Field(
        description="none: all that share a bucket; jaccard: by the true similarity of the "
        "shingle sets"
    )
    threshold: Share = Field(description="Least similarity of a confirmed pair")
    normalization: Normalization = Field(
        description="What the texts may differ in, for jaccard; may be stricter than minhash's"
    )
    window: Positive = Field(
        description="A document is compared with this many others after it in the order of its "
        "bucket; buckets of up to window + 1 documents are compared in full"
    )


class AlarmSettings(Settings):
    """Thresholds for alarms about probable faults; `--strict` stops the run on an alarm."""

    cluster_size: int = Field(ge=2, description="A cluster of more documents")
    lost_share: Share = Field(
        description="A host or source file that loses more than this share"
        " of at least 100 documents"
    )


class DocumentDedupSettings(Settings):
    exact: ExactSettings
    minhash: MinHashSettings
    verify: VerifySettings
    survivor: SurvivorSettings
    per_language: bool = Field(description="Compare documents of one language only")
    alarms: AlarmSettings
    index: IndexSettings


class LineDedupSettings(Settings):
    normalization: Normalization
    max_occurrences: Positive = Field(
        description="Lines in more documents than this are frequent, and cut where they are "
        "boilerplate (curation.dedup.patterns)"
    )
    bucket_documents: Positive = Field(description="Documents whose lines are counted together")
    per_language: bool = Field(description="Count the lines of each language apart")
    min_line_characters: Natural = Field(
        description="Normalised lines shorter than this (brackets, rulers) are neither counted "
        "nor removed. Blank lines never are"
    )
    min_characters: Natural = Field(
        description="A document that lost lines and has fewer characters left is removed "
        "(lines.too_short)"
    )
    max_share_left: Share = Field(
        description="It is removed only if this share of it is left, or less: a short "
        "page that lost its footer stays"
    )
    index: IndexSettings


class SubstringDedupSettings(Settings):
    min_bytes: int = Field(ge=32, le=1 << 20, description="Bytes of UTF-8 of the shortest repeat")
    keep: Literal["first", "best"] = Field(
        description="Which copy stays: the first in the order of input, or that of the newest, "
        "then the longest document"
    )
    unit: Literal["bytes", "lines", "sentences"] = Field(
        description="What is cut whole: a repeat loses what is not a whole unit at its ends"
    )
    paths: dict[Literal["code"], bool] = Field(
        description="`code`: cut in code, too: its documents, and lines of code and formulas"
    )
    index: EarlierSettings


Stage = TypeVar("Stage", bound=Settings)

_STAGES: dict[type[Settings], str] = {
    UrlDedupSettings: "dedup-urls",
    DocumentDedupSettings: "dedup-documents",
    LineDedupSettings: "dedup-lines",
    SubstringDedupSettings: "dedup-substrings",
}


@functools.cache
def defaults(stage: type[Stage]) -> Stage:
    """Return a stage's settings from `configs/defaults`."""
    return built_in_settings(stage, f"defaults/{_STAGES[stage]}")
