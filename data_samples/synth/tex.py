"""TeX of school and college level to presentation MathML: as much as the sample pages use."""

from __future__ import annotations

import re
from html import escape

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.", re.S)

_IDENTIFIERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε",
    "theta": "θ", "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "varphi": "φ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Omega": "Ω",
    "infty": "∞", "ell": "ℓ", "emptyset": "∅",
}  # fmt: skip
_OPERATORS = {
    "cdot": "·", "times": "×", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠",
    "neq": "≠", "equiv": "≡", "approx": "≈", "to": "→", "in": "∈", "notin": "∉", "ldots": "…",
    "cdots": "⋯", "pm": "±", "mid": "∣", "sum": "∑", "prod": "∏", "int": "∫", "cup": "∪",
    "cap": "∩", "subset": "⊂", "subseteq": "⊆", "implies": "⟹", "iff": "⟺", "Rightarrow": "⇒",
    "circ": "∘", "angle": "∠", "partial": "∂", "forall": "∀", "exists": "∃", "land": "∧",
    "lor": "∨", "neg": "¬", "lfloor": "⌊", "rfloor": "⌋", "triangle": "△", "parallel": "∥",
    "mapsto": "↦", "perp": "⊥", "setminus": "∖", "nabla": "∇", "div": "÷", "|": "‖",
    "{": "{", "}": "}",
}  # fmt: skip
_FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "log",
        "ln",
        "exp",
        "gcd",
        "max",
        "min",
        "lim",
        "det",
        "arctan",
        "deg",
        "Pr",
        "ker",
        "dim",
    ]
)
_SPACES = {",": "0.17em", ";": "0.28em", "quad": "1em", "qquad": "2em", " ": "0.25em", "!": "0"}
_LETTERS = {"R": "ℝ", "Z": "ℤ", "N": "ℕ", "Q": "ℚ", "C": "ℂ", "E": "𝔼", "P": "ℙ"}


class _Parser:
    def __init__(self, tex: str) -> None:
        self.tokens = [t for t in _TOKEN.findall(tex) if not t.isspace()]
        self.tex = tex
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def row(self, stops: tuple[str, ...]) -> str:
        parts = []
        while self.peek() and self.peek() not in stops:
            parts.append(self.scripted())
        return f"<mrow>{''.join(parts)}</mrow>"

    def group(self) -> str:
        """An argument: a braced group or a single token."""
        if self.peek() != "{":
            return self.atom()
        self.take()
        inner = self.row(("}",))
        self.take()
        return inner

    def raw_group(self) -> str:
        self.take()
        out = []
        while self.peek() != "}":
            out.append(self.take())
        self.take()
        return "".join(out)

    def scripted(self) -> str:
        base = self.atom()
        low = high = ""
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                low = self.group()
            else:
                high = self.group()
        if low and high:
            return f"<msubsup>{base}{low}{high}</msubsup>"
        if low:
            return f"<msub>{base}{low}</msub>"
        return f"<msup>{base}{high}</msup>" if high else base

    def matrix(self) -> str:
        name = self.raw_group()
        rows = [[self.row(("&", "\\\\", "\\end"))]]
        while self.peek() != "\\end":
            if self.take() == "&":
                rows[-1].append(self.row(("&", "\\\\", "\\end")))
            else:
                rows.append([self.row(("&", "\\\\", "\\end"))])
        self.take()
        self.raw_group()
        cells = "".join(
            "<mtr>" + "".join(f"<mtd>{cell}</mtd>" for cell in row) + "</mtr>" for row in rows
        )
        table = f"<mtable>{cells}</mtable>"
        if name == "pmatrix":
            return f"<mrow><mo>(</mo>{table}<mo>)</mo></mrow>"
        if name == "cases":
            return f"<mrow><mo>{{</mo>{table}</mrow>"
        return table

    def command(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac"):
            top = self.group()
            return f"<mfrac>{top}{self.group()}</mfrac>"
        if name == "binom":
            top = self.group()
            fraction = f'<mfrac linethickness="0">{top}{self.group()}</mfrac>'
            return f"<mrow><mo>(</mo>{fraction}<mo>)</mo></mrow>"
        if name == "sqrt":
            if self.peek() == "[":
                self.take()
                index = self.row(("]",))
                self.take()
                return f"<mroot>{self.group()}{index}</mroot>"
            return f"<msqrt>{self.group()}</msqrt>"
        if name in ("text", "mathrm", "operatorname"):
            return f"<mtext>{escape(self.raw_text())}</mtext>"
        if name in ("mathbb", "mathbf", "vec", "overline", "bar", "hat"):
            letter = self.raw_group() if self.peek() == "{" else self.take()
            return f"<mi>{escape(_LETTERS.get(letter, letter))}</mi>"
        if name in ("left", "right", "big", "Big"):
            fence = self.take().lstrip("\\")
            return "" if fence == "." else f"<mo>{escape(fence)}</mo>"
        if name == "pmod":
            return f"<mo>(</mo><mi>mod</mi>{self.group()}<mo>)</mo>"
        if name == "begin":
            return self.matrix()
        if name in _FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in _IDENTIFIERS:
            return f"<mi>{_IDENTIFIERS[name]}</mi>"
        if name in _OPERATORS:
            return f"<mo>{_OPERATORS[name]}</mo>"
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"/>'
        raise ValueError(f"TeX command \\{name} is not known to the sample generator: {self.tex}")

    def raw_text(self) -> str:
        """The group's own characters; spaces are read again from the source."""
        words = self.raw_group()
        for found in re.findall(r"\{([^{}]*)\}", self.tex):
            if re.sub(r"\s", "", found) == words:
                return str(found)
        return words

    def atom(self) -> str:
        token = self.take()
        if token == "{":
            self.at -= 1
            return self.group()
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return f"<mo>{escape(token)}</mo>"


def to_mathml(tex: str, display: bool, annotate: bool) -> str:
    """`<math>` element; with `annotate` the TeX source goes along as KaTeX and MediaWiki do it.

    Raises ValueError for a command outside the small set above.
    """
    row = _Parser(tex).row(())
    if annotate:
        note = f'<annotation encoding="application/x-tex">{escape(tex, quote=False)}</annotation>'
        row = f"<semantics>{row}{note}</semantics>"
    mode = ' display="block"' if display else ""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{mode}>{row}</math>'
