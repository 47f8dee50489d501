"""Extraction that answers whatever happens: text, a refusal, or a failure.

Text that arrives as text, and what becomes of it before it is a document.

The columns that a document has of its page.
"""

from __future__ import annotations

import contextlib
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curation.errors import told
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction, PageTooLargeError
from curation.readers.records import Page

if TYPE_CHECKING:
    from curation.extract.extractor import Begun
    from curation.rights.sites import SiteIndex


def text_of(page: Page) -> str:
    """Return the text of a page that is not HTML, normalized as the page says.

    `none`: sound UTF-8 stays byte for byte, anything else is decoded; `nfc`: Unicode's composed
    form; `repair`: mojibake undone, white space at the ends of lines cut, NFC.
    """
    if page.normalize == "none":
        with contextlib.suppress(UnicodeDecodeError):
            return page.content.decode()
        return _decoded(page)
    text = _decoded(page)
    if page.normalize == "nfc":
        return unicodedata.normalize("NFC", text)
    from curation.extract.clean import clean  # here and below: compiled kernels
    from curation.text.mojibake import repaired

    return clean(repaired(text))


def _decoded(page: Page) -> str:
    from curation.readers.charset import decode_text

    return decode_text(page.content, page.charset)[0]


_DETAIL = 500  # characters of an error message


@dataclass(frozen=True)
class Refused:
    """A page that is not kept: beyond a limit of the settings, or it could not be extracted."""

    reason: str
    value: float | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class Failed:
    """A page over which the extractor raised an error."""

    detail: str


def begin_page(settings: ExtractSettings, page: Page) -> Begun | None:
    """Begin a page for `extract_page`; None where it is to be done as a whole, for any reason."""
    if page.kind != "html" or settings.engine != "curation":
        return None
    from curation.extract.extractor import Extractor  # compiled kernels

    try:
        return Extractor(settings).begin(page.content, page.charset, page.is_whole)
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException:  # comes again, and is told then
        return None


def extract_page(
    settings: ExtractSettings, page: Page, begun: Begun | None = None
) -> Extraction | Refused | Failed:
    """Text and title of a page; raises only MemoryError and KeyboardInterrupt: no page ends a run."""
    try:
        if page.kind == "text":
            return Extraction(text_of(page))
        if page.kind == "pdf":
            from curation.extract.pdf import extract_pdf  # here and below: compiled kernels

            return extract_pdf(page.content, settings)
        from curation.extract.extractor import Extractor

        if begun is not None:
            return Extractor(settings).finish(begun)
        return Extractor(settings).extract(page.content, page.url, page.charset, page.is_whole)
    except PageTooLargeError as error:
        return Refused(error.reason, error.value, error.threshold)
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # RecursionError among them, and what is no Exception
        return Failed(told(error, _DETAIL))


def wrong_length(characters: int, settings: ExtractSettings) -> Refused | None:
    """Return why a text of this length is not a document; None if it is one."""
    least = max(1, settings.min_characters)
    if characters < least:
        return Refused("extract.empty", characters, least)
    if characters > settings.max_characters:
        return Refused("extract.too_long", characters, settings.max_characters)
    return None


def page_columns(
    page: Page, found: Extraction | None, sites: SiteIndex | None = None
) -> dict[str, Any]:
    """Return the values of `columns.PAGE_COLUMNS`.

    Args:
        page: that the document is of.
        found: what was extracted from it; None where extraction failed.
        sites: what files of sites say.
    """
    found = found or Extraction("")
    from curation.rights.signals import document_rights, response_of  # compiled kernels

    return {
        "rights": document_rights(page, found.rights, found.text, sites),
        "response": response_of(page, found.language),
        "content_score": found.content_score,
        "link_share": found.link_share,
    }
