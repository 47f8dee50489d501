"""Wikitext to HTML: the words of an article without what only its wiki can fill in.

Kept: paragraphs, headings of sections that are not empty, lists, tables, formulas, code, the labels
of links, and the text in templates of a few names. Left out: all other templates (infoboxes,
citations), references, files, categories, galleries. The time is linear in the length of the text.
"""

import html
import re
from collections.abc import Set
from itertools import takewhile
from typing import Any

from curation.config import read_yaml
from curation.resources import root

_KNOWN = read_yaml(root() / "configs" / "lists" / "wikitext.yaml")


def _each(group: str, value: Any) -> dict[str, Any]:
    return dict.fromkeys(_KNOWN[group].split(), value)


#: Elements whose content is no wikitext, and what is shown of it: `{}`, or nothing.
_APART = _each("preformatted", "\n<pre>{}</pre>\n") | _each("formulas", "${}$")
_APART |= _each("as_is", "{}") | _each("unshown", "")
_BEGIN = re.compile(rf"<(?:!--|({'|'.join(_APART)})\b([^<>]*)>)", re.IGNORECASE)
_KEPT = re.compile("\0(\\d+)\0")
#: Templates that show some of their arguments: which.
_SHOWN = _each("first", slice(1)) | _each("last", slice(-1, None)) | _each("measures", slice(2))
_ARGUMENT = re.compile(r"\s*[\w-]+\s*=")
_PAIRS = {"}}": "{{", "]]": "[["}
_BRACKETS = re.compile(r"\{\{|\}\}|\[\[|\]\]")
_DEEPEST = 100  # brackets inside each other; those within are text
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*$")
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\[(?:https?:|ftp:|mailto:|//)[^\s\[\]]*+([^\[\]]*+)\]"), r"\1"),
    (re.compile("'{2,5}"), ""),
    (re.compile(r"__[^\W\d_]{3,40}__"), ""),
    (re.compile(r"<(?!/?[A-Za-z][^<>\n]*>)"), "&lt;"),
    (re.compile(r"([(（])\s{0,9}[,;:、；]\s{0,9}"), r"\1"),
    (re.compile(r"[,;、；]\s{0,9}([)）])"), r"\1"),
    (re.compile(r" ?[(（]\s{0,9}[)）]"), ""),
)
_LISTS = {"*": ("ul", "li"), "#": ("ol", "li"), ":": ("dl", "dd"), ";": ("dl", "dt")}
_NESTED = 20  # lists inside each other


def to_html(text: str, unshown: Set[str]) -> str:
    """Return the HTML of an article.

    Args:
        text: wikitext.
        unshown: namespaces in lower case whose links show nothing: of files and categories.
    """
    apart: list[str] = []
    text = _set_apart(text.replace("\0", ""), apart)
    made = _Blocks(_without_brackets(text, unshown)).html()
    return _KEPT.sub(lambda found: apart[int(found[1])], made)


def _set_apart(text: str, apart: list[str]) -> str:
    """Replace elements that hold no wikitext by their numbers, and leave out comments."""
    made: list[str] = []
    missing: set[str] = set()  # those that are never closed from here on
    at = 0
    while found := _BEGIN.search(text, at):
        made.append(text[at : found.start()])
        name = (found[1] or "--").lower()
        at = found.end()
        if (found[2] or "").endswith("/"):
            continue
        ending = "-->" if name == "--" else rf"</{name}\s*>"
        closing = None if name in missing else re.compile(ending, re.I).search(text, at)
        if closing is None:
            missing.add(name)
            continue
        content = text[at : closing.start()]
        at = closing.end()
        if shown := _APART.get(name, ""):
            made.append(f"\0{len(apart)}\0")
            apart.append(shown.format(html.escape(html.unescape(content), quote=False)))
    return "".join([*made, text[at:]])


def _without_brackets(text: str, unshown: Set[str]) -> str:
    """Return the text with templates and links as what they show."""
    made: list[str] = []
    waiting: list[tuple[str, int]] = []  # brackets that are open, and their places in `made`
    at = 0
    for found in _BRACKETS.finditer(text):
        made.append(text[at : found.start()])
        at, sign = found.end(), found[0]
        made.append(sign)
        if sign not in _PAIRS:
            if len(waiting) < _DEEPEST:
                waiting.append((sign, len(made) - 1))
        elif any(opened == _PAIRS[sign] for opened, _ in waiting):
            while waiting[-1][0] != _PAIRS[sign]:
                waiting.pop()
            begin = waiting.pop()[1]
            inner = "".join(made[begin + 1 : -1])
            del made[begin:]
            made.append(_template(inner) if sign == "}}" else _link(inner, unshown))
    return "".join([*made, text[at:]])


def _template(inner: str) -> str:
    name, *arguments = inner.split("|")
    name = name.strip().lower()
    placed = [each.strip() for each in arguments if not _ARGUMENT.match(each)]
    shown = slice(1) if name.startswith("lang-") else _SHOWN.get(name)
    return " ".join(placed[shown]) if placed and shown else _KNOWN["signs"].get(name, "")


def _link(inner: str, unshown: Set[str]) -> str:
    target, *labels = inner.split("|")
    prefix = target.partition(":")[0].strip().lower() if ":" in target else ""
    if prefix in unshown or (prefix and not labels and _LANGUAGE.match(target.partition(":")[0])):
        return ""
    return labels[-1] if labels else target.lstrip(":")


class _Blocks:
    """The lines of an article as elements of HTML."""

    def __init__(self, text: str) -> None:
        self._made: list[tuple[int, str]] = []  # level of a heading or 0, and HTML
        self._paragraph: list[str] = []
        self._lists = ""  # signs of the lists that are open
        self._tables = 0
        for line in text.split("\n"):
            self._line(line)
        self._end()

    def html(self) -> str:
        """Return all blocks but headings of sections with nothing in them."""
        kept: list[str] = []
        follows = 0  # level of what follows; 7 for text
        for level, block in reversed(self._made):
            if not level or follows > level:
                kept.append(block)
                follows = level or 7
        return "\n".join(reversed(kept))

    def _add(self, block: str, level: int = 0) -> None:
        self._end()
        self._made.append((level, block))

    def _end(self) -> None:
        """Close the paragraph and the lists that are open."""
        if self._paragraph:
            lines = "\n".join(self._paragraph)
            self._made.append((0, lines if self._tables else f"<p>{lines}</p>"))
            self._paragraph.clear()
        if self._lists:
            self._made.append((0, self._item("", "")))

    def _line(self, line: str) -> None:
        bare = line.strip()
        level = min(_run(bare, "="), _run(bare[::-1], "="), 6, (len(bare) - 1) // 2)
        if level > 0:
            title = _inline(bare[level:-level]).strip()
            self._add(f"<h{level}>{title}</h{level}>", level)
        elif bare.lstrip(":*# ").startswith("{|"):
            self._add("<table>")
            self._tables += 1
        elif self._tables and bare[:1] in ("|", "!"):
            self._cells(bare)
        elif signs := line[: _run(line, "*#:;")]:
            if self._paragraph:
                self._end()
            text = _inline(line[len(signs) :].strip())
            self._made.append((0, self._item(signs[:_NESTED], text)))
        elif bare:
            if self._lists:
                self._end()
            self._paragraph.append(_inline(bare))
        else:
            self._end()

    def _item(self, signs: str, text: str) -> str:
        """Return an item of a list, after what ends and begins lists up to it."""
        same = sum(1 for _ in takewhile(_alike, zip(self._lists, signs, strict=False)))
        parts = [f"</{_LISTS[s][1]}></{_LISTS[s][0]}>" for s in reversed(self._lists[same:])]
        if same and same == len(signs):
            parts.append(f"</{_LISTS[self._lists[same - 1]][1]}><{_LISTS[signs[-1]][1]}>")
        parts += [f"<{_LISTS[s][0]}><{_LISTS[s][1]}>" for s in signs[same:]]
        self._lists = signs
        return "".join(parts) + text

    def _cells(self, line: str) -> None:
        """Add the cells of a line of a table, or what ends it."""
        if line.startswith("|}"):
            self._add("</table>")
            self._tables -= 1
        elif line.startswith("|-"):
            self._add("<tr>")
        elif line.startswith("|+"):
            self._add(f"<caption>{_inline(line[2:].rpartition('|')[2].strip())}</caption>")
        else:
            tag = "th" if line[0] == "!" else "td"
            cells = line[1:].replace("!!", "||") if tag == "th" else line[1:]
            shown = (_inline(cell.rpartition("|")[2].strip()) for cell in cells.split("||"))
            self._add("".join(f"<{tag}>{cell}" for cell in shown))


def _run(line: str, signs: str) -> int:
    return len(line) - len(line.lstrip(signs))


def _alike(pair: tuple[str, str]) -> bool:
    return _LISTS[pair[0]][0] == _LISTS[pair[1]][0]


def _inline(text: str) -> str:
    for pattern, shown in _INLINE:
        text = pattern.sub(shown, text)
    return text
