"""Records of dumps in XML: elements of one name, one after the other in a file of any size."""

import re
import sys
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree

from curation.readers.records import Fault

_CHUNK = 1 << 18  # bytes read at once
_REFERENCE = re.compile("&#(?:x([0-9a-fA-F]{1,9})|([0-9]{1,9}));")
_NO_CHARACTER = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def elements(
    file: IO[bytes], opening: bytes, closing: bytes, longest: int
) -> Iterator[bytes | Fault]:
    """Yield the bytes of each element that begins with `opening` and ends with `closing`.

    Content can't look like these, as `<` is escaped in it. What is before the first comes first. An
    element of over `longest` bytes, or in which another begins, is a fault. Memory is that of one.
    """
    held, is_first = bytearray(), True
    while True:
        begin, ended = _find(file, held, opening, longest if is_first else 0)
        if is_first:
            yield bytes(held[: max(0, begin)])
        is_first = False
        if ended:
            return
        if begin < 0:
            continue
        del held[:begin]
        end, ended = _find(file, held, closing, longest)
        if end < 0:
            if ended:
                yield Fault("truncated", f"the file ends inside of {opening.decode()}")
                return
            yield Fault("too_large", f"over {longest} bytes (readers.max_record_bytes)")
            del held[: len(opening)]
            continue
        if (other := held.rfind(opening, 1, end)) > 0:
            yield Fault("bad_xml", f"{opening.decode()} without its end")
            del held[:other]
            end -= other
        yield bytes(held[: end + len(closing)])
        del held[: end + len(closing)]


def _find(file: IO[bytes], held: bytearray, wanted: bytes, keep: int) -> tuple[int, bool]:
    """Read on until `wanted` is held: its place, and whether the file ended before.

    The place is -1 if it isn't found within `keep` bytes; 0 for `keep` forgets bytes on the way.
    """
    looked = 0
    while (found := held.find(wanted, looked)) < 0:
        if keep and len(held) > keep:
            return -1, False
        looked = max(0, len(held) - len(wanted) + 1)
        if not keep:
            del held[:looked]
            looked = 0
        data = file.read(_CHUNK)
        if not data:
            return -1, True
        held += data
    return found, False


def parsed(element: bytes) -> tuple[ElementTree.Element, str] | Fault:
    """Return an element as a tree, and the reason if it was mended.

    Characters that XML doesn't have, which dumps may hold, become U+FFFD. An element has no
    document type, and so no entities of its own.
    """
    try:
        return ElementTree.fromstring(element), ""
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        text = _REFERENCE.sub(_character, element.decode("utf-8", "replace"))
        sound = _NO_CHARACTER.sub("\ufffd", text).encode()
        found = Fault("bad_xml", str(error)) if sound == element else parsed(sound)
    return found if isinstance(found, Fault) else (found[0], "xml.bad_character")


def _character(reference: re.Match[str]) -> str:
    """Return a reference to a character as it is, or U+FFFD if XML doesn't have that."""
    number = int(reference[2]) if reference[2] else int(reference[1], 16)
    known = number <= sys.maxunicode and not _NO_CHARACTER.match(chr(number))
    return reference[0] if known else "\ufffd"
