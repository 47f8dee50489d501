"""Documents in ZIP packages: DOCX (ECMA-376), ODT (OASIS OpenDocument 1.3) and EPUB 3.

Each becomes one page of HTML, all of which is content. Not taken: footnotes and comments, what was
deleted while changes were tracked, headers, pictures. XML with entities of its own, which could
grow, is refused.
"""

import html
import io
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import unquote
from xml.etree import ElementTree

from curation.errors import InputError
from curation.readers.charset import decode_html, is_binary
from curation.readers.raw import RawFile
from curation.readers.records import Fault
from curation.readers.wacz import Package

_FILES = (".xml", ".opf", ".xhtml", ".html", ".htm")
_TAGS = {"p": "p", "tbl": "table", "table": "table", "tr": "tr", "table-row": "tr"}
_TAGS |= {"tc": "td", "table-cell": "td", "list": "ul", "list-item": "li", "list-header": "li"}
_SIGNS = {"tab": "\t", "br": "<br>", "line-break": "<br>", "noBreakHyphen": "-", "cr": "<br>"}
_SIGNS["s"] = " "  # of several, HTML shows one
#: Elements without what is in them: a copy for old programs, notes, changes, forms, styles.
_LEFT_OUT = {"Fallback", "note", "annotation", "tracked-changes", "forms", "del", "moveFrom"}


#: Neither looks beyond the next `<`: the time is linear.
_BODY = re.compile(r"<body\b[^<>]*+>")
_EMPTY = re.compile(r"<(?!(?:br|hr|img|wbr|col|input)\b)([A-Za-z][\w:-]*+)([^<>]*+)(?<=/)>")


class _TooLargeError(ValueError):
    """A document that unpacks to more bytes than a record may have."""


def rows(file: IO[bytes], longest: int) -> Iterator[Mapping[str, Any] | Fault]:
    """Yield the document as a row of `html` and `title`, or what is wrong with it."""
    try:
        parts = _Parts(file, longest)
        for main, made in (
            ("word/document.xml", _docx),
            ("META-INF/container.xml", _epub),
            ("content.xml", _odt),
        ):
            if main in parts.numbers:
                text, title = made(parts)
                yield {"html": f"<body>{text}</body>", "title": " ".join(title.split())}
                return
        yield Fault("no_document", "a ZIP package without DOCX, ODT or EPUB in it")
    except _TooLargeError as error:
        yield Fault("too_large", str(error))
    except (InputError, ElementTree.ParseError, LookupError) as error:
        yield Fault("corrupt", str(error) or type(error).__name__)


class _Parts:
    """Files of a package by name, `longest` bytes of them in all."""

    def __init__(self, file: IO[bytes], longest: int) -> None:
        self._package = Package(RawFile(file, "package"), _FILES)
        self._left = self._longest = longest
        names = (info.filename for info in self._package.archives)
        self.numbers = {name: number for number, name in enumerate(names)}

    def read(self, name: str) -> bytes:
        """Return a file; empty if there is none."""
        if name not in self.numbers:
            return b""
        with self._package.open(self.numbers[name]) as raw:
            data = raw.fetch(0, self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise _TooLargeError(f"over {self._longest} bytes (readers.max_record_bytes)")
        if is_binary(data):
            raise InputError(f"{name}: neither XML nor HTML")
        if b"<!ENTITY" in data.replace(b"\0", b""):  # in UTF-16, too
            raise InputError(f"{name}: XML with entities of its own")
        return data


class _Writer:
    """Turns elements of a text document into HTML.

    Text stands in the elements `within`. `styles` gives the level of headings by style.
    """

    def __init__(self, within: tuple[str, ...], styles: Mapping[str, int]) -> None:
        self._within, self._styles = within, styles
        self._open: list[tuple[str, int]] = []  # tag in HTML, and where it begins in `_made`
        self._made: list[str] = []
        self._inside = self._left_out = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local, said = _local(name), {_local(key): value for key, value in attributes.items()}
        if local in _LEFT_OUT or self._left_out:
            self._left_out += 1
            return
        self._inside += local in self._within
        if local == "h":
            self._begin(f"h{_level(said.get('outline-level', '1'))}")
        elif local in _TAGS:
            self._begin(_TAGS[local])
        elif local in ("pStyle", "numPr") and self._open:
            level, tag = self._styles.get(said.get("val", ""), 0), self._open[-1][0]
            item = "li" if local == "numPr" and not tag.startswith("h") else tag
            self._open[-1] = (f"h{level}" if level else item, self._open[-1][1])
        elif local in _SIGNS and (self._inside or "t" in self._within):
            self._made.append(_SIGNS[local])

    def _begin(self, tag: str) -> None:
        self._open.append((tag, len(self._made)))
        self._made.append("")

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
            return
        local = _local(name)
        self._inside -= local in self._within
        if local in _TAGS or local == "h":
            tag, begin = self._open.pop()
            self._made[begin] = f"<{tag}>"
            self._made.append(f"</{tag}>\n")

    def data(self, data: str) -> None:
        if self._inside and not self._left_out:
            self._made.append(html.escape(data, quote=False))

    def close(self) -> str:
        return "".join(self._made)


def _local(name: str) -> str:
    """Return the name of an element or attribute without its namespace."""
    return name.rpartition("}")[2]


def _level(number: str) -> int:
    return max(1, min(int(number) if number.isdecimal() else 1, 6))


def _elements(data: bytes, *wanted: str) -> list[tuple[str, dict[str, str], str]]:
    """Return the elements of these names: name, attributes, text."""
    every = ElementTree.fromstring(data).iter() if data else ()
    return [
        (_local(each.tag), {_local(k): v for k, v in each.attrib.items()}, each.text or "")
        for each in every
        if _local(each.tag) in wanted
    ]


def _title(data: bytes) -> str:
    return next((text for _, _, text in _elements(data, "title")), "")


def _docx(parts: _Parts) -> tuple[str, str]:
    styles: dict[str, int] = {}
    style = ""
    for name, attributes, _ in _elements(parts.read("word/styles.xml"), "style", "name"):
        if name == "style":
            style = attributes.get("styleId", "")
        elif (shown := attributes.get("val", "").lower()).startswith("heading "):
            styles[style] = _level(shown.removeprefix("heading "))
        elif shown == "title":
            styles[style] = 1
    parser = ElementTree.XMLParser(target=_Writer(("t",), styles))
    text = ElementTree.XML(parts.read("word/document.xml"), parser)
    return text, _title(parts.read("docProps/core.xml"))  # type: ignore[return-value]


def _odt(parts: _Parts) -> tuple[str, str]:
    parser = ElementTree.XMLParser(target=_Writer(("p", "h"), {}))
    text = ElementTree.XML(parts.read("content.xml"), parser)
    return text, _title(parts.read("meta.xml"))  # type: ignore[return-value]


def _epub(parts: _Parts) -> tuple[str, str]:
    """Return the chapters in the order in which they are read."""
    found = _elements(parts.read("META-INF/container.xml"), "rootfile")
    book = unquote(found[0][1]["full-path"])
    package = parts.read(book)
    places = {
        attributes["id"]: unquote(attributes["href"])
        for _, attributes, _ in _elements(package, "item")
        if "nav" not in attributes.get("properties", "").split()
    }
    chapters = io.StringIO()
    for _, attributes, _ in _elements(package, "itemref"):
        if (place := places.get(attributes["idref"])) is not None:
            name = posixpath.normpath(posixpath.join(posixpath.dirname(book), place))
            chapters.write(_body(decode_html(parts.read(name), None)[0]))
    return chapters.getvalue(), _title(package)


def _body(page: str) -> str:
    """Return the body of XHTML as HTML, in which only some elements may be closed as `<a/>`."""
    found = _BODY.search(page)
    body = page[found.end() : page.rfind("</body")] if found else page
    return _EMPTY.sub(r"<\1\2></\1>", body)
