"""Sources in LaTeX to text: what stands between `\\begin{document}` and `\\end{document}`.

Kept: paragraphs, headings, items of lists, rows of tables, listings, and formulas as they are
written. Left out: comments, preamble, references, footnotes, pictures, and commands themselves; the
arguments in braces of a command that is not known stay as text. Macros without arguments are filled
in; files that a source names (`\\input`) are not read. The time is linear in the length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import IO, Any

from curation.readers.charset import decode_text
from curation.readers.records import Fault

#: No further columns.
COLUMNS: dict[str, Any] = {}
#: Commands without text: how many arguments in braces go with them.
_SILENT = dict.fromkeys(
    "label ref eqref pageref cref Cref autoref cite citep citet citealp citeauthor citeyear nocite "
    "parencite textcite autocite footcite bibliography bibliographystyle includegraphics input "
    "include usepackage documentclass vspace hspace pagestyle thispagestyle graphicspath title "
    "hypersetup index date author thanks affiliation email address keywords bibitem color footnote "
    "pagenumbering footnotemark footnotetext cline cmidrule graphicspath".split(),
    1,
)
_SILENT |= dict.fromkeys("newcommand renewcommand providecommand newtheorem setcounter".split(), 2)
_SILENT |= dict.fromkeys("setlength addtolength addtocounter fontsize rule".split(), 2)
#: Commands whose last argument is text: how many are before it.
_LAST = dict.fromkeys("textcolor colorbox href raisebox scalebox foreignlanguage parbox".split(), 1)
_LAST |= dict.fromkeys("multicolumn multirow resizebox fcolorbox".split(), 2)
_HEADINGS = set("part chapter section subsection subsubsection paragraph subparagraph".split())
_HEADINGS.add("caption")
#: Environments that are left out, that stay as they are written, and whose rows are a table's.
_DROPPED = {"comment", "thebibliography", "tikzpicture", "filecontents", "CCSXML", "picture"}
_FORMULAS = set("equation align gather multline eqnarray displaymath math alignat flalign".split())
_LISTINGS = {"verbatim": 0, "Verbatim": 0, "lstlisting": 0, "minted": 1, "alltt": 0}
_ROWS = {"tabular": 1, "tabularx": 2, "longtable": 1, "tabulary": 2}
_LINE, _PARAGRAPH = "\v", "\f"
_SIGNS = dict(zip("% $ & # _ { }".split(), "%$&#_{}", strict=True))
_SIGNS |= {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ"}
_SIGNS |= {"OE": "Œ", "aa": "å", "AA": "Å", "i": "ı", "S": "§", "P": "¶", "copyright": "©"}
_SIGNS |= {"ldots": "…", "dots": "…", "textendash": "–", "textemdash": "—", "euro": "€"}
_SIGNS |= {"LaTeX": "LaTeX", "TeX": "TeX", "textbackslash": "\\", "textasciitilde": "~"}
_SIGNS |= {"par": _PARAGRAPH, "newline": _LINE, "\\": _LINE, "item": f"{_LINE}- "}
_SIGNS |= dict.fromkeys([",", ";", ":", " ", "\n", "quad", "qquad"], " ")
_SIGNS |= {"~": " ", "---": "—", "--": "–", "``": "“", "''": "”", "&": "\t"}
#: Accents as characters that combine with the letter before them.
_ACCENTS = dict(zip("`'^\"~=.", map(chr, (768, 769, 770, 776, 771, 772, 775)), strict=True))
_ACCENTS |= dict(zip("cvuHrkd", map(chr, (807, 780, 774, 779, 778, 808, 803)), strict=True))

_TOKEN = re.compile(
    r"(?P<comment>%[^\n]*\n?[ \t]*)|\\(?P<name>[A-Za-z]+)\*?[ \t]*|\\(?P<sign>.)|"
    r"(?P<formula>\$\$?)|(?P<other>[{}&~]|---?|``|'')",
    re.S,
)
_OPTION = re.compile(r"\s*\[[^\[\]]{0,2000}\]")
_OPENING = re.compile(r"\s*\{")
_NAME = re.compile(r"\s*\{\s*([^{}]{1,100}?)\s*\}")
_BRACES = re.compile(r"\\.|[{}]", re.S)
_LETTER = re.compile(r"\s*\{\s*\\?([^\W\d_])\s*\}|\s*\\?([^\W\d_])")
_MACRO = re.compile(r"\\(?:re|provide)?(?:new)?command\*?\s*\{?\s*\\([A-Za-z]+)\s*\}?\s*(\{)")
_TITLE = re.compile(r"\\title\s*(?:\[[^\[\]]{0,500}\])?\s*(\{)")
_KEPT = re.compile("\0(\\d+)\0")
_LONGEST_FORMULA, _LONGEST_MACRO = 1 << 16, 200


def rows(file: IO[bytes], longest: int) -> Iterator[Mapping[str, Any] | Fault]:
    """Yield the source as one row of `text` and `title`."""
    raw = file.read(longest + 1)
    if len(raw) > longest:
        yield Fault("too_large", f"over {longest} bytes (readers.max_record_bytes)")
        return
    source = decode_text(raw, None)[0].replace("\r\n", "\n")
    begin, end = source.find("\\begin{document}"), source.rfind("\\end{document}")
    body = source[max(0, begin) : end if end > begin else len(source)]
    macros: dict[str, str] = {}
    for found in _MACRO.finditer(source[: max(0, begin)]):
        inner = source[found.end() : _closing(source, found.end()) - 1]
        if len(inner) <= _LONGEST_MACRO:
            macros[found[1]] = _Text(inner, macros).made[:_LONGEST_MACRO]
    title = _TITLE.search(source)
    named = source[title.end() : _closing(source, title.end()) - 1] if title else ""
    yield {"text": _Text(body, macros).made, "title": " ".join(_Text(named, macros).made.split())}


def _closing(source: str, at: int) -> int:
    """Return the place behind the brace that closes the one before `at`; the end without one."""
    depth = 1
    for found in _BRACES.finditer(source, at):
        depth += (found[0] == "{") - (found[0] == "}")
        if not depth:
            return found.end()
    return len(source)


class _Text:
    """The text of a source, made in one pass."""

    def __init__(self, source: str, macros: Mapping[str, str]) -> None:
        self._source, self._macros = source.replace("\0", ""), macros
        self._made: list[str] = []
        self._apart: list[str] = []  # what stays as it is written
        self._braces: list[str] = []  # what follows those that are open
        self._endings: dict[str, int] = {}  # where what ends formulas and listings is next
        self._room = len(source)  # for macros
        at = 0
        while found := _TOKEN.search(self._source, at):
            self._plain(self._source[at : found.start()])
            at = self._token(found)
        self._plain(self._source[at:])
        self.made = self._settled()

    def _settled(self) -> str:
        text = re.sub(r"[ ]+", " ", unicodedata.normalize("NFC", "".join(self._made)))
        text = re.sub(r" ?[\v\f][ \v\f]*", lambda m: "\n\n" if "\f" in m[0] else "\n", text)
        return _KEPT.sub(lambda found: self._apart[int(found[1])], text).strip()

    def _plain(self, text: str) -> None:
        text = re.sub(r"\n[ \t]*\n\s*", _PARAGRAPH, text)
        self._made.append(re.sub(r"[ \t]*\n[ \t]*|[ \t]+", " ", text))

    def _token(self, found: re.Match[str]) -> int:
        """Add what a token stands for; return where reading goes on."""
        kind, at = found.lastgroup, found.end()
        if kind == "name":
            return self._command(found["name"], at)
        if kind == "formula":
            return self._as_written(found.start(), at, found["formula"])
        if kind == "sign" and found["sign"] in "([":
            return self._as_written(found.start(), at, "\\" + ")]"["([".index(found["sign"])])
        if kind == "sign" and found["sign"] in _ACCENTS:
            return self._accent(found["sign"], at)
        if found["other"] == "{":
            self._braces.append("")
        elif found["other"] == "}":
            self._made.append(self._braces.pop() if self._braces else "")
        elif kind == "other" or found["sign"] in _SIGNS:
            if found["sign"] == "&":
                self._made.append("&")
            else:
                self._made.append(_SIGNS[found["sign"] or found["other"]])
            return self._behind(_OPTION, at) if found["sign"] == "\\" else at
        return at

    def _behind(self, pattern: re.Pattern[str], at: int) -> int:
        found = pattern.match(self._source, at)
        return found.end() if found else at

    def _behind_arguments(self, at: int, count: int) -> int:
        at = self._behind(_OPTION, at)
        for _ in range(count):
            opening = _OPENING.match(self._source, at)
            if opening is None:
                break
            at = self._behind(_OPTION, _closing(self._source, opening.end()))
        return at

    def _accent(self, name: str, at: int) -> int:
        letter = _LETTER.match(self._source, at)
        if letter is None:
            return at
        self._made.append((letter[1] or letter[2]) + _ACCENTS[name])
        return letter.end()

    def _as_written(self, start: int, at: int, ending: str, apart: str = "") -> int:
        """Keep a formula with its signs, or the content of a listing between `apart`."""
        end = self._next(ending, at)
        while end > 0 and self._source[end - 1] == "\\" and ending[0] == "$":
            end = self._source.find(ending, end + 1)
        if end < 0 or (end > at + _LONGEST_FORMULA and not apart):
            return at
        behind = end + len(ending)
        kept = self._source[at:end].strip("\n") if apart else self._source[start:behind]
        self._made.append(f"{apart}\0{len(self._apart)}\0{apart}")
        self._apart.append(kept)
        return behind

    def _next(self, ending: str, at: int) -> int:
        """Return where this is found next, -1 if nowhere; what was looked for isn't again."""
        known = self._endings.get(ending, 0)
        if 0 <= known < at:
            self._endings[ending] = known = self._source.find(ending, at)
        return known

    def _command(self, name: str, at: int) -> int:
        if name in ("begin", "end"):
            return self._environment(name, at)
        if name in _ACCENTS:
            return self._accent(name, at)
        if name in _SILENT:
            return self._behind_arguments(at, _SILENT[name])
        if name in _HEADINGS:
            at = self._behind(_OPTION, at)
            opening = _OPENING.match(self._source, at)
            self._made.append(_PARAGRAPH)
            if opening:
                self._braces.append(_PARAGRAPH)
            return opening.end() if opening else at
        if name in self._macros or name in _SIGNS:
            shown = self._macros.get(name, _SIGNS.get(name, ""))
            self._room -= len(shown)
            self._made.append(shown if self._room > 0 else "")
            return at
        return self._behind_arguments(at, _LAST.get(name, 0))

    def _environment(self, command: str, at: int) -> int:
        found = _NAME.match(self._source, at)
        if found is None:
            return at
        name, at, bare = found[1], found.end(), found[1].rstrip("*")
        if command == "begin" and bare in _DROPPED:
            closing = self._next(f"\\end{{{name}}}", at)
            return len(self._source) if closing < 0 else closing
        if command == "begin" and bare in _FORMULAS:
            self._made.append(_PARAGRAPH)
            return self._as_written(found.start() - len("\\begin"), at, f"\\end{{{name}}}")
        if command == "begin" and bare in _LISTINGS:
            at = self._behind_arguments(at, _LISTINGS[bare])
            return self._as_written(at, at, f"\\end{{{name}}}", _PARAGRAPH)
        self._made.append(_PARAGRAPH)
        return self._behind_arguments(at, _ROWS.get(bare, 0)) if command == "begin" else at
