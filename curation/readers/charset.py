"""Decode bytes to text in the order of the HTML standard, with detection as the last step.

Order (HTML standard 13.2.3.2, "Determining the character encoding"): byte order mark, charset of
the HTTP header, `<meta>` or XML declaration near the beginning, detection, windows-1252. Labels
mean what the Encoding standard says (`latin1` is windows-1252, `gb2312` is GB18030).

Two departures, because wrong labels are common:

- Bytes beyond ASCII that are valid UTF-8 are UTF-8 even where a header or a `<meta>` names another
  encoding. Text in a legacy encoding is valid UTF-8 by chance only when it is very short.
- A UTF-8 label is not believed when at least half of the characters beyond ASCII would be broken;
  the next source decides.
"""

import codecs
import contextlib
import functools
import operator
import re
from collections.abc import Iterator

import webencodings

# Python's codec for each encoding of the Encoding standard where the plain name would be narrower.
_CODECS = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "iso-8859-8-i": "iso-8859-8",
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "iso-2022-jp": "iso2022_jp_ext",
}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # not in the standard, which would see UTF-16 and NULs
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Which of four bytes are mostly NUL.
_WIDE = {"0111": "utf-32-le", "1110": "utf-32-be", "0101": "utf-16-le", "1010": "utf-16-be"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Formats that are no text, by their first bytes, and control characters, of which they have many
# (8.6 % of random bytes). White space, those of terminals and shifts of ISO-2022 are not counted.
_FORMATS = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:%PDF-|%!PS-Adobe|\{\\rtf1)|\x89PNG|\xff\xd8\xff|GIF8[79]a|"
    rb"PK\x03\x04|\x1f\x8b|BZh[1-9]1|7z\xbc\xaf|Rar!|\xd0\xcf\x11\xe0|"
    rb"\x28\xb5\x2f\xfd|wOF[F2]|OTTO\0|\x7fELF|OggS\0|....ftyp|II\*\0|MM\0\*|SQLite format 3",
    re.DOTALL,
)
_CONTROLS = bytes([*range(8), *range(0x10, 0x1A), *range(0x1C, 0x20)])
_MOST_CONTROLS = 0.02
_PRESCAN = 1024  # bytes; HTML standard
_PRESCAN_MORE = 1 << 16  # bytes; browsers start again when a `<meta>` comes later
_DETECTED = 1 << 16  # bytes that detection looks at
_CONTEXT = 80  # bytes of ASCII on either side of those beyond it
_LONG = 1 << 16  # bytes that are not decoded only to see whether they can be
# What becomes of bytes that an encoding doesn't have: the standard fills the gaps that the code
# pages of Windows have between 80 and 9F with C1 controls.
_FILLED = "filled"
#: Bytes of a large page that are decoded at a time.
PIECE = 1 << 22
#: What detection takes into account, all but the encodings of mainframes.
_ERAS = ("MODERN_WEB", "LEGACY_ISO", "LEGACY_MAC", "LEGACY_REGIONAL", "DOS")
_NO_PAGES = ("cp720", "cp1006", "hp-roman8")  # no page is in these, few words often seem to be

# The standard's prescan as one scanner: comments and other tags are passed over, so that a <meta>
# inside them doesn't count. What has no end reaches to the end of the bytes, once.
_TOKEN = re.compile(
    rb"<!--(?:>|.*?-->|.*)"
    rb"|<meta[\s/](?P<meta>(?:[^>\"']|\"[^\"]*+\"|'[^']*+')*+)"
    rb"|</?[a-z](?:[^>\"']|\"[^\"]*+\"|'[^']*+')*+>?"
    rb"|<[!/?][^>]*+>?",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    rb"([^\s/>=\"'][^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"'][^\s>]*)))?"
)
_CONTENT_CHARSET = re.compile(rb"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"']+))", re.I)
_XML_ENCODING = re.compile(
    rb"\s*<\?xml[^>]*?\sencoding\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')", re.IGNORECASE
)
_HIGH_BYTES = bytes(range(128, 256))
# Quotation marks, dashes and such, for which windows-1250 to -1258 have the same bytes.
_SHARED_SIGNS = bytes(
    byte
    for byte in _HIGH_BYTES
    if len({bytes([byte]).decode(f"cp125{page}", "replace") for page in range(9)} - {"\ufffd"}) == 1
)
# Of a few words many encodings make about as much sense. The standard's default is by far the most
# frequent on the web, so it is taken unless another fits this much better. Of single words of
# Western languages 98% are then read right instead of 75%, of others in Latin letters 80% instead
# of 82%.
_DEFAULT_SHARE = 0.7
# Signs here and there among letters of ASCII, in a few words by chardet's confidence, are in one of
# the encodings of Latin letters that the web has.
_FEW_WORDS = 0.1
_DEFAULT = "windows-1252"
_LATIN = (_DEFAULT, "windows-1250", "windows-1254", "windows-1257", "iso-8859-2")
# Letters of ASCII beside others than Latin ones, as in no word.
_MIXED = re.compile("[A-Za-z][\u0370-\u13ff]|[\u0370-\u13ff][A-Za-z]")
_FEW_SIGNS, _KINDS = 3, 8  # bytes beyond ASCII
_NO_LETTERS = bytes(byte for byte in range(256) if byte >= 0x80 or not chr(byte).isalpha())
_NO_SIGNS = bytes(range(128)) + _SHARED_SIGNS
_WORD = re.compile(rb"[\x80-\xff]{3,}")  # lists of letters (Ç Ğ İ) and French in capitals have none
# A label is wrong if another encoding fits with this confidence, and this many times better.
_SURE, _CONTRADICTED = 0.25, 0.6
_TWINS = {"windows-1250", "iso-8859-2"}  # so alike that they fit equally; the order tells them
_OF_PAIRS, _LOST = ("gb18030", "big5hkscs", "cp932", "euc-jp", "cp949"), 0.05
_SIDE_BY_SIDE = re.compile(rb"[\x80-\xff]{2}")
# No encoding has `<` in a character of several bytes, nor a second byte of ASCII in succession.
_BEYOND = re.compile(
    rb"[\x80-\xff](?:[^<\x80-\xff]{0,%d}+[\x80-\xff])*+[^<\x80-\xff]{0,%d}+" % (_CONTEXT, _CONTEXT)
)
_REPEATED = re.compile(rb"([\x00-\x7f])\1{2,}")  # rules and fillings, which are in no language
_ESCAPE = re.compile(rb"\x1b[$(]|~\{")
# ISO-2022: each of these has characters that the others lack, and pages call all of Japan's alike.
_SHIFTED = ("iso2022_jp_ext", "iso2022_jp_2", "iso2022_jp_3", "iso2022_jp_2004", "iso2022_kr")


def _filled(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError) and error.encoding == "charmap":
        byte = error.object[error.start]
        return chr(byte) if 0x80 <= byte < 0xA0 else "\ufffd", error.start + 1
    return codecs.replace_errors(error)


codecs.register_error(_FILLED, _filled)


def encoding_of_label(label: str | None) -> str | None:
    """Return the Python codec for a label of the Encoding standard; None for an unknown one."""
    if not label:
        return None
    encoding = webencodings.lookup(label.strip())
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return None
    return _CODECS.get(encoding.name, encoding.name)


_OF_THE_WEB = frozenset(map(encoding_of_label, webencodings.LABELS))


def declared_encoding(content: bytes) -> str | None:
    """Return the codec named by `<meta>` or an XML declaration; UTF-16 there means UTF-8."""
    encoding = _prescan(content[:_PRESCAN]) or _prescan(content[:_PRESCAN_MORE])
    if encoding is None:
        found = _XML_ENCODING.match(content[:_PRESCAN])
        encoding = encoding_of_label(_first(found).decode("latin-1")) if found else None
    if encoding and encoding.startswith("utf-16"):
        return "utf-8"
    return encoding


def _first(found: re.Match[bytes]) -> bytes:
    return next((group for group in found.groups() if group is not None), b"")


def _prescan(head: bytes) -> str | None:
    if b"charset" not in head.lower():  # which both forms of the element hold
        return None
    for token in _TOKEN.finditer(head):
        attributes = token["meta"]
        if attributes is None:
            continue
        values: dict[bytes, bytes] = {}
        for name, *quoted in _ATTRIBUTE.findall(attributes):
            values.setdefault(name.lower(), b"".join(quoted))
        label = values.get(b"charset")
        if label is None and values.get(b"http-equiv", b"").strip().lower() == b"content-type":
            found = _CONTENT_CHARSET.search(values.get(b"content", b""))
            label = _first(found) if found else None
        if label and (encoding := encoding_of_label(label.decode("latin-1"))):
            return encoding
    return None


def _telling(content: bytes) -> bytes:
    """Return the bytes beyond ASCII with those around them, or of ASCII those from an escape on."""
    if content.isascii():
        found = _ESCAPE.search(content)
        return content[max(0, found.start() - _CONTEXT) if found else 0 :][:_DETECTED]
    parts: list[bytes] = []
    size = end = 0
    for found in _BEYOND.finditer(content):
        first = found.start()
        begin = max(end, first - _CONTEXT, content.rfind(b">", end, first) + 1)
        end = found.end()
        parts.append(content[begin:end])
        size += end - begin
        if size >= _DETECTED:
            break
    return _REPEATED.sub(rb"\1\1", b" ".join(parts)[:_DETECTED])


def detect_encoding(content: bytes) -> str:
    """Codec that fits best by the statistics of the bytes (chardet); windows-1252 if none does much
    better.

    It is windows-1252, too, where only signs that it shares with its relatives are beyond ASCII.
    """
    if not content.isascii() and content.translate(None, _SHARED_SIGNS).isascii():
        return _DEFAULT
    content = _telling(content)
    found = _fits(content)
    name, confidence = next(iter(found.items()), ("", 0.0))
    beyond = _beyond(content)
    if confidence < _SURE and _SIDE_BY_SIDE.search(content):
        sure: dict[str, float] = {}
        for codec in _OF_PAIRS:  # which chardet rules out where a single byte is broken or lost
            sound = content.decode(codec, "ignore").encode(codec, "ignore")
            if len(content) - len(sound) <= _LOST * beyond:
                sure[codec] = _fits(sound).get(codec, 0.0)
        if sure and max(sure.values()) >= _SURE:
            return max(sure, key=sure.__getitem__)
    mixed = len(_MIXED.findall(content.decode(name or _DEFAULT, "ignore")))
    few = beyond and (confidence < _FEW_WORDS or beyond < max(_FEW_SIGNS, 2 * mixed))
    if few and not _SIDE_BY_SIDE.search(content):
        name, confidence = max(((n, found.get(n, 0.0)) for n in _LATIN), key=lambda one: one[1])
    if not name or found.get(_DEFAULT, 0.0) >= _DEFAULT_SHARE * confidence:
        return _DEFAULT
    return name


def _fits(content: bytes) -> dict[str, float]:
    """Return the confidence (0 to 1) in every codec that bytes may be in, the best first."""
    import chardet  # slow, and most pages say what they are

    eras = functools.reduce(operator.or_, (chardet.EncodingEra[era] for era in _ERAS))
    found: dict[str, float] = {}
    for one in chardet.detect_all(
        content, True, encoding_era=eras, exclude_encodings=_NO_PAGES, compat_names=True
    ):
        name = (one["encoding"] or "").lower().replace("iso8859", "iso-8859")
        with contextlib.suppress(LookupError):
            codec = encoding_of_label(name) or codecs.lookup(name).name
            found.setdefault(codec, one["confidence"])
    return found


def _is_contradicted(content: bytes, named: str) -> bool:
    """Return whether bytes are surely in another encoding of the web than in the one that was
    named.

    Of 1,675 labels that were right none is contradicted, of wrong ones of the web's encodings nine
    in ten.
    """
    content = _telling(content)
    if _beyond(content) < _FEW_SIGNS:
        return False
    signs = b"".join(_WORD.findall(content)).translate(None, _NO_SIGNS)
    letters = content.translate(None, _NO_LETTERS)
    if named in _LATIN and len({*signs}) >= _KINDS and 2 * len(signs) > len(letters):
        return True  # most Latin letters are of ASCII
    found = {name: fit for name, fit in _fits(content).items() if name in _OF_THE_WEB}
    name, confidence = next(iter(found.items()), ("", 0.0))
    if name == named or confidence < _SURE:
        return False
    return {name, named} == _TWINS or found.get(named, 0.0) < _CONTRADICTED * confidence


def _beyond(content: bytes) -> int:
    """Return the number of bytes beyond ASCII."""
    return len(content) - len(content.translate(None, _HIGH_BYTES))


def _utf16_without_mark(content: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, when most bytes of one phase are NUL."""
    head = content[: min(len(content), _PRESCAN) // 4 * 4]
    if not head or head.count(0) * 4 < len(head):
        return None
    nulls = "".join(str(int(8 * head[phase::4].count(0) > len(head))) for phase in range(4))
    return _WIDE.get(nulls)


def is_of_a_format(content: bytes) -> bool:
    """Return whether content begins as a format does that is no text."""
    return _FORMATS.match(content) is not None


def is_binary(content: bytes, http_charset: str | None = None) -> bool:
    """Return whether content is of a format that is no text, or has too many control characters."""
    if is_of_a_format(content):
        return True
    import numpy as np  # a page alone should not wait for it

    head = np.frombuffer(content, np.uint8)[:_PRESCAN_MORE]
    most, below = _MOST_CONTROLS * len(head), head < 0x20
    if np.count_nonzero(below) <= most:  # white space among them
        return False
    low = head[below].tobytes()
    if len(low) - len(low.translate(None, _CONTROLS)) <= most:
        return False
    named = encoding_of_label(http_charset) or ""
    wide = content.startswith(_UTF16_MARKS) or named.startswith("utf-16")
    return not (wide or _utf16_without_mark(content))


def decode_html(content: bytes, http_charset: str | None) -> tuple[str, str]:
    """Decode an HTML page; return its text and the Python codec used.

    Bytes that the encoding doesn't have become U+FFFD or, in code pages of Windows, C1 controls;
    nothing raises.
    """
    text, encoding = utf8_html(content, http_charset)
    return text.decode(), encoding


def decode_text(content: bytes, http_charset: str | None) -> tuple[str, str]:
    """As `decode_html`, for plain text: `<meta>` is ignored."""
    text, encoding = utf8_html(content, http_charset, html=False)
    return text.decode(), encoding


def utf8_html(content: bytes, http_charset: str | None, html: bool = True) -> tuple[bytes, str]:
    """Return a page as UTF-8, and the codec; without `html`, plain text.

    Sound UTF-8 is only checked, the rest is converted, both in pieces: as one `str`, a page with a
    single character beyond the first plane takes four bytes for each of its characters.
    """
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return _converted(content, len(mark), encoding), encoding
    named = _encoding_of(content, http_charset, html)
    return (content, "utf-8") if named is None else (_converted(content, 0, named), named)


def _pieces(content: bytes, start: int, encoding: str, errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    for at in range(start, len(content), PIECE):
        yield decoder.decode(content[at : at + PIECE], at + PIECE >= len(content))


def _converted(content: bytes, start: int, encoding: str) -> bytes:
    # Only code pages have gaps to fill; a handler of Python's own is many times slower.
    errors = "replace" if encoding.startswith("utf") else _FILLED
    pieces = _pieces(content, start, encoding, errors)
    return b"".join(piece.encode("utf-8", "replace") for piece in pieces)


def mostly_utf8(content: bytes) -> bool:
    """Return whether bytes are UTF-8, some of it broken.

    They are if at least as many characters beyond ASCII are sound as broken, whatever the page is
    about.
    """
    characters = broken = 0
    for piece in _pieces(content, 0, "utf-8", "replace"):
        characters += len(piece)
        broken += piece.count("\ufffd")
    return characters - len(content) + _beyond(content) >= 2 * broken


def _encoding_of(content: bytes, http_charset: str | None, html: bool) -> str | None:
    """Return the encoding of bytes without a mark: as named, as they look, or as detected.

    None: they are sound UTF-8.
    """
    is_ascii, wide = content.isascii(), _utf16_without_mark(content)
    # Signs that ASCII bytes are text in an encoding that shifts: ISO-2022 with ESC, HZ with ~{.
    # Single bytes are found many times faster than pairs.
    escaped = is_ascii and (b"\x1b" in content or (b"~" in content and b"~{" in content))
    odd = escaped or (is_ascii and b"\0" in content)
    if (is_ascii or _is_utf8(content)) and not wide and not odd:
        return None
    if odd and b"\x1b$" in content:  # what is read makes a text shorter
        sizes: dict[float, str] = {}
        for codec in _SHIFTED:
            text = content.decode(codec, "replace")
            sizes.setdefault(len(text) + text.count("\ufffd") / _LOST, codec)
        if min(sizes) < len(content):
            return sizes[min(sizes)]
    is_mostly_utf8 = functools.cache(lambda: mostly_utf8(content))
    for name in (
        lambda: encoding_of_label(http_charset),
        lambda: wide,
        lambda: declared_encoding(content) if html else None,
    ):
        named = name()
        if named == "utf-8" and is_mostly_utf8():
            return named
        # UTF-8 that is broken and taken for windows-1252 is repaired later (text.mojibake)
        utf8 = named not in (_DEFAULT, wide) and not is_ascii and is_mostly_utf8()
        if named and named != "utf-8" and not utf8 and not _is_contradicted(content, named):
            return named
    escapes = odd and _ESCAPE.search(content)
    return "utf-8" if is_mostly_utf8() and not escapes else detect_encoding(content)


def _is_utf8(content: bytes) -> bool:
    """Return whether bytes are sound UTF-8; of long ones no text is made."""
    if len(content) < _LONG:
        try:
            content.decode()
        except UnicodeDecodeError:
            return False
        return True
    import numpy as np

    from curation.arrow import from_buffers, is_sound  # a page alone should not wait for Arrow

    return is_sound(from_buffers(np.array([0, len(content)]), np.frombuffer(content, np.uint8)))
