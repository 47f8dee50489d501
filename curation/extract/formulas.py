"""Formulas of a page as TeX: from MathML, MathJax, KaTeX, image alternatives and addresses."""

import functools
import html
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import regex

from curation.config import read_yaml
from curation.extract import blocks as s
from curation.resources import root

_ANNOTATION_TAG = regex.compile(r"<(?:\w+:)?annotation\b([^<>]*+)>", regex.I)
_ANNOTATION_END = regex.compile(r"</(?:\w+:)?annotation", regex.I)
_TEX_ENCODING = regex.compile(r"""encoding\s*=\s*["']?[^"'>]*\b(?:tex|latex)\b""", regex.I)
_ALTTEXT = regex.compile(
    r"""[^<]*+<(?:\w+:)?math\b[^>]*?\salttext\s*=\s*(?:"([^"]*)"|'([^']*)')""", regex.I | regex.S
)
_DISPLAY = regex.compile(
    r"""[^<]*+<(?:\w+:)?math\b[^>]*?\s(?:display\s*=\s*["']?block|mode\s*=\s*["']?display)""",
    regex.I,
)
_CDATA = regex.compile(r"^\s*(?:%\s*)?<!\[CDATA\[(.*?)(?:%\s*)?\]\]>\s*$", regex.S)
_DISPLAYSTYLE = regex.compile(r"^\{\s*\\displaystyle\b\s*(.*)\}$", regex.S)
_STYLES = regex.compile(
    r"^(?:\\(?:displaystyle|inline|large|LARGE|huge|begingroup|endgroup)(?![A-Za-z])\s*"
    r"|\\(?:dpi|bg|fn)(?:\{\w*\}|_\w+)\s*)+"
)
_COMMENT = regex.compile(r"(?<!\\)%[^\n]*\n\s*")
_SPACE = regex.compile(r"\s+")
_TEX = regex.compile(r"\\[A-Za-z]+|\\[(\[]|[\^_]\{?\w|\$[^$]+\$")
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"), ("[tex]", "[/tex]"))
_TAG = regex.compile(r"<[^<>]*+>")
_SHOWN = regex.compile(r"(?:^|[-\s])display(?:ed)?\b", regex.I)  # in class names
_SERVER = regex.compile(r"codecogs|mimetex|mathtex", regex.I)
_TYPED = regex.compile(r"\[(latex|i?tex)\]((?:[^\[]|\[(?!/?(?:latex|i?tex)\]))++)\[/\1\]")
_WIRIS = str.maketrans("«»¨§", '<>"&')  # how Wiris writes MathML in an attribute
_MAX_SOURCE = 200_000  # characters; longer "formulas" are damage
_SHORT_SOURCE = 400  # characters; formulas as short are often the same


def tex(kind: int, source: str) -> str:
    """The formula with its delimiters, `$...$` or `$$...$$` when displayed; "" when it is none.

    `kind` is one of the kinds of atoms of `scan`, `source` the text of the page that the atom spans.
    """
    if len(source) > _MAX_SOURCE:
        return ""
    return (_tex if len(source) <= _SHORT_SOURCE else _tex.__wrapped__)(kind, source)


@functools.lru_cache(maxsize=4096)
def _tex(kind: int, source: str) -> str:
    if kind == s.DATA_MATHML:
        source, kind = html.unescape(source), s.MATHML
    if kind == s.MATHML:
        return delimited(tidy(mathml_to_tex(source)), bool(_DISPLAY.match(source)))
    if kind in (s.TEX_INLINE, s.TEX_DISPLAY):
        found = _CDATA.match(source)
        return delimited(tidy(found.group(1) if found else source), kind == s.TEX_DISPLAY)
    if kind == s.IMAGE:
        return image(source)
    if kind in (s.HTML_INLINE, s.HTML_DISPLAY):
        formula = html.unescape(_TAG.sub("", source)).strip()
        return delimited(tidy(formula), kind == s.HTML_DISPLAY or formula.startswith("$$"))
    return ""


def with_typed_formulas(text: str) -> str:
    """Return a text with formulas between dollars that are between `[latex]` and `[/latex]`."""
    if "tex]" not in text:
        return text
    return _TYPED.sub(lambda found: delimited(tidy(found[2]), False), text)


def image(tag: str) -> str:
    """The formula that an image shows: its MathML, TeX in its alternative text or in its address."""
    attributes = _attributes(tag)
    if written := attributes.get("data-mathml"):
        return delimited(tidy(mathml_to_tex(written.translate(_WIRIS))), False)
    alt = (attributes.get("alt") or "").removeprefix("LaTeX:")  # Canvas
    display = bool(_SHOWN.search(attributes.get("class") or ""))
    address = attributes.get("src") or attributes.get("data-src") or ""
    if not _TEX.search(alt) and (formula := address_formula(address)):
        return formula
    return image_formula(alt or attributes.get("title") or "", display)


def delimited(formula: str, display: bool) -> str:
    if not formula:
        return ""
    displayed = display or formula.startswith("\\begin{")
    return f"$${formula}$$" if displayed else f"${formula}$"


def tidy(formula: str) -> str:
    """A formula without delimiters, wrappers that only set the style, comments and line breaks."""
    formula = formula.strip()
    for opening, closing in _DELIMITERS:
        inside = len(formula) > len(opening) + len(closing)
        if inside and formula.startswith(opening) and formula.endswith(closing):
            formula = formula[len(opening) : -len(closing)].strip()
            break
    if found := _DISPLAYSTYLE.match(formula):
        formula = found.group(1)
    formula = _STYLES.sub("", formula)
    lines = formula.rfind("\n") + 1
    formula = _COMMENT.sub("", formula[:lines]) + formula[lines:]
    return _SPACE.sub(" ", formula).strip()


def image_formula(alt: str, display: bool = False) -> str:
    """TeX in the alternative text of a formula image; other alternative texts are none."""
    alt = alt.strip()
    display = display or alt.startswith(("$$", "\\["))
    if _TEX.search(alt) or (len(alt) < 60 and " " not in alt.strip("$")):
        return delimited(tidy(alt), display)
    return delimited(tidy(alt), display) if regex.search(r"[=+<>^_\u2190-\u22ff]", alt) else ""


def address_formula(address: str) -> str:
    """TeX in the query of a formula server's address (codecogs, mimetex, latex.php, chart API)."""
    server, _, query = address.replace("&space;", " ").partition("?")
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        if equals and name in ("latex", "chl", "tex", "formula", "eq", "math"):
            return delimited(tidy(urllib.parse.unquote_plus(value)), False)
    formula = urllib.parse.unquote(query)
    if "\\" in formula or _SERVER.search(server):
        return delimited(tidy(formula), False)
    return ""


def mathml_to_tex(source: str) -> str:
    """TeX of a `<math>` element: its annotation, its alttext, or its presentation converted."""
    if (stated := _annotation(source)) is not None:
        annotation = html.unescape(stated).strip()
        inner = _CDATA.match(annotation)
        return inner.group(1) if inner else annotation
    if (found := _ALTTEXT.match(source)) and (alt := found.group(1) or found.group(2)):
        return html.unescape(alt)
    return _convert(_tree(source), 0)


def _annotation(source: str) -> str | None:
    for tag in _ANNOTATION_TAG.finditer(source):
        if _TEX_ENCODING.search(tag.group(1)):
            end = _ANNOTATION_END.search(source, tag.end())
            return source[tag.end() : end.start()] if end else None
    return None


class _Node:
    __slots__ = ("attributes", "children", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes = tag, attributes
        self.children: list[_Node] = []
        self.text = ""


_MAX_DEPTH = 100


_MARKUP = regex.compile(r"<(/?)([a-zA-Z][^\s/<>]*+)([^<>]*+)>|<[!?][^<>]*+>|[^<]++|<[^<]*+")
_ATTRIBUTE = regex.compile(r"""([\w:-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"']++))""")
_EMPTY = frozenset(("mspace", "mprescripts", "none"))


def _tree(source: str) -> _Node:
    """A small tree of one `<math>` element; deeper than _MAX_DEPTH it is flat."""
    opened = [_Node("mrow", {})]
    for markup in _MARKUP.finditer(source):
        end, name, rest = markup.groups()
        if name is None:
            text = markup.group()
            if not text.startswith(("<!", "<?")):
                opened[-1].text += html.unescape(text) if "&" in text else text
            continue
        tag = name.lower().rpartition(":")[2]
        if end:
            for depth in range(len(opened) - 1, 0, -1):
                if opened[depth].tag == tag:
                    del opened[depth:]
                    break
            continue
        node = _Node(tag, _attributes(rest) if "=" in rest else {})
        opened[-1].children.append(node)
        if len(opened) < _MAX_DEPTH and tag not in _EMPTY and not rest.endswith("/"):
            opened.append(node)
    return opened[0]


def _attributes(source: str) -> dict[str, str | None]:
    found = _ATTRIBUTE.findall(source)
    return {name.lower(): html.unescape(a or b or c) for name, a, b, c in found}


_LISTED: dict[str, Any] = read_yaml(root() / "configs" / "lists" / "mathml.yaml")
_SYMBOLS: Mapping[str, str] = _LISTED["symbols"]
_FUNCTIONS = frozenset(_LISTED["functions"].split())


def _symbols(text: str) -> str:
    out = []
    command = False
    last = ""
    for character in text.strip():
        symbol = _SYMBOLS.get(character, character)
        if command and last.isalpha() and symbol[:1].isalpha():
            out.append(" ")
        out.append(symbol)
        command = command or "\\" in symbol
        last = symbol[-1:] or last
    return "".join(out)


def _join(parts: list[str]) -> str:
    out: list[str] = []
    for part in parts:
        if part:
            if out and part[0].isalpha() and _COMMAND_END.search(out[-1][-_LONGEST_COMMAND:]):
                out.append(" ")
            out.append(part)
    return "".join(out)


_LONGEST_COMMAND = 40
_COMMAND_END = regex.compile(r"\\[A-Za-z]+$")


def _convert(node: _Node, depth: int) -> str:
    """TeX of a presentation MathML element; unknown elements are rows of their children."""
    tag = node.tag
    if tag in ("annotation", "annotation-xml", "mphantom", "mprescripts", "none"):
        return ""
    if tag in ("mi", "mo", "mn", "mtext", "ms"):
        return _leaf(tag, node)
    if tag == "mspace":
        return " "
    if fenced := _fenced(node, depth):
        return fenced
    children = [_convert(child, depth + 1) for child in node.children]
    if tag == "msup" and len(children) == 2 and children[1] and not children[1].strip("'"):
        return _base(children[0]) + children[1]  # f''
    if form := _FORMS.get((tag, len(children))):
        return form.format(*children, base=_base(children[0]))
    if tag in _CONVERTERS:
        return _CONVERTERS[tag](node, children, depth)
    return _join(children) or _symbols(node.text)


#: TeX of elements by their number of children.
_FORMS = {
    ("mfrac", 2): r"\frac{{{0}}}{{{1}}}",
    ("mroot", 2): r"\sqrt[{1}]{{{0}}}",
    ("msup", 2): "{base}^{{{1}}}",
    ("msub", 2): "{base}_{{{1}}}",
    ("msubsup", 3): "{base}_{{{1}}}^{{{2}}}",
    ("munderover", 3): "{base}_{{{1}}}^{{{2}}}",
    ("mmultiscripts", 3): "{base}_{{{1}}}^{{{2}}}",
    ("mmultiscripts", 4): "{{}}_{{{2}}}^{{{3}}}{base}",  # scripts before the base
}


def _enclosed(node: _Node, children: list[str], depth: int) -> str:
    struck = "strike" in (node.attributes.get("notation") or "")
    return f"\\cancel{{{_join(children)}}}" if struck else _join(children) or _symbols(node.text)


def _in_fences(node: _Node, children: list[str], depth: int) -> str:
    opening = node.attributes.get("open")
    closing = node.attributes.get("close")
    inner = (node.attributes.get("separators") or ",")[:1].join(children)
    left, right = "(" if opening is None else opening, ")" if closing is None else closing
    if len(children) == 1 and (rows := _rows(node.children[0], depth)) and (left, right) in _AROUND:
        return _array(_AROUND[left, right], rows)
    return f"\\left{_symbols(left) or '.'}{inner}\\right{_symbols(right) or '.'}"


#: Environments of TeX by the fences around a table.
_AROUND = {
    ("", ""): "matrix", ("(", ")"): "pmatrix", ("[", "]"): "bmatrix", ("{", "}"): "Bmatrix",
    ("|", "|"): "vmatrix", ("‖", "‖"): "Vmatrix", ("∥", "∥"): "Vmatrix", ("{", ""): "cases",
}  # fmt: skip


def _array(environment: str, rows: list[str]) -> str:
    return f"\\begin{{{environment}}}" + " \\\\ ".join(rows) + f"\\end{{{environment}}}"


def _environment(node: _Node) -> str:
    """That of a table, whose columns may be the sides of equations."""
    columns = (node.attributes.get("columnalign") or "").split()
    return "aligned" if columns[:2] == ["right", "left"] else "matrix"


def _rows(node: _Node, depth: int) -> list[str]:
    """Rows of a table, which may be alone in rows without meaning; none where it is something else."""
    while node.tag in ("mrow", "mstyle", "mpadded") and len(node.children) == 1:
        node = node.children[0]
    if node.tag != "mtable":
        return []
    return [_convert(row, depth + 1) for row in node.children]


def _fenced(node: _Node, depth: int) -> str:
    """A table or a fraction without a line with the fences next to it; "" where there is none.

    Fences are in a row of their own (`( x )`) or begin what is left of one (`f = { x`).
    """
    if node.tag not in ("mrow", "math", "mstyle", "mpadded"):
        return ""
    parts = node.children
    for at, child in enumerate(parts):
        before = _fence(parts[at - 1]) if at else ""
        behind = _fence(parts[at + 1]) if at + 1 < len(parts) else ""
        if before == "{" and behind not in ("}", ""):
            behind = ""
        if not before or (before, behind) not in _AROUND:
            continue
        if rows := _rows(child, depth):
            inner = _array(_AROUND[before, behind], rows)
        elif _is_choice(child) and (before, behind) == ("(", ")"):
            over, under = (_convert(part, depth + 1) for part in child.children)
            inner = f"\\binom{{{over}}}{{{under}}}"
        else:
            continue
        first = [_convert(part, depth + 1) for part in parts[: at - 1]]
        last = [_convert(part, depth + 1) for part in parts[at + (2 if behind else 1) :]]
        return _join([*first, inner, *last])
    return ""


def _fence(node: _Node) -> str:
    return node.text.strip() if node.tag == "mo" else ""


def _is_choice(node: _Node) -> bool:
    width = node.attributes.get("linethickness") or ""
    return node.tag == "mfrac" and len(node.children) == 2 and width.startswith("0")


def _leaf(tag: str, node: _Node) -> str:
    text = node.text.strip()
    if not text and node.children:
        return _join([_convert(child, 0) for child in node.children])
    if tag in ("mtext", "ms"):
        text = _SPACE.sub(" ", node.text.replace("\u00a0", " "))
        return f"\\text{{{text}}}" if text.strip() else " "
    if tag == "mi" and len(text) > 1 and text.isalpha() and text.isascii():
        return f"\\{text}" if text in _FUNCTIONS else f"\\mathrm{{{text}}}"
    if tag == "mo" and text in _FUNCTIONS:
        return f"\\{text}"
    converted = _symbols(text)
    variant = node.attributes.get("mathvariant")
    if variant in ("bold", "double-struck", "script", "fraktur") and converted.isalpha():
        command = {"bold": "mathbf", "double-struck": "mathbb", "script": "mathcal"}
        return f"\\{command.get(variant, 'mathfrak')}{{{converted}}}"
    return converted


def _base(base: str) -> str:
    if len(base) == 1 or _SINGLE.fullmatch(base):
        return base
    return f"{{{base}}}"


_SINGLE = regex.compile(r"\\[A-Za-z]+|\\math\w+\{\w+\}|\d+|[()\[\]|]|\\[{}|]")


def _stacked(node: _Node, children: list[str], depth: int) -> str:
    tag = node.tag
    if len(children) != 2:
        return _join(children)
    raw = _text(node.children[1]).strip()
    accent = _LISTED["above" if tag == "mover" else "below"].get(raw)
    if accent:
        return f"\\{accent}{{{children[0]}}}"
    if children[0].startswith(("\\sum", "\\prod", "\\int", "\\lim", "\\max", "\\min", "\\sup")):
        return f"{children[0]}{'^' if tag == 'mover' else '_'}{{{children[1]}}}"
    command = "overset" if tag == "mover" else "underset"
    return f"\\{command}{{{children[1]}}}{{{children[0]}}}"


def _text(node: _Node) -> str:
    return node.text + "".join(_text(child) for child in node.children)


_CONVERTERS: dict[str, Callable[[_Node, list[str], int], str]] = {
    "semantics": lambda node, children, depth: children[0] if children else "",
    "msqrt": lambda node, children, depth: f"\\sqrt{{{_join(children)}}}",
    "menclose": _enclosed,
    "mfenced": _in_fences,
    "mtable": lambda node, rows, depth: _array(_environment(node), rows),
} | {
    **dict.fromkeys(("mover", "munder", "munderover"), _stacked),
    **dict.fromkeys(("mtr", "mlabeledtr"), lambda node, children, depth: " & ".join(children)),
}
