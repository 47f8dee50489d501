"""Sources in LaTeX to text: what stands between `\\begin{document}` and `\\end{document}`.

Kept: paragraphs, headings, items of lists, rows of tables, listings, and formulas as they are
written. Left out: comments, preamble, references, footnotes, pictures, and commands themselves; the
arguments in braces of a command that `configs/lists/latex.yaml` doesn't name stay as text. Macros
without arguments are filled in; files that a source names (`\\input`) are not read. The time is
linear in the length: no pattern goes beyond the next of what it begins with.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import IO, Any

from curation.config import read_yaml
from curation.readers.charset import decode_text
from curation.readers.records import Fault
from curation.resources import root

_KNOWN = read_yaml(root() / "configs" / "lists" / "latex.yaml")


def _any(*groups: str) -> str:
    return "|".join(name for group in groups for name in _KNOWN[group].split())


_OPTIONS = r"\*?(?:[^\S\v\f]*\[[^\[\]]{0,2000}\])*"  # of the same paragraph, as arguments
_PLAIN = r"[^{}\\]|\\."
_GROUP = rf"\{{((?:{_PLAIN}|\{{(?:{_PLAIN}|\{{(?:{_PLAIN})*+\}})*+\}})*+)\}}"
_ARGUMENT = rf"[^\S\v\f]*{_GROUP}"
#: What isn't text, or is kept as it is written.
_APART = re.compile(
    r"\\verb\*?(?P<mark>[^\sA-Za-z*])(?P<verb>[^\n]{0,1000}?)(?P=mark)|"
    r"(?P<comment>%[^\n]*\n?[ \t]*)|(?P<line>\\\\(?:\s*\[[^\[\]]{0,20}\])?)|\\[%$]"
    r"|\$\$[^$]+\$\$|\$(?:[^$\\]|\\.)++\$|\\\((?:[^\\]|\\[^()])*+\\\)|\\\[(?:[^\\]|\\[^\[\]])*+\\\]"
    rf"|\\begin\{{(?P<name>{_any('left_out', 'formulas', 'listings', 'marked_listings')})\*?\}}"
    r"(?P<inside>(?:[^\\]|\\(?!(?:begin|end)\{(?P=name)\*?\}).)*+)\\end\{(?P=name)\*?\}",
    re.S,
)
_OF_LISTING = re.compile(rf"^{_OPTIONS}(?:\{{[^{{}}\n]*\}})?\n*")
_DROPPED = re.compile(
    rf"\\(?:{_any('dropped')}|def\s*\\[A-Za-z@]++[#0-9]*|(?:{_any('dropped_twice')}){_OPTIONS}{_ARGUMENT})"
    rf"{_OPTIONS}{_ARGUMENT}",
    re.S,
)
#: What is left of it, with the space before it where more or a sign follows.
_LEFT = re.compile(r"(?<![ ~])[ ~]*\a++(?=[\s.,;:!?)\]])|\a+")
_ENVIRONMENT = re.compile(rf"\\(?:begin|end)\{{[^{{}}]+\}}{_OPTIONS}(?:{_GROUP})*", re.S)
_HEADING = re.compile(rf"\\(?:{_any('headings')}){_OPTIONS}{_ARGUMENT}", re.S)
_ACCENT = re.compile(
    r"\\([`'^\"~=.]|[cvuHrkd](?![A-Za-z]))\s*(?:\{\s*\\?([^\W\d_])\s*\}|\\?([^\W\d_]))"
)
_SIGN = re.compile(rf"(\\item)\b[ \t]*|(\\[A-Za-z]+){_OPTIONS}[ \t]*|\\.|[{{}}&~]|---?|``|''", re.S)
_MACRO = re.compile(
    r"\\(?:(?:re|provide)?(?:new)?command\*?\s*\{?|def)\s*(\\[A-Za-z]+)\s*\}?\s*"
    r"\{((?:[^{}]|\{[^{}]{0,200}\}){0,200})\}"
)
_TITLE = re.compile(rf"\\title{_OPTIONS}{_ARGUMENT}", re.S)


def rows(file: IO[bytes], longest: int) -> Iterator[Mapping[str, Any] | Fault]:
    """Yield the source as one row of `text` and `title`."""
    raw = file.read(longest + 1)
    if len(raw) > longest:
        yield Fault("too_large", f"over {longest} bytes (readers.max_record_bytes)")
        return
    source = decode_text(raw, None)[0]
    source = "\n".join(source.splitlines()).replace("\0", "")
    begin, end = max(0, source.find("\\begin{document}")), source.rfind("\\end{document}")
    macros = {name: _text(body, {}) for name, body in _MACRO.findall(source[:begin])}
    text = _text(source[begin : end if end > begin else len(source)], macros)
    title = _TITLE.search(source)
    yield {"text": text, "title": " ".join(_text(title[1] if title else "", macros).split())}


def _text(source: str, macros: Mapping[str, str]) -> str:
    apart: list[str] = []
    room = len(source)  # for macros

    def set_apart(found: re.Match[str]) -> str:
        if found[0] in ("\\%", "\\$"):
            return found[0]
        if found["line"]:
            return "\v"
        if found["comment"] or found["name"] in _KNOWN["left_out"].split():
            return ""
        if found["name"] in _KNOWN["marked_listings"].split():
            inside = _OF_LISTING.sub("", found["inside"]).replace("$", "\\$")
            return "\f{}\f".format(inside.replace("\n", "\v"))
        if found["verb"] is not None:
            apart.append(found["verb"])
            return f"\0{len(apart) - 1}\0"
        is_listing = found["name"] in _KNOWN["listings"].split()
        apart.append(_OF_LISTING.sub("", found["inside"]).rstrip() if is_listing else found[0])
        around = "\f" if found["name"] else ""
        return f"{around}\0{len(apart) - 1}\0{around if is_listing else ''}"

    def shown(found: re.Match[str]) -> str:
        nonlocal room
        sign = found[found.lastindex or 0]
        made = macros.get(sign, _KNOWN["signs"].get(sign, ""))
        room -= len(made)
        return made if room > 0 else ""

    text = re.sub(r"\n[ \t]*\n\s*", "\f", _APART.sub(set_apart, source))
    text = re.sub(r"[ \t]*\n[ \t]*|[ \t]+", " ", text)
    text = _HEADING.sub("\f\\1\f", _ENVIRONMENT.sub("\f", _LEFT.sub("", _DROPPED.sub("\a", text))))
    text = _ACCENT.sub(lambda f: (f[2] or f[3]) + _KNOWN["accents"][f[1]], text)
    text = re.sub(" +", " ", unicodedata.normalize("NFC", _SIGN.sub(shown, text)))
    text = re.sub(r" ?[\v\f][ \v\f]*", lambda m: "\n\n" if "\f" in m[0] else "\n", text)
    return re.sub("\0(\\d+)\0", lambda found: apart[int(found[1])], text).strip()
