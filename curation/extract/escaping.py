"""Prose, inline code and formulas as CommonMark: nothing in them is taken for markup."""

from __future__ import annotations

import itertools

import regex

# Signs of markup wherever they are. `_` within a word and `*` between spaces are none; `\$` is a
# dollar to MathJax and to markdown.
_SIGNS = regex.compile(
    r"""\\(?=[!-\#%-/:-@\[-`{-~\n]|\Z) | ` | (?<!\s)\* | \*(?!\s) | (?<![^\W_])_ | _(?![^\W_])
    | <(?=[A-Za-z/!?]) | &(?=\#?\w{1,31};) | \](?=\() | ~(?=~) | (?<=~)~""",
    regex.X,
)
_LINE_STARTS = regex.compile(
    r"""(?m)^(?: \#{1,6}(?=\s|$) | [-+*](?=\s|$) | > | (\d{1,9})(?=[.)](?:\s|$)) | ~~~ | \[
    | =+[ ]*$ | (?=[|:\- ]*-)[|:-][|:\- ]*$ )""",
    regex.X,
)
# Formulas that are in the text of a page as they are.
_WRITTEN = regex.compile(
    r"""\\\((?<inline>[^\n]{1,2000}?)\\\) | \\\[(?<display>.{1,2000}?)\\\]
    | (?<verbatim>\$\$[^$]{1,2000}\$\$ | \$(?=[^\s$])[^$\n]{1,300}(?<=[^\s\\])\$(?!\d))""",
    regex.X | regex.S,
)
_BACKTICKS = regex.compile(r"`+")
_CLOSING = regex.compile(r"(?<=\s)#(?=#*$)")


def prose(text: str) -> str:
    """Text with the signs of markup escaped; formulas written in it are between dollars."""
    if "$" not in text and "\\" not in text:
        return _SIGNS.sub(r"\\\g<0>", text)
    parts = []
    at = 0
    for found in _WRITTEN.finditer(text):
        parts.append(_SIGNS.sub(r"\\\g<0>", text[at : found.start()]))
        if found["inline"] is not None:
            parts.append(f"${found['inline'].strip()}$")
        elif found["display"] is not None:
            parts.append(f"$${' '.join(found['display'].split())}$$")
        else:
            parts.append(" ".join(found["verbatim"].split()))
        at = found.end()
    parts.append(_SIGNS.sub(r"\\\g<0>", text[at:]))
    return "".join(parts)


def inline_code(code: str) -> str:
    """A code span; "" when there is nothing in it."""
    code = code.replace("\n", " ")
    if not code.strip():
        return code
    taken = {len(run) for run in _BACKTICKS.findall(code)}
    ticks = "`" * next(n for n in itertools.count(1) if n not in taken)
    padded = code[0] == "`" or code[-1] == "`" or (code[0] == " " and code[-1] == " ")
    return f"{ticks} {code} {ticks}" if padded else f"{ticks}{code}{ticks}"


def fence(code: str) -> str:
    """The fence of a listing: longer than any run of backticks in it."""
    return "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(code)), default=0))


def paragraph(text: str) -> str:
    """A paragraph of escaped text: its lines end in hard breaks and start no other block."""
    lines = (line.strip() for line in text.split("\n"))
    text = "\n".join(line for line in lines if line)
    return _LINE_STARTS.sub(_escaped_start, text).replace("\n", "\\\n")


def _escaped_start(found: regex.Match[str]) -> str:
    return f"{found[0]}\\" if found[1] else f"\\{found[0]}"


def heading(text: str, level: int) -> str:
    """A heading of escaped text."""
    return "#" * level + " " + _CLOSING.sub(r"\\#", " ".join(text.split()))


def cell(text: str, formula: bool) -> str:
    """A piece of escaped text, or a formula, as it is in a cell of a table."""
    if formula:
        text = text.replace("\\|", "\\Vert ").replace("|", "\\vert ").replace("\n", " ")
        return text.replace(" $", "$")  # a space before it, and it ends no formula
    return text.replace("|", "\\|")
