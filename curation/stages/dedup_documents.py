"""Stage `dedup-documents`."""

from typing import Any

from curation.config import Settings
from curation.dedup.dedup_settings import DocumentDedupSettings
from curation.stages.base import Columns, Stage


class _DeduplicateDocuments(Stage[DocumentDedupSettings]):
    name = "dedup-documents"
    purpose = "remove exact and near duplicates"
    settings = DocumentDedupSettings
    after = "identify-language"
    cost = 2.1
    passes = 10
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


STAGE = _DeduplicateDocuments()
