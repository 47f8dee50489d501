"""Programming languages that class names state."""

from __future__ import annotations

import regex

_LANGUAGE = regex.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush|sourceCode|code|hljs)[-:\s]+"
    r"([A-Za-z][\w+#.-]{0,20})",
    regex.I,
)
_NO_LANGUAGE = frozenset(
    "block box wrapper container copy toolbar text-wrap highlight code pre none content body".split()
)


def language_of(classes: str) -> str:
    """Programming language that class names state (`language-python`, `brush: js`), or ""."""
    for found in _LANGUAGE.finditer(classes):
        name = found.group(1).lower().rstrip(";")
        name = name.removeprefix("language-").removeprefix("lang-")
        if name not in _NO_LANGUAGE:
            return name
    return ""
