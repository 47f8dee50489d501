"""The search for words and bytes finds what Python's own finds."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from curation.bytes.search import eight_of, has, next_byte, word

_MARKUP = st.binary(max_size=40) | st.text("<templa /\x00\xe9", max_size=40).map(str.encode)


@given(_MARKUP, st.integers(0, 1200), st.binary(max_size=5))
@example(b"<template", 511, b"")
@example(b"<templat", 512, b"e")
def test_has_finds_words_wherever_they_are(part: bytes, before: int, behind: bytes) -> None:
    source = b"x" * before + part + behind
    assert has(source, word(b"<template")) == (b"<template" in source)


def test_nothing_has_no_word() -> None:
    assert not has(b"", word(b"$RC("))
    assert not has(b"$RC", word(b"$RC("))
    assert has(b"$RC(", word(b"$RC("))


@given(st.binary(max_size=60), st.integers(0, 255), st.integers(0, 60))
@example(b"\x01\x00", 0, 0)
@example(b"\x00\x01\x00", 1, 0)
def test_next_byte_is_the_first_one(text: bytes, byte: int, start: int) -> None:
    n = len(text)
    src = np.frombuffer(text + bytes([byte]) * 8, np.uint8)  # what is behind does not count
    found = text.find(bytes([byte]), start) if start < n else -1
    expected = found if found >= 0 else n
    assert next_byte(src, start, n, eight_of.py_func(byte)) == expected
