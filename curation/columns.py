"""Names of document columns, for settings and stage descriptions, which don't import Arrow."""

from __future__ import annotations

#: Columns of every document; `curation.schema.DOCUMENTS` has their types.
DOCUMENT_COLUMNS = ("id", "url", "date", "text", "title", "source")
#: Columns that `extract` adds about a page: its rights, its HTTP headers, its links.
PAGE_COLUMNS = ("rights", "response", "link_share")
#: Labels that stages add and later ones read.
LABEL_COLUMNS = ("language", "domain", "topic", "format")
