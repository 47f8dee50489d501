"""Settings from YAML: read, merged, changed by assignments, checked with one clear line."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from curation.errors import ConfigError
from curation.resources import root

Model = TypeVar("Model", bound=BaseModel)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises ConfigError with file, line and column."""
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
        raise ConfigError(f"{path}: expected a mapping of keys to values")
    return content


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged


def assign(tree: dict[str, Any], assignment: str) -> None:
    """Carry out `key.path=value` in place; a mapping merges with what is there, as in a recipe.

    Raises ConfigError when it can't be done.
    """
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
        if child is not None and not isinstance(child, dict):
            raise ConfigError(f"--set {path}: {'.'.join(keys[: i + 1])} has no keys below it")
        # A copy: where YAML has `zh: &cjk` and `ja: *cjk`, both are one and the same mapping.
        node[key] = node = dict(child or {})
    last = keys[-1]
    node[last] = merge(node, {last: value})[last]


def validate(model: type[Model], tree: dict[str, Any], name: str) -> Model:
    """The settings in a tree. Raises ConfigError with the key's path and the nearest valid name."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"])
        raise ConfigError(f"{name}: {where}: {_explain(model, first)}") from None


def built_in_settings(model: type[Model], name: str) -> Model:
    """The settings of `configs/<name>.yaml`."""
    file = f"configs/{name}.yaml"
    return validate(model, read_yaml(root() / file), file)


def _explain(model: type[BaseModel], error: Any) -> str:
    kind, where = error["type"], [str(p) for p in error["loc"]]
    if kind == "extra_forbidden":
        return f"unknown key{nearest(where[-1], _keys_at(model, where[:-1]))}"
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


def nearest(name: str, candidates: Iterable[str]) -> str:
    """A hint at the candidate that was probably meant, or nothing."""
    close = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
