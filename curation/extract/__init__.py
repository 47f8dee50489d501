"""HTML to clean text: `extract` for one page, `Extractor` for a recipe's settings."""

from typing import TYPE_CHECKING

from curation.lazy import lazily

if TYPE_CHECKING:
    from curation.extract.extraction import Extraction as Extraction
    from curation.extract.extraction import PageTooLargeError as PageTooLargeError
    from curation.extract.extractor import Extractor as Extractor
    from curation.extract.extractor import extract as extract

lazily(__name__, extraction="Extraction PageTooLargeError", extractor="Extractor extract")
