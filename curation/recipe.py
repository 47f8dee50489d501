"""Recipes: one YAML file says what a run does; it is checked before anything runs.

A recipe names only what differs: `configs/defaults/<stage>.yaml` holds every threshold with its
source, `extends: NAME` takes another recipe as the base, and `--set a.b=value` comes last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

from curation import resources
from curation.classify.settings import ClassifySettings
from curation.config import Settings, assign, merge, nearest, read_yaml, validate
from curation.dedup.settings import DocumentDedupSettings, LineDedupSettings, UrlDedupSettings
from curation.errors import ConfigError
from curation.extract.settings import ExtractSettings
from curation.filters.settings import FilterSettings
from curation.inputs import check_name, fold_inputs
from curation.language.settings import LanguageSettings
from curation.mix.settings import MixSettings, SearchSettings
from curation.readers.settings import ReaderSettings
from curation.tokenize.settings import TokenizeSettings

#: Every stage in its usual order.
STAGES = (
    "extract",
    "dedup-urls",
    "identify-language",
    "dedup-documents",
    "classify",
    "dedup-lines",
    "filter",
    "mix",
    "tokenize",
)


class Recipe(Settings):
    """A complete recipe: every value is set."""

    name: str = Field(min_length=1)
    description: str
    inputs: tuple[str, ...] | dict[str, tuple[str, ...]] = Field(
        description="paths, folders, globs or URLs, or several such lists by name; "
        "--input replaces them"
    )
    stages: tuple[str, ...] = Field(min_length=1, description="the stages to run, in order")
    readers: ReaderSettings
    extract: ExtractSettings
    dedup_urls: UrlDedupSettings = Field(alias="dedup-urls")
    identify_language: LanguageSettings = Field(alias="identify-language")
    dedup_documents: DocumentDedupSettings = Field(alias="dedup-documents")
    dedup_lines: LineDedupSettings = Field(alias="dedup-lines")
    filter: FilterSettings
    classify: ClassifySettings
    mix: MixSettings
    tokenize: TokenizeSettings
    search: SearchSettings

    @model_validator(mode="after")
    def _mixes_exist(self) -> Self:
        for name in self.tokenize.mixes:
            if name not in self.mix.mixes:
                raise ValueError(
                    f"tokenize.mixes: no mix of the name {name!r}{nearest(name, self.mix.mixes)}"
                )
        return self

    @model_validator(mode="after")
    def _rules_can_fire(self) -> Self:
        if "filter" in self.stages and (problem := self.filter.unmeasured()):
            raise ValueError(f"filter.{problem}")
        return self

    @model_validator(mode="after")
    def _targets_are_domains(self) -> Self:
        for name in self.search.targets:
            if name not in self.mix.domains:
                raise ValueError(
                    f"search.targets: {name!r} is no domain of the mix"
                    f"{nearest(name, self.mix.domains)} (it has: {', '.join(self.mix.domains)})"
                )
        return self

    def settings(self, stage: str, mix: str = "") -> BaseModel:
        """The settings of one stage; of `mix` and `tokenize`, for one of the mixes by name."""
        if stage == "mix":
            return self.mix.mixture(mix)
        if stage == "tokenize":
            return self.tokenize.for_mix(mix)
        return getattr(self, stage.replace("-", "_"))  # type: ignore[no-any-return]

    @property
    def mixes(self) -> tuple[str, ...]:
        """Names of the mixes besides the one without a name, sorted."""
        return tuple(sorted(self.mix.mixes))

    @property
    def sha256(self) -> str:
        """Hash of everything that decides outputs; where the input lies does not."""
        content = self.model_dump(
            mode="json", by_alias=True, exclude={"inputs", "description", "search"}
        )
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def built_in() -> dict[str, Path]:
    """Names and files of the recipes that come with the toolkit."""
    folder = resources.root() / "configs" / "recipes"
    return {p.stem: p for p in sorted(folder.glob("*.yaml"))}


def load(recipe: str, assignments: Sequence[str] = ()) -> Recipe:
    """Load a recipe by path or built-in name and apply `key.path=value` assignments.

    Raises ConfigError with one clear line: the key's path, what is wrong, the nearest valid name.
    """
    merged = merge(_defaults(), _read_with_parents(recipe, ()))
    for assignment in assignments:
        assign(merged, assignment)
    merged.pop("extends", None)
    fold_inputs(merged, _file_of(recipe).name)
    _complete_mixes(merged)
    loaded = validate(Recipe, merged, _file_of(recipe).name)
    check_order(loaded.stages)
    for name in loaded.mixes:
        check_name(name, f"{_file_of(recipe).name}: mix.mixes")
        if name in _FOLDERS:
            raise ConfigError(
                f"{_file_of(recipe).name}: mix.mixes: {name!r} is a stage's folder "
                f"(as are {', '.join(f for f in _FOLDERS if f != name)})"
            )
    return loaded


#: Folders of the stages `mix` and `tokenize`, beside which those of the named mixes lie.
_FOLDERS = ("documents", "removed", "shards", "tokens", "index", "mds", "huggingface")


def _complete_mixes(tree: dict[str, Any]) -> None:
    """Fill what a named mix leaves out from the mix without a name, in place."""
    mix = tree.get("mix")
    if isinstance(mix, dict) and isinstance(mix.get("mixes"), dict):
        base = {k: v for k, v in mix.items() if k != "mixes"}
        mix["mixes"] = {
            name: merge(base, {} if own is None else own)
            if own is None or isinstance(own, dict)
            else own
            for name, own in mix["mixes"].items()
        }


def check_order(stages: Sequence[str]) -> None:
    """Raise ConfigError when a stage is unknown, repeated, or stands before what it depends on."""
    for i, stage in enumerate(stages):
        if stage not in STAGES:
            raise ConfigError(f"stages[{i}]: unknown stage {stage!r}{nearest(stage, STAGES)}")
        if stage in stages[:i]:
            raise ConfigError(f"stages[{i}]: {stage} stands twice")
    place = {stage: i for i, stage in enumerate(stages)}
    for before, after, why in _ORDER:
        if before in place and after in place and place[before] > place[after]:
            raise ConfigError(f"stages: {before} must come before {after}: {why}")


_ORDER = [
    *(("extract", stage, "it makes the documents") for stage in STAGES[1:]),
    *((stage, "tokenize", "tokenize ends the chain") for stage in STAGES[:-1]),
    *(
        ("identify-language", stage, "its rules depend on the language")
        for stage in ("dedup-documents", "dedup-lines", "filter", "classify", "mix")
    ),
    ("classify", "mix", "the mix is drawn by domain"),
]


def _defaults() -> dict[str, Any]:
    folder = resources.root() / "configs" / "defaults"
    return {
        section: read_yaml(folder / f"{section}.yaml") for section in ("readers", *STAGES, "search")
    }


def _file_of(recipe: str) -> Path:
    known = built_in()
    if recipe in known:
        return known[recipe]
    path = Path(recipe)
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or "/" in recipe:
        raise ConfigError(f"{recipe}: no such recipe file")
    raise ConfigError(
        f"{recipe}: neither a built-in recipe nor a file{nearest(recipe, known)} "
        f"(built in: {', '.join(known)})"
    )


def _read_with_parents(recipe: str, seen: tuple[Path, ...]) -> dict[str, Any]:
    path = _file_of(recipe).resolve()
    if path in seen:
        raise ConfigError(f"{path}: extends: goes round in a circle")
    content = read_yaml(path)
    parent = content.get("extends")
    if parent is None:
        return content
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends: must be a recipe's name or path")
    local = path.parent / parent
    found = str(local) if local.is_file() else parent
    return merge(_read_with_parents(found, (*seen, path)), content)
