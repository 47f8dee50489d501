"""HTML to clean text: `extract` for one page, `Extractor` for a recipe's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.extract.extract_settings import ExtractSettings
    from curation.extract.extraction import Extraction, PageTooLargeError
    from curation.extract.extractor import Extractor, default_settings, extract

__all__ = [
    "ExtractSettings",
    "Extraction",
    "Extractor",
    "PageTooLargeError",
    "default_settings",
    "extract",
]

_MODULES = {
    "extraction": ("Extraction", "PageTooLargeError"),
    "extractor": ("Extractor", "default_settings", "extract"),
    "extract_settings": ("ExtractSettings",),
}
lazily(__name__, _MODULES)
