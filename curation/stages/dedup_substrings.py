"""Stage `dedup-substrings`."""

from curation.dedup.dedup_settings import SubstringDedupSettings
from curation.stages.base import Columns, Stage


class _DeduplicateSubstrings(Stage[SubstringDedupSettings]):
    name = "dedup-substrings"
    purpose = "cut passages that stand elsewhere, too"
    settings = SubstringDedupSettings
    after = "dedup-documents"
    optional = True
    cost = 0.5
    passes = 6
    packages = ("numpy", "regex")

    def reads(self, settings: SubstringDedupSettings) -> Columns:
        return Columns(used=("date",) if settings.keep == "best" else ())


STAGE = _DeduplicateSubstrings()
