"""What kernels ask of single bytes, as tables of 256 entries, so that most text needs no decoding.

They say of ASCII what `characters.properties` says; every byte beyond ASCII has its own answer.

The bytes that markup and text are read by, by name.
"""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.bool_]


def byte_set(members: str, beyond: bool = False) -> Bytes:
    """Whether a byte is one of the ASCII `members`, or lies beyond ASCII where `beyond` is set."""
    table = np.zeros(256, np.bool_)
    table[[ord(char) for char in members]] = True
    table[128:] = beyond
    return table


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: ASCII letters and digits.
ALNUM = byte_set(_LETTERS + "0123456789")
#: Bytes that end no sentence, whatever is around them.
INNER = ~byte_set(".!?", beyond=True)


TAB, LF, CR, SPACE = b"\t\n\r "
BANG, QUOTE, HASH, DOLLAR, PERCENT, AMPERSAND, APOSTROPHE = b"!\"#$%&'"
PAREN, END_PAREN, STAR, PLUS, COMMA, DASH, DOT, SLASH = b"()*+,-./"
ZERO, NINE = b"09"
COLON, SEMICOLON, LESS, EQUALS, GREATER, QUESTION, AT = b":;<=>?@"
UPPER_A, UPPER_X, UPPER_Z = b"AXZ"
BRACKET, BACKSLASH, END_BRACKET, CARET, UNDERSCORE, BACKTICK = b"[\\]^_`"
LOWER_A, LOWER_E, LOWER_F, LOWER_I, LOWER_M, LOWER_S = b"aefims"
LOWER_U, LOWER_V, LOWER_X = b"uvx"
BRACE, BAR, END_BRACE = b"{|}"
