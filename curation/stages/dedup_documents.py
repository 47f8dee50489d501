"""Stage `dedup-documents`."""

from __future__ import annotations

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

    def reads(self, settings: DocumentDedupSettings) -> Columns:
        needed = ("language",) if settings.per_language else ()
        return Columns(needed, settings.survivor.columns, f"{self.name}.per_language=false")


STAGE = _DeduplicateDocuments()
