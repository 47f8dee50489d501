"""Signs of added and removed lines, which a diff may have in an attribute alone."""

from __future__ import annotations

import regex

_ATTRIBUTE = b"data-code-marker="
_MARKER = regex.compile(rb"""data-code-marker=["']([-+ ])["']""")
_REACH = 1000  # bytes from the class of a line's cell to the attribute


def has_markers(source: bytes) -> bool:
    """Whether a page has such lines at all."""
    return _ATTRIBUTE in source


def marker_of(source: bytes, class_end: int) -> str:
    """Sign of the line whose cell has its class before `class_end`: `+`, `-`, a space, or none."""
    if not class_end:
        return ""
    stop = source.find(b"</td", class_end, class_end + _REACH)
    found = _MARKER.search(source, class_end, stop if stop >= 0 else class_end + _REACH)
    return found[1].decode() if found else ""
