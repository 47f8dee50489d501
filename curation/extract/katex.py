"""TeX of the spans that KaTeX draws, for pages that lack its MathML.

Scripts, fractions and roots are read from the classes of the spans and from how far each part is
moved up; everything else is the characters that are shown.
"""

from __future__ import annotations

import html

import regex

_MARKUP = regex.compile(r"<(/?)(\w+)([^<>]*+)>|([^<]++)")
_CLASS = regex.compile(r"""\bclass\s*=\s*["']([^"']*)["']""")
_TOP = regex.compile(r"(?:^|[;\s\"'])top:\s*(-?[\d.]+)em")
_VOID = frozenset(("br", "img", "hr", "path", "line"))
_MAX_DEPTH = 200
_NO_TEXT = "\u200b\u2061\u2062\u2063\u2064"
_FUNCTIONS = frozenset("sin cos tan log ln exp lim max min sup inf det dim gcd arg".split())
_SIGNS = {
    "−": "-", "⋅": r"\cdot ", "×": r"\times ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∈": r"\in ",
    "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "∞": r"\infty ", "→": r"\to ", "√": r"\surd ",
    "∂": r"\partial ", "≈": r"\approx ", "±": r"\pm ", "…": r"\ldots ", "⋯": r"\cdots ",
}  # fmt: skip
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρσςτυφχψωϵϕϑΓΔΘΛΞΠΣΥΦΨΩ",
        "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma "
        "varsigma tau upsilon varphi chi psi omega epsilon phi vartheta Gamma Delta Theta Lambda Xi "
        "Pi Sigma Upsilon Phi Psi Omega".split(),
        strict=True,
    )
)


class _Span:
    __slots__ = ("children", "names", "style", "text")

    def __init__(self, attributes: str) -> None:
        found = _CLASS.search(attributes)
        self.names = found[1].split() if found else []
        self.style = attributes
        self.children: list[_Span] = []
        self.text = ""


def katex_to_tex(source: str) -> str:
    """TeX of a `<span class="katex-html">`."""
    return _convert(_tree(source)).strip()


def _tree(source: str) -> _Span:
    opened = [_Span("")]
    over = 0
    for end, name, attributes, text in _MARKUP.findall(source):
        if text:
            leaf = _Span("")
            leaf.text = html.unescape(text).strip(" \n\t" + _NO_TEXT)
            opened[-1].children.append(leaf)
        elif end:
            if over:
                over -= 1
            elif len(opened) > 1:
                opened.pop()
        elif name not in _VOID and not attributes.endswith("/"):
            if len(opened) >= _MAX_DEPTH:
                over += 1
                continue
            span = _Span(attributes)
            opened[-1].children.append(span)
            opened.append(span)
    return opened[0]


def _convert(span: _Span) -> str:
    names = span.names
    if "strut" in names or "pstrut" in names or "vlist-s" in names or "frac-line" in names:
        return ""
    if "mfrac" in names:
        parts = _stacked(span)
        if len(parts) == 2:
            return rf"\frac{{{parts[0][1]}}}{{{parts[1][1]}}}"
    if "msupsub" in names:
        parts = _stacked(span)
        if len(parts) == 2:
            return f"_{{{parts[1][1]}}}^{{{parts[0][1]}}}"
        # Text above its line is a power: KaTeX places an index at -2.55em.
        return "".join(f"{'^' if top < _MIDDLE else '_'}{{{text}}}" for top, text in parts)
    if "sqrt" in names:
        inner = "".join(text for _, text in _stacked(span))
        return rf"\sqrt{{{inner}}}"
    if "op-limits" in names:
        parts = _stacked(span)
        if len(parts) == 3:
            return f"{parts[1][1].strip()}_{{{parts[2][1]}}}^{{{parts[0][1]}}}"
        if len(parts) == 2:
            return f"{parts[0][1].strip()}_{{{parts[1][1]}}}"
    if "mop" in names and (word := _letters(span)) in _FUNCTIONS:
        return f"\\{word} " + "".join(_convert(c) for c in span.children if "msupsub" in c.names)
    return _signs(span.text) + "".join(map(_convert, span.children))


_MIDDLE = -2.7


def _letters(span: _Span) -> str:
    own = (_letters(child) for child in span.children if "msupsub" not in child.names)
    return span.text + "".join(own)


def _stacked(span: _Span) -> list[tuple[float, str]]:
    """The parts of the first vertical list within, from the top: how far each is moved, its TeX."""
    waiting = [span]
    while waiting:
        inner = waiting.pop(0)
        if "vlist" in inner.names:
            parts = []
            for part in inner.children:
                found = _TOP.search(part.style)
                text = "".join(map(_convert, part.children)).strip()
                if found and text:
                    parts.append((float(found[1]), text))
            return sorted(parts, key=lambda part: part[0])
        waiting[:0] = inner.children
    return []


def _signs(text: str) -> str:
    return "".join(_SIGNS.get(c) or (f"\\{_GREEK[c]} " if c in _GREEK else c) for c in text)
