"""Stage `read-tables`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from curation.config import Settings
from curation.stages.base import Stage


class TableSettings(Settings):
    """How tables become documents; which columns are text and address, `readers` says."""

    columns: tuple[str, ...] | None = Field(
        description="columns kept besides text, id, URL, date and title; null: all"
    )


class _ReadTables(Stage[TableSettings]):
    name = "read-tables"
    purpose = "tables with a text column to documents, texts and columns as they are"
    settings = TableSettings
    packages = ("numpy", "zstandard")
    is_source = True
    cost = 0.1

    def also(self, recipe: Any) -> dict[str, Settings]:
        return {"readers": recipe.readers}


STAGE = _ReadTables()
