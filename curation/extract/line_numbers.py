"""Line numbers that are in a listing as text: taken off where they surely are a gutter.

Most gutters have a class name and never reach a listing. What is left looks like any rows of data
that are numbered, so a column of numbers goes only if what follows it is laid out as code is.
"""

from __future__ import annotations

import regex

_NUMBERED = regex.compile(r"([ \t]*)(\d{1,6})(:?)([ \t]*)(.*)")
_LINES = 3  # fewer numbers follow each other by chance
_MAX_LINES = 10_000  # longer ones are data
_INDENTED = regex.compile(r"\t|  ")
# What lines of most languages hold, and rows of data and lists rarely do.
_CODE = regex.compile(
    r"""[;{}=<>\[\]$@\\]|\w\(|[:,(]$|::|->|^(?:\#|//|/\*|--|\*)|(?:^|\s)[~.]{0,2}/\w
    |^(?:import|from|return|def|class|if|elif|else|for|while|do|done|fi|end|try|catch|begin
    |function|func|fn|let|var|const|int|void|public|private|static|package|using|echo|print)\b""",
    regex.X,
)


def without_line_numbers(code: str) -> str:
    """The code without its line numbers; the code itself where they may be anything else.

    They follow each other on every line, in a column, and are followed by code: it is indented or
    has empty lines, and half of it has the signs of code.
    """
    lines = code.rstrip().split("\n")
    if not _LINES <= len(lines) <= _MAX_LINES:
        return code
    found: list[tuple[str, ...]] = []
    for line in lines:
        match = _NUMBERED.fullmatch(line)
        # Most listings end here, at their first line.
        if match is None or (found and int(match[2]) != int(found[-1][1]) + 1):
            return code
        found.append(match.groups())
    before = [len(indent) for indent, *_ in found]
    edges = [len(indent) + len(digits) for indent, digits, *_ in found]
    if len(set(before)) > 1 and len(set(edges)) > 1:
        return code
    if len({colon for _, _, colon, _, _ in found}) > 1:
        return code
    starts = _columns(edges, found)
    rests = [line[start:] for line, start in zip(lines, starts, strict=True)]
    glued = not found[0][2] and any(rest[:1].strip() for rest in rests)
    if glued and int(found[0][1]) != 1:
        return code  # `10px`
    if not _is_code(rests, glued):
        return code
    # One space parts the numbers from the code; further ones may be its indentation.
    if all(rest[:1] in ("", " ", "\t") for rest in rests):
        rests = [rest[1:] for rest in rests]
    return "\n".join(rests)


def _columns(edges: list[int], found: list[tuple[str, ...]]) -> list[int]:
    """Where what follows the number of each line begins.

    Numbers of one digit and of more may have a column of one width (`9   x`, `10  x`).
    """
    ends = [edge + len(colon) for edge, (_, _, colon, _, _) in zip(edges, found, strict=True)]
    texts = [(end + len(row[3]), end) for end, row in zip(ends, found, strict=True) if row[4]]
    first = min(texts, default=(0, 0))[0]
    widths = {end for start, end in texts if start == first}
    if first > max(ends) and len(widths) > 1:
        return [max(ends)] * len(ends)
    return ends


def _is_code(rests: list[str], glued: bool) -> bool:
    """Whether lines without their numbers are laid out and written as code."""
    filled = [i for i, rest in enumerate(rests) if rest.strip()]
    if not filled:
        return False
    texts = [rests[i].lstrip() for i in filled]
    if all(text[0] in "|,;.%)" for text in texts):
        return False  # rows and items
    least = min(len(rests[i]) - len(text) for i, text in zip(filled, texts, strict=True))
    indented = any(_INDENTED.match(rests[i], least) for i in filled)
    empty = len(filled) <= filled[-1] - filled[0]
    if not indented and not empty:
        return False
    signs = sum(1 for text in texts if _CODE.search(text))
    # Directly behind its number hardly anything is indented but code.
    return bool(signs) if glued and indented else 2 * signs >= len(texts)
