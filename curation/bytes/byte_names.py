"""The bytes that markup and text are read by, by name."""

from __future__ import annotations

TAB, LF, CR, SPACE = b"\t\n\r "
BANG, QUOTE, HASH, DOLLAR, PERCENT, AMPERSAND, APOSTROPHE = b"!\"#$%&'"
PAREN, END_PAREN, STAR, PLUS, COMMA, DASH, DOT, SLASH = b"()*+,-./"
ZERO, NINE = b"09"
COLON, SEMICOLON, LESS, EQUALS, GREATER, QUESTION, AT = b":;<=>?@"
UPPER_A, UPPER_X, UPPER_Z = b"AXZ"
BRACKET, BACKSLASH, END_BRACKET, CARET, UNDERSCORE, BACKTICK = b"[\\]^_`"
(
    LOWER_A,
    LOWER_E,
    LOWER_F,
    LOWER_I,
    LOWER_K,
    LOWER_M,
    LOWER_S,
    LOWER_U,
    LOWER_V,
    LOWER_W,
    LOWER_X,
    LOWER_Z,
) = b"aefikmsuvwxz"
BRACE, BAR, END_BRACE = b"{|}"
