"""Blocks of a text to HTML: paragraphs, lists, tables, formulas in eight forms, code in four."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby

from synth.tex import to_mathml
from synth.text import Block, Text

MATH_FORMS = (
    "mathml", "mathml-tex", "mathjax", "mathjax-script", "katex", "wiki", "image", "dollar",
)  # fmt: skip
#: Forms in which the page carries the TeX source, so that it can be asked for in the output.
TEX_FORMS = frozenset(MATH_FORMS) - {"mathml"}
CODE_FORMS = ("plain", "pygments", "prism", "lines")

_CODE_TOKEN = re.compile(
    r"(?P<c>(?:#|//|--)[^\n]*)|(?P<s>\"[^\"\n]*\"|'[^'\n]*')"
    r"|(?P<k>\b(?:def|return|for|in|if|else|elif|while|import|from|class|let|const|fn|func|"
    r"function|struct|match|yield|with|as|try|except|int|void|char|public|static|SELECT|FROM|"
    r"WHERE|GROUP|ORDER|BY|JOIN|ON|echo|do|done|then|fi)\b)|(?P<m>\b\d+(?:\.\d+)?\b)"
)
_PRISM = {"c": "token comment", "s": "token string", "k": "token keyword", "m": "token number"}


def formula(tex: str, form: str, display: bool) -> str:
    """One formula as HTML in the given form."""
    safe = escape(tex, quote=False)
    if form == "mathml":
        return to_mathml(tex, display, annotate=False)
    if form == "mathml-tex":
        return to_mathml(tex, display, annotate=True)
    if form == "mathjax":
        return f"\\[{safe}\\]" if display else f"\\({safe}\\)"
    if form == "mathjax-script":
        mode = "; mode=display" if display else ""
        return f'<span class="MathJax_Preview"></span><script type="math/tex{mode}">{tex}</script>'
    if form == "katex":
        shown = re.sub(r"\\[A-Za-z]+|[{}^_]", " ", tex)
        pieces = "".join(f'<span class="mord">{escape(piece)}</span>' for piece in shown.split())
        html = (
            f'<span class="katex"><span class="katex-mathml">{to_mathml(tex, display, True)}'
            f'</span><span class="katex-html" aria-hidden="true"><span class="base">{pieces}'
            "</span></span></span>"
        )
        return f'<span class="katex-display">{html}</span>' if display else html
    if form == "wiki":
        kind = "display" if display else "inline"
        return (
            f'<span class="mwe-math-element"><span class="mwe-math-mathml-{kind} '
            f'mwe-math-mathml-a11y" style="display: none;">{to_mathml(tex, display, True)}</span>'
            f'<img src="/media/math/render/svg/{len(tex):04x}" class="mwe-math-fallback-image-'
            f'{kind}" aria-hidden="true" alt="{{\\displaystyle {escape(tex)}}}"></span>'
        )
    if form == "image":
        style = "latex-display" if display else "latex"
        return f'<img src="/latex.php?l={len(tex)}" alt="{escape(tex)}" class="{style}" />'
    if form == "dollar":
        return f"$${safe}$$" if display else f"${safe}$"
    raise ValueError(f"unknown form of formulas {form}")


def inline(text: str, math: str | None) -> str:
    """Escape a line; between `$` signs stand formulas, between backquotes code."""
    if math is None:
        return _ticks(text)
    parts = text.split("$")
    return "".join(
        formula(part, math, False) if i % 2 else _ticks(part) for i, part in enumerate(parts)
    )


def _ticks(text: str) -> str:
    parts = escape(text, quote=False).split("`")
    if len(parts) % 2 == 0:
        return escape(text, quote=False)
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def _marked(code: str, classes: dict[str, str] | None) -> str:
    out, last = [], 0
    for match in _CODE_TOKEN.finditer(code):
        kind = match.lastgroup or "c"
        name = classes[kind] if classes else kind
        out.append(escape(code[last : match.start()], quote=False))
        out.append(f'<span class="{name}">{escape(match.group(), quote=False)}</span>')
        last = match.end()
    return "".join(out) + escape(code[last:], quote=False)


def listing(code: str, language: str, form: str) -> str:
    """A code block as documentation generators and highlighters write it."""
    if form == "plain":
        return f'<pre><code class="language-{language}">{escape(code, quote=False)}</code></pre>'
    if form == "pygments":
        body = f"<pre><span></span>{_marked(code, None)}\n</pre>"
        body = f'<div class="highlight">{body}</div>'
        return f'<div class="highlight-{language} notranslate">{body}</div>'
    if form == "prism":
        return (
            f'<pre class="language-{language}" tabindex="0"><code class="language-{language}">'
            f"{_marked(code, _PRISM)}</code></pre>"
        )
    if form == "lines":
        count = code.count("\n") + 1
        numbers = "\n".join(str(i + 1) for i in range(count))
        return (
            '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>'
            f'{numbers}</pre></div></td><td class="code"><div class="highlight"><pre>'
            f"{_marked(code, None)}\n</pre></div></td></tr></table>"
        )
    raise ValueError(f"unknown form of code {form}")


def _rows(rows: list[str], math: str | None) -> str:
    cells = [[inline(cell.strip(), math) for cell in row.split(" | ")] for row in rows]
    head = "".join(f"<th>{cell}</th>" for cell in cells[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in cells[1:]
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def blocks_html(blocks: tuple[Block, ...] | list[Block], math: str | None, code: str) -> str:
    """HTML of a run of blocks (posts excepted, which the templates lay out)."""
    out = []
    for kind, group in groupby(blocks, key=lambda b: b.kind):
        run = list(group)
        if kind == "li":
            items = "".join(f"<li>{inline(b.text, math)}</li>\n" for b in run)
            out.append(f"<ul>\n{items}</ul>")
        elif kind == "row":
            out.append(_rows([b.text for b in run], math))
        elif kind == "code":
            out += [listing(b.text, b.note or "text", code) for b in run]
        elif kind == "math":
            out += [f"<p>{formula(b.text, math or 'dollar', True)}</p>" for b in run]
        elif kind == "quote":
            out += [f"<blockquote><p>{inline(b.text, math)}</p></blockquote>" for b in run]
        elif kind in ("p", "h2"):
            out += [f"<{kind}>{inline(b.text, math)}</{kind}>" for b in run]
        else:
            raise ValueError(f"block {kind} has no place here")
    return "\n".join(out)


def posts(text: Text) -> list[tuple[str, str, list[Block]]]:
    """(author, time, blocks) of a thread."""
    out: list[tuple[str, str, list[Block]]] = []
    for block in text.blocks:
        if block.kind == "post":
            out.append((block.note, block.text, []))
        elif out:
            out[-1][2].append(block)
        else:
            raise ValueError(f"{text.slug}: a thread begins with a post line")
    return out
