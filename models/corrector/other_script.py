"""Texts of languages written in two scripts, in the one of which there is little text.

Serbian is on the web in Latin letters as often as in the Cyrillic ones that most sources have;
Uzbek and Azerbaijani in Cyrillic. Letters correspond to letters, so that no dictionary is needed.
"""

from __future__ import annotations

import regex

_SERBIAN = dict(
    zip("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš", strict=True),
    љ="lj", њ="nj", џ="dž",
)  # fmt: skip
_AZERBAIJANI = dict(
    zip("abcçdeəfgğhxıijkqlmnoöprsştuüvyz", "абҹчдеәфҝғһхыижкглмноөпрсштуүвјз", strict=True)
)
_UZBEK = dict(
    zip("abcdefghijklmnopqrstuvwxyz", "абцдефгҳижклмнопқрстуввхйз", strict=True),
    sh="ш", ch="ч", yo="ё", yu="ю", ya="я", ye="е",
)  # fmt: skip
_UZBEK |= {f"{letter}{mark}": to for letter, to in ("oў", "gғ") for mark in "'‘’ʻʼ`"}
_UZBEK |= dict.fromkeys("'‘’ʻʼ`", "ъ")

#: By language: the script that is converted, and what its letters become.
CONVERTED = {
    "sr": (r"\p{Cyrl}", _SERBIAN),
    "az": (r"\p{Latn}", _AZERBAIJANI),
    "uz": (r"\p{Latn}", _UZBEK),
}
#: Lower-case forms that differ from those of English.
_LOWER = {"az": {"I": "ı", "İ": "i"}}


def converted(language: str, text: str) -> str | None:
    """Return the text in the language's other script, lower case; None if it is not in the usual
    one."""
    script, letters = CONVERTED[language]
    if len(regex.findall(script, text)) < len(regex.findall(r"\p{L}", text)) * 0.9:
        return None
    lower = text.translate(str.maketrans(_LOWER.get(language, {}))).lower()
    if language == "uz":  # at the beginning of a word е is э
        lower = regex.sub(r"\be", "э", lower)
    return _spelled(lower, letters)


def cyrillic(text: str) -> str:
    """Serbian in Latin letters, lower case, in Cyrillic ones."""
    return _spelled(text, {latin: letter for letter, latin in _SERBIAN.items()})


def _spelled(text: str, letters: dict[str, str]) -> str:
    """Return the text with every part that is among the letters replaced, the longest first."""
    longest = sorted(letters, key=lambda part: (-len(part), part))
    return regex.sub("|".join(map(regex.escape, longest)), lambda m: letters[m.group()], text)
