"""Extraction that answers whatever happens: text, a refusal, or a failure."""

from __future__ import annotations

from dataclasses import dataclass

from curation.extract import Extraction, PageTooLargeError
from curation.extract.extract_settings import ExtractSettings
from curation.extract.texts import text_of
from curation.readers import Page

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


def extract_page(settings: ExtractSettings, page: Page) -> Extraction | Refused | Failed:
    """Text and title of a page; raises nothing but MemoryError, because no page may end a run."""
    try:
        if page.kind == "text":
            return Extraction(text_of(page))
        from curation.extract.extractor import Extractor  # compiled kernels

        return Extractor(settings).extract(page.content, page.url, page.charset)
    except PageTooLargeError as error:
        return Refused(error.reason, error.value, error.threshold)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # RecursionError among them
        return Failed(f"{type(error).__name__}: {str(error)[:_DETAIL]}")


def wrong_length(characters: int, settings: ExtractSettings) -> Refused | None:
    """Return why a text of this length is not a document; None if it is one."""
    least = max(1, settings.min_characters)
    if characters < least:
        return Refused("extract.empty", characters, least)
    if characters > settings.max_characters:
        return Refused("extract.too_long", characters, settings.max_characters)
    return None
