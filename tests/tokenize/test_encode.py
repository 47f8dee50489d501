"""The encoder against tiktoken and Hugging Face tokenizers."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tiktoken
import tokenizers
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.config import read_yaml
from curation.errors import ConfigError, InputError
from curation.resources import resolve
from curation.stages.tokenize import VOCABULARY, tokenizer_checksums
from curation.tokenize import load_tokenizer
from curation.tokenize.card import BUILTIN, special_tokens
from curation.tokenize.pretokenize import (
    LETTER,
    NEWLINE,
    NUMBER,
    OTHER,
    PATTERNS,
    SPACE,
    character_classes,
    pattern,
)
from curation.tokenize.tokenizer import Tokenizer
from curation.tokenize.vocabulary import format_ranks, parse_ranks
from tests.tokenize.pieces import piece_ends, to_tiktoken

DATA = Path(__file__).parents[3] / "shared" / "data"

SCRIPTS = [
    "The quick brown fox: it's 12345.67 — isn't IT'S?\r\n\tdef f(x):\n        return x  \n\n",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश",
    "いろはにほへと ちりぬるを。漢字とカナ、ｆｕｌｌｗｉｄｔｈ１２３",
    "นายสังฆภัณฑ์ เฮงพิทักษ์ฝั่ง ผู้เฒ่าซึ่งมีอาชีพเป็นฅนขายฃวด",
    "نص حكيم له سر قاطع وذو شأن عظيم ٠١٢٣٤٥ می‌خواهم",
    "עטלף אבק נס דרך מזגן שהתפוצץ כי חם",
    "ႠႡႢ აბგ ሀሁሂ ខ្ញុំ བོད་ཡིག မြန်မာ ગુજરાતી தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල",
    "e\u0301tude nai\u0308ve \u2764\ufe0f\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u0085\u00a0\u2028x \u0085 y",
    "<|begin_of_text|><|end_of_text|> <|pad|><|reserved_7|>",
    "",
    " ",
    "\n \n",
    "'ſ 'S 'll'LL'Ve'",
    "a" * 5000 + "日本" * 3000 + " " * 300 + "!" * 700,
]


@pytest.fixture(scope="module")
def builtin() -> Tokenizer:
    return load_tokenizer("curation-128k")


@pytest.fixture(scope="module")
def hugging_face(
    builtin: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> tokenizers.Tokenizer:
    folder = tmp_path_factory.mktemp("hf")
    builtin.save_hf(folder)
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def encoding(builtin: Tokenizer) -> tiktoken.Encoding:
    return to_tiktoken(builtin)


def split(ids: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def byte_tokenizer(name: str) -> Tokenizer:
    """Bytes and a few merges, for tests of the mechanics."""
    tokens = [bytes([b]) for b in range(256)]
    tokens += [b"ab", b"bc", b"abc", b"aa", b"aaa", b"aaaa", b" a", b"\xe6\x97", b"\xe6\x97\xa5"]
    return Tokenizer("bytes", tokens, pattern(name), special_tokens(3))


def test_same_ids_as_tiktoken_on_all_scripts(
    builtin: Tokenizer, encoding: tiktoken.Encoding
) -> None:
    expected = [encoding.encode_ordinary(text) for text in SCRIPTS]
    assert split(*builtin.encode_batch(SCRIPTS)) == expected
    assert split(*builtin.encode_batch(SCRIPTS, threads=3)) == expected


def test_same_ids_as_hugging_face_on_all_scripts(
    builtin: Tokenizer, hugging_face: tokenizers.Tokenizer
) -> None:
    expected = [e.ids for e in hugging_face.encode_batch(SCRIPTS)]
    assert split(*builtin.encode_batch(SCRIPTS)) == expected
    assert hugging_face.get_vocab_size() == builtin.vocab_size
    for name, token in builtin.special_tokens.items():
        assert hugging_face.token_to_id(name) == token


@settings(max_examples=300)
@given(
    st.text(
        alphabet=" \t\n\r'sSdlLvVeE.!a1٣aéक\u0901ि文\u3000\u0085ก็❤\ufe0f👍\u200dſ<|>", max_size=40
    )
    | st.text(max_size=40)
)
def test_pieces_and_merges_against_tiktoken(text: str) -> None:
    for name in PATTERNS:
        ours, theirs = _bytes_pair(name)
        assert ours.encode(text) == theirs.encode_ordinary(text)


_PAIRS: dict[str, tuple[Tokenizer, tiktoken.Encoding]] = {}


def _bytes_pair(name: str) -> tuple[Tokenizer, tiktoken.Encoding]:
    if name not in _PAIRS:
        ours = byte_tokenizer(name)
        _PAIRS[name] = ours, to_tiktoken(ours)
    return _PAIRS[name]


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_pieces_cover_any_bytes(data: bytes) -> None:
    ends = piece_ends(data, "marks")
    assert (np.diff([0, *ends]) > 0).all()
    assert (ends[-1] if len(ends) else 0) == len(data)


@pytest.mark.parametrize("text", ["ab" * 200, "a" * 301, "abcaabc" * 40, "bcab" * 64])
def test_long_pieces_merge_as_tiktoken_does(text: str) -> None:
    ours, theirs = _bytes_pair("cl100k")
    assert ours.encode(text) == theirs.encode_ordinary(text)


def test_real_texts_against_tiktoken(builtin: Tokenizer, encoding: tiktoken.Encoding) -> None:
    path = DATA / "lid" / "dev.jsonl.gz"
    if not path.exists():
        pytest.skip("development texts are not here")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for k, line in enumerate(lines) if k % 10 == 0]
    expected = [encoding.encode_ordinary(text) for text in texts]
    assert split(*builtin.encode_batch(texts)) == expected


def test_base_ranks_are_those_of_cl100k(builtin: Tokenizer) -> None:
    path = DATA / "tokenizer" / "cl100k_base.tiktoken"
    if not path.exists():
        pytest.skip("the base vocabulary is not here")
    base = parse_ranks(path.read_bytes(), path.name)
    assert builtin.tokens[: len(base)] == base
    assert (len(base), len(builtin.tokens), builtin.vocab_size) == (100256, 128000, 128256)


def test_tokens_saved_on_held_out_languages(builtin: Tokenizer) -> None:
    """At least a quarter fewer tokens than cl100k over languages, and none lost on English."""
    texts_path, base_path = DATA / "lid/dev.jsonl.gz", DATA / "tokenizer/cl100k_base.tiktoken"
    if not (texts_path.exists() and base_path.exists()):
        pytest.skip("development texts or the base vocabulary are not here")
    texts: dict[str, list[str]] = {}
    with gzip.open(texts_path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            # The tenth that make_corpus.py keeps out of training.
            if xxhash.xxh64_intdigest(row["text"].encode()) % 10 == 0:
                texts.setdefault(row["lang"], []).append(row["text"])
    base = load_tokenizer(base_path)
    saved = {
        language: 1 - len(builtin.encode_batch(some)[0]) / len(base.encode_batch(some)[0])
        for language, some in texts.items()
    }
    assert saved.pop("en") >= 0
    assert len(saved) > 150 and np.mean(list(saved.values())) > 0.2


def test_text_without_marks_divides_as_under_cl100k() -> None:
    for text in SCRIPTS[:2] + SCRIPTS[3:4] + SCRIPTS[10:]:
        ends = [piece_ends(text.encode(), name) for name in PATTERNS]
        assert ends[0] == ends[1]


def test_special_token_names_in_text_stay_text(
    builtin: Tokenizer, encoding: tiktoken.Encoding, hugging_face: tokenizers.Tokenizer
) -> None:
    names = [f"a{name}b" for name in builtin.special_tokens]
    ids, offsets = builtin.encode_batch(names)
    assert ids.max() < len(builtin.tokens)
    assert split(ids, offsets) == [encoding.encode_ordinary(name) for name in names]
    assert split(ids, offsets) == [e.ids for e in hugging_face.encode_batch(names)]


@settings(max_examples=200)
@given(st.binary(max_size=40) | st.text(max_size=12).map(lambda t: t.encode()[1:-1]))
def test_bytes_that_are_no_text(
    builtin: Tokenizer,
    encoding: tiktoken.Encoding,
    hugging_face: tokenizers.Tokenizer,
    data: bytes,
) -> None:
    """As a document holds them, all three agree; as they are, none gets lost."""
    text = data.decode("utf-8", errors="replace")
    assert builtin.encode(text) == encoding.encode_ordinary(text) == hugging_face.encode(text).ids
    offsets = np.array([0, len(data)], np.int64)
    ids, _ = builtin.encode_words(np.frombuffer(data, np.uint8), offsets)
    assert builtin.decode_bytes(ids) == data


def test_decode_returns_the_text(builtin: Tokenizer) -> None:
    for text in SCRIPTS:
        assert builtin.decode(builtin.encode(text)) == text
    assert builtin.decode([builtin.bos, *builtin.encode("x"), builtin.eos]) == (
        "<|begin_of_text|>x<|end_of_text|>"
    )
    with pytest.raises(InputError, match="no id 128256"):
        builtin.decode([128256])


def test_lone_surrogates_become_replacement_characters(
    builtin: Tokenizer, encoding: tiktoken.Encoding
) -> None:
    assert builtin.encode("a\ud800b") == encoding.encode_ordinary("a\ud800b")


def test_nulls_slices_and_chunks_of_arrow() -> None:
    tokenizer = byte_tokenizer("marks")
    array = pa.array(["x", None, "abc", ""], pa.string())
    assert split(*tokenizer.encode_batch(array)) == [[120], [], [258], []]
    assert split(*tokenizer.encode_batch(array.slice(2))) == [[258], []]
    assert split(*tokenizer.encode_batch(pa.chunked_array([array, array])))[4:6] == [[120], []]
    assert split(*tokenizer.encode_batch([])) == []


def test_classes_of_known_characters() -> None:
    table = character_classes(True)
    for text, kind in (("aЖ文ि\u0301", LETTER), ("1٣Ⅷ", NUMBER), (" \t\u3000", SPACE)):
        assert {int(table[ord(c)]) for c in text} == {kind}
    assert {int(table[ord(c)]) for c in "\r\n"} == {NEWLINE}
    assert {int(table[ord(c)]) for c in "!文"} == {OTHER, LETTER}
    assert character_classes(False)[0x0301] == OTHER


def test_damaged_rank_files_are_named() -> None:
    good = format_ranks(byte_tokenizer("marks").tokens)
    assert parse_ranks(good, "x") == byte_tokenizer("marks").tokens
    with pytest.raises(InputError, match="x: line 1"):
        parse_ranks(b"?? 0\n", "x")
    with pytest.raises(InputError, match=r"neither .* \.tiktoken files, nor a tokenizer\.json"):
        parse_ranks(b"\n\x0e\n\x05<unk>\x15\0\0\0\0", "sentencepiece.model")
    with pytest.raises(InputError, match="no token has rank 255"):
        parse_ranks(good.replace(b" 255\n", b" 999\n"), "x")
    with pytest.raises(InputError, match="single bytes"):
        parse_ranks(b"YQ== 0\n", "x")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="no-such"):
        load_tokenizer("no-such")
    with pytest.raises(ConfigError, match="pattern"):
        pattern("no-such")


def test_a_card_with_another_checksum_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.tiktoken").write_bytes(format_ranks(byte_tokenizer("marks").tokens))
    (tmp_path / "card.yaml").write_text(f"file: v.tiktoken\nsha256: {'0' * 64}\n")
    with pytest.raises(InputError, match="SHA-256"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_every_built_in_vocabulary(name: str) -> None:
    tokenizer = load_tokenizer(name)
    assert tokenizer_checksums(name) == {
        "tokenizer": tokenizer.file_sha256,
        VOCABULARY: tokenizer.sha256,
    }
    assert len(tokenizer.tokens) % 1000 == 0 and len(tokenizer.special_tokens) == 256
    reference = to_tiktoken(tokenizer)
    for text in SCRIPTS:
        ids = tokenizer.encode(text)
        assert ids == reference.encode_ordinary(text)
        assert tokenizer.decode(ids) == text


def test_the_large_vocabulary_continues_the_small_one_and_one_has_no_base() -> None:
    small, large = load_tokenizer("curation-128k"), load_tokenizer("curation-200k")
    assert large.tokens[: len(small.tokens)] == small.tokens
    scratch = load_tokenizer("curation-128k-scratch")
    assert scratch.tokens[:256] == [bytes([b]) for b in range(256)]
    assert read_yaml(Path(resolve(BUILTIN[scratch.name])).parent / "card.yaml")["base"] is None
