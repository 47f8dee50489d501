"""The columns that a document has of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curation.extract.extraction import Extraction
from curation.readers.records import Page
from curation.rights.signals import document_rights, response_of

if TYPE_CHECKING:
    from curation.rights.sites import SiteIndex


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
    return {
        "rights": document_rights(page, found.rights, found.text, sites),
        "response": response_of(page, found.language),
        "content_score": found.content_score,
        "link_share": found.link_share,
    }
