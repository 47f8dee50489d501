"""Stage `dedup-urls`."""

from __future__ import annotations

from collections.abc import Iterator

from curation.dedup.dedup_settings import UrlDedupSettings
from curation.stages.base import Columns, NamedFile, Stage


class _DeduplicateUrls(Stage[UrlDedupSettings]):
    name = "dedup-urls"
    purpose = "keep one capture of each URL"
    settings = UrlDedupSettings
    after = "rights"
    cost = 0.1
    packages = ("idna", "numpy")
    keeps_one = True

    def reads(self, settings: UrlDedupSettings) -> Columns:
        return Columns(used=settings.survivor.columns)

    def files(self, settings: UrlDedupSettings) -> Iterator[NamedFile]:
        names = settings.canonical.tracking_parameters
        if names is not None:
            yield NamedFile(f"{self.name}.canonical.tracking_parameters", names, "file")


STAGE = _DeduplicateUrls()
