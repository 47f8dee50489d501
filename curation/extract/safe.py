"""Extraction that answers whatever happens: text, a refusal, or a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curation.errors import told
from curation.extract import Extraction, PageTooLargeError
from curation.extract.extract_settings import ExtractSettings
from curation.extract.texts import text_of
from curation.readers import Page

if TYPE_CHECKING:
    from curation.extract.extractor import Begun

_DETAIL = 500  # characters of an error message


@dataclass(frozen=True)
class Refused:
    """A page beyond a limit of the settings."""

    reason: str
    value: float
    threshold: float


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
        return Extractor(settings).begin(page.content, page.charset)
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
        return Extractor(settings).extract(page.content, page.url, page.charset)
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
