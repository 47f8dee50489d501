"""Text that arrives as text, and what becomes of it before it is a document."""

from __future__ import annotations

import unicodedata

from curation.readers import Page


def text_of(page: Page) -> str:
    """Return the text of a page that is not HTML, normalized as the page says.

    `none`: sound UTF-8 stays byte for byte, anything else is decoded; `nfc`: Unicode's composed
    form; `repair`: mojibake undone, white space at the ends of lines cut, NFC.
    """
    if page.normalize == "none":
        return _exactly(page)
    text = _decoded(page)
    if page.normalize == "nfc":
        return unicodedata.normalize("NFC", text)
    from curation.extract.clean import clean  # here and below: compiled kernels
    from curation.extract.mojibake import repaired

    return clean(repaired(text))


def _exactly(page: Page) -> str:
    try:
        return page.content.decode()
    except UnicodeDecodeError:
        return _decoded(page)


def _decoded(page: Page) -> str:
    from curation.readers.charset import decode_text

    return decode_text(page.content, page.charset)[0]
