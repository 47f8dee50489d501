"""MathML of what MathJax 3 and 4 draw, for pages that have neither the formula's source nor its MathML.

Elements of the drawing have the names of MathML: `<mjx-mfrac>`, or `<g data-mml-node="mfrac">` in SVG.
Each character is an element that states its code point (`mjx-c1D465`, `data-c="1D465"`). What remains
is to put parts in the order of MathML, and to leave out what is only drawn, such as the sign of a root.
"""

from __future__ import annotations

import html
import unicodedata

import regex

_TAG = regex.compile(r"<(/?)([a-zA-Z][\w-]*+)([^<>]*+)>")
_NODE = regex.compile(r"""\bdata-mml-node=["'](\w{1,20})["']""", regex.I)
_POINT = regex.compile(r"""\b(?:mjx-c|data-c=["'])([0-9A-F]{2,5})\b""")
_NAMES = frozenset(
    "math mrow mi mo mn mtext ms mspace mfrac msqrt mroot msup msub msubsup mover munder munderover "
    "mtable mtr mtd mlabeledtr mpadded mphantom mstyle menclose".split()
)
_LEAVES = frozenset(("mi", "mo", "mn", "mtext", "ms"))
_ROLES = frozenset(("mjx-over", "mjx-script", "mjx-root"))
_VOID = frozenset(("path", "use", "rect", "line"))
_MAX_DEPTH = 200
_SURD = "\u221a"
#: Upper pieces of tall fences, which stand for the fence; other pieces are left out.
_TALL = {0x239B: "(", 0x239E: ")", 0x23A1: "[", 0x23A4: "]", 0x23A7: "{", 0x23AB: "}"}
_VARIANTS = {
    "BOLD": "bold", "DOUBLE-STRUCK": "double-struck", "SCRIPT": "script", "FRAKTUR": "fraktur",
}  # fmt: skip


class _Part:
    __slots__ = ("children", "name", "role", "text", "variant")

    def __init__(self, name: str, role: str = "") -> None:
        self.name, self.role = name, role
        self.children: list[_Part] = []
        self.text = self.variant = ""


def drawing_to_mathml(source: str) -> str:
    """Return the MathML of a `<mjx-container>`, "" where nothing in it is understood."""
    parts = _tree(source).children
    return f"<math>{''.join(map(_mathml, parts))}</math>" if parts else ""


def _tree(source: str) -> _Part:
    opened: list[tuple[str, _Part, str]] = [("", _Part(""), "")]
    for end, tag, rest in _TAG.findall(source):
        if end:
            if len(opened) > 1 and opened[-1][0] == tag:
                opened.pop()
            continue
        _, part, role = opened[-1]
        if point := _POINT.search(rest):
            _add(part, int(point[1], 16))
        if tag in _VOID or rest.endswith("/"):
            continue
        node = _NODE.search(rest)
        name = (node[1] if node else tag.removeprefix("mjx-")).lower()
        name = "mrow" if name == "texatom" else name
        if tag == "mjx-surd" or len(opened) >= _MAX_DEPTH:
            part = _Part("")  # in nothing
        elif name in _NAMES:
            part.children.append(inner := _Part(name, role))
            part, role = inner, ""
        elif tag in _ROLES:
            role = tag
        opened.append((tag, part, role))
    return opened[0][1]


def _add(part: _Part, point: int) -> None:
    if 0x239B <= point <= 0x23B1:
        part.text = part.text or _TALL.get(point, "")
        return
    if 0xD800 <= point <= 0xDFFF:
        return
    character = chr(point)
    if 0x1D400 <= point <= 0x1D7FF:
        words = unicodedata.name(character, "").split()
        part.variant = next((_VARIANTS[word] for word in words if word in _VARIANTS), "")
        character = unicodedata.normalize("NFKC", character)
    part.text += character


def _mathml(part: _Part) -> str:
    if part.name in _LEAVES:
        variant = f' mathvariant="{part.variant}"' if part.variant else ""
        return f"<{part.name}{variant}>{html.escape(part.text)}</{part.name}>"
    inner = "".join(map(_mathml, _ordered(part)))
    return f"<{part.name}>{inner}</{part.name}>"


def _ordered(part: _Part) -> list[_Part]:
    """The children of a part as MathML has them."""
    name, children = part.name, part.children
    if name in ("msqrt", "mroot"):
        children = [c for c in children if c.name != "mo" or c.text != _SURD]
        index = [c for c in children if c.role == "mjx-root"]
        return [c for c in children if c.role != "mjx-root"] + index
    scripts = [c for c in children if c.role == "mjx-script"]
    if len(children) == 3 and (len(scripts) == 2 or name == "msubsup"):
        return [children[0], children[2], children[1]]  # drawn from the top
    over = [c for c in children if c.role == "mjx-over"]
    below = [c for c in children if c.role != "mjx-over"]
    if name == "munderover" and over and len(below) == 1 and below[0].name == "munder":
        return [*below[0].children, *over]
    return below + over
