"""Words: the documented definition, and a plain Python reference of it on random text."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.bytes import ascii
from curation.text import characters as ch
from curation.text.characters import UNSPACED_SCRIPTS
from curation.text.words import words
from tests.text.strings import token_hash, word_list

SINGLE = regex.compile(
    r"(?=\p{L})[" + "".join(rf"\p{{Script={s}}}" for s in UNSPACED_SCRIPTS) + "]"
)
EXTEND = regex.compile(r"[\p{M}\u200c\u200d\u00ad\U000e0100-\U000e01ef]")
HIDDEN = regex.compile(r"[\p{Cc}\p{Cf}\p{Z}\U000e0000-\U000e00ff]")


@functools.cache
def kind(char: str) -> str:
    """What a character does in a word, by the definition in curation.text.words."""
    if SINGLE.match(char):
        return "single"
    if EXTEND.match(char):
        return "extend"
    if regex.match(r"\p{L}", char):
        return "letter"
    if regex.match(r"\p{N}", char):
        return "number"
    if char in "'’.·‧״＇．":
        return "mid"
    if char in ",٫٬":
        return "comma"
    if regex.match(r"\p{Pc}", char):
        return "connect"
    return "hidden" if char.isspace() or HIDDEN.match(char) else "symbol"


def plain_words(text: str, symbols: bool) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(text):
        first = kind(text[i])
        if first == "hidden":
            i += 1
            continue
        j = i + 1
        if first == "single":
            while j < len(text) and kind(text[j]) == "extend":
                j += 1
        elif first in ("letter", "number", "extend"):
            last = first
            while j < len(text):
                here = kind(text[j])
                after = kind(text[j + 1]) if j + 1 < len(text) else "end"
                joins = (here == "mid" and last == after == "letter") or (
                    here in ("mid", "comma") and last == after == "number"
                )
                if here in ("letter", "number"):
                    last = here
                elif not joins and here not in ("extend", "connect"):
                    break
                j += 1
        else:
            while j < len(text) and text[j] == text[i]:
                j += 1
        if symbols or first not in ("mid", "comma", "connect", "symbol"):
            out.append(text[i:j])
        i = j
    return out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, l’eau!", ["Don't", "stop", "l’eau"]),
        ("1,000.5 e.g. example.org", ["1,000.5", "e.g", "example.org"]),
        ("well-known snake_case", ["well", "known", "snake_case"]),
        ("我爱NLP", ["我", "爱", "NLP"]),
        ("カタカナ", ["カ", "タ", "カ", "ナ"]),
        ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("cafe\u0301 x\u00ady", ["cafe\u0301", "x\u00ady"]),
        ("\u200b \t\n", []),
    ],
)
def test_definition(text: str, expected: list[str]) -> None:
    assert word_list(text) == expected


def test_symbols_are_tokens_of_one_repeated_character() -> None:
    assert word_list("Wait... what?!", symbols=True) == ["Wait", "...", "what", "?", "!"]


CHARS = st.one_of(
    st.sampled_from("ab Z1٣9.,'’-_·…!?#。、\n\t\u00a0\u00ad\u0301\u200d\u200bß我か한ไ่ကြहि"),
    st.characters(codec="utf-8"),
)


@given(st.lists(CHARS, max_size=60).map("".join), st.booleans())
@settings(max_examples=400)
def test_kernel_is_the_plain_definition(text: str, symbols: bool) -> None:
    assert word_list(text, symbols) == plain_words(text, symbols)


@given(st.lists(st.text(CHARS, max_size=12), max_size=6))
@settings(max_examples=100)
def test_batches_slices_and_single_texts_agree(texts: list[str]) -> None:
    array = pa.array(["other", *texts], pa.large_string()).slice(1)
    spans = words(array)
    held = array.buffers()[2]
    data = held.to_pybytes() if held is not None else b""
    found = [
        [data[a:b].decode() for a, b in zip(spans.starts[i:j], spans.ends[i:j], strict=True)]
        for i, j in zip(spans.doc_offsets, spans.doc_offsets[1:], strict=False)
    ]
    assert found == [word_list(text) for text in texts]


def test_hash_ignores_case() -> None:
    assert token_hash("STRAßE") == token_hash("straße") != token_hash("strasse")
    hashes = {token_hash(word) for word in ("ab", "ba", "a", "b", "")}
    assert len(hashes) == 5


def test_null_is_no_words() -> None:
    assert np.array_equal(words(pa.array([None, "a"])).doc_offsets, [0, 0, 1])


def test_tables_of_bytes_say_what_the_properties_say() -> None:
    table = ch.properties()[:128]
    assert (ascii.ALNUM[:128] == (table & (ch.ALPHA | ch.NUMBER) != 0)).all()
    assert (ascii.INNER[:128] == (table & ch.TERMINAL == 0)).all()
    assert not (ascii.ALNUM | ascii.INNER)[128:].any()
