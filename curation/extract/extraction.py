"""What extraction returns, or raises."""

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
    #: How sure the extraction is that the text is main content: the mean score of its characters.
    content_score: float | None = None  # None, here and below: no blocks were judged
    link_share: float | None = None  # of its characters, that in blocks that are links
    repaired: str = ""  # "encoding": another than the named one; "mojibake"; else empty
    page_starts: list[int] | None = None  # of a PDF: the byte in the text at which each begins


class PageTooLargeError(ValueError):
    """A page exceeds a limit of the settings: `reason`, `value` and `threshold` say which."""

    def __init__(self, reason: str, value: float, threshold: float) -> None:
        super().__init__(reason, value, threshold)
        self.reason, self.value, self.threshold = reason, value, threshold

    def __str__(self) -> str:
        return f"{self.reason}: {self.value:,.0f} is over {self.threshold:,.0f}"
