"""Named inputs: their paths, and how a document's input is identified.

The name is the first folder of `source.file` (`books/part-00000.jsonl.gz`), so that no stage needs
a column for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pydantic import Field

from curation.config import Settings, merge, validate
from curation.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

#: Name under which documents of unnamed inputs are counted.
UNNAMED = "unnamed"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*"


class NamedInput(Settings):
    """One input of a recipe: `inputs: {books: {paths: [...], weight: 2}}`."""

    paths: tuple[str, ...] = Field(min_length=1, description="paths, folders, globs or URLs")
    weight: float | None = Field(default=None, gt=0, description="as in mix.sources")
    max_epochs: float | None = Field(default=None, gt=0, description="as in mix.sources")


class _NamedInputs(Settings):
    inputs: dict[str, NamedInput]


def fold_inputs(tree: dict[str, Any], name: str) -> None:
    """Replace named inputs in a recipe's tree by their paths, in place.

    Their weights and epochs move to `mix.sources`, where present values take precedence. `name` is
    the recipe's, for errors. Raises ConfigError with the key's path.
    """
    given = tree.get("inputs")
    if not isinstance(given, dict):
        return
    shaped = {k: {"paths": v} if isinstance(v, list | tuple) else v for k, v in given.items()}
    inputs = validate(_NamedInputs, {"inputs": shaped}, name).inputs
    mixing = {}
    for key, one in inputs.items():
        check_name(key, f"{name}: inputs")
        values = {"weight": one.weight, "max_epochs": one.max_epochs}
        mixing[key] = {k: v for k, v in values.items() if v is not None}
    tree["inputs"] = {key: list(one.paths) for key, one in inputs.items()}
    mix = tree.setdefault("mix", {})
    mix["sources"] = merge(mixing, mix.get("sources") or {})


def check_name(name: str, where: str) -> None:
    """Raise ConfigError unless the name can be a folder and an option."""
    if not re.fullmatch(_NAME, name) or name == UNNAMED:
        raise ConfigError(
            f"{where}: invalid name {name!r}: use a-z, A-Z, 0-9, - and _, but not {UNNAMED!r}"
        )


def source_names(source: pa.Array, names: Collection[str]) -> pa.Array:
    """Return the name of each document's input from the column `source`: string [n].

    `names` are those in the recipe; any other first folder is `UNNAMED`.
    """
    import pyarrow as pa  # slow, and not needed for reading recipes
    import pyarrow.compute as pc

    files = pc.struct_field(source, "file").dictionary_encode()
    known = set(names)
    firsts = [(f or "").partition("/") for f in files.dictionary.to_pylist()]
    found = [first if slash and first in known else UNNAMED for first, slash, _ in firsts]
    values = pa.array([*found, UNNAMED], pa.string())
    return values.take(pc.fill_null(files.indices, len(found)))
