"""Text that was UTF-8, read in another encoding and encoded again ("Ã©" for "é"): mended if sure.

A text is read again where the bytes that its signs beyond ASCII have in another encoding are valid
UTF-8, all but a few. Where only a part is misread, runs of characters are mended whose windows-1252
bytes are valid UTF-8. By chance such runs are rare: they need a letter like "Ã" or "â" followed by
signs that no spelling puts there.

Bytes 80 to 9F may have been read as the C1 controls of ISO-8859-1 ("â\\x80\\x99"), and windows-1252
has controls for five of them. No text keeps these, nor no-break spaces, so a page is mended before
it is scanned.
"""

import codecs
import collections
import contextlib
import functools
import itertools
import operator
import re
from typing import NamedTuple

import numpy as np

from curation.kernels import kept

#: Encodings in which UTF-8 is read by mistake, the most frequent first: of single bytes, of pairs.
_BY_ONE = (
    "cp1252 cp1251 cp1250 mac_roman koi8_r cp1254 cp1253 cp1256 cp1255 cp1257 cp1258 cp874 "
    "iso8859_2 iso8859_5 iso8859_7 koi8_u mac_cyrillic cp437 cp850 cp852 cp866"
).split()
_BY_PAIRS = ("gb18030", "cp932", "cp949", "big5", "euc_jp")
# In no word: a letter of ASCII beside one of another script, or before a capital beyond ASCII.
_FOREIGN = "[\u0370-\u0dff]"
_WIDE = "[\u0370-\u0dff\u2e80-\ud7ff\uff66-\uff9f]"
_CAPITALS = "".join(c for c in map(chr, range(0xC0, 0x250)) if c.isupper())
_MIXED = re.compile(f"[A-Za-z]{_FOREIGN}|{_FOREIGN}[A-Za-z]")
_BROKEN = re.compile(f"[A-Za-z]{_WIDE}|{_WIDE}[A-Za-z]|[a-z][^\x00-\x7f]?[{_CAPITALS}]")
_SPACED_QUOTES = re.compile("\xa0[«»]")  # as in "liberté »"
_LOW = bytes(range(128))
_BEYOND = re.compile("[^\x00-\x7f]+")
# What all that is misread has: two signs beyond ASCII, one that stands for a pair, or a control.
_NEEDED = re.compile("[^\x00-\x7f](?:(?=[^\x00-\x7f])|(?<=[^\x00-\x7f\xa0-\u036f\u2000-\u2e7f]))")
_BLOCK, _SHORT = 8192, 1024  # bytes that are looked through at a time, and not worth a choice
_ASKED = 60  # characters from the first beyond ASCII on, that tell whether to look closer
_BITS, _MORE = 7, 64  # of a count of runs among these, and more than it can be
_EACH = sum(1 << _BITS * k for k, _ in enumerate((*_BY_ONE, *_BY_PAIRS)))
_READ_AGAIN = 40 * _ASKED  # of which read again there must be as many
_ALL = 0.9  # of the bytes beyond ASCII, that must be UTF-8 to mend a text
# Signs that texts have: scripts of languages that are much written, punctuation, symbols, pictures.
_USUAL = re.compile(
    "[\xa0-\u017f\u01a0\u01a1\u01af\u01b0\u0218-\u021b\u0259\u0300-\u0303\u0309\u0323\u0386-\u03ce"
    "\u0400-\u045f\u0490-\u04ff\u0531-\u058a\u05b0-\u06ff\u0900-\u10ff\u1200-\u139f\u1780-\u17ff"
    "\u1e80-\u1eff\u200c-\u27bf\u3000-\u33ff\u4e00-\u9fff\uac00-\ud7a3\ufe0f\uff00-\uffef\U0001f000-\U0001faff]+"
)

#: What windows-1252 has for the bytes 80 to 9F; HTML reads numeric references so, too. 85, a line
#: end, and the five that it lacks stay.
_SIGNS = {b: bytes([b]).decode("cp1252", "ignore") or chr(b) for b in range(0x80, 0xA0)}
_CONTROL = re.compile(b"\xc2[\x80-\x9f]")
_OF_CONTROLS = {chr(b).encode(): sign.encode() for b, sign in _SIGNS.items() if b != 0x85}
#: Text with neither these nor C1 controls is never mended; "â" counts before "€".
FIRST_LETTERS = "ÃÂÐÑÅÄåæãÎÏØÙ×â"
_HINT = re.compile(
    b"\xc3(?:[%b]|\xa2\xe2\x82\xac)" % bytes(ord(c) - 0x40 for c in FIRST_LETTERS[:-1])
)
# Letters such as "Ã", each with one to three signs behind it, those of `_SIGNS` or Latin-1, in
# UTF-8. The no-break space is behind many a word, so it is a sign only where no word ends.
_LASTS: dict[bytes, bytes] = collections.defaultdict(bytes)  # bytes behind the others
for _sign in sorted({*_SIGNS.values(), *map(chr, range(0x80, 0xC0))} - {"\xa0"}):
    _LASTS[_sign.encode()[:-1]] += _sign.encode()[-1:]
_TAIL = b"|".join(b"%b[%b]" % found for found in _LASTS.items())
_PART = b"\xc3[\x82-\xb4](?:(?:%b){1,3}+|(?<=[\x82\x83\x85\x8e\x90])\xc2\xa0)" % _TAIL
_RUN = b"%b(?:%b)*+" % (_PART, _PART)  # which few processes need, and is slow to compile


@functools.cache
@kept
def _firsts() -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return the encodings, each in `_BITS` bits of its own, in which a sign begins a character of
    UTF-8 or is its first two bytes, and those in which it is its second byte.
    """
    first: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    second: dict[str, int] = collections.defaultdict(int)
    leads, tails = range(0xC2, 0xF5), range(0x80, 0xC0)
    for place, name in enumerate((*_BY_ONE, *_BY_PAIRS)):
        one = 1 << _BITS * place
        each = zip(itertools.cycle(leads), tails)  # each once, where there are no pairs
        for lead, tail in itertools.product(leads, tails) if name in _BY_PAIRS else each:
            read = bytes([lead, tail]).decode(name, "ignore")
            if name in _BY_PAIRS and len(read) == 1:
                first[read][1] |= one
            else:
                first[bytes([lead]).decode(name, "ignore")][0] |= one
                second[bytes([tail]).decode(name, "ignore") or chr(tail)] |= one
                second[chr(tail)] |= one * (tail < 0xA0)
    same = dict[tuple[int, int], tuple[int, int]]()  # few differ, and these are kept once
    return {s: same.setdefault((a, b), (a, b)) for s, (a, b) in first.items()}, dict(second)


def _suspected(source: bytes) -> list[str]:
    """Return the encodings in which the first signs beyond ASCII may be misread UTF-8."""
    text = source.decode("utf-8", "ignore")
    begin = _BEYOND.search(text)
    if begin is None or not _NEEDED.search(text, begin.start(), begin.start() + _ASKED):
        return []
    first, second = _firsts()
    sample = text[begin.start() : begin.start() + _ASKED]
    runs = _BEYOND.findall(sample)
    counts = 0  # how many runs begin so in each encoding, side by side in one number
    for run in runs:
        if found := first.get(run[0]):
            counts += found[0] & second.get(run[1:2], 0) | found[1]
    enough = counts + (_MORE - (len(runs) + 1) // 2) * _EACH & _MORE * _EACH  # of half of them
    if not enough:
        return []
    names = enumerate((*_BY_ONE, *_BY_PAIRS))
    return [n for k, n in names if enough >> _BITS * k & _MORE and _reads(sample, n)]


def _reads(text: str, name: str) -> bool:
    """Whether half of the bytes beyond ASCII that were read as a text are UTF-8."""
    raw = _encoded(text, name)
    again = raw.decode("utf-8", "ignore").encode()
    return 2 * len(again.translate(None, _LOW)) >= len(raw.translate(None, _LOW))


@functools.cache
def _byte_of(name: str) -> dict[int, int]:
    """Return the byte of each sign of an encoding; C1 controls are those of bytes that it lacks.

    ISO-8859-1 and windows-1252 are one.
    """
    read = bytes(range(256)).decode(name, "replace")
    signs = {ord(sign) if sign != "\ufffd" else b: b for b, sign in enumerate(read)}
    return signs if name != "cp1252" else {b: b for b in range(0x80, 0xA0)} | signs


def _encoded(text: str, name: str, errors: str = "replace") -> bytes:
    """Return the bytes that were read as the text, `?` for signs that the encoding lacks."""
    if name in _BY_PAIRS:
        return text.encode(name, errors)
    return codecs.charmap_encode(text, errors, _byte_of(name))[0]


class Misread(NamedTuple):
    """What of a text is UTF-8 that was read in another encoding."""

    share: float = 0.0  # of its bytes beyond ASCII
    proof: int = 0  # bytes that chance would have to make what they are
    characters: int = 0  # beyond ASCII that these are
    encoding: str = ""


def misread(source: bytes, least: float) -> Misread:
    """Return what of a text (UTF-8) was misread, if at least a share `least`."""
    first = _first(source)
    encodings = _suspected(source[first : first + 4 * _ASKED])
    if not encodings:
        return Misread()
    sample = source[first : first + 4 * _READ_AGAIN].decode("utf-8", "ignore")[:_READ_AGAIN]
    near = _near(source)
    each = [_misread_in(encoding, near, sample, least) for encoding in encodings]
    found = max(each, key=operator.itemgetter(0, 1), default=Misread())
    by_chance = 1 if found.encoding in _BY_PAIRS else 0  # as in "木i", read in Korean
    return found if found.share >= least and found.proof > by_chance else Misread()


def _first(source: bytes) -> int:
    """Return where the first byte beyond ASCII is; -1 if there is none."""
    for at in range(0, len(source), _BLOCK):
        try:
            source[at : at + _BLOCK].decode("ascii")
        except UnicodeDecodeError as beyond:
            return at + beyond.start
    return -1


def _near(source: bytes) -> str:
    """Return the signs beyond ASCII of UTF-8 with their neighbours, and blanks between them.

    These are all that counts, and of most pages little. Short texts come back as they are.
    """
    if len(source) < _SHORT:
        return source.decode("utf-8", "surrogateescape")
    data = np.frombuffer(source, np.uint8)
    beyond = np.concatenate([[False] * 2, data >= 0x80, [False] * 2])
    near = beyond[:-2] | beyond[1:-1] | beyond[2:]
    at = np.flatnonzero(near[1:-1] | near[:-2])
    shown = np.where(near[at + 1], data[at], 0x20)
    return shown.tobytes().decode("utf-8", "surrogateescape")


def _misread_in(encoding: str, near: str, sample: str, least: float = 0.0) -> Misread:
    raw = _encoded(near, encoding)
    again = raw.decode("utf-8", "ignore")
    sound = again.encode().translate(None, _LOW)
    lost = raw.count(b"?") - near.count("?")
    share = len(sound) / max(len(raw.translate(None, _LOW)) + lost, 1)
    if share < least:
        return Misread()
    beyond = sound.decode()
    usual = len("".join(_USUAL.findall(beyond))) - len(_MIXED.findall(again))
    if usual < _ALL * len(beyond) and not _suspected(_encoded(sample, encoding)):
        return Misread()
    proof = len(sound) - len(beyond) - 2 * len(_SPACED_QUOTES.findall(near))
    if "".join(_BEYOND.findall(near)).replace("\xa0", "").isalpha():  # as in "ääšš"
        proof = proof // 4 + len(_BROKEN.findall(near)) - len(_BROKEN.findall(again))
    return Misread(share, proof, len(beyond), encoding)


def _read_again(source: bytes) -> bytes:
    """Return a text of which nearly all was misread, read again; empty if it can't be."""
    encoding = misread(source, _ALL).encoding
    if encoding in ("", *_BY_PAIRS):
        return _reread(source.decode("utf-8", "replace"), encoding).encode() if encoding else b""

    @functools.cache
    def made(run: bytes) -> bytes:
        return _reread(run.decode("utf-8", "surrogateescape"), encoding).encode() or run

    beyond = np.frombuffer(source, np.uint8) >= 0x80
    ends = (np.flatnonzero(beyond[1:] != beyond[:-1]) + 1).tolist()
    runs = [source[a:b] for a, b in itertools.pairwise((0, *ends, len(source)))]
    first = int(not beyond[0])  # the others are ASCII
    runs[first::2] = map(made, runs[first::2])
    again = b"".join(runs)
    return b"" if again == source else again


def mended(source: bytes) -> bytes:
    """A page (UTF-8), mended as by `repaired` where it begins misread or has controls."""
    first = _first(source)
    begin = source[first : first + 3 * _ASKED]
    return _repaired(source) if _has_control(source, first) or _suspected(begin) else source


def _has_control(source: bytes, at: int) -> bool:
    while (at := source.find(b"\xc2", at) + 1) and source[at : at + 1] >= b"\xa0":
        continue
    return at > 0


def repaired(text: str) -> str:
    """The text with double-encoded runs mended; other text comes back as it is.

    C1 controls that are none of their bytes become the signs that windows-1252 has in their places.
    """
    source = text.encode("utf-8", "surrogatepass")
    may = not text.isascii() and (len(text) >= _SHORT or _NEEDED.search(text))
    made = _repaired(source) if may else source
    return text if made is source else made.decode("utf-8", "surrogatepass")


def _repaired(source: bytes) -> bytes:
    if again := _read_again(source):
        return _repaired(again)
    controls = left = _CONTROL.findall(source) if _has_control(source, 0) else []
    made = source
    if b"\xc3" in source and re.search(_RUN, source) and (controls or _HINT.search(source)):
        near = _near(source)
        # One short run may be meant; several, or one of three bytes, are not.
        if _misread_in("cp1252", near, near).proof > 1:
            made = re.sub(_RUN, lambda run: _reread(run[0].decode()).encode() or run[0], source)
            left = _CONTROL.findall(made)
    # Where controls are left they are signs of windows-1252, and runs are there by chance.
    if controls and 2 * len(left) > len(controls):
        made, left = source, controls
    for control in {*left} & _OF_CONTROLS.keys():
        made = made.replace(control, _OF_CONTROLS[control])
    return source if made == source else made


def _reread(text: str, encoding: str = "cp1252") -> str:
    """The text whose UTF-8 are the bytes of one in an encoding; "" if they are no UTF-8."""
    with contextlib.suppress(UnicodeError):
        return _encoded(text, encoding, "strict").decode()
    return ""
