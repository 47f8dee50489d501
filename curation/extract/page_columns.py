"""The columns that a document has of its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.extract.extraction import Extraction
from curation.readers.records import Page
from curation.rights.signals import Signal, document_rights, response_of


def page_columns(
    page: Page, found: Extraction | None, of_site: Sequence[Signal] = ()
) -> dict[str, Any]:
    """Return the values of `columns.PAGE_COLUMNS`.

    Args:
        page: that the document is of.
        found: what was extracted from it; None where extraction failed.
        of_site: what the site's files say of the page.
    """
    found = found or Extraction("")
    return {
        "rights": document_rights(page, found.rights, found.text, of_site),
        "response": response_of(page, found.language),
        "link_share": found.link_share,
    }
