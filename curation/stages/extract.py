"""Stage `extract`."""

from collections.abc import Iterator, Mapping
from typing import Any

from curation.columns import DOCUMENT_COLUMNS, PAGE_COLUMNS
from curation.config import Settings, read_values
from curation.extract.engines import check_installed, engine_packages
from curation.extract.extract_settings import ExtractSettings
from curation.stages.base import Limit, Stage, limit


class _Extract(Stage[ExtractSettings]):
    name = "extract"
    purpose = "web archives, pages and tables to documents"
    settings = ExtractSettings
    cost = 2.6
    packages = ("brotli", "chardet", "lz4", "numpy", "regex", "webencodings", "zstandard")
    is_source = True
    makes = (*DOCUMENT_COLUMNS, *PAGE_COLUMNS)
    shown = ("content_score", "link_share")

    def also(self, recipe: Any) -> dict[str, Settings]:
        return {"readers": recipe.readers}

    def packages_of(self, settings: ExtractSettings, also: Mapping[str, Any]) -> tuple[str, ...]:
        asked = ("idna",) if settings.rights.files else ()
        pdf = ("pypdfium2",) if also["readers"].pdf else ()
        return (*self.packages, *engine_packages(settings.engine), *asked, *pdf)

    def load(self, settings: ExtractSettings) -> None:
        from curation.extract.decide import Limits  # compiled kernels
        from curation.extract.model import load as load_model

        check_installed(settings.engine)
        if settings.engine == "curation":
            load_model(settings.model)
            read_values(settings.decision, Limits)

    def limits(self, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Limit]:
        characters = len(row["text"])
        yield limit("extract.empty", characters, min=max(1, settings["min_characters"]))
        yield limit("extract.too_long", characters, max=settings["max_characters"])


STAGE = _Extract()
