"""References that were escaped twice (`&amp;nbsp;`), so that the text has them: decoded where certain."""

from __future__ import annotations

import html
import re
from html.entities import name2codepoint

_NAMES = (name2codepoint.keys() | {"apos"}) - {"lt", "gt"}
# A backslash before it is markdown's.
_REFERENCE = re.compile(
    r"(?:\\&|&)(?:amp;)*(?:[a-zA-Z][a-zA-Z\d]{1,7}|#\d{2,6}|#[xX][\da-fA-F]{2,5});"
)
# A text that speaks of markup may mean the reference itself.
_ABOUT = re.compile(r"html|xml|entit|escap|markup|ampersand|encod|unicode|charset", re.I)
_ASCII = "\"&'"  # of ASCII, what may be read: `<` and `*` might make markup


def unescaped(*texts: str) -> tuple[str, ...]:
    """Text (or markdown) and title of a page without code with their references read.

    Where any of them is about markup they come back as they are.
    """
    found = {one for text in texts if "&" in text for one in _REFERENCE.findall(text)}
    signs = {one: sign for one in found if (sign := _sign(one))}
    if not signs or any(_ABOUT.search(text) for text in texts):
        return texts
    return tuple("\n".join(_line(line, signs) for line in text.split("\n")) for text in texts)


def _line(line: str, signs: dict[str, str]) -> str:
    if "&" not in line:
        return line
    read = _REFERENCE.sub(lambda one: signs.get(one[0], one[0]), line)
    if read == line:
        return line
    indent = line[: len(line) - len(line.lstrip())]  # of lists in markdown
    return indent + " ".join(read.split())


def _sign(reference: str) -> str:
    """What a reference stands for; "" where it is none or is better left."""
    name = reference.removeprefix("\\")[1:]
    while len(name) > 4 and name.startswith("amp;"):
        name = name[4:]
    if name[0] != "#" and name[:-1] not in _NAMES:
        return f"&{name}" if "&amp;" in reference else ""
    sign = html.unescape(f"&{name}")
    return sign if len(sign) == 1 and (sign >= "\xa0" or sign in _ASCII) else ""
