"""Names of documents' columns, for settings and descriptions, which are read without Arrow."""

from __future__ import annotations

#: What every document has; `curation.schema.DOCUMENTS` has their types.
DOCUMENT_COLUMNS = ("id", "url", "date", "text", "title", "source")
#: What `extract` adds of a page's rights and of its HTTP head.
PAGE_COLUMNS = ("rights", "response")
#: Labels that stages add and later ones read.
LABEL_COLUMNS = ("language", "domain", "topic", "format")
