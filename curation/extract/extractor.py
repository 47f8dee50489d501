"""Extraction of one page by a recipe's settings."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from curation.config import built_in_settings
from curation.extract.clean import clean
from curation.extract.engines import text_engine
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction, PageTooLargeError
from curation.extract.head import declared_language, deepest, title_of
from curation.extract.native import run
from curation.readers.charset import decode_html, utf8_html
from curation.rights.page import read_page


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
        if limits.engine == "curation":
            return self._own(html, charset)
        text, encoding = (html, "") if isinstance(html, str) else decode_html(html, charset)
        if (depth := deepest(text, limits.max_depth)) > limits.max_depth:
            raise PageTooLargeError("extract.too_deep", depth, limits.max_depth)
        main = clean(text_engine(limits.engine)(text, url, limits)) if text.strip() else ""
        rights = read_page(text.encode("utf-8", "replace"))
        title, language = clean(title_of(text)), declared_language(text)
        return Extraction(main, title, language, encoding, rights=rights)

    def _own(self, html: bytes | str, charset: str | None) -> Extraction:
        if isinstance(html, str):
            source, encoding = html.encode("utf-8", "replace"), ""
        else:
            source, encoding = utf8_html(html, charset)
        rights = read_page(source)  # while the processor has the page at hand
        found = run(source, self.settings)
        return Extraction(
            found.text,
            found.title,
            found.language,
            encoding,
            found.code_languages,
            rights,
            found.link_share,
        )


@functools.cache
def default_settings() -> ExtractSettings:
    """The settings of configs/defaults/extract.yaml."""
    return built_in_settings(ExtractSettings, "defaults/extract")


def extract(html: bytes | str, url: str | None = None) -> Extraction:
    """Main content of one page with the default settings.

    >>> extract("<html><title>T</title><body><article><p>Some text.</p></article>").title
    'T'
    """
    return Extractor(default_settings()).extract(html, url)
