"""Mappings of well-known evaluation sets: fields, licence, where to get them (`configs/evals`)."""

from __future__ import annotations

from typing import NamedTuple

from curation.config import nearest, read_values
from curation.decontaminate.fields import Fields
from curation.errors import ConfigError
from curation.resources import root


class Mapping(NamedTuple):
    """The mapping and metadata of an evaluation set."""

    title: str
    source: str  # where its publishers provide it
    licence: str
    fields: Fields
    splits: tuple[str, ...] = ()
    note: str = ""


def mapping_names() -> list[str]:
    """Return the names of all mappings, sorted."""
    return sorted(path.stem for path in (root() / "configs" / "evals").glob("*.yaml"))


def load_mapping(name: str) -> Mapping:
    """Return a mapping by name. Raises ConfigError with the nearest name."""
    if name not in mapping_names():
        raise ConfigError(f"no mapping {name!r} in configs/evals{nearest(name, mapping_names())}")
    return read_values(f"builtin:configs/evals/{name}.yaml", Mapping)
