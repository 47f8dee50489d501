"""Signs that a text is no text, or not as it was written, whatever its language and kind.

Characters that could not be decoded, `?` for letters, letters left as escapes, and letters read in
another encoding. All are found by what no spelling and no program has inside a word, as matches per
visible character.
"""

import itertools
import string

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, large_strings, text_buffers
from curation.bytes.ascii import byte_set
from curation.text.mojibake import misread

#: A text with more of these signs, all together, is neither code nor mathematics.
MOST = 0.003

# Ranges, since RE2 takes milliseconds to prepare a class of Unicode. Letters of words between
# spaces, and those among them that are no capitals; letters of any kind; those that are in no word
# of Latin letters; Latin letters.
_SPACED = "[A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u02af\u0370-\u0dff\u10a0-\u137f\u1e00-\u1fff]"
_SMALL = (
    "[a-z\xdf-\xf6\xf8-\u02af\u0386-\u03ce\u0430-\u052f\u0561-\u0dff\u10d0-\u137f\u1e01-\u1eff]"
)
_KOREAN = "[\uac00-\ud7a3]"  # often without a space behind a question
_UNSPACED = "[\u0e01-\u0ebd\u1780-\u17b3\u3001\u3002\u3040-\u30ff\u3400-\u9fff\uff0c]"
_LETTER = "[A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u02af\u0370-\u1fff\u3040-\u9fff\uac00-\ud7a3]"
_FOREIGN = "[\u0400-\u1dff\u2e80-\ud7ff\ue000-\ufe6f\uff66-\uffdc]"
# UTF-8 of Cyrillic has a dash for every other byte in the encoding of the Macintosh.
_DENSE = "[\xc0-\xd6\xd8-\xf6\xf8-\xff]{4}|(?:[–—][^\\x00-\\x7f–—]){3}"
_LATIN = "[a-z\xdf-\xf6\xf8-\xff]"
# What DOS and the Macintosh have for accented letters; capitals that end words of small letters.
_INSIDE = f"{_LATIN}[‚„ƒ]{_LATIN}|{_LATIN}[ŒŠŽŸ]|[а-яё][ЯЏ]"
# Signs that no spelling has between letters: all but accents that stand for apostrophes, bars
# between cells, stars and pictures, marks of brands.
_SIGN = (
    "[\xa2-\xa9\xac\xae-\xb3\xb5\xb6\xb8-\xba\xbc-\xbf\xd7\xf7\u02c6\u02c7\u02d8\u02da-\u02dd†‡‰‹›€™"
    "\u2190-\u22ff\u2310\u2320\u2321\u2400-\u2501\u2504-\u2550\u2552-\u2570\u2574-\u259f\u25a0-\u25ff\ufb01\ufb02]"
)
# Hexadecimal code points of letters: not those up to BF, and from 2000 to 2FFF.
_CODE = (
    "(?:00[C-Fc-f]|0[1-9A-Fa-f][0-9A-Fa-f]|1[0-9A-Fa-f]{2}|[3-9A-Da-d][0-9A-Fa-f]{2})[0-9A-Fa-f]"
)
# of Latin letters; at the end of a word it has a letter, since `menu0105` may be one
_ANY_LATIN_CODE, _LATIN_CODE = "0(?:0[c-f]|1[0-7])[0-9a-f]", "0(?:0[c-f][0-9a-f]|1[0-7][a-f])"
_ACCENTS = "acute|grave|circ|uml|tilde|cedil|ring|caron|slash|lig|breve|ogon|macr|strok"
#: ASCII letters, and the first bytes of all characters but white space.
_LETTERS, _VISIBLE = byte_set(string.ascii_letters), ~byte_set("\t\n\f\r ")
_VISIBLE[0x80:0xC0] = False
_SURELY_FOREIGN = [*range(0xD0, 0xE1), *range(0xE3, 0xEE)]  # of characters that are all `_FOREIGN`
_MISREAD = 0.7  # of the bytes beyond ASCII, from which on a text is misread
_UNDECODED = "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd\ufdd0-\ufdef\ufffe\uffff]"
_PATTERNS = (
    _UNDECODED,
    # words of letters and question marks alone, so that addresses and programs have none
    rf"(?:^|\s)[(\"'„“«]*(?:{_SPACED}|['’-])*{_SPACED}\?+{_SMALL}(?:{_SPACED}|[?'’-])*"
    r"(?:[.,;:!)\"“”»…]|\s|$)|"
    rf"(?:\?(?:{_UNSPACED} ?){{1,6}}){{2}}\?{_UNSPACED}|\?(?:{_KOREAN} ?){{1,10}}\?{_KOREAN}",
    # what JSON has for letters, without the backslashes that PHP strips
    rf"u{_CODE}u{_CODE}|{_SMALL}u{_LATIN_CODE}|u{_ANY_LATIN_CODE}{_SMALL}|"
    rf"=[C-F][0-9A-F]=[89AB][0-9A-F]|{_SMALL}=[C-F][0-9A-F]{_SMALL}|"  # quoted-printable
    rf"\\[uU](?:0000|\{{)?{_CODE}|%u{_CODE}|<U\+[0-9A-F]{{4,6}}>|"
    rf"(?:{_SPACED}\+A[I-X]|(?:^|\s)\+(?:A[0-9]|B[A-J]))[0-9A-Za-z+/]+[-,. ]|"  # UTF-7
    rf"(?:^|\n)M[ -`]{{60}}|"  # uuencode
    rf"{_SPACED}\\x[c-fC-F][0-9a-fA-F]|\\3[0-7]{{2}}\\2[0-7]{{2}}|{_SMALL}\\3[0-7]{{2}}{_SMALL}|"
    r"(?:^|\s)[^\s/%:?&=#]*%[C-F][0-9A-F]%[89AB][0-9A-F]|"
    r"&(?:amp;)?(?:#(?:19[2-9]|[2-9][0-9]{2}|[1-79][0-9]{3}|[1-9][0-9]{4})|#[xX](?:[c-fC-F]|"
    rf"[1-9a-fA-F][0-9a-fA-F])[0-9a-fA-F]|#[xX]{_CODE}|[A-Za-z]{{1,2}}(?:{_ACCENTS}));",
    rf"{_LETTER}{_SIGN}+{_LETTER}{{2}}|{_LETTER}{{2}}{_SIGN}+{_LETTER}|â€|ï¿½|ðŸ|Ã[ŠŒŽšœž]|"
    rf"[ÂÃÄÅÎÏÐÑØÙ][\x80-\x9f¡-ª¬-º¼-¿€‚ƒ„…†‡ˆ‰‹•˜™›Ÿ]|{_DENSE}|{_INSIDE}",
    rf"{_LATIN}{_FOREIGN}{{1,2}}{_LATIN}",
)
_SOME = "[^\x00-\x40\u2000-\u2bff]"  # letters, and other signs that are soon told
# Any of these but the last, or somewhat more, in one pattern that is prepared soon.
_BEGUN = (
    rf"{_UNDECODED}|{_SPACED}\?+{_SMALL}(?:{_SPACED}|[?'’-])*(?:[.,;:!)\"“”»…\s]|$)|"
    rf"\?(?:{_UNSPACED} ?){{1,6}}\?|\?(?:{_KOREAN} ?){{1,10}}\?|"
    rf"=[C-F][0-9A-F](?:=|{_SMALL})|\\[uUx23][0-9a-fA-F{{]|%[C-F][0-9A-F]%[89AB]|%u[0-9A-Da-d]|"
    rf"u0[01][0-9a-f]{{2}}|u[0-9A-Da-d][0-9A-Fa-f]{{3}}u|<U\+|"
    rf"\+(?:A[0-9I-X]|B[A-J])[0-9A-Za-z+/]+[-,. ]|(?:^|\n)M[ -`]{{60}}|"
    rf"&(?:amp;)?(?:#|[A-Za-z]{{3,7}};)|{_SOME}{_SIGN}+{_SOME}|â€|ï¿½|ðŸ|Ã[ŠŒŽšœž]|"
    rf"[ÂÃÄÅÎÏÐÑØÙ][^\x00-\x7fÀ-ŷŹ-ƑƓ-ɏ]|{_DENSE}|{_INSIDE}"
)


def noise(texts: Texts) -> npt.NDArray[np.float64]:
    """Return what every text has of each kind of noise, per visible character: [texts, 4].

    The kinds are in the order of `curation.filters.names.TEXT`.
    """
    column = large_strings(texts)
    out = np.zeros((len(column), len(_PATTERNS) - 1))
    beyond = np.flatnonzero(~np.asarray(pc.string_is_ascii(column)))
    whole = np.zeros(len(column), np.int64)
    offsets, data = text_buffers(column)
    sources = (data[offsets[i] : offsets[i + 1]].tobytes() for i in beyond)
    whole[beyond] = [misread(source, _MISREAD).characters for source in sources]
    begun = pc.match_substring_regex(column, f"{_BEGUN}|{_PATTERNS[-1]}")
    rows = np.flatnonzero(begun.to_numpy(zero_copy_only=False) | (whole > 0))
    if not len(rows):
        return out
    some = column.take(pa.array(rows))
    found = np.zeros((len(rows), len(_PATTERNS)), np.int64)
    found[:, -1] = _count(some, _PATTERNS[-1])  # which is all that most of these have
    told = pc.match_substring_regex(some, _BEGUN)
    others, places = some.filter(told), np.flatnonzero(told)
    for kind, pattern in enumerate(_PATTERNS[:-1] if len(others) else ()):
        found[places, kind] = _count(others, pattern)
    found[:, 3] = np.maximum(found[:, 3], whole[rows])
    any_found = found.any(1)  # most have none, and what follows counts all of their characters
    rows, some, found = rows[any_found], some.filter(pa.array(any_found)), found[any_found]
    offsets, data = text_buffers(some)
    counts = [np.bincount(data[a:b], minlength=256) for a, b in itertools.pairwise(offsets)]
    by_byte = np.array(counts, np.int64).reshape(-1, 256)
    mixed = np.flatnonzero(found[:, -1])
    # words of two scripts are no fault where both are much used
    latin = by_byte[:, _LETTERS].sum(1)
    mixed = mixed[4 * by_byte[:, _SURELY_FOREIGN].sum(1)[mixed] < latin[mixed]]
    foreign = _count(some.take(pa.array(mixed)), _FOREIGN)
    found[mixed, -2] += found[mixed, -1] * (4 * foreign < latin[mixed])
    out[rows] = found[:, :-1] / np.maximum(by_byte[:, _VISIBLE].sum(1), 1)[:, None]
    return out


def _count(texts: pa.Array, pattern: str) -> npt.NDArray[np.int64]:
    return np.asarray(pc.count_substring_regex(texts, pattern).to_numpy(zero_copy_only=False))
