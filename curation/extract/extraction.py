"""What extraction returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # its module has compiled kernels
    from curation.rights.page import PageRights


@dataclass(frozen=True, slots=True)
class Extraction:
    """Main content of a page as plain text, and what the page says of itself."""

    text: str
    title: str = ""  # of <title>, else of `og:title`, else of the only <h1>
    language: str = ""  # as the page declares it: `<html lang>`, lower case, "" when it doesn't
    encoding: str = ""  # WHATWG name of the encoding that was decoded; "" for a str
    code_languages: tuple[str, ...] = ()  # programming languages that code blocks state, in order
    rights: PageRights | None = None  # what an HTML page says of them
