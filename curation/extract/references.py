"""References that were escaped twice (`&amp;nbsp;`) and so stand in the text: read where certain."""

from __future__ import annotations

import html
from html.entities import name2codepoint

import regex

_NAMES = "|".join(sorted((name2codepoint.keys() | {"apos"}) - {"lt", "gt"}))
_REFERENCE = regex.compile(rf"\\?&(?:amp;)*((?:{_NAMES}|\#\d{{2,6}}|\#[xX][\da-fA-F]{{2,5}});)")
# A text that speaks of markup may mean the reference itself.
_ABOUT = regex.compile(r"html|xml|entit|escap|markup|ampersand|encod|unicode|charset", regex.I)
_ASCII = "\"&'"  # of ASCII, what may be read: `<` and `*` might make markup


def unescaped(*texts: str) -> tuple[str, ...]:
    """Text (or markdown) and title of a page without code with their references read.

    Where any of them is about markup they come back as they are.
    """
    if not any("&" in text and _REFERENCE.search(text) for text in texts):
        return texts
    if any(_ABOUT.search(text) for text in texts):
        return texts
    return tuple("\n".join(map(_line, text.split("\n"))) for text in texts)


def _line(line: str) -> str:
    read = _REFERENCE.sub(_sign, line)
    if read == line:
        return line
    indent = line[: len(line) - len(line.lstrip())]  # of lists in markdown
    return indent + " ".join(read.split())


def _sign(found: regex.Match[str]) -> str:
    sign = html.unescape(f"&{found[1]}")
    known = len(sign) == 1 and (sign >= "\xa0" or sign in _ASCII)
    return sign if known else found[0]
