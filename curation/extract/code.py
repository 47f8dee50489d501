"""Code blocks: line numbers taken off, everything else kept as it stands."""

from __future__ import annotations

import itertools

import regex

_NUMBERED = regex.compile(r"^[ \t]*(\d{1,6})(?:[.:|)]?(?=[ \t]|$)|(?=\D|$))")
_LANGUAGE = regex.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush|sourceCode|code|hljs)[-:\s]+"
    r"([A-Za-z][\w+#.-]{0,20})",
    regex.I,
)
_NO_LANGUAGE = frozenset(
    "block box wrapper container copy toolbar text-wrap highlight code pre none content body".split()
)
_SHARE = 0.7  # of the lines must carry consecutive numbers


def without_line_numbers(code: str) -> str:
    """The code without a column of line numbers; "" when there is nothing but numbers.

    A column is taken off only where the numbers of at least 70 % of the lines, and of no fewer than
    three, follow each other.
    """
    lines = code.split("\n")
    if len(lines) < 3:
        return code
    found = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match.group(1)) if match else None for match in found]
    follows = sum(
        1
        for before, after in itertools.pairwise(numbers)
        if before is not None and after == before + 1
    )
    if follows + 1 < max(3, _SHARE * len(lines)):
        return code
    if all(
        match is None or match.end() == len(line.rstrip())
        for match, line in zip(found, lines, strict=True)
    ):
        return "" if all(match for match in found) else code
    stripped = [
        line[match.end() :] if match else line for line, match in zip(lines, found, strict=True)
    ]
    shared = 1 if all(line[:1] in ("", " ", "\t") for line in stripped) else 0
    return "\n".join(line[shared:] for line in stripped)


def language_of(classes: str) -> str:
    """Programming language that class names state (`language-python`, `brush: js`), or ""."""
    for found in _LANGUAGE.finditer(classes):
        name = found.group(1).lower().rstrip(";")
        if name not in _NO_LANGUAGE:
            return name
    return ""
