"""Stage `dedup-lines`."""

from curation.dedup.dedup_settings import LineDedupSettings
from curation.stages.base import Columns, Stage


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


STAGE = _DeduplicateLines()
