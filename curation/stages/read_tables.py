"""Stage `read-tables`."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from curation.config import Settings
from curation.stages.base import Stage

#: The section that says how the languages of a table's documents are identified.
LANGUAGES = "identify-language"


class TableSettings(Settings):
    """How tables become documents; which columns are text and address, `readers` says."""

    columns: tuple[str, ...] | None = Field(
        description="columns kept besides text, id, URL, date and title; null: all"
    )
    add_language: bool | None = Field(
        description="add the language of documents that come without one; null: if a stage of the "
        "run judges by it, and none identifies it"
    )
    kept_beside: tuple[str, ...] | None = Field(
        description="columns named `own_<name>` in documents, since a stage makes its own of that "
        "name; null: those that stages of the run make"
    )


class _ReadTables(Stage[TableSettings]):
    name = "read-tables"
    purpose = "tables with a text column to documents, texts and columns as they are"
    settings = TableSettings
    packages = ("numpy", "zstandard")
    is_source = True
    cost = 0.1

    def also(self, recipe: Any) -> dict[str, Settings]:
        adds = self.adds_of(recipe.read_tables)
        return {"readers": recipe.readers} | ({LANGUAGES: recipe.identify_language} if adds else {})

    def adds_of(self, settings: TableSettings) -> tuple[str, ...]:
        return ("language",) if settings.add_language else ()

    def packages_of(self, settings: TableSettings, also: Mapping[str, Any]) -> tuple[str, ...]:
        return (*self.packages, "regex") if settings.add_language else self.packages


def made_anew(recipe: Any, stages: Sequence[Stage[Any]]) -> tuple[str, ...]:
    """Return the columns that these stages make, which a table's own must not be lost to."""
    given: tuple[str, ...] | None = recipe.read_tables.kept_beside
    if given is not None:
        return given
    makers = (stage for stage in stages if not stage.is_source)
    return tuple(sorted({name for s in makers for name in s.adds_of(recipe.section(s))}))


def needs_languages(recipe: Any, stages: Sequence[Stage[Any]]) -> bool:
    """Return whether the documents of a table need languages for these stages.

    What a stage of mixes uses them for, its counts, is no reason to identify them.
    """
    given: bool | None = recipe.read_tables.add_language
    if given is not None:
        return given
    reads = False
    for stage in stages:
        columns = stage.reads(recipe.section(stage))
        reads |= "language" in (columns.needed if stage.per_mix else (*columns[0], *columns[1]))
    makers = (stage for stage in stages if not stage.is_source)
    return reads and not any("language" in s.adds_of(recipe.section(s)) for s in makers)


STAGE = _ReadTables()
