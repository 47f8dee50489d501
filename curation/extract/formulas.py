"""Formulas of a page as TeX: from MathML, MathJax, KaTeX, image alternatives and addresses."""

from __future__ import annotations

import functools
import html
import urllib.parse

import regex

from curation.extract import blocks as s

_ANNOTATION_TAG = regex.compile(r"<annotation\b([^<>]*+)>", regex.I)
_ANNOTATION_END = regex.compile(r"</annotation", regex.I)
_TEX_ENCODING = regex.compile(r"""encoding\s*=\s*["']?[^"'>]*\b(?:tex|latex)\b""", regex.I)
_ALTTEXT = regex.compile(
    r"""[^<]*+<(?:\w+:)?math\b[^>]*?\salttext\s*=\s*(?:"([^"]*)"|'([^']*)')""", regex.I | regex.S
)
_DISPLAY = regex.compile(
    r"""[^<]*+<(?:\w+:)?math\b[^>]*?\s(?:display\s*=\s*["']?block|mode\s*=\s*["']?display)""",
    regex.I,
)
_CDATA = regex.compile(r"^\s*(?:%\s*)?<!\[CDATA\[(.*?)(?:%\s*)?\]\]>\s*$", regex.S)
_DISPLAYSTYLE = regex.compile(r"^\{\s*\\(?:displaystyle|textstyle)\b\s*(.*)\}$", regex.S)
_COMMENT = regex.compile(r"(?<!\\)%[^\n]*\n\s*")
_SPACE = regex.compile(r"\s+")
_TEX = regex.compile(r"\\[A-Za-z]+|\\[(\[]|[\^_]\{?\w|\$[^$]+\$")
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"), ("[tex]", "[/tex]"))
_MAX_SOURCE = 200_000  # characters; longer "formulas" are damage
_SHORT_SOURCE = 400  # characters; formulas as short are often the same


def tex(kind: int, source: str) -> str:
    """The formula with its delimiters, `$...$` or `$$...$$` when displayed; "" when it is none.

    `kind` is one of the kinds of atoms of `scan`, `source` the text of the page that the atom spans.
    """
    if len(source) > _MAX_SOURCE:
        return ""
    return _short_tex(kind, source) if len(source) <= _SHORT_SOURCE else _tex(kind, source)


@functools.lru_cache(maxsize=4096)
def _short_tex(kind: int, source: str) -> str:
    return _tex(kind, source)


def _tex(kind: int, source: str) -> str:
    if kind == s.DATA_MATHML:
        source, kind = html.unescape(source), s.MATHML
    if kind in (s.MATHML, s.SCRIPT_MATHML):
        return delimited(tidy(mathml_to_tex(source)), bool(_DISPLAY.match(source)))
    if kind in (s.TEX_INLINE, s.TEX_DISPLAY):
        found = _CDATA.match(source)
        return delimited(tidy(found.group(1) if found else source), kind == s.TEX_DISPLAY)
    if kind == s.ASCIIMATH:
        return delimited(tidy(source), False)
    if kind == s.IMAGE_ALT:
        return image_formula(html.unescape(source))
    if kind == s.IMAGE_SOURCE:
        return address_formula(html.unescape(source))
    return ""


def delimited(formula: str, display: bool) -> str:
    if not formula:
        return ""
    if formula.startswith("\\begin{") and not display:
        display = True
    return f"$${formula}$$" if display else f"${formula}$"


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
    lines = formula.rfind("\n") + 1
    formula = _COMMENT.sub("", formula[:lines]) + formula[lines:]
    return _SPACE.sub(" ", formula).strip()


def image_formula(alt: str) -> str:
    """TeX in the alternative text of a formula image; other alternative texts are none."""
    alt = alt.strip()
    if not alt:
        return ""
    display = alt.startswith(("$$", "\\["))
    if _TEX.search(alt) or (len(alt) < 60 and " " not in alt.strip("$")):
        return delimited(tidy(alt), display)
    return delimited(tidy(alt), display) if regex.search(r"[=+<>^_]", alt) else ""


def address_formula(address: str) -> str:
    """TeX in the query of a formula server's address (codecogs, mimetex, latex.php, chart API)."""
    query = address.partition("?")[2]
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        if equals and name in ("latex", "chl", "tex", "formula", "eq"):
            return delimited(tidy(urllib.parse.unquote_plus(value)), False)
    if query and "\\" in (formula := urllib.parse.unquote(query)):
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


_SYMBOLS = {
    "−": "-", "±": "\\pm", "∓": "\\mp", "×": "\\times", "÷": "\\div", "·": "\\cdot", "⋅": "\\cdot",
    "∗": "*", "∘": "\\circ", "≤": "\\le", "≥": "\\ge", "≠": "\\ne", "≈": "\\approx",
    "≡": "\\equiv", "≅": "\\cong", "∼": "\\sim", "≪": "\\ll", "≫": "\\gg", "∝": "\\propto",
    "∞": "\\infty", "∂": "\\partial", "∇": "\\nabla", "∑": "\\sum", "∏": "\\prod", "∫": "\\int",
    "∬": "\\iint", "∭": "\\iiint", "∮": "\\oint", "√": "\\surd", "∈": "\\in", "∉": "\\notin",
    "∋": "\\ni", "⊂": "\\subset", "⊆": "\\subseteq", "⊃": "\\supset", "⊇": "\\supseteq",
    "∪": "\\cup", "∩": "\\cap", "∅": "\\emptyset", "∖": "\\setminus", "∀": "\\forall",
    "∃": "\\exists", "¬": "\\neg", "∧": "\\wedge", "∨": "\\vee", "⊕": "\\oplus", "⊗": "\\otimes",
    "→": "\\to", "←": "\\leftarrow", "↔": "\\leftrightarrow", "⇒": "\\Rightarrow",
    "⇐": "\\Leftarrow", "⇔": "\\Leftrightarrow", "↦": "\\mapsto", "↑": "\\uparrow",
    "↓": "\\downarrow", "…": "\\ldots", "⋯": "\\cdots", "⋮": "\\vdots", "⋱": "\\ddots",
    "⟨": "\\langle", "⟩": "\\rangle", "〈": "\\langle", "〉": "\\rangle", "⌊": "\\lfloor",
    "⌋": "\\rfloor", "⌈": "\\lceil", "⌉": "\\rceil", "‖": "\\|", "∥": "\\parallel", "⊥": "\\perp",
    "∠": "\\angle", "△": "\\triangle", "ℏ": "\\hbar", "ℓ": "\\ell", "ℝ": "\\mathbb{R}",
    "ℂ": "\\mathbb{C}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}", "ℚ": "\\mathbb{Q}", "†": "\\dagger",
    "′": "'", "″": "''", "{": "\\{", "}": "\\}", "%": "\\%", "#": "\\#", "&": "\\&",
    "\u2061": "", "\u2062": "", "\u2063": "", "\u2064": "", "\u00a0": " ", "\u2009": "",
    "\u200a": "", "\u2003": "\\quad ",
}  # fmt: skip
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma "
    "sigma tau upsilon varphi chi psi omega"
).split()
for _offset, _name in enumerate(_GREEK):
    if _name != "o":
        _SYMBOLS[chr(0x3B1 + _offset)] = "\\" + _name
for _name in "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split():
    _small = "phi" if _name == "Phi" else _name.lower()
    _index = _GREEK.index("varphi" if _small == "phi" else _small)
    _SYMBOLS[chr(0x391 + _index)] = "\\" + _name
_SYMBOLS.update({"ϵ": "\\epsilon", "ε": "\\varepsilon", "ϕ": "\\phi", "ϑ": "\\vartheta"})
_FUNCTIONS = frozenset(
    "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln exp lim max min sup inf det "
    "dim ker gcd arg deg hom Pr limsup liminf".split()
)
_ACCENTS = {
    "^": "hat", "ˆ": "hat", "~": "tilde", "˜": "tilde", "¯": "bar", "‾": "overline",
    "→": "vec", "⃗": "vec", "˙": "dot", "¨": "ddot", "⏞": "overbrace", "ˇ": "check", "˘": "breve",
}  # fmt: skip
_UNDERS = {"_": "underline", "̲": "underline", "⏟": "underbrace"}


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
    if tag in ("annotation", "annotation-xml", "mphantom"):
        return ""
    if tag in ("mi", "mo", "mn", "mtext", "ms"):
        return _leaf(tag, node)
    if tag == "mspace":
        return " "
    children = [_convert(child, depth + 1) for child in node.children]
    if tag == "semantics":
        return children[0] if children else ""
    count = len(children)
    if tag == "mfrac" and count == 2:
        return f"\\frac{{{children[0]}}}{{{children[1]}}}"
    if tag == "msqrt":
        return f"\\sqrt{{{_join(children)}}}"
    if tag == "mroot" and count == 2:
        return f"\\sqrt[{children[1]}]{{{children[0]}}}"
    if tag in ("msup", "msub") and count == 2:
        mark = "^" if tag == "msup" else "_"
        return f"{_base(children[0])}{mark}{{{children[1]}}}"
    if tag == "msubsup" and count == 3:
        return f"{_base(children[0])}_{{{children[1]}}}^{{{children[2]}}}"
    if tag in ("mover", "munder", "munderover"):
        return _stacked(tag, node, children)
    if tag == "mtable":
        return "\\begin{matrix}" + " \\\\ ".join(children) + "\\end{matrix}"
    if tag in ("mtr", "mlabeledtr"):
        return " & ".join(children)
    if tag == "mfenced":
        opening = node.attributes.get("open")
        closing = node.attributes.get("close")
        inner = (node.attributes.get("separators") or ",")[:1].join(children)
        left, right = "(" if opening is None else opening, ")" if closing is None else closing
        return f"\\left{_symbols(left) or '.'}{inner}\\right{_symbols(right) or '.'}"
    return _join(children) or _symbols(node.text)


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


def _stacked(tag: str, node: _Node, children: list[str]) -> str:
    if tag == "munderover" and len(children) == 3:
        return f"{_base(children[0])}_{{{children[1]}}}^{{{children[2]}}}"
    if len(children) != 2:
        return _join(children)
    raw = _text(node.children[1]).strip()
    accent = (_ACCENTS if tag == "mover" else _UNDERS).get(raw)
    if accent:
        return f"\\{accent}{{{children[0]}}}"
    if children[0].startswith(("\\sum", "\\prod", "\\int", "\\lim", "\\max", "\\min", "\\sup")):
        return f"{children[0]}{'^' if tag == 'mover' else '_'}{{{children[1]}}}"
    command = "overset" if tag == "mover" else "underset"
    return f"\\{command}{{{children[1]}}}{{{children[0]}}}"


def _text(node: _Node) -> str:
    return node.text + "".join(_text(child) for child in node.children)
