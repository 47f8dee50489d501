"""The stages: modules of this package describe them; packages add theirs by entry points.

Nothing else in the toolkit names a stage to say what holds for it: recipes, the command line,
manifests, `why` and the report read these descriptions.
"""

import functools
import importlib
import importlib.metadata
import pkgutil
from typing import Any

from curation.errors import ConfigError
from curation.stages.base import Columns as Columns
from curation.stages.base import Limit as Limit
from curation.stages.base import Stage as Stage
from curation.stages.base import meaning as meaning
from curation.stages.custom import Custom
from curation.user_code import seek_cycles_at_exit

_GROUP = "curation.stages"


@functools.cache
def known_stages() -> dict[str, Stage[Any]]:
    """Return every known stage by name, in the usual order.

    Raises ConfigError where two have one name, or one follows an unknown stage.
    """
    found: dict[str, Stage[Any]] = {}
    for stage in [*_of_this_package(), *_of_entry_points()]:
        if stage.name in found:
            raise ConfigError(f"two stages have the name {stage.name!r}")
        found[stage.name] = stage
    return {name: found[name] for name in _in_order(found)}


def find(name: str) -> Stage[Any]:
    """Return a stage by name: a known one, or one of the user's own. `mix/books` is `mix`."""
    name = name.partition("/")[0]
    return known_stages().get(name) or Custom(name)


@functools.cache
def counted_columns() -> dict[str, str]:
    """Return the columns whose values manifests count, with the titles of their tables."""
    return {column: title for s in known_stages().values() for column, title in s.counted}


def _of_this_package() -> list[Stage[Any]]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    ones = [module.STAGE for module in modules if hasattr(module, "STAGE")]
    return [*ones, *(stage for module in modules for stage in getattr(module, "STAGES", ()))]


def _of_entry_points() -> list[Stage[Any]]:
    entries = sorted(importlib.metadata.entry_points(group=_GROUP), key=lambda entry: entry.name)
    if entries:
        seek_cycles_at_exit()
    loaded = (entry.load() for entry in entries)
    return [stage for stage in loaded if isinstance(stage, Stage)]


def _in_order(found: dict[str, Stage[Any]]) -> list[str]:
    """Return names in order: sources, stages behind the one that each usually follows, sinks."""
    order: list[str] = []
    waiting = dict(sorted(found.items(), reverse=True))
    while waiting:
        ready = [n for n, s in waiting.items() if not s.after or s.after in order]
        if not ready:
            name, stage = next(iter(waiting.items()))
            raise ConfigError(f"stage {name!r}: usually follows the unknown stage {stage.after!r}")
        for name in ready:
            after = waiting.pop(name).after
            order.insert(order.index(after) + 1 if after else 0, name)
    return sorted(order, key=lambda name: (not found[name].is_source, found[name].is_sink))
