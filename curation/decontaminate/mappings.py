"""Mappings of well-known evaluation sets: fields, licence, where to get them (`configs/evals`)."""

from __future__ import annotations

import functools

from pydantic import Field

from curation.config import Settings, nearest, read_yaml, validate
from curation.decontaminate.fields import Fields
from curation.errors import ConfigError
from curation.resources import root


class Mapping(Settings):
    """The mapping and metadata of an evaluation set."""

    title: str
    source: str = Field(description="where its publishers provide it")
    licence: str
    splits: tuple[str, ...] = ()
    fields: Fields
    note: str = ""


def mapping_names() -> list[str]:
    """Return the names of all mappings, sorted."""
    return sorted(path.stem for path in (root() / "configs" / "evals").glob("*.yaml"))


@functools.cache
def load_mapping(name: str) -> Mapping:
    """Return a mapping by name. Raises ConfigError with the nearest name."""
    if name not in mapping_names():
        raise ConfigError(f"no mapping {name!r} in configs/evals{nearest(name, mapping_names())}")
    file = f"configs/evals/{name}.yaml"
    return validate(Mapping, read_yaml(root() / file), file)
