"""Scripts: their codes (ISO 15924), and what shares of a document's letters are in each."""

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import regex

from curation.arrow import Texts, text_buffers
from curation.bytes.code_points import code_point
from curation.compiled import Bytes, Int64s, borrowing
from curation.language.evidence import listed
from curation.text import characters as ch

#: Names of Unicode, and codes.
CODES = {
    "Arabic": "Arab", "Armenian": "Armn", "Bamum": "Bamu", "Bengali": "Beng",
    "Canadian_Aboriginal": "Cans", "Chakma": "Cakm", "Cham": "Cham", "Cherokee": "Cher",
    "Cyrillic": "Cyrl", "Devanagari": "Deva", "Ethiopic": "Ethi", "Georgian": "Geor",
    "Greek": "Grek", "Gujarati": "Gujr", "Gurmukhi": "Guru", "Han": "Hani", "Hangul": "Hang",
    "Hebrew": "Hebr", "Hiragana": "Hira", "Javanese": "Java", "Kannada": "Knda", "Katakana": "Kana",
    "Khmer": "Khmr", "Lao": "Laoo", "Latin": "Latn", "Lisu": "Lisu", "Malayalam": "Mlym",
    "Meetei_Mayek": "Mtei", "Mongolian": "Mong", "Myanmar": "Mymr", "Nko": "Nkoo",
    "Ol_Chiki": "Olck", "Oriya": "Orya", "Sinhala": "Sinh", "Syriac": "Syrc", "Tai_Le": "Tale",
    "Tai_Viet": "Tavt", "Tai_Tham": "Lana", "Tamil": "Taml", "Telugu": "Telu", "Thaana": "Thaa",
    "Thai": "Thai", "Tibetan": "Tibt", "Tifinagh": "Tfng", "Vai": "Vaii", "Yi": "Yiii",
}  # fmt: skip
OTHER = "Zzzz"  # of letters in any other script
_NAMES = np.array([*CODES.values(), OTHER], object)
_OF_NONE = 255  # signs that several scripts share, and all that is no letter


@functools.cache
def _numbers() -> npt.NDArray[np.uint8]:
    """Script of every letter, as its place in `_NAMES`: uint8 [0x110000]."""
    table = np.full(ch.CODE_POINTS, _OF_NONE, np.uint8)
    of_one = r"[\p{L}--\p{Script=Common}--\p{Script=Inherited}]"
    patterns = [of_one, *(rf"[\p{{Script={name}}}&&{of_one}]" for name in CODES)]
    for number, pattern in zip([len(CODES), *range(len(CODES))], patterns, strict=True):
        for match in regex.finditer(f"{pattern}+", ch.every_character(), regex.V1):
            table[match.start() : match.end()] = number
    table.flags.writeable = False
    return table


@borrowing
def _count(offsets: Int64s, data: Bytes, numbers: Bytes, out: Int64s) -> None:
    for text in range(len(offsets) - 1):
        i = offsets[text]
        while i < offsets[text + 1]:
            c, width = code_point(data, i)
            i += width
            if numbers[c] != _OF_NONE:
                out[text, numbers[c]] += 1


def by_script(texts: Texts) -> pa.Array:
    """Scripts of every text: list of struct<script: string, share: float>.

    Shares are of letters, highest first; a text without letters has no script.
    """
    offsets, data = text_buffers(texts)
    counts = np.zeros((len(offsets) - 1, len(_NAMES)), np.int64)
    _count(offsets, data, _numbers(), counts)
    owner, number = np.nonzero(counts)
    shares = counts[owner, number] / counts.sum(1)[owner]
    return listed("script", owner, _NAMES[number], shares, len(counts))
