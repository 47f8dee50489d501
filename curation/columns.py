"""Names of document columns, domains and paths, for settings and stage descriptions without Arrow.

Paths of documents: code and mathematics have their own rules; everything else is prose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from curation.text.structure import Structure

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

PROSE_PATH, CODE_PATH, MATH_PATH = 0, 1, 2
PATHS = ("prose", "code", "mathematics")
#: Least share of the characters that are in lines of code: .63 to 1 in 98 % of source files of
#: Python's library.
CODE_SHARE = 0.5
#: Least number of marks of mathematics (TeX commands, powers, symbols) per character: reached by
#: 0.2 % of general pages, 90 % of texts of mathematics.
MATH_RATIO = 0.002


def document_paths(found: Structure) -> npt.NDArray[np.uint8]:
    """Return the path of every document: uint8 [texts], an index into `PATHS`."""
    import numpy as np

    out = np.full(len(found.code_share), PROSE_PATH, np.uint8)
    out[found.math_ratio >= MATH_RATIO] = MATH_PATH
    out[found.code_share >= CODE_SHARE] = CODE_PATH
    return out
