"""Stage `dedup-urls`."""

from curation.dedup.dedup_settings import UrlDedupSettings
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


STAGE = _DeduplicateUrls()
