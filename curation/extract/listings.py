"""Listings among the blocks that are kept: what they lose, and which are lines of one.

Line numbers that are in a listing as text: taken off where they surely are a gutter.

Most gutters have a class name and never reach a listing. What is left looks like any rows of data
that are numbered, so a column of numbers goes only if what follows it is laid out as code is.

Programming languages that class names state.
"""

import functools
import html
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from curation.extract import blocks as s
from curation.extract.markup import TAG

_NUMBERED = regex.compile(r"([ \t]*)(\d{1,6})(:?)([ \t]*)(.*)")
_LEAST = 3  # fewer numbers follow each other by chance
_MAX_LINES = 10_000  # longer ones are data
_INDENTED = regex.compile(r"\t|  ")
# What lines of most languages hold, and rows of data and lists rarely do.
_CODE = regex.compile(
    r"""[;{}=<>\[\]$@\\]|\w\(|[:,(]$|::|->|^(?:\#|//|/\*|--|\*)|(?:^|\s)[~.]{0,2}/\w
    |^(?:import|from|return|def|class|if|elif|else|for|while|do|done|fi|end|try|catch|begin
    |function|func|fn|let|var|const|int|void|public|private|static|package|using|echo|print)\b""",
    regex.X,
)


def without_line_numbers(code: str) -> str:
    """The code without its line numbers; the code itself where they may be anything else.

    They follow each other on every line, in a column, and are followed by code: it is indented or
    has empty lines, and half of it has the signs of code.
    """
    lines = code.rstrip().split("\n")
    if not _LEAST <= len(lines) <= _MAX_LINES:
        return code
    found: list[tuple[str, ...]] = []
    for line in lines:
        match = _NUMBERED.fullmatch(line)
        # Most listings end here, at their first line.
        if match is None or (found and int(match[2]) != int(found[-1][1]) + 1):
            return code
        found.append(match.groups())
    before = [len(indent) for indent, *_ in found]
    edges = [len(indent) + len(digits) for indent, digits, *_ in found]
    if len(set(before)) > 1 and len(set(edges)) > 1:
        return code
    if len({colon for _, _, colon, _, _ in found}) > 1:
        return code
    starts = _columns(edges, found)
    rests = [line[start:] for line, start in zip(lines, starts, strict=True)]
    glued = not found[0][2] and any(rest[:1].strip() for rest in rests)
    if glued and int(found[0][1]) != 1:
        return code  # `10px`
    if not _is_code(rests, glued):
        return code
    # One space parts the numbers from the code; further ones may be its indentation.
    if all(rest[:1] in ("", " ", "\t") for rest in rests):
        rests = [rest[1:] for rest in rests]
    return "\n".join(rests)


def _columns(edges: list[int], found: list[tuple[str, ...]]) -> list[int]:
    """Where what follows the number of each line begins.

    Numbers of one digit and of more may have a column of one width (`9   x`, `10  x`).
    """
    ends = [edge + len(colon) for edge, (_, _, colon, _, _) in zip(edges, found, strict=True)]
    texts = [(end + len(row[3]), end) for end, row in zip(ends, found, strict=True) if row[4]]
    first = min(texts, default=(0, 0))[0]
    widths = {end for start, end in texts if start == first}
    if first > max(ends) and len(widths) > 1:
        return [max(ends)] * len(ends)
    return ends


def _is_code(rests: list[str], glued: bool) -> bool:
    """Whether lines without their numbers are laid out and written as code."""
    filled = [i for i, rest in enumerate(rests) if rest.strip()]
    if not filled:
        return False
    texts = [rests[i].lstrip() for i in filled]
    if all(text[0] in "|,;.%)" for text in texts):
        return False  # rows and items
    least = min(len(rests[i]) - len(text) for i, text in zip(filled, texts, strict=True))
    indented = any(_INDENTED.match(rests[i], least) for i in filled)
    empty = len(filled) <= filled[-1] - filled[0]
    if not indented and not empty:
        return False
    signs = sum(1 for text in texts if _CODE.search(text))
    # Directly behind its number hardly anything is indented but code.
    return bool(signs) if glued and indented else 2 * signs >= len(texts)


_FAR = 1000  # elements between two lines of one listing
_LINES = (TAG["td"], TAG["div"])  # elements that hold one line of a listing each
#: What buttons say that copy a listing.
_LABELS = frozenset(
    label.casefold()
    for label in """
Copy|Copy code|Copy to clipboard|Copy snippet|Copied|Copied!|Copy text|Copy Code
Kopieren|Code kopieren|In die Zwischenablage kopieren|Copier|Copier le code|Copier dans le presse-papiers
Copiar|Copiar código|Copiar al portapapeles|Copiar para a área de transferência|Copia|Copia codice
Kopiëren|Code kopiëren|Kopiera|Kopiér|Kopier|Kopioi|Kopiuj|Kopiuj kod|Kopírovat|Másolás|Copiază
Копировать|Скопировать|Скопировать код|Копіювати|Скопіювати|Копирай|Αντιγραφή|Kopyala|Kodu kopyala
复制|复制代码|拷贝|複製|複製程式碼|コピー|コードをコピー|コピーする|복사|코드 복사|복사하기
Sao chép|Salin|Salin kode|คัดลอก|คัดลอกโค้ด|نسخ|نسخ الكود|העתק|کپی|कॉपी करें
""".replace("\n", "|").split("|")
    if label
)
#: What selects a listing in forums (phpBB, SMF, WoltLab), behind `Code:`.
_SELECT = """
select all|select|expand|expand view|alles auswählen|auswählen|tout sélectionner|sélectionner tout|sélectionner
seleccionar todo|seleccionar|selecionar todos|selecionar|seleziona tutto|alles selecteren|selecteer alles
markera allt|markér alt|valitse kaikki|zaznacz cały|zaznacz|vybrat vše|vybrat|mindet kijelöl|выделить всё|выделить
выбрать|виділити все|επιλογή όλων|tümünü seç|全选|全選|すべて選択|모두 선택|chọn hết
""".strip().replace("\n", "|")
_HEADS = "code|quellcode|código|codice|kod|kód|koodi|код|κώδικας|kodu|代码|代碼|コード|코드|mã"
_LABEL = regex.compile(
    rf"(?:(?:{_HEADS})\s*:?\s*)(?:\[\s*)?(?:{_SELECT})(?:\s*\])?(?:\s*(?:copy to clipboard|download))?"
    r"|(?:hide|shrink)?\s*(?:expand)?\s*copy code"
)


def is_copy_label(label: str) -> bool:
    """Return whether a line of text before a listing, in lower case, is nothing but its button."""
    return len(label) < 60 and (label in _LABELS or _LABEL.fullmatch(label) is not None)


class Listings:
    """Listings of one page, by their places among the blocks that are `chosen` [k]."""

    def __init__(self, page: s.Page, chosen: npt.NDArray[np.int64]) -> None:
        self._page, self._chosen = page, chosen

    def text(self, code: str) -> str:
        """Return a listing without its line numbers; "" if it is blank."""
        return "" if code.isspace() else without_line_numbers(code)

    def continues(self, previous: int, i: int) -> bool:
        """Whether listing i is a line of the listing before it: like elements hold them."""
        page, one, other = self._page, self._element(previous), self._element(i)
        if one == other or page.e_tag[other] not in _LINES:
            return False
        if page.e_signature[one] == page.e_signature[other]:
            return True
        # GeSHi has every fifth line in another style.
        items = page.e_parent[one], page.e_parent[other]
        is_item = page.e_tag[items[0]] == page.e_tag[items[1]] == TAG["li"]
        return bool(is_item and page.e_parent[items[0]] == page.e_parent[items[1]])

    def empty_lines(self, previous: int, i: int) -> int:
        """Lines without text between two lines of a listing: like elements that have no block."""
        page, one, other = self._page, int(self._element(previous)), int(self._element(i))
        if other - one > _FAR or page.e_signature[one] != page.e_signature[other]:
            return 0
        alike = (
            np.flatnonzero(page.e_signature[one + 1 : other] == page.e_signature[other]) + one + 1
        )
        return int((~np.isin(alike, page.b_element)).sum()) if len(alike) else 0

    def _element(self, i: int) -> Any:
        return self._page.b_element[self._chosen[i]]


_LEVELS = 4  # elements around code whose class may name its language
_LANGUAGE = regex.compile(
    r"(?:^|\s)(?:ltx_lst_language_"
    r"|(?:language|lang|highlight-source|highlight|brush|sourceCode|code|hljs)[-:\s]+)"
    r"([A-Za-z][\w+#.-]{0,20})(?![\w+#.-])",
    regex.I,
)
_NO_LANGUAGE = frozenset(
    "block box file wrapper container copy toolbar text-wrap highlight code pre none content body panel frame"
    " header title inner line lines view viewer area example examples snippet sample section editor group".split()
)
_PREFIXES = ("language-", "lang-", "highlight-", "source-", "hl-")
#: Ends of names of what is around a listing: `js-syntax-highlight`, `blob-viewer`.
_COMPONENTS = ("-highlight", "-viewer", "-block", "-wrapper", "-container", "-panel", "-numbers")


def language_of(classes: str) -> str:
    """Programming language that class names state (`language-python`, `brush: js`), or ""."""
    for found in _LANGUAGE.finditer(classes):
        name = found.group(1).lower().rstrip(";")
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        if name not in _NO_LANGUAGE and not name.endswith(_COMPONENTS):
            return name
    return ""


@functools.lru_cache(1 << 10)  # the pieces of a listing have one class
def _language(classes: bytes) -> str:
    return language_of(html.unescape(classes.decode("utf-8", "replace")))


class StatedLanguages:
    """What the listings of one page say that they are written in."""

    def __init__(self, source: bytes, page: s.Page) -> None:
        self._source, self._page = source, page

    @functools.cached_property
    def _classed(self) -> list[bool]:
        """Whether each block [n] has a class in it, or on an element near around it.

        Most listings have none, and a page may have a hundred thousand.
        """
        page, element = self._page, self._page.b_element
        at = page.a_at[page.a_kind == s.CODE_CLASS]
        found = np.searchsorted(at, page.b_start) < np.searchsorted(at, page.b_end)
        classed = page.e_class[:, 1] > page.e_class[:, 0]
        for _ in range(_LEVELS):
            found |= classed[element] & (element > 0)
            element = np.where(element > 0, page.e_parent[element], 0)
        return found.tolist()  # type: ignore[no-any-return]

    def of(self, block: int) -> str:
        """Language of a listing by the classes of <code> in it and around it, or ""."""
        if not self._classed[block]:
            return ""
        page = self._page
        first, last = np.searchsorted(page.a_at, [page.b_start[block], page.b_end[block]])
        for atom in range(first, last):
            if page.a_kind[atom] == s.CODE_CLASS:
                if name := _language(self._source[page.a_start[atom] : page.a_end[atom]]):
                    return name
        element = int(page.b_element[block])
        for _ in range(_LEVELS):
            if element <= 0:
                break
            start, end = page.e_class[element].tolist()
            if end > start and (name := _language(self._source[start:end])):
                return name
            element = int(page.e_parent[element])
        return ""
