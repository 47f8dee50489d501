"""Text that was UTF-8, read as windows-1252 and encoded again ("Ã©" for "é"): mended where certain.

A run of characters is mended when its windows-1252 bytes are valid UTF-8. By chance such runs are
rare: they need a letter like "Ã" or "â" followed by signs that no spelling puts there.

Bytes 80 to 9F may have been read as the C1 controls of ISO-8859-1 ("â\\x80\\x99"), and windows-1252
has controls for five of them. No text keeps these, nor no-break spaces, so a page is mended before
it is scanned.
"""

import numpy as np

from curation.bytes.code_points import code_point
from curation.compiled import Bool, Bytes, Int, borrowing, inlined, kernel

_BYTE = np.uint8
_BLOCK = 512  # bytes that are looked at before those of a block that may have what would be lost
_SPACE = 0xA0  # the no-break space: behind many a word, so a tail only where no word ends
_LOOKED_AT, _SOUND = 100, 0.8  # the first runs, and the share of them that must be UTF-8


def _byte_of() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The byte that windows-1252 or ISO-8859-1 has for a code point; 0 for none."""
    table = np.zeros(0x2123, np.uint8)
    table[0x80:0x100] = np.arange(0x80, 0x100)
    for byte in range(0x80, 0xA0):
        for sign in bytes([byte]).decode("cp1252", "ignore"):
            table[ord(sign)] = byte
    return table


def _signs() -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """UTF-8 [32, 3] of what windows-1252 has for the bytes 80 to 9F, filled up with 0. HTML reads
    numeric references so, too. 85, a line end, and those that it lacks stay."""
    table = np.zeros((32, 3), np.uint8)
    for byte in range(0x80, 0xA0):
        sign = bytes([byte]).decode("cp1252", "ignore")
        if not sign or byte == 0x85:
            sign = chr(byte)
        table[byte - 0x80, : len(sign.encode())] = list(sign.encode())
    return table


_BYTE_OF, _SIGNS = _byte_of(), _signs()
_LETTER = np.array([chr(b).isalpha() for b in range(256)])
_LETTER[0x80:0xA0] = [bytes([b]).decode("cp1252", "ignore").isalpha() for b in range(0x80, 0xA0)]
_HINT_LETTERS = "ÃÂÐÑÅÄåæãÎÏØÙ×"
_HINTS = np.zeros(256, np.bool_)  # of runs: their letters by the second byte, also "â€"
_HINTS[[c.encode()[1] for c in _HINT_LETTERS]] = True
_EURO = tuple("â€".encode())
#: Text without these is never mended, nor is text without C1 controls.
FIRST_LETTERS = _HINT_LETTERS + "â"
_SPACED = np.zeros(256, np.bool_)
_SPACED[list("ÂÃÅÎÐ".encode("latin-1"))] = True


def mended(source: bytes) -> bytes:
    """A page (UTF-8), mended as by `repaired` where the scan would lose what is needed for it."""
    if not _would_lose(np.frombuffer(source, np.uint8)):
        return source
    return _repaired(source)


def repaired(text: str) -> str:
    """The text with double-encoded runs mended; other text comes back as it is.

    C1 controls that are none of their bytes become the signs that windows-1252 has in their places.
    """
    if text.isascii():
        return text
    source = text.encode("utf-8", "surrogatepass")
    made = _repaired(source)
    return text if made is source else made.decode("utf-8", "surrogatepass")


def _repaired(source: bytes) -> bytes:
    src = np.frombuffer(source, np.uint8)
    controls = _controls(src)
    if not controls and not _has_hints(src):
        return source
    mend, left = _is_certain(src)
    # Where controls are left they are signs of windows-1252, and runs are there by chance.
    if controls and 2 * left > controls:
        mend = False
    if not controls and not mend:
        return source
    out = np.empty(len(src) + controls, np.uint8)
    made = out[: _write(src, mend, out)].tobytes()
    return source if made == source else made


@inlined
def _is_control(data: Bytes, i: Int) -> Bool:
    """Whether a C1 control is at byte i, which is not the last."""
    return (data[i] == 0xC2) & (data[i + 1] < 0xA0)  # no branch: loops over it are vectorised


@borrowing
def _may_lose(first: Bytes, second: Bytes, third: Bytes, fourth: Bytes) -> Bool:
    """Whether four views that are a byte apart each have a C1 control, or a letter of the Latin-1
    block before a no-break space.

    Without a branch, and in bytes throughout, so that it is compiled to vector instructions.
    """
    least = _BYTE(255)
    for k in range(len(fourth)):
        control = _BYTE(
            _BYTE(first[k] ^ _BYTE(0xC2)) | _BYTE(_BYTE(second[k] & _BYTE(0xE0)) ^ _BYTE(0x80))
        )
        space = _BYTE(_BYTE(third[k] ^ _BYTE(0xC2)) | _BYTE(fourth[k] ^ _BYTE(0xA0)))
        least = min(least, min(control, _BYTE(_BYTE(first[k] ^ _BYTE(0xC3)) | space)))
    return least == 0


@borrowing
def _loses(source: Bytes, start: Int, end: Int) -> Bool:
    for i in range(start, end):
        if _is_control(source, i):
            return True
        if source[i] == 0xC3 and _SPACED[source[i + 1] + 0x40] and i + 3 < len(source):
            if source[i + 2] == 0xC2 and source[i + 3] == 0xA0:
                return True
    return False


@borrowing
def _would_lose(source: Bytes) -> Bool:
    """Whether UTF-8 has C1 controls, or `_SPACED` before a no-break space."""
    last = max(0, len(source) - 3)
    for begin in range(0, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        if _may_lose(
            source[begin:end],
            source[begin + 1 : end + 1],
            source[begin + 2 : end + 2],
            source[begin + 3 : end + 3],
        ) and _loses(source, begin, end):
            return True
    return _loses(source, last, len(source) - 1)


@borrowing
def _controls(src: Bytes) -> Int:
    """Number of C1 controls."""
    n = 0
    for i in range(len(src) - 1):
        n += _is_control(src, i)
    return n


@borrowing
def _has_hints(src: Bytes) -> Bool:
    for i in range(len(src) - 1):
        if src[i] != 0xC3:
            continue
        if _HINTS[src[i + 1]]:
            return True
        if src[i + 1] == _EURO[1] and i + 4 < len(src) and src[i + 2] == _EURO[2]:
            if src[i + 3] == _EURO[3] and src[i + 4] == _EURO[4]:
                return True
    return False


@inlined
def _read(src: Bytes, i: Int) -> tuple[Int, Int]:
    """(byte, size): of windows-1252 for the character at i, 0 where it has none."""
    c, size = code_point(src, i)
    return _BYTE_OF[c] if c < len(_BYTE_OF) else np.uint8(0), size


@borrowing
def _run(src: Bytes, i: Int, run: Bytes) -> tuple[Int, Int, Bool]:
    """Read the longest run at i into `run`: (its end, its bytes, whether it tells something).

    It is made of letters such as "Ã", each with one to three signs behind it. It tells nothing with
    no-break spaces, or if its signs are letters, too ("ääšš").
    """
    n = 0
    spaced = False
    letters = True
    while i < len(src):
        lead, size = _read(src, i)
        if lead < 0xC2 or lead > 0xF4:
            break
        k = i + size
        tails = 0
        while k < len(src) and tails < 3:
            tail, size = _read(src, k)
            if tail < 0x80 or tail > 0xBF or (tail == _SPACE and (tails or not _SPACED[lead])):
                break
            tails += 1
            run[n + tails] = tail
            letters = letters and _LETTER[tail] and not _is_control(src, k)
            k += size
            if tail == _SPACE:
                spaced = True
                break
        if tails == 0:
            break
        run[n] = lead
        letters = letters and _LETTER[lead]
        n += 1 + tails
        i = k
    return i, n, not (spaced or letters)


@borrowing
def _is_utf8(run: Bytes, n: Int) -> Bool:
    """Whether run[:n] is UTF-8: no overlong forms, no surrogates, nothing over U+10FFFF."""
    i = 0
    while i < n:
        b = run[i]
        size = 2 if b < 0xE0 else 3 if b < 0xF0 else 4
        if b < 0xC2 or b > 0xF4 or i + size > n:
            return False
        for k in range(1, size):
            if run[i + k] & 0xC0 != 0x80:
                return False
        second = run[i + 1]
        if (b == 0xE0 and second < 0xA0) or (b == 0xED and second > 0x9F):
            return False
        if (b == 0xF0 and second < 0x90) or (b == 0xF4 and second > 0x8F):
            return False
        i += size
    return True


@kernel
def _is_certain(src: Bytes) -> tuple[Bool, Int]:
    """Whether the runs of a text are to be mended, and the C1 controls that would then be left."""
    run = np.empty(len(src) + 4, np.uint8)
    seen = 0  # runs
    conclusive = 0  # of the first ones, those that are conclusive
    longest = 0
    sound = 0
    left = 0
    i = 0
    while i < len(src):
        if src[i] < 0x80:
            i += 1
            continue
        end, n, tells = _run(src, i, run)
        if n == 0:
            left += _is_control(src, i)
            i += code_point(src, i)[1]
            continue
        valid = _is_utf8(run, n)
        left += _controls(run[:n] if valid else src[i:end])
        seen += 1
        if seen <= _LOOKED_AT and tells:
            conclusive += 1
            longest = max(longest, n)
            sound += valid
        # Of very many, nearly all must be UTF-8: else they are there by chance, as in the bytes of a
        # picture read as text.
        if seen == _LOOKED_AT and sound < _SOUND * conclusive:
            return False, 0
        i = end
    # One short run may be meant; several, or one of three bytes, are not.
    if conclusive < 2 and longest < 3:
        return False, 0
    return True, left


@kernel
def _write(src: Bytes, mend: Bool, out: Bytes) -> Int:
    """Write the text to `out`, its runs mended or not; return its size."""
    run = np.empty(len(src) + 4, np.uint8)
    size = 0
    i = 0
    while i < len(src):
        if src[i] < 0x80:
            out[size] = src[i]
            size += 1
            i += 1
            continue
        if mend:
            end, n, _ = _run(src, i, run)
            if n:
                if _is_utf8(run, n):
                    size = _copy(run, 0, n, out, size)
                else:
                    size = _copy(src, i, end, out, size)
                i = end
                continue
        end = i + code_point(src, i)[1]
        size = _copy(src, i, end, out, size)
        i = end
    return size


@borrowing
def _copy(data: Bytes, i: Int, end: Int, out: Bytes, size: Int) -> Int:
    """Append data[i:end] to out[:size] with signs for its C1 controls; return the size."""
    while i < end:
        if i + 1 < end and _is_control(data, i):
            for k in range(3):
                if _SIGNS[data[i + 1] - 0x80, k]:
                    out[size] = _SIGNS[data[i + 1] - 0x80, k]
                    size += 1
            i += 2
        else:
            out[size] = data[i]
            size += 1
            i += 1
    return size
