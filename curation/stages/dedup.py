"""Stages `dedup-urls`, `dedup-documents`, `dedup-lines` and `dedup-substrings`."""

from typing import Any

from curation.config import Settings
from curation.dedup.dedup_settings import (
    DocumentDedupSettings,
    LineDedupSettings,
    SubstringDedupSettings,
    UrlDedupSettings,
)
from curation.stages.base import Columns, Stage


class _DeduplicateUrls(Stage[UrlDedupSettings]):
    name = "dedup-urls"
    purpose = "keep one capture of each URL"
    settings = UrlDedupSettings
    after = "rights"
    cost = 0.1
    passes = 5
    packages = ("idna", "numpy")
    keeps_one = True

    def reads(self, settings: UrlDedupSettings) -> Columns:
        return Columns(used=settings.survivor.columns)


class _DeduplicateDocuments(Stage[DocumentDedupSettings]):
    name = "dedup-documents"
    purpose = "remove exact and near duplicates"
    settings = DocumentDedupSettings
    after = "identify-language"
    cost = 2.1
    passes = 11
    # datasketch: permutations and, by scipy's integrals, bands
    packages = ("datasketch", "idna", "numpy", "regex", "scipy")
    keeps_one = True

    def also(self, recipe: Any) -> dict[str, Settings]:
        """Rights that follow a text: a document that they forbid is kept for no other one."""
        follows = "rights" in recipe.stages and recipe.rights.follow
        return {"rights": recipe.rights} if follows else {}

    def reads(self, settings: DocumentDedupSettings) -> Columns:
        needed = ("language",) if settings.per_language else ()
        return Columns(needed, settings.survivor.columns, f"{self.name}.per_language=false")


class _DeduplicateLines(Stage[LineDedupSettings]):
    name = "dedup-lines"
    purpose = "remove lines that repeat across documents"
    settings = LineDedupSettings
    after = "classify"
    cost = 1.1
    passes = 5
    packages = ("numpy", "regex")  # regex: which characters are letters and spaces

    def reads(self, settings: LineDedupSettings) -> Columns:
        needed = ("language",) if settings.per_language else ()
        return Columns(needed, unless=f"{self.name}.per_language=false")


class _DeduplicateSubstrings(Stage[SubstringDedupSettings]):
    name = "dedup-substrings"
    purpose = "cut passages that also occur elsewhere"
    settings = SubstringDedupSettings
    after = "dedup-documents"
    optional = True
    cost = 0.5
    passes = 6
    packages = ("numpy", "regex")

    def reads(self, settings: SubstringDedupSettings) -> Columns:
        return Columns(used=("date",) if settings.keep == "best" else ())


STAGES = (
    _DeduplicateUrls(),
    _DeduplicateDocuments(),
    _DeduplicateLines(),
    _DeduplicateSubstrings(),
)
