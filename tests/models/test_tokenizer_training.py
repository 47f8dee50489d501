"""Training against a plain reference, and what a trained vocabulary promises."""

from __future__ import annotations

import collections
import gzip
import itertools
import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import ConfigError, InputError
from curation.tokenize import load_tokenizer
from curation.tokenize.bpe import WORK, merge_piece
from curation.tokenize.card import special_tokens
from curation.tokenize.pretokenize import pattern
from curation.tokenize.tokenizer import Tokenizer
from curation.tokenize.vocabulary import format_ranks
from models.training.tokenizer import TokenizerTraining, base_ranks, train, train_tokenizer
from models.training.tokenizer.corpus import read_corpus
from models.training.tokenizer.piece_counts import WordCounts
from models.training.tokenizer.shares import WebShares, group_weights, read_shares
from tests.tokenize.pieces import merged_parts, piece_ends

TEXT = (
    "low lower lowest newer newest wider widest slow slower slowest\n"
    "die Donaudampfschifffahrt und der Dampfer auf der Donau, die Dampfschifffahrt\n"
    "नमस्ते दुनिया, नमस्ते भारत। สวัสดีชาวโลก สวัสดีครับ 東京都 東京タワー 京都\n"
)


def training(size: int, **changes: object) -> TokenizerTraining:
    values: dict[str, object] = {
        "size": size,
        "pattern": "marks",
        "special_tokens": 3,
        "balance": 1.0,
        "shares": None,
        "longest_token": 48,
        "longest_piece": 4096,
        "min_count": 1,
    }
    return TokenizerTraining.model_validate(values | changes)


def reference(text: str, base: list[bytes], size: int) -> list[bytes]:
    """Count all pairs again for every merge; encode as tiktoken does between merges."""
    tokens = list(base)
    data = text.encode()
    ends = [0, *piece_ends(data, "marks")]
    pieces = collections.Counter(data[a:b] for a, b in itertools.pairwise(ends))
    while len(tokens) < size:
        ranks = {token: k for k, token in enumerate(tokens)}
        counts: collections.Counter[tuple[int, int]] = collections.Counter()
        for piece, count in pieces.items():
            parts = [piece] if piece in ranks else [bytes([b]) for b in piece]
            parts = merged_parts(parts, ranks)
            for a, b in itertools.pairwise(parts):
                counts[ranks[a], ranks[b]] += count
        if not counts:
            break
        (a, b), _ = min(counts.items(), key=lambda item: (-item[1], item[0]))
        tokens.append(tokens[a] + tokens[b])
    return tokens


BYTES = [bytes([b]) for b in range(256)]


def test_from_scratch_equals_the_reference() -> None:
    expected = reference(TEXT, BYTES, 330)
    assert train([(("", ""), [TEXT])], training(330)).tokens == expected


def test_continuing_keeps_the_base_and_equals_the_reference() -> None:
    base = reference(TEXT, BYTES, 290)
    expected = reference(TEXT + TEXT[::-1], base, 340)
    trained = train([(("", ""), [TEXT + TEXT[::-1]])], training(340), base)
    assert trained.tokens == expected
    assert trained.tokens[:290] == base


@settings(max_examples=60)
@given(st.text(alphabet="abc ", min_size=1, max_size=60))
def test_small_alphabets_equal_the_reference(text: str) -> None:
    expected = reference(text, BYTES, 266)
    if len(expected) < 266:
        with pytest.raises(InputError, match="supports"):
            train([(("", ""), [text])], training(266))
    else:
        assert train([(("", ""), [text])], training(266)).tokens == expected


def test_every_token_is_reached_by_merging() -> None:
    tokens = train([(("", ""), [TEXT])], training(360)).tokens
    t = Tokenizer("t", tokens, pattern("marks"), special_tokens(3)).token_tables
    out = np.empty(64, np.uint32)
    for rank, token in enumerate(tokens):
        data = np.frombuffer(token, np.uint8)
        assert merge_piece(data, 0, len(data), t, np.empty(WORK, np.int64), out, 0) == 1
        assert out[0] == rank


def test_order_of_batches_does_not_matter() -> None:
    lines = TEXT.splitlines(keepends=True)
    groups = [(("de" if k else "en", "a"), [line]) for k, line in enumerate(lines)]
    ahead = train(groups, training(330, balance=0.3))
    assert train(groups[::-1], training(330, balance=0.3)).tokens == ahead.tokens


def test_long_tokens_and_pieces_are_left_out() -> None:
    trained = train([(("", ""), ["abcdefgh " * 50 + TEXT])], training(300, longest_token=4))
    assert max(map(len, trained.tokens)) <= 4
    short = train([(("", ""), ["abcdefghij" * 9 + " " + TEXT])], training(300, longest_piece=80))
    assert short.tokens == train([(("", ""), [" " + TEXT])], training(300)).tokens


def test_weights_balance_languages_then_sources() -> None:
    sizes = {("en", "web"): 900, ("en", "book"): 100, ("yo", "web"): 10}
    equal = group_weights(sizes, 0.0)
    assert equal["yo", "web"] * 10 == pytest.approx(0.5)
    assert equal["en", "book"] * 100 == pytest.approx(0.25)
    asis = group_weights(sizes, 1.0)
    assert asis["yo", "web"] == pytest.approx(asis["en", "web"])


@settings(max_examples=50)
@given(st.lists(st.text(alphabet="ab ñ文\n1", max_size=30), max_size=20))
def test_word_counts_equal_a_dictionary(texts: list[str]) -> None:
    expected: collections.Counter[bytes] = collections.Counter()
    words = WordCounts()
    words.count(texts, pattern("marks"), 100)
    for text in texts:
        data = text.encode()
        ends = [0, *piece_ends(data, "marks")]
        expected.update(data[a:b] for a, b in itertools.pairwise(ends))
    assert dictionary(words) == dict(expected)


def dictionary(words: WordCounts) -> dict[bytes, int]:
    data, offsets = words.data.tobytes(), words.offsets.tolist()
    return {
        data[a:b]: int(n) for a, b, n in zip(offsets[:-1], offsets[1:], words.counts, strict=True)
    }


def test_word_counts_grow_and_join() -> None:
    words, joined = WordCounts(), WordCounts()
    words.count([f"w{k} x" for k in range(5000)], pattern("cl100k"), 100)
    joined.add(words, 3 * words.counts)
    assert dictionary(joined) == {k: 3 * n for k, n in dictionary(words).items()}
    assert dictionary(words)[b" x"] == 5000


def test_train_from_files_and_load(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as out:
        for line in TEXT.splitlines():
            out.write(json.dumps({"text": line, "lang": "mul"}) + "\n")
    pq.write_table(pa.table({"text": [TEXT], "language": ["en"]}), tmp_path / "b.parquet")
    (tmp_path / "de.txt").write_text(TEXT, encoding="utf-8")
    files = [str(tmp_path / name) for name in ("de.txt", "b.parquet", "a.jsonl.gz")]
    card = train_tokenizer(files, tmp_path / "out", training(300), name="mine")
    assert sorted(card["data"]["bytes_by_language"]) == ["de", "en", "mul"]
    loaded = load_tokenizer(tmp_path / "out")
    assert (loaded.name, loaded.vocab_size, loaded.pattern.name) == ("mine", 303, "marks")
    assert loaded.decode(loaded.encode(TEXT)) == TEXT


def test_a_base_comes_from_a_file_or_from_the_cache_of_tiktoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = format_ranks([*BYTES, b"ab"])
    (tmp_path / "mine.tiktoken").write_bytes(ranks)
    assert base_ranks(tmp_path / "mine.tiktoken") == [*BYTES, b"ab"]
    found = SimpleNamespace(_mergeable_ranks={token: rank for rank, token in enumerate(BYTES)})
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: found)
    assert base_ranks("cl100k_base.tiktoken") == base_ranks("cl100k_base") == BYTES

    def offline(name: str) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    with pytest.raises(InputError, match=r"cl100k_base.tiktoken: no such file, and tiktoken can't"):
        base_ranks("cl100k_base.tiktoken")
    with pytest.raises(InputError, match="cannot read"):
        base_ranks("none.tiktoken")


def test_bad_corpora_are_refused(tmp_path: Path) -> None:
    bad = tmp_path / "x.jsonl"
    bad.write_text('{"text": "a"}\n{"no": 1}\n')
    with pytest.raises(InputError, match="line 2"):
        train_tokenizer([str(bad)], tmp_path / "out", training(300))
    with pytest.raises(InputError, match="corpus files are"):
        train_tokenizer(["x.pdf"], tmp_path / "out", training(300))
    with pytest.raises(ConfigError, match="below the base"):
        train([], training(256), [*BYTES, b"ab"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"text": "a"}\n{"text": 5}\n', "x.jsonl: line 2: .*string `text`"),
        ("x.jsonl", b'{"text": "a"}\n{"text": null}\n', "x.jsonl: line 2: "),
        ("x.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', "x.jsonl: line 2: not UTF-8"),
        ("x.jsonl", b'{"text": "a", "language": 5}\n', "x.jsonl: line 1: `language`"),
        ("x.jsonl", b'{"text": "a", "count": 0}\n', "x.jsonl: line 1: `count`"),
        ("x.jsonl", b'{"text": "a", "count": true}\n', "x.jsonl: line 1: `count`"),
        ("x.txt", b"a\nb\xff\n", "x.txt: line 2: not UTF-8"),
        (
            "x.txt.gz",
            gzip.compress(random.Random(0).randbytes(999).hex().encode())[:-99],
            "x.txt.gz: ",
        ),
        ("x.parquet", b"PAR1", "x.parquet: not readable"),
    ],
)
def test_bad_corpora_name_file_and_line(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_corpus([str(tmp_path / name)]))


def test_parquet_corpora(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    languages = pa.array(["de", None, "en"]).dictionary_encode()
    pq.write_table(pa.table({"text": ["a", "b", "c"], "language": languages}), path)
    found = {group: texts.to_pylist() for group, texts, *_ in read_corpus([str(path)])}
    assert found == {("", "parquet"): ["b"], ("de", "parquet"): ["a"], ("en", "parquet"): ["c"]}
    pq.write_table(pa.table({"text": ["a", None]}), path)
    with pytest.raises(InputError, match=r"x\.parquet: row 1: no `text`"):
        list(read_corpus([str(path)]))
    pq.write_table(pa.table({"text": [1]}), path)
    with pytest.raises(InputError, match=r"x\.parquet: the column `text` has int64, not strings"):
        list(read_corpus([str(path)]))


def test_counted_texts_equal_repeated_ones(tmp_path: Path) -> None:
    rows = [{"text": " low", "count": 7}, {"text": " lower newest"}, {"text": " new", "count": 3}]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    repeated = [str(row["text"]) for row in rows for _ in range(int(row.get("count", 1)))]
    counted = train(read_corpus([str(path)]), training(266))
    assert counted.tokens == train([(("", ""), repeated)], training(266)).tokens
    assert counted.bytes_seen == {"": 7 * 4 + 13 + 3 * 4}


def web_shares(**changes: object) -> WebShares:
    values = {"source": "x", "power": 0.5, "floor": 0.25, "factors": {"yo": 3.0}}
    return WebShares.model_validate(
        {**values, "kinds": {"words": 0.5}, "percent": {"de": 4.0}, **changes}
    )


def test_shares_of_the_web_weigh_languages_and_kinds() -> None:
    sizes = {
        ("de", "words/a"): 100_000,
        ("de", "natural/b"): 900_000,
        ("yo", "natural/b"): 60_000,
        ("ab", "natural/b"): 100,
        ("ab", "words/a"): 0,
    }
    weights = group_weights(sizes, 0.5, web_shares())
    share = {group: weights[group] * sizes[group] for group in weights}
    total = 4**0.5 + 3 * 0.25**0.5 + 0.25**0.5
    assert share["de", "words/a"] + share["de", "natural/b"] == pytest.approx(2 / total)
    assert share["de", "natural/b"] == pytest.approx(2 * share["de", "words/a"])
    assert share["yo", "natural/b"] == pytest.approx(1.5 / total)
    assert share["ab", "natural/b"] == pytest.approx(0.5 / total)
    # A kind of little text counts less beside one of much.
    little = group_weights({("de", "a/x"): 500_000, ("de", "b/y"): 12_500}, 1, web_shares())
    assert little["de", "b/y"] * 12_500 == pytest.approx(1 / 3)


def test_the_built_in_shares_and_bad_ones(tmp_path: Path) -> None:
    shares = read_shares("builtin:configs/train/web-shares.yaml")
    assert shares.percent["en"] > 30 and shares.percent["no"] > 0
    scratch = read_shares("builtin:configs/train/web-shares-scratch.yaml")
    assert scratch.percent == shares.percent | {"code": 60} and scratch.kinds["python"] > 0
    (tmp_path / "x.yaml").write_text("power: 2\n")
    for name in ("x.yaml", "absent.yaml"):
        with pytest.raises(ConfigError, match=rf"{name}: not shares of languages"):
            read_shares(str(tmp_path / name))


def test_half_a_character_in_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "a\\ud83d"}\n')
    ((_, texts, _),) = read_corpus([str(tmp_path / "x.jsonl")])
    assert texts.to_pylist() == ["a\ufffd"]
