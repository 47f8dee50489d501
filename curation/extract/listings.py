"""Listings among the blocks that are kept: what they lose, and which are lines of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from curation.extract import blocks as s
from curation.extract.line_numbers import without_line_numbers
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
