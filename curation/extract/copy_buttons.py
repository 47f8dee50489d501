"""Labels of buttons that copy or select a listing: lines of its text, or the text before it."""

from __future__ import annotations

import itertools

import regex

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
_LONGEST = max(map(len, _LABELS))
_BUTTON = regex.compile(
    rb"<(?:button\b|[a-z]+\s[^<>]*\b(?:copy|clip|btn|button))[^<>]*>(?:\s|<[^<>]*>)*$", regex.I
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
_BEFORE = 400  # bytes of a button before its label
_FINDS = 20  # occurrences of a label that are checked
_LANGUAGE = regex.compile(rb"\blanguage-([a-z][\w+#.-]{0,19})", regex.I)


def is_copy_label(label: str) -> bool:
    """Whether a line of text before a listing, in lower case, is nothing but a button for it."""
    return len(label) < 60 and (label in _LABELS or _LABEL.fullmatch(label) is not None)


class CopyLabels:
    """What the buttons of one page say."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._languages: set[bytes] | None = None
        self._known: dict[str, bool] = {}  # a page may have a hundred thousand listings

    def taken_off(self, code: str) -> str:
        """A listing without the label of its button, which is its first or last line.

        The source of the page must have a button with this label. The name of the language may
        be above the label, and goes with it.
        """
        lines = code.split("\n")
        if len(lines) > 2 and self._is_button(lines[1]) and self._is_language(lines[0]):
            return "\n".join(lines[2:])
        if len(lines) > 1 and self._is_button(lines[0]):
            return "\n".join(lines[1:])
        if len(lines) > 1 and self._is_button(lines[-1]):
            return "\n".join(lines[:-1])
        return code

    def _is_button(self, line: str) -> bool:
        label = line.strip().casefold()
        if not 0 < len(label) <= _LONGEST or label not in _LABELS:
            return False
        if label not in self._known:
            pattern = regex.compile(
                rb">(\s{0,99})" + regex.escape(line.strip()).encode() + rb"\s{0,99}<",
                regex.I,
            )
            found = itertools.islice(pattern.finditer(self._source), _FINDS)
            self._known[label] = any(
                _BUTTON.search(self._source[max(0, match.start() - _BEFORE) : match.end(1)])
                for match in found
            )
        return self._known[label]

    def _is_language(self, line: str) -> bool:
        if self._languages is None:
            self._languages = {name.lower() for name in _LANGUAGE.findall(self._source)}
        return line.strip().lower().encode() in self._languages
