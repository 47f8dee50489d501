"""A hook of mkdocs: links to files of the repository, which are not on the site, become paths."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with `text (path)` in place of links that lead out of `docs/`."""
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown)
