"""Last touches on extracted text: one normal form, no debris, no markup."""

import unicodedata

import numpy as np
import regex

# Characters that carry no text: C0 and C1 controls but tab and newline, the byte-order mark,
# zero-width space (but between words of Thai, Lao, Burmese and Khmer), soft hyphen, word joiner, invisible operators, interlinear marks. Of the
# zero-width joiners, which Persian, Hindi and emoji need, those that follow nothing: editors put
# one into each empty paragraph. Marks of direction and fillers on lines of nothing else.
_DEBRIS = regex.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u2060-\u2064\ufeff\ufff9-\ufffb]"
    r"|(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b"
    r"|\u200b(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
    r"|(?<![^\s\u200b\ufeff])[\u200c\u200d]+"
    r"|(?m:^(?:[^\S\n]|[\u200b-\u200f\u202a-\u202e\u2066-\u2069\u2800\u3164\ufeff])+$)"
)
_FILLERS = " \u2800\u3164"  # those that count as visible
# A form feed or vertical tab ends a line, too, unless it is next to the end of one.
_LINE_ENDS = regex.compile(r"\r\n?|\u2028|\u2029|\x85|(?<![\n\r\x0b\x0c])[\x0b\x0c]++(?![\n\r])")
_BLANK_LINES = regex.compile(r"\n{3,}")


# Normal forms order the marks on a letter in time quadratic in their number, so runs are kept as
# short as Unicode's stream-safe text has them (UAX #15, section 13): a joiner after 30 marks.
_MARKS = 30
_MARK_RUN = regex.compile(rf"([^\p{{ccc=0}}]{{{_MARKS}}})(?=[^\p{{ccc=0}}])")
_JOINER = "\u034f"
#: Of code points below 0x20000, which combine with the letter before.
IS_MARK = np.frombuffer(
    bytes(map(bool, map(unicodedata.combining, map(chr, range(0x20000))))), np.uint8
)


def normal(text: str) -> str:
    """NFC, of text with at most 30 marks on a letter."""
    if text.isascii():
        return text
    if any(map(unicodedata.combining, text[_MARKS :: _MARKS + 1])):  # one of a longer run is there
        points = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)
        if b"\1" * (_MARKS + 1) in IS_MARK[np.minimum(points, len(IS_MARK) - 1)].tobytes():
            text = _MARK_RUN.sub(rf"\1{_JOINER}", text)
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def clean(text: str) -> str:
    """NFC, plain line ends, no control or zero-width debris, at most one blank line in a row."""
    text = normal(text)
    if text.isprintable() and text.strip(_FILLERS):  # a line, as titles are
        return text.rstrip()
    text = _LINE_ENDS.sub("\n", text)
    text = _DEBRIS.sub("", text)
    text = "\n".join(map(str.rstrip, text.split("\n")))
    return _BLANK_LINES.sub("\n\n", text).strip("\n")
