"""The text layer of a PDF: what PDFium reads of it, for `pdf_layout`.

PDFium opens what is damaged, too, as far as it can be mended. A file may still end its process or
take all its memory: the stage runs this in a guarded one.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from curation.compiled import Float32s, Int, Int64s, Uint32s, borrowing
from curation.errors import require
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction, PageTooLargeError
from curation.extract.pdf_layout import Characters, layout

_MOST_PAGES = 10_000  # own choice: beyond the longest of books
#: A page with fewer characters and an image is a scan. Own choice: a stamp or a page number fits.
_LEAST_CHARACTERS = 50
_MOST_OBJECTS = 64  # of a page that are looked at for an image
#: Shares beyond which a document is removed: of its pages that are scans, of its characters that
#: have no known meaning or are written from right to left, whose order in PDF is not reliable.
_MOST_SCANS, _MOST_UNMAPPED, _MOST_RIGHT_TO_LEFT = 0.5, 0.1, 0.1
#: First and last code points of scripts from right to left, and of private use.
_RIGHT_TO_LEFT = ((0x590, 0x8FF), (0xFB1D, 0xFDFF), (0xFE70, 0xFEFC), (0x10800, 0x10FFF))
_LAST = 0x10FFFF
_PRIVATE = ((0xE000, 0xF8FF), (0xFFF0, 0xFFFF), (0xD800, 0xDFFF))
_PROBLEMS = {3: "no PDF, or too damaged", 4: "a password is needed", 5: "its encryption is unknown"}
_FAR = 20_000  # points; no page is larger
_HYPHEN = 2  # PDFium's code for one at the end of a line
_IMAGE = 3

_CATALOG, _OBJECT, _NEAR = re.compile(rb"/Type\s*/Catalog\b"), re.compile(rb"(\d+) (\d+) obj"), 1024

_types: Any = numba.types


@intrinsic  # type: ignore[untyped-decorator]
def _call(_context: Any, function: Any, page: Any, index: Any, out: Any) -> Any:
    """Call `int function(page, index, out)` at an address: a tenth of what ctypes takes."""
    word, number = ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(number, [word, number, word]).as_pointer()

    def build(_: Any, builder: Any, __: Any, args: Any) -> Any:
        called = builder.inttoptr(args[0], kind)
        return builder.call(called, [args[1], builder.trunc(args[2], number), args[3]])

    return _types.int32(_types.int64, _types.int64, _types.int64, _types.int64), build


@borrowing
def _read(functions: Int64s, page: Int, codes: Uint32s, sound: Uint32s, boxes: Float32s) -> None:
    """Fill code point, whether it has no meaning, and box of the characters of a page's text."""
    for i in range(len(codes)):
        codes[i] = _call(functions[0], page, i, 0)
        sound[i] = _call(functions[1], page, i, 0)
        _call(functions[2], page, i, boxes.ctypes.data + 16 * i)


class _Page(NamedTuple):
    codes: Uint32s  # [n]
    unmapped: Uint32s  # [n]
    boxes: Float32s  # [n, 4] left, top, right, bottom, as the page is shown
    spaced: Any  # [n] white space before it
    is_scan: bool


def _with_trailer(content: bytes) -> bytes:
    """Return what may be a truncated file with an end that names the catalog in it."""
    catalog = _CATALOG.search(content)
    before = content[: catalog.start()][-_NEAR:] if catalog else b""
    found = _OBJECT.findall(before)
    if not found:
        return content
    return (
        content
        + b"\nendstream\nendobj\ntrailer\n<< /Root %s %s R >>\nstartxref\n0\n%%%%EOF\n" % found[-1]
    )


class _Document:
    """An open PDF. Raises ValueError for what PDFium can't open."""

    def __init__(self, content: bytes) -> None:
        self._api = api = require("pypdfium2.raw", "PDF")
        for self._content in (content, _with_trailer(content)):  # read from as long as it is open
            self._open = api.FPDF_LoadMemDocument64(self._content, len(self._content), None)
            if self._open:
                break
        else:
            problem = api.FPDF_GetLastError()
            raise ValueError(f"PDFium can't open it: {_PROBLEMS.get(problem, f'error {problem}')}")
        called = (
            api.FPDFText_GetUnicode,
            api.FPDFText_HasUnicodeMapError,
            api.FPDFText_GetLooseCharBox,
        )
        addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in called]
        self._functions = np.array(addresses, np.int64)

    def __enter__(self) -> _Document:
        return self

    def __exit__(self, *exception: object) -> None:
        self._api.FPDF_CloseDocument(self._open)

    @property
    def pages(self) -> int:
        return int(self._api.FPDF_GetPageCount(self._open))

    @property
    def title(self) -> str:
        size = min(self._api.FPDF_GetMetaText(self._open, b"Title", None, 0), 4096)
        held = ctypes.create_string_buffer(size)
        self._api.FPDF_GetMetaText(self._open, b"Title", held, size)
        return " ".join(held.raw.decode("utf-16-le", "replace").replace("\0", " ").split())

    def page(self, number: int, most: int) -> _Page | None:
        """Return a page; None if it can't be read. Raises PageTooLargeError over `most` characters."""
        api = self._api
        page = api.FPDF_LoadPage(self._open, number)
        text = page and api.FPDFText_LoadPage(page)
        try:
            return self._page(page, text, most) if text else None
        finally:
            if text:
                api.FPDFText_ClosePage(text)
            if page:
                api.FPDF_ClosePage(page)

    def _page(self, page: Any, text: Any, most: int) -> _Page:
        size = max(0, self._api.FPDFText_CountChars(text))
        if size > most:
            raise PageTooLargeError("extract.too_long", size, most)
        codes, unmapped = np.empty(size, np.uint32), np.empty(size, np.uint32)
        boxes = np.zeros((size, 4), np.float32)
        address = ctypes.cast(text, ctypes.c_void_p).value or 0
        _read(self._functions, address, codes, unmapped, boxes)
        boxes = np.nan_to_num(boxes).clip(-_FAR, _FAR)
        shown = np.flatnonzero((codes > 32) & (codes != 0xA0) | (codes == _HYPHEN))
        return _Page(
            codes[shown],
            unmapped[shown],
            _turned(boxes[shown], self._api.FPDFPage_GetRotation(page)),
            np.diff(shown, prepend=-2) > 1,
            len(shown) < _LEAST_CHARACTERS and self._has_image(page),
        )

    def _has_image(self, page: Any) -> bool:
        api = self._api
        objects = range(min(api.FPDFPage_CountObjects(page), _MOST_OBJECTS))
        kinds = (api.FPDFPageObj_GetType(api.FPDFPage_GetObject(page, n)) for n in objects)
        return _IMAGE in kinds


def _turned(boxes: Float32s, quarters: int) -> Float32s:
    """Return boxes of a page that is shown turned clockwise."""
    left, top, right, bottom = boxes.T
    turned = {1: (bottom, -left, top, -right), 2: (-right, -bottom, -left, -top)}
    turned[3] = (-top, right, -bottom, left)
    return np.stack(turned[quarters], axis=1) if quarters in turned else boxes


def extract_pdf(content: bytes, settings: ExtractSettings) -> Extraction:
    """Return text and title of a PDF, and the byte in the text at which each page begins.

    Its score is the share of characters with a known meaning, times that of pages with text.
    Raises ValueError for what can't be opened, PageTooLargeError for what has no reliable text.
    """
    with _Document(content) as document:
        found = _pages(document, settings.max_characters)
        title = document.title
    lost = sum(page is None or page.is_scan for page in found) / max(1, len(found))
    pages = {number: page for number, page in enumerate(found) if page and len(page.codes)}
    _refuse("pdf.no_text", lost if pages else 1.0, _MOST_SCANS)
    codes = np.concatenate([page.codes for page in pages.values()])
    unmapped = np.concatenate([page.unmapped for page in pages.values()]) != 0
    unmapped |= _within(codes, _PRIVATE) | (codes > _LAST)
    unknown = float(unmapped.mean())
    _refuse("pdf.unmapped", unknown, _MOST_UNMAPPED)
    _refuse("pdf.right_to_left", float(_within(codes, _RIGHT_TO_LEFT).mean()), _MOST_RIGHT_TO_LEFT)
    codes[unmapped] = 0xFFFD
    characters = Characters(
        np.repeat([*pages], [len(page.codes) for page in pages.values()]),
        codes,
        np.concatenate([page.boxes for page in pages.values()]),
        np.concatenate([page.spaced for page in pages.values()]),
    )
    text, starts = layout(characters, len(found))
    score = round((1 - unknown) * (1 - lost), 4)
    return Extraction(text, title, content_score=score, page_starts=starts)


def _pages(document: _Document, most: int) -> list[_Page | None]:
    _refuse("pdf.too_many_pages", document.pages, _MOST_PAGES)
    found: list[_Page | None] = []
    for number in range(document.pages):
        found.append(page := document.page(number, most))
        most -= len(page.codes) if page else 0
    return found


def _refuse(reason: str, value: float, most: float) -> None:
    if value > most:
        raise PageTooLargeError(reason, value, most)


def _within(codes: Uint32s, ranges: tuple[tuple[int, int], ...]) -> Any:
    return np.logical_or.reduce([(codes >= first) & (codes <= last) for first, last in ranges])
