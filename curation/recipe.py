"""Recipes: one YAML file defines a run; it is checked before anything runs.

A recipe gives only what differs from its base: `configs/defaults/<stage>.yaml` has every threshold
with its source, `extends: NAME` takes another recipe as the base, and `--set a.b=value` comes last.
"""

import contextlib
import copy
import functools
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr, create_model, model_validator

from curation import resources
from curation.config import Settings, assign, merge, nearest, read_yaml, validate
from curation.errors import ConfigError
from curation.readers.settings import ReaderSettings
from curation.stages import Stage, find, known_stages
from curation.stages.custom import StageCode
from curation.user_code import entry_points

#: Every stage in its usual order.
STAGES = tuple(known_stages())


class Recipe(Settings):
    """A complete recipe, with every value set.

    The settings of each stage are a section of the stage's name, and an attribute:
    `recipe.dedup_urls`.
    """

    name: str = Field(min_length=1)
    description: str
    inputs: tuple[str, ...] | dict[str, tuple[str, ...]] = Field(
        description="paths, folders, globs or URLs, or several such lists by name; "
        "--input replaces them"
    )
    stages: tuple[str, ...] = Field(min_length=1, description="the stages to run, in order")
    measure: bool = Field(
        default=False, description="record what thresholds would remove, and keep it"
    )
    readers: ReaderSettings
    #: Names of the recipes that a user's own extends; those of the built-in ones do not count.
    _extends: tuple[str, ...] = PrivateAttr(default=())

    if TYPE_CHECKING:  # the sections

        def __getattr__(self, name: str) -> Any: ...

    @model_validator(mode="after")
    def _sections_fit_together(self) -> Self:
        for stage in self.sections:
            stage.check_recipe(self.section(stage), self)
        return self

    @property
    def sections(self) -> list[Stage[Any]]:
        """The stages that the recipe has settings for, whether it runs them or not."""
        return [find(f.alias) for f in type(self).model_fields.values() if f.alias]

    def settings(self, stage: str, mix: str = "") -> Settings:
        """Return the settings of one stage, for the mix of this name."""
        described = find(stage)
        return described.of_mix(self.section(described), mix)

    def section(self, stage: Stage[Any]) -> Any:
        """Return the section of a stage: its settings for all mixes."""
        return getattr(self, _attribute(stage.name))

    @property
    def mixes(self) -> tuple[str, ...]:
        """Names of the named mixes, sorted."""
        return tuple(m for s in self.sections for m in s.mixes(self.section(s)))

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of inputs in the settings."""
        return tuple(n for s in self.sections for n in s.sources(self.section(s)))

    @property
    def sha256(self) -> str:
        """Hash of everything that decides outputs; paths of inputs do not."""
        left_out = {"inputs", "description"} | (set() if self.measure else {"measure"})
        content = self.model_dump(mode="json", by_alias=True, exclude=left_out)
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def continues(self, name: str, sha256: str) -> bool:
        """Return whether a run of another recipe, by its name and hash, is an earlier one of this.

        A recipe of the same name may have changed since, a user's recipe may extend it, and one
        of another name may have the same content.
        """
        return name in (self.name, *self._extends) or sha256 == (
            self.model_copy(update={"name": name}).sha256
        )


def _attribute(stage: str) -> str:
    return stage.replace("-", "_")


def built_in() -> dict[str, Path]:
    """Return names and files of the built-in recipes."""
    folder = resources.root() / "configs" / "recipes"
    return {p.stem: p for p in sorted(folder.glob("*.yaml"))}


def load(recipe: str, assignments: Sequence[str] = ()) -> Recipe:
    """Load a recipe by path or built-in name and apply `key.path=value` assignments.

    Raises ConfigError with one clear line: the key's path, what is wrong, the nearest valid name.
    """
    own, folders, names = _read_with_parents(recipe, ())
    merged = merge(copy.deepcopy(_defaults()), own)
    merged.pop("extends", None)
    assigned: list[str] = []
    for assignment in assignments:
        given: dict[str, Any] = {}
        assigned.append(assign(given, assignment))
        _refuse_moved(given, "--set")
        assign(merged, assignment)
    name = _file_of(recipe).name
    for stage in known_stages().values():
        stage.prepare(merged, name)
    loaded = validate(_model(_own_stages(merged, name)), merged, name, folders, assigned)
    with _naming(name):
        check_order(loaded)
    if recipe not in built_in():
        loaded._extends = names
    return loaded


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
    """Name the file, or the key in it, of a ConfigError."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def stage_names(stages: str | Sequence[str]) -> list[str]:
    """Return the stages in `a,b`, as `--stages` takes them, or in a sequence of names."""
    names = stages.split(",") if isinstance(stages, str) else stages
    return [name.strip() for name in names if name.strip()]


def outline(recipe: str) -> dict[str, Any]:
    """Return what a recipe by path or name says, its parents included, without any defaults.

    Nothing is validated, which takes longer than reading. Raises ConfigError as `load` does for a
    file that can't be read.
    """
    return _read_with_parents(recipe, ())[0]


def _own_stages(tree: dict[str, Any], recipe: str) -> tuple[str, ...]:
    """Return the names of custom stages: sections with `python`, and entry points.

    Sections of entry points are completed in place. Raises ConfigError for an invalid name.
    """
    wanted = tree.get("stages")
    for name in wanted if isinstance(wanted, list | tuple) else ():
        if not isinstance(name, str):
            raise ConfigError(f"{recipe}: stages: expected names of stages, got {name!r}")
        if name not in STAGES and name in entry_points(StageCode.group):
            tree[name] = {"python": name} | (tree.get(name) or {})
    own = [k for k, v in tree.items() if isinstance(v, dict) and "python" in v and k not in STAGES]
    for name in own:
        if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", str(name)) or name in _FIXED:
            raise ConfigError(
                f"{recipe}: {name}: a stage's name consists of lower-case letters, digits and -"
            )
    return tuple(own)


#: Sections and keys that are not stages.
_FIXED = frozenset(Recipe.model_fields)


@functools.cache
def _model(own: tuple[str, ...]) -> type[Recipe]:
    """Return the class of recipes with a section for every stage, including these."""
    fields: dict[str, Any] = {
        _attribute(name): (find(name).settings, Field(alias=name)) for name in (*STAGES, *own)
    }
    return create_model("Recipe", __base__=Recipe, **fields)


def with_stage(stages: Sequence[str], stage: str) -> tuple[str, ...]:
    """Return stages in their order with one more, behind all that usually come before it."""
    if stage in stages:
        return tuple(stages)
    before = STAGES[: STAGES.index(stage)] if stage in STAGES else STAGES
    at = max((i for i, name in enumerate(stages, 1) if name in before), default=0)
    return (*stages[:at], stage, *stages[at:])


def check_order(
    recipe: Recipe, stages: Sequence[str] = (), columns: Collection[str] | None = None
) -> None:
    """Raise ConfigError if stages can't run in this order, by default the recipe's.

    That is so if a stage is unknown or repeated, or reads a column that a later stage adds or that
    the documents lack. `columns` are those of the input, None if unknown. The columns that a source
    stage makes are known.
    """
    chosen = tuple(stages) or recipe.stages
    known = [stage.name for stage in recipe.sections]
    for i, name in enumerate(chosen):
        if name not in known:
            raise ConfigError(f"stages[{i}]: unknown stage {name!r}{nearest(name, known)}")
        if name in chosen[:i]:
            raise ConfigError(f"stages[{i}]: {name} appears twice")
    described = [find(name) for name in chosen]
    for before, after in combinations(described, 2):
        if why := _must_follow(before, after, recipe):
            raise ConfigError(f"stages: {after.name} must come before {before.name}: {why}")
    if described[0].is_source:
        columns = described[0].makes
    if columns is not None:
        _check_columns(described, recipe, set(columns))


def _must_follow(before: Stage[Any], after: Stage[Any], recipe: Recipe) -> str | None:
    """Return why the stage that comes first must come after the other; None if it need not."""
    if after.is_source:
        return "it makes the documents"
    if before.is_sink:
        return f"{before.name} ends the chain"
    reads = before.reads(recipe.section(before))
    for column in after.adds_of(recipe.section(after)):
        if column in (*reads.needed, *reads.used):
            return f"it adds the column {column!r}"
    return None


def _check_columns(stages: Sequence[Stage[Any]], recipe: Recipe, present: set[str]) -> None:
    for stage in stages:
        reads = stage.reads(recipe.section(stage))
        for column in reads.needed:
            if column not in present:
                makers = [
                    s.name
                    for s in recipe.sections
                    if column in (*s.adds_of(recipe.section(s)), *(s.makes or ()))
                ]
                hint = f"; {' or '.join(makers)} adds it" if makers else ""
                hint += f", and {reads.unless} does without" if reads.unless else ""
                raise ConfigError(f"stages: {stage.name} needs the column {column!r}{hint}")
        present |= set(stage.adds_of(recipe.section(stage)))


@functools.cache
def _defaults() -> dict[str, Any]:
    folder = resources.root() / "configs" / "defaults"
    readers = read_yaml(folder / "readers.yaml")
    return {"readers": readers} | {name: stage.defaults() for name, stage in known_stages().items()}


@functools.cache
def _moved() -> dict[str, str]:
    return read_yaml(resources.root() / "configs" / "moved.yaml")


def _refuse_moved(tree: dict[str, Any], where: str) -> None:
    """Raise ConfigError for a key or value that is gone, with its new place or the reason."""
    for path, place in _moved().items():
        for found in _keys(tree, *path.split(".")):
            raise ConfigError(f"{where}: {found}: no longer a setting: {place}")


def _keys(tree: Any, first: str, *rest: str) -> Iterator[str]:
    """Yield the keys of a tree that a path names, of which `*` is any part, or `key=value`."""
    for key in list(tree) if isinstance(tree, dict) else ():
        if first in ("*", key) or ("=" in first and first == f"{key}={tree[key]}"):
            found = key if first == "*" else first
            yield from (f"{key}.{inner}" for inner in _keys(tree[key], *rest)) if rest else [found]


def _file_of(recipe: str) -> Path:
    known = built_in()
    if not recipe.strip():
        raise ConfigError(f"RECIPE: an empty name (built in: {', '.join(known)})")
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


def _read_with_parents(
    recipe: str, seen: tuple[Path, ...]
) -> tuple[dict[str, Any], list[str], tuple[str, ...]]:
    """Return a recipe's tree merged over its parents', their folders, its own first, and names."""
    path = _file_of(recipe).resolve()
    if path in seen:
        raise ConfigError(f"{path}: extends: the recipes extend each other in a circle")
    content = read_yaml(path)
    _refuse_moved(content, str(path))
    parent = content.get("extends")
    if parent is None:
        return content, [str(path.parent)], ()
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends: must be a recipe's name or path")
    local = path.parent / parent
    found = str(local) if local.is_file() else parent
    with _naming(f"{path}: extends"):
        _file_of(found)
    base, folders, names = _read_with_parents(found, (*seen, path))
    return merge(base, content), [str(path.parent), *folders], (str(base.get("name")), *names)
