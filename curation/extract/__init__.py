"""HTML to clean text: `extract` for one page, `Extractor` for a recipe's settings."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import yaml

from curation import resources
from curation.extract.clean import clean, normal
from curation.extract.engines import text_engine
from curation.extract.extraction import Extraction as Extraction
from curation.extract.mojibake import repaired
from curation.extract.own import TooManyNodesError, run
from curation.extract.page import declared_language, deepest, title_of
from curation.extract.settings import ExtractSettings as ExtractSettings
from curation.readers.charset import decode_html


class PageTooLargeError(ValueError):
    """A page exceeds a limit of the settings: `reason`, `value` and `threshold` say which."""

    def __init__(self, reason: str, value: float, threshold: float) -> None:
        super().__init__(f"{reason}: {value:,.0f} is over {threshold:,.0f}")
        self.reason, self.value, self.threshold = reason, value, threshold


@dataclass(frozen=True)
class Extractor:
    """Extraction by given settings."""

    settings: ExtractSettings

    def extract(
        self, html: bytes | str, url: str | None = None, charset: str | None = None
    ) -> Extraction:
        """Main content of one page.

        `charset` is what the HTTP header says; it only matters for bytes. Raises PageTooLargeError
        when the page exceeds a limit.
        """
        limits = self.settings
        if len(html) > limits.max_html_bytes:
            raise PageTooLargeError("extract.too_large", len(html), limits.max_html_bytes)
        text, encoding = (html, "") if isinstance(html, str) else decode_html(html, charset)
        if limits.engine == "curation":
            return self._own(text, encoding)
        if (depth := deepest(text, limits.max_depth)) > limits.max_depth:
            raise PageTooLargeError("extract.too_deep", depth, limits.max_depth)
        main = clean(text_engine(limits.engine)(text, url, limits)) if text.strip() else ""
        return Extraction(main, clean(title_of(text)), declared_language(text), encoding)

    def _own(self, text: str, encoding: str) -> Extraction:
        try:
            found = run(text.encode("utf-8", "replace"), self.settings)
        except TooManyNodesError:
            limit = self.settings.max_nodes
            raise PageTooLargeError("extract.too_many_nodes", limit + 1, limit) from None
        main, title = normal(repaired(found.text)), clean(repaired(found.title))
        return Extraction(main, title, found.language, encoding, found.code_languages)


@functools.cache
def default_settings() -> ExtractSettings:
    """The settings of configs/defaults/extract.yaml."""
    path = resources.root() / "configs" / "defaults" / "extract.yaml"
    return ExtractSettings.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def extract(html: bytes | str, url: str | None = None) -> Extraction:
    """Main content of one page with the default settings.

    >>> extract("<html><title>T</title><body><article><p>Some text.</p></article>").title
    'T'
    """
    return Extractor(default_settings()).extract(html, url)
