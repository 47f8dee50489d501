"""Character classes of one fixed Unicode version, so that ids don't change with Python or Rust."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from curation.resources import resolve

#: Classes of the table. Everything that is none of them is OTHER.
OTHER, LETTER, NUMBER, SPACE, NEWLINE = 0, 1, 2, 3, 4

_CODES = {"L": LETTER, "N": NUMBER, "Z": SPACE}


@functools.cache
def character_classes(marks_are_letters: bool) -> npt.NDArray[np.uint8]:
    """Class of every code point: uint8 [0x110000], read-only.

    Combining marks (vowel signs of Indic scripts, Thai, accents written apart) are LETTER if asked,
    else OTHER. Carriage return and line feed are NEWLINE, other white space is SPACE.
    """
    table = np.zeros(0x110000, np.uint8)
    codes = {**_CODES, "M": LETTER if marks_are_letters else OTHER}
    with open(resolve("builtin:models/tokenizer/unicode-16.tsv"), encoding="ascii") as lines:
        for line in lines:
            if not line.startswith("#"):
                first, last, name = line.split()
                table[int(first, 16) : int(last, 16) + 1] = codes[name]
    table[[0x0A, 0x0D]] = NEWLINE
    table.setflags(write=False)
    return table
