"""Recipes: one YAML file says what a run does; it is checked before anything runs.

A recipe names only what differs: `configs/defaults/<stage>.yaml` holds every threshold with its
source, `extends: NAME` takes another recipe as the base, and `--set a.b=value` comes last.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curation import resources
from curation.classify.settings import ClassifySettings
from curation.dedup.settings import DocumentDedupSettings, LineDedupSettings, UrlDedupSettings
from curation.errors import ConfigError
from curation.extract.settings import ExtractSettings
from curation.filters.settings import FilterSettings
from curation.language.settings import LanguageSettings
from curation.mix.settings import MixSettings
from curation.readers.settings import ReaderSettings
from curation.tokenize.settings import TokenizeSettings

#: Every stage in its usual order.
STAGES = (
    "extract",
    "dedup-urls",
    "identify-language",
    "dedup-documents",
    "dedup-lines",
    "filter",
    "classify",
    "mix",
    "tokenize",
)


class Recipe(BaseModel):
    """A complete recipe: every value is set."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    name: str = Field(min_length=1)
    description: str
    inputs: tuple[str, ...] = Field(
        description="paths, folders, globs or URLs; --input replaces them"
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

    def settings(self, stage: str) -> BaseModel:
        """The settings of one stage."""
        return getattr(self, stage.replace("-", "_"))  # type: ignore[no-any-return]

    @property
    def sha256(self) -> str:
        """Hash of everything that decides outputs; where the input lies does not."""
        content = self.model_dump(mode="json", by_alias=True, exclude={"inputs", "description"})
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
    merged = _merge(_defaults(), _read_with_parents(recipe, ()))
    for assignment in assignments:
        _assign(merged, assignment)
    merged.pop("extends", None)
    loaded = _validate(merged, _file_of(recipe))
    check_order(loaded.stages)
    return loaded


def check_order(stages: Sequence[str]) -> None:
    """Raise ConfigError when a stage is unknown, repeated, or stands before what it depends on."""
    for i, stage in enumerate(stages):
        if stage not in STAGES:
            raise ConfigError(f"stages[{i}]: unknown stage {stage!r}{_nearest(stage, STAGES)}")
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
    return {section: _read_yaml(folder / f"{section}.yaml") for section in ("readers", *STAGES)}


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
        f"{recipe}: neither a built-in recipe nor a file{_nearest(recipe, known)} "
        f"(built in: {', '.join(known)})"
    )


def _read_with_parents(recipe: str, seen: tuple[Path, ...]) -> dict[str, Any]:
    path = _file_of(recipe).resolve()
    if path in seen:
        raise ConfigError(f"{path}: extends: goes round in a circle")
    content = _read_yaml(path)
    parent = content.get("extends")
    if parent is None:
        return content
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends: must be a recipe's name or path")
    local = path.parent / parent
    found = str(local) if local.is_file() else parent
    return _merge(_read_with_parents(found, (*seen, path)), content)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise ConfigError(
            f"{path}{place}: not valid YAML: {getattr(error, 'problem', error)}"
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a recipe is a mapping of keys to values")
    return content


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged


def _assign(tree: dict[str, Any], assignment: str) -> None:
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {assignment}: expected key.path=value")
    try:
        value = yaml.safe_load(text) if text else ""
    except yaml.YAMLError:
        raise ConfigError(f"--set {assignment}: the value is not valid YAML") from None
    node = tree
    for i, key in enumerate(keys[:-1]):
        child = node.get(key)
        if child is None:
            child = node[key] = {}
        if not isinstance(child, dict):
            raise ConfigError(f"--set {path}: {'.'.join(keys[: i + 1])} has no keys below it")
        node = child
    node[keys[-1]] = value


def _validate(tree: dict[str, Any], path: Path) -> Recipe:
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"])
        raise ConfigError(f"{path.name}: {where}: {_explain(first)}") from None


def _explain(error: Any) -> str:
    kind, where = error["type"], [str(p) for p in error["loc"]]
    if kind == "extra_forbidden":
        return f"unknown key{_nearest(where[-1], _keys_at(Recipe, where[:-1]))}"
    if kind == "missing":
        return "missing"
    message = error["msg"].removeprefix("Value error, ")
    if isinstance(error["input"], str | int | float | bool | None):
        message += f" (got {error['input']!r})"
    return message[0].lower() + message[1:]


def _keys_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Valid keys of the mapping at a path of aliases."""
    for part in path:
        field = next((f for n, f in model.model_fields.items() if part in (f.alias or n, n)), None)
        nested = _model_in(field.annotation) if field else None
        if nested is None:
            # Inside a free mapping the part is a user's key; its values share one model.
            continue
        model = nested
    return [f.alias or name for name, f in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The settings model inside an annotation such as `dict[str, Rule] | None`."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in typing.get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None


def _nearest(name: str, candidates: typing.Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
