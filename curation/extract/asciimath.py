"""AsciiMath as TeX, by the grammar of asciimath.org.

v ::= [A-Za-z] | symbol | number        u ::= unary function        b ::= binary function
l ::= ( [ { |                            r ::= ) ] } |
S ::= v | l E r | u S | b S S | "text"   I ::= S_S | S^S | S_S^S | S    E ::= I E | I/I
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

_WORDS = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho
sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega
sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln exp lim max min det dim gcd sum prod
int oint times div cdot star circ oplus otimes wedge vee cap cup subset supset subseteq supseteq in
notin ni equiv cong approx prop neg forall exists to rightarrow leftarrow leftrightarrow Rightarrow
Leftarrow Leftrightarrow partial nabla pm mp infty ldots cdots vdots ddots quad angle triangle le ge lt
gt ne aleph ast
""".split()
_SYMBOLS = {word: "\\" + word for word in _WORDS} | {
    "prop": r"\propto", "lt": "<", "gt": ">", "sub": r"\subset", "sup": r"\supset",
    "sube": r"\subseteq", "supe": r"\supseteq", "!in": r"\notin", "**": "*", "xx": r"\times",
    "-:": r"\div", "@": r"\circ", "o+": r"\oplus", "ox": r"\otimes", "^^": r"\wedge", "vv": r"\vee",
    "nn": r"\cap", "uu": r"\cup", "*": r"\cdot", "!=": r"\ne", "<=": r"\le", ">=": r"\ge", "-=": r"\equiv",
    "~=": r"\cong", "~~": r"\approx", "and": r"\text{ and }", "or": r"\text{ or }",
    "if": r"\text{ if }", "not": r"\neg", "=>": r"\Rightarrow", "<=>": r"\Leftrightarrow",
    "iff": r"\Leftrightarrow", "AA": r"\forall", "EE": r"\exists", "_|_": r"\bot", "TT": r"\top",
    "->": r"\to", "|->": r"\mapsto", "rarr": r"\rightarrow", "larr": r"\leftarrow",
    "harr": r"\leftrightarrow", "rArr": r"\Rightarrow", "lArr": r"\Leftarrow", "hArr": r"\Leftrightarrow",
    "del": r"\partial", "grad": r"\nabla", "+-": r"\pm", "-+": r"\mp", "O/": r"\emptyset", "oo": r"\infty",
    "...": r"\ldots", ":.": r"\therefore", ":'": r"\because", "/_": r"\angle", "CC": r"\mathbb{C}",
    "NN": r"\mathbb{N}", "QQ": r"\mathbb{Q}", "RR": r"\mathbb{R}", "ZZ": r"\mathbb{Z}", "{": r"\{", "}": r"\}",
    "%": r"\%", "\\ ": r"\ ", "lfloor": r"\lfloor", "rfloor": r"\rfloor", "lceil": r"\lceil",
    "rceil": r"\rceil",
}  # fmt: skip
_UNARY = {
    "sqrt": r"\sqrt", "hat": r"\hat", "bar": r"\overline", "vec": r"\vec", "dot": r"\dot",
    "ddot": r"\ddot", "tilde": r"\tilde", "ul": r"\underline", "ubrace": r"\underbrace",
    "obrace": r"\overbrace", "bb": r"\mathbf", "bbb": r"\mathbb", "cc": r"\mathcal", "fr": r"\mathfrak",
    "sf": r"\mathsf", "tt": r"\mathtt", "cancel": r"\cancel",
}  # fmt: skip
_PAIRED = {"abs": ("|", "|"), "norm": (r"\|", r"\|"), "floor": (r"\lfloor ", r"\rfloor"),
           "ceil": (r"\lceil ", r"\rceil")}  # fmt: skip
_TEXT = ("text", "mbox", "mathrm")
_BINARY = {"frac": r"\frac", "stackrel": r"\stackrel", "overset": r"\overset",
           "underset": r"\underset", "root": ""}  # fmt: skip
_OPEN = {"(": "(", "[": "[", "{": r"\{", "(:": r"\langle ", "<<": r"\langle ", "{:": "."}
_CLOSE = {")": ")", "]": "]", "}": r"\}", ":)": r"\rangle", ">>": r"\rangle", ":}": "."}
_KNOWN = sorted(
    {*_SYMBOLS, *_UNARY, *_PAIRED, *_TEXT, *_BINARY, *_OPEN, *_CLOSE, "_", "^", "/", "|", "//"},
    key=lambda word: (-len(word), word),
)
_TOKEN = regex.compile(
    r'\s*(?:"(?P<quoted>[^"]*+)"|(?P<number>\d+(?:\.\d+)?)|(?P<known>'
    + "|".join(map(regex.escape, _KNOWN))
    + r")|(?P<other>\S))"
)
_MAX_DEPTH = 100
_MOST_CHARACTERS = 5_000
#: How a page asks for AsciiMath: by MathJax 2's address or settings, MathJax 3's, ASCIIMathML itself.
_ASKED = (
    b"AM_CHTML", b"AM_HTMLorMML", b"AM_SVG", b"asciimath2jax", b"input/asciimath", b"asciimath.js",
    b"ASCIIMathML.js", b"ASCIIMathMLwFallback.js", b"ASCIIMathTeXImg.js",
)  # fmt: skip
_QUOTED = regex.compile(r"`([^`\n]{1,400})`")
#: Signs of commands, code and file names, which pages have in backticks, too.
_CODE = regex.compile(r"[;$#]|::|--|\(\)|\w\.[^\W\d_]{2}|^[./~]")
_STRING = regex.compile(r'"[^"]*"|(?:text|mbox|mathrm)\([^()]*\)')
_WORD = regex.compile(r"[^\W\d_]{3,}")
_LONG = [word for word in _KNOWN if len(word) > 2 and word.isalpha()]


@dataclass(frozen=True)
class _Token:
    text: str
    kind: str
    spaced: bool  # white space before it


def asciimath(source: str) -> str:
    """TeX of a formula in AsciiMath; the source itself where it is too long to be one."""
    if len(source) > _MOST_CHARACTERS:
        return " ".join(source.split())
    tokens = [
        _Token(found[found.lastgroup or 0], found.lastgroup or "", found[0][:1].isspace())
        for found in _TOKEN.finditer(source.strip().strip("`"))
    ]
    return _Parser(tokens).everything()


def asks_for_asciimath(source: bytes) -> bool:
    """Whether scripts of a page (its source) turn what is in backticks into formulas."""
    return any(name in source for name in _ASKED)


def with_asciimath(text: str) -> str:
    """Text whose formulas in backticks are TeX between dollars; what may be code is as it was."""
    return _QUOTED.sub(_delimited, text) if "`" in text else text


def _delimited(found: regex.Match[str]) -> str:
    formula = found[1].strip()
    words = _WORD.findall(_STRING.sub(" ", formula))
    if not formula or _CODE.search(formula) or not all(map(_is_known, words)):
        return found[0]
    return f"${asciimath(formula)}$"


def _is_known(word: str) -> bool:
    """Whether a word is one of AsciiMath, or one with a variable before or behind it (`sinx`)."""
    return word in _KNOWN or word[1:] in _LONG or word[:-1] in _LONG


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self._ends = _pairs(tokens)

    def everything(self) -> str:
        out = ""
        while self._at < len(self._tokens):
            out = _beside(out, self._expression())
            if self._at < len(self._tokens):  # a bracket that nothing opened
                token = self._next().text
                out += _CLOSE.get(token, token)
        return out

    def _peek(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        return token.text if token and token.kind != "quoted" else ""

    def _next(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expression(self, until: str = "") -> str:
        """A sequence up to the bracket that closes it."""
        out = ""
        while self._at < len(self._tokens):
            if self._peek() in _CLOSE or (until and self._peek() == until):
                break
            spaced = self._tokens[self._at].spaced
            part = self._fraction()
            blank = spaced and out and not out.endswith(" ") and not part.startswith(" ")
            text = part.startswith(r"\text{ ") or out.endswith(" }")
            out = f"{out} {part}" if blank or text else _beside(out, part)
        return out

    def _fraction(self) -> str:
        over, bare = self._scripted()
        if self._peek() != "/" or self._at + 1 >= len(self._tokens):
            return over
        self._at += 1
        _, under = self._scripted()
        return rf"\frac{{{bare}}}{{{under}}}"

    def _scripted(self) -> tuple[str, str]:
        """A symbol with its scripts, and the same without the brackets around it."""
        shown, bare = self._simple()
        scripts = ""
        for sign in "_^":
            if self._peek() == sign and self._at + 1 < len(self._tokens):
                self._at += 1
                scripts += f"{sign}{{{self._simple()[1]}}}"
        return (shown + scripts, shown + scripts) if scripts else (shown, bare)

    def _simple(self) -> tuple[str, str]:
        """A symbol, shown with the brackets around it and without them."""
        if self._at >= len(self._tokens):
            return "", ""
        token = self._next()
        text = token.text
        if token.kind == "quoted":
            return (rf"\text{{{text}}}",) * 2
        if token.kind != "known":
            return text, text
        if self._depth >= _MAX_DEPTH:
            return "", ""
        self._depth += 1
        shown, bare = self._compound(text)
        self._depth -= 1
        return shown, bare

    def _compound(self, text: str) -> tuple[str, str]:
        if text in _OPEN:
            return self._bracket(text)
        if text == "|":
            return self._bars()
        if text in _UNARY:
            return (f"{_UNARY[text]}{{{self._simple()[1]}}}",) * 2
        if text in _PAIRED:
            opening, closing = _PAIRED[text]
            return (opening + self._simple()[1] + closing,) * 2
        if text in _TEXT:
            words = self._simple()[1]
            return (words if words.startswith(r"\text{") else rf"\text{{{words}}}",) * 2
        if text in _BINARY:
            one, other = self._simple()[1], self._simple()[1]
            if text == "root":
                return (rf"\sqrt[{one}]{{{other}}}",) * 2
            return (f"{_BINARY[text]}{{{one}}}{{{other}}}",) * 2
        return (_SYMBOLS.get(text, {"//": "/"}.get(text, text)),) * 2

    def _bracket(self, opening: str) -> tuple[str, str]:
        if rows := self._rows():
            kind = {"[": "bmatrix", "(": "pmatrix", "{": "cases"}.get(opening, "matrix")
            body = r" \\ ".join(self._row() for _ in range(rows))
            self._at += 1
            matrix = rf"\begin{{{kind}}}{body}\end{{{kind}}}"
            return matrix, matrix
        inner = self._expression()
        closing = "."
        if self._peek() in _CLOSE:
            closing = _CLOSE[self._next().text]
        shown = f"{_OPEN[opening]}{inner}{closing}"
        if "." in (_OPEN[opening], closing):
            shown = rf"\left{_OPEN[opening]}{inner}\right{closing}"
        return shown, inner

    def _rows(self) -> int:
        """How many rows the bracket just opened has: brackets with commas between; 0: it is no matrix."""
        count, at, end = 0, self._at, self._ends.get(self._at - 1)
        while end is not None and self._tokens[at].text in ("[", "(") and at in self._ends:
            count += 1
            at = self._ends[at] + 1
            if at == end:
                return count if count > 1 else 0
            if self._tokens[at].text != ",":
                return 0
            at += 1
        return 0

    def _row(self) -> str:
        self._at += 1
        cells = [self._expression(until=",")]
        while self._peek() == ",":
            self._at += 1
            cells.append(self._expression(until=","))
        self._at += 1
        if self._peek() == ",":
            self._at += 1
        return " & ".join(cells)

    def _bars(self) -> tuple[str, str]:
        if self._at - 1 not in self._ends:
            return "|", "|"
        inner = self._expression(until="|")
        if self._peek() != "|":
            return "|" + inner, "|" + inner
        self._at += 1
        return (f"|{inner}|",) * 2


def _pairs(tokens: list[_Token]) -> dict[int, int]:
    """Where the bracket or bar ends that opens at a token."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind != "known":
            continue
        last = tokens[opened[-1]].text if opened else ""
        if token.text in _OPEN or (token.text == "|" and last != "|"):
            opened.append(at)
        elif token.text in _CLOSE or token.text == "|":
            while opened and token.text != "|" and tokens[opened[-1]].text == "|":
                opened.pop()
            if opened:
                ends[opened.pop()] = at
    return ends


def _beside(one: str, other: str) -> str:
    """Two pieces of TeX, with a blank where a command would take a letter for its own."""
    if one and other[:1].isalpha() and _COMMAND.search(one[-_LONGEST:]):
        return f"{one} {other}"
    return one + other


_LONGEST = 40  # characters of a command
_COMMAND = regex.compile(r"\\[A-Za-z]+$")
