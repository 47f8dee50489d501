"""Extraction of one page by a recipe's settings."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import regex

from curation.config import built_in_settings
from curation.extract.clean import clean
from curation.extract.engines import text_engine
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction, PageTooLargeError
from curation.extract.native import all_of, head_of, judge, result
from curation.readers.charset import declared_encoding, encoding_of_label, utf8_html
from curation.rights.page import PageRights, read_page
from curation.text.surrogates import well_formed

_TAG = regex.compile(r"<(/?)([a-z][a-z0-9]*)", regex.I)
_NO_END_TAG = """
area base br col embed hr img input link meta param source track wbr p li dt dd option tr td th
tbody thead tfoot colgroup optgroup rp rt
"""
_VOID = frozenset(_NO_END_TAG.split())


def deepest(html: str, limit: int) -> int:
    """Upper estimate of how deep elements nest, exact enough to refuse hostile pages.

    Counts open minus close tags of elements that need an end tag; stops just above `limit`.
    """
    if html.count("<") <= limit:
        return 0
    depth = top = 0
    for close, name in _TAG.findall(html):
        if name.lower() in _VOID:
            continue
        depth = max(0, depth - 1) if close else depth + 1
        if depth > top:
            top = depth
            if top > limit:
                return top
    return top


class Begun(NamedTuple):
    """A page that is decoded and whose rights are read."""

    source: bytes  # UTF-8
    encoding: str
    rights: PageRights
    repaired: str  # "encoding": it is in another than the one that was named
    whole: bool = False  # made from a document, so that all of it is content


@dataclass(frozen=True)
class Extractor:
    """Extraction by given settings."""

    settings: ExtractSettings

    def extract(
        self,
        html: bytes | str,
        url: str | None = None,
        charset: str | None = None,
        whole: bool = False,
    ) -> Extraction:
        """Main content of one page; the engine `curation` keeps all of it if `whole`.

        `charset` is what the HTTP header says; it only matters for bytes. Raises PageTooLargeError
        when the page exceeds a limit.
        """
        limits = self.settings
        if limits.engine == "curation":
            return self.finish(self.begin(html, charset, whole))
        begun = self.begin(html, charset)
        text = begun.source.decode()
        if (depth := deepest(text, limits.max_depth)) > limits.max_depth:
            raise PageTooLargeError("extract.too_deep", depth, limits.max_depth)
        main = clean(text_engine(limits.engine)(text, url, limits)) if text.strip() else ""
        title, language = head_of(begun.source, limits)
        return Extraction(main, title, language, begun.encoding, rights=begun.rights)

    def begin(self, html: bytes | str, charset: str | None = None, whole: bool = False) -> Begun:
        """Decode a page and read its rights, while the processor has the page at hand.

        To begin several pages in a row costs half as much as one between extractions.
        """
        self._check_size(html)
        if isinstance(html, str):
            source = well_formed(html).encode()
            return Begun(source, "", read_page(source), "", whole)
        source, encoding = utf8_html(html, charset)
        named = encoding != "utf-8" and (encoding_of_label(charset) or declared_encoding(html))
        repaired = "encoding" if named and named != encoding else ""
        return Begun(source, encoding, read_page(source), repaired, whole)

    def finish(self, begun: Begun) -> Extraction:
        """Return what `extract` returns, by the own engine."""
        judged = judge(begun.source, self.settings)
        judged = all_of(judged) if begun.whole else judged
        return result(judged, self.settings, begun.encoding, begun.rights, begun.repaired)

    def _check_size(self, html: bytes | str) -> None:
        most = self.settings.max_html_bytes
        if len(html) > most:
            raise PageTooLargeError("extract.too_large", len(html), most)


@functools.cache
def default_settings() -> ExtractSettings:
    """Return the settings of configs/defaults/extract.yaml."""
    return built_in_settings(ExtractSettings, "defaults/extract")


def extract(html: bytes | str, url: str | None = None) -> Extraction:
    """Main content of one page with the default settings.

    >>> extract("<html><title>T</title><body><article><p>Some text.</p></article>").title
    'T'
    """
    return Extractor(default_settings()).extract(html, url)
