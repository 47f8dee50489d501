"""Names of document columns and domains, for settings and stage descriptions without Arrow."""

from typing import Literal, get_args

#: Columns of every document; `curation.schema.DOCUMENTS` has their types.
DOCUMENT_COLUMNS = ("id", "url", "date", "text", "title", "source")
#: Columns that `extract` adds about a page: its rights, its HTTP headers, how sure the
#: extraction is of its text, its links.
PAGE_COLUMNS = ("rights", "response", "content_score", "link_share")
#: Labels that stages add and later ones read.
LABEL_COLUMNS = ("language", "domain", "topic", "format")


ByContent = Literal["math_reasoning", "code"]  # the others are what is left, by language
Domain = Literal["general", "math_reasoning", "code", "multilingual"]
DOMAINS: tuple[str, ...] = get_args(Domain)
BY_CONTENT: tuple[str, ...] = get_args(ByContent)
