"""Settings from YAML: read, merge, apply assignments, and validate with one-line errors."""

import contextlib
import difflib
import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from curation.errors import ConfigError
from curation.resources import resolve, root

Model = TypeVar("Model", bound=BaseModel)
Values = TypeVar("Values", bound=tuple[Any, ...])


def _refuse_truth_values(schema: Any) -> None:
    """Make every number of a schema reject `true` and `false`, which Python treats as 1 and 0."""
    if isinstance(schema, list | tuple):
        for part in schema:
            _refuse_truth_values(part)
    elif isinstance(schema, dict) and schema.get("type") in ("int", "float"):
        number = dict(schema)
        schema.clear()
        schema.update(core_schema.no_info_before_validator_function(_no_truth_value, number))
    elif isinstance(schema, dict):
        function = schema.get("function")
        if isinstance(function, dict) and function["function"] is _no_truth_value:
            return  # nested settings have been processed already
        for key, part in schema.items():
            if key not in ("default", "metadata"):
                _refuse_truth_values(part)


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("input should be a number")
    return value


class Settings(BaseModel):
    """Base of all settings: no unknown keys; numbers are finite and not booleans.

    For a limit with `min_x` and `max_x`, the lower one must not be above the upper one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _refuse_truth_values(schema)
        return schema

    @model_validator(mode="after")
    def _ends_in_order(self) -> Self:
        for name in type(self).model_fields:
            low, high = getattr(self, name), getattr(self, name.replace("min", "max"), None)
            if "min" in name and low is not None and high is not None and low > high:
                raise ValueError(f"{name} is above {name.replace('min', 'max')} ({low} > {high})")
        return self


def _ascending(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    if pair[0] > pair[1]:
        raise ValueError(f"should go from the lower to the higher number, not {list(pair)}")
    return pair


#: Types of settings: a share of a whole, a whole number from 1 on, and one from 0 on.
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]

#: Type of a setting that is a range of two numbers: the second must not be below the first.
Ascending = AfterValidator(_ascending)


def _strict(kind: Any) -> Any:
    """Return a loader that refuses mappings with a duplicate key."""

    class Strict(kind):  # type: ignore[misc]
        def __init__(self, text: str) -> None:
            super().__init__(text)
            self.checked = set[yaml.Node]()  # before merges bring keys that are there

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            keys = set()
            for key in (k for k, _ in node.value if isinstance(k, yaml.ScalarNode)):
                if node not in self.checked and (key.tag, key.value) in keys:
                    problem = f"duplicate key {key.value!r}"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                keys.add((key.tag, key.value))
            self.checked.add(node)
            super().flatten_mapping(node)

    return Strict


_LOADERS = [
    _strict(getattr(yaml, name)) for name in ("CSafeLoader", "SafeLoader") if hasattr(yaml, name)
]


def parse_yaml(text: str) -> Any:
    """Parse a YAML document. Raises yaml.YAMLError, also for a duplicate key.

    libyaml, if PyYAML has it, is eight times faster; errors come from the Python loader.
    """
    for loader in _LOADERS[:-1]:
        with contextlib.suppress(yaml.YAMLError):
            return yaml.load(text, loader)
    return yaml.load(text, _LOADERS[-1])


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the mapping in a YAML file. Raises ConfigError with file, line and column."""
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror or error}") from None
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
    """Merge mappings key by key; replace everything else."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged


def assign(tree: dict[str, Any], assignment: str) -> str:
    """Apply `key.path=value` in place and return the path; mappings merge, as in a recipe.

    Raises ConfigError if it is invalid.
    """
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {assignment}: expected key.path=value")
    try:
        value: Any = parse_yaml(text) if text else ""
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"--set {assignment}: the value is not valid YAML: {problem}") from None
    for key in reversed(keys):
        value = {key: value}
    tree |= merge(tree, value)  # copies: with `zh: &cjk` and `ja: *cjk` both are the same object
    return ".".join(keys)


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[list[Any]]:
    """Return [key, value in our tree, value in theirs] of the values that differ, as JSON."""
    a, b = _flat(ours), _flat(theirs)
    return [[key, a.get(key), b.get(key)] for key in sorted({*a, *b}) if a.get(key) != b.get(key)]


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + str(name)] = json.dumps(value, ensure_ascii=False, default=str)
    return found


def settings_of_run(model: type[Model], tree: Mapping[str, Any]) -> Model:
    """Validate the settings in a run's recipe or manifest.

    Raises ConfigError where another version of the toolkit wrote them.
    """
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        key = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
        raise ConfigError(
            f"another version of curate made this run, with other settings ({key}): run it again"
        ) from None


def validate(
    model: type[Model],
    tree: dict[str, Any],
    name: str,
    folders: Sequence[str] = (),
    assigned: Sequence[str] = (),
) -> Model:
    """Validate the settings in a tree; user code that they name is searched for in `folders`.

    `name` is that of the file, `assigned` are the keys that came from `--set`.

    Raises ConfigError with the key's path and the nearest valid name.
    """
    try:
        return model.model_validate(tree, context={"folders": tuple(folders)})
    except ValidationError as error:
        errors = error.errors(include_url=False)
        where = _place(errors[0], tree)
        if errors[0]["type"] == "missing":
            beside = [e for e in errors if _place(e, tree)[:-1] == where[:-1]]
            unknown = [e for e in beside if e["type"] == "extra_forbidden"]
            if unknown:  # a misspelt key explains a missing one
                errors, where = unknown, _place(unknown[0], tree)
            elif len(where) == 1:  # at the top: all that are missing in one message
                keys = [_place(e, tree)[-1] for e in beside if e["type"] == "missing"]
                raise ConfigError(f"{name}: {', '.join(keys)}: missing") from None
        # For a union of types, each type reports an error.
        alike = [e for e in errors if _place(e, tree) == where]
        key = ".".join(where)
        if any(f"{a}.".startswith(f"{key}.") or f"{key}.".startswith(f"{a}.") for a in assigned):
            name = "--set"
        said = filter(None, (name, key, _explain(model, alike, tree)))
        raise ConfigError(": ".join(said)) from None


def built_in_settings(model: type[Model], name: str) -> Model:
    """Load the settings of `configs/<name>.yaml`."""
    file = f"configs/{name}.yaml"
    return validate(model, read_yaml(root() / file), file)


def read_values(path: str, form: type[Values]) -> Values:
    """Return the values in a YAML file that a setting names as a NamedTuple of this form.

    The file's `version` is for people. Raises ConfigError with the file and the key.
    """
    found: Values = _read_values(path, form)
    return found


@functools.cache  # a path that has changed is another key
def _read_values(path: str, form: type[Any]) -> Any:
    tree = read_yaml(Path(resolve(path)))
    values = {key: value for key, value in tree.items() if key != "version"}
    try:
        return TypeAdapter(form).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _place(error: Any, tree: Any) -> list[str]:
    """Return the key's path: pydantic's, without the types it contains (`tuple[int, ...]`)."""
    where: list[str] = []
    node = tree
    for part in error["loc"]:
        if isinstance(node, dict | list) or not where:
            if isinstance(part, str) and "[" in part and part not in (node or ()):
                continue
            where.append(str(part))
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                node = {} if isinstance(node, dict) else None
    return where


def _explain(model: type[BaseModel], errors: Sequence[Any], tree: Any) -> str:
    error = errors[0]
    kind, where = error["type"], _place(error, tree)
    if kind == "extra_forbidden":
        return f"unknown key{_meant(model, where, tree)}"
    if kind == "missing":
        return f"missing{_named_by_user(model, where, tree)}"
    messages = [e["msg"].removeprefix("Value error, ") for e in errors]
    first, *others = dict.fromkeys(messages)
    message = " or ".join([first, *(o.removeprefix("Input should be ") for o in others)])
    for pydantics, ours in _WORDS.items():
        message = message.replace(pydantics, ours)
    if isinstance(error["input"], str | int | float | bool | None):
        message += f" (got {error['input']!r})"
    if isinstance(error["input"], bool) and kind == "string_type":
        message += "; YAML takes yes, no, on and off for truth values: write 'no' in quotes"
    return message[0].lower() + message[1:]


#: YAML's names for types that pydantic calls by their Python names.
_WORDS = {"valid dictionary": "mapping", "valid tuple": "list", " or instance of Rule": ""}


def _named_by_user(model: type[BaseModel], where: Sequence[str], tree: Any) -> str:
    """Return the siblings of a missing value in a mapping that only the user's file names."""
    if len(where) < 3 or where[-2] in _keys_at(model, where[:-2]):
        return ""
    for part in where[:-2]:
        tree = tree.get(part, {}) if isinstance(tree, dict) else {}
    others = [str(key) for key in tree if str(key) != where[-2]]
    return f" ({where[-2]!r} is next to {', '.join(others)})" if others else ""


def _meant(model: type[BaseModel], where: Sequence[str], tree: Any) -> str:
    """Return a hint at where a key belongs: one level below, or beside under another name.

    Below is also a key of a free mapping, with the keys below it if these are there, too.
    """
    path, key = list(where[:-1]), where[-1]
    for part in path:
        tree = tree[int(part)] if isinstance(tree, list | tuple) else tree[part]
    beside, given = _keys_at(model, path), tree[key]
    below = [part for part in beside if key in _keys_at(model, [*path, part])]
    if isinstance(given, dict) and given:
        inner = next(iter(given))
        free = {p: tree[p].get(key) for p in beside if isinstance(tree.get(p), dict)}
        inside = {part: keys for part, keys in free.items() if isinstance(keys, dict)}
        below = [part for part in inside if inner in inside[part]] or [*inside] or below
        key = f"{key}.{inner}"
    if not below:
        return nearest(key, beside)
    return f"; did you mean {' or '.join(repr('.'.join([*path, part, key])) for part in below)}?"


def _keys_at(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the valid keys of the mapping at a path of aliases."""
    for part in path:
        field = next((f for n, f in model.model_fields.items() if part in (f.alias or n, n)), None)
        nested = _model_in(field.annotation) if field else None
        if nested is None:
            # Inside a free mapping this part is the user's key; its values share one model.
            continue
        model = nested
    return [f.alias or name for name, f in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the settings model inside an annotation such as `dict[str, Rule] | None`."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in typing.get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return a hint at the candidate that was probably meant, or an empty string."""
    close = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
