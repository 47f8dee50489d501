"""Listings among the blocks that are kept: which are lines of one, labels, the languages they state."""

import functools
import html
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from curation.extract import blocks as s
from curation.extract.markup import TAG

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
