import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.dedup_settings import LineDedupSettings, defaults
from curation.dedup.keys import half_keys
from curation.dedup.lines import (
    IGNORED,
    LineRemoval,
    add_known,
    assign_buckets,
    count_lines,
    frequent_lines,
    in_buckets,
    line_hashes,
    merge_counts,
    out_of_buckets,
    remove_lines,
    total_lines,
    verdicts,
    with_pages,
)
from tests.dedup import reference

DEFAULT = defaults(LineDedupSettings).model_copy(update={"max_share_left": 1.0})
TEXTS = st.lists(
    st.lists(
        st.sampled_from(["", " ", "Menu", "menu ", "Page 1", "Page 2", "日本語", "é", "own"])
        | st.text(alphabet="ab\r", max_size=2),  # two in front of a letter indent a listing
        max_size=8,
    ).map("\n".join),
    max_size=8,
)
OPTIONS = st.fixed_dictionaries(
    {
        "max_occurrences": st.integers(1, 3),
        "min_line_characters": st.integers(0, 3),
    }
)


def run(texts: list[str], rules: LineDedupSettings, parts: int = 1) -> LineRemoval:
    """The whole stage in memory, counts taken in several parts; all texts are of one site."""
    doc64 = np.arange(len(texts), dtype=np.uint64)
    counts = []
    for part in range(parts):
        some = np.flatnonzero(doc64 % parts == part)
        lines = line_hashes([texts[i] for i in some], rules)
        counts.append(count_lines(lines, doc64[some]))
    hosts = np.zeros(len(texts), np.uint64)
    totals = total_lines(with_pages(merge_counts(counts), hosts))
    return remove_lines(texts, frequent_lines(totals, rules), rules)


@given(TEXTS, OPTIONS, st.integers(1, 3))
@settings(max_examples=100)
def test_frequent_lines_are_those_of_the_reference(
    texts: list[str], options: dict, parts: int
) -> None:
    rules = DEFAULT.model_copy(update=options)
    removal = run(texts, rules, parts)
    lines = [line for text in texts if text for line in text.split("\n")]
    found = [line for line, place in zip(lines, removal.places, strict=True) if place >= 0]
    assert found == reference.frequent(texts, rules)


@given(TEXTS, OPTIONS)
@settings(max_examples=100)
def test_text_and_cuts_give_back_the_original(texts: list[str], options: dict) -> None:
    removal = run(texts, DEFAULT.model_copy(update=options))
    restored = [text.encode() for text in removal.texts.to_pylist()]
    cuts = zip(removal.cut_rows, removal.cut_positions, removal.cut_texts.to_pylist(), strict=True)
    for row, position, text in cuts:  # ascending positions: each cut finds its place
        restored[row] = restored[row][:position] + text.encode() + restored[row][position:]
    assert [text.decode() for text in restored] == texts
    lengths = [len(text) for text in removal.texts.to_pylist()]
    assert (removal.characters_removed + lengths).tolist() == [len(text) for text in texts]


def test_llama3_threshold_on_one_bucket() -> None:
    """Six documents keep a line, the seventh takes it from all."""
    six = [f"Unique text {chr(97 + i)}\nCookie notice 1" for i in range(6)]
    assert run(six, DEFAULT).texts.to_pylist() == six
    seven = [*six, "Other\nlast\n  cookie  NOTICE 2"]
    assert run(seven, DEFAULT).texts.to_pylist() == [
        *(f"Unique text {chr(97 + i)}" for i in range(6)),
        "Other\nlast",
    ]


def test_blank_and_short_lines_are_ignored() -> None:
    lines = line_hashes(["a b\n\n \t\n}\nab\n"], DEFAULT)
    ignored = lines.hashes == IGNORED
    assert ignored.tolist() == [False, True, True, True, False, True]
    assert lines.spans.tolist() == [[0, 3], [4, 4], [5, 7], [8, 9], [10, 12], [13, 13]]


def test_languages_and_buckets_count_apart() -> None:
    rules = DEFAULT.model_copy(update={"max_occurrences": 1})
    texts = ["same line\nx y"] * 3 + ["same line\nz"]
    doc64 = np.arange(4, dtype=np.uint64)
    scopes, buckets = half_keys(["en", "en", "en", "de"]), np.array([0, 0, 1, 0])
    lines = line_hashes(texts, rules, scopes)
    hashes = in_buckets(lines.hashes, np.repeat(buckets, 2))
    assert (out_of_buckets(hashes, np.repeat(buckets, 2)) == lines.hashes).all()
    counts = count_lines(lines._replace(hashes=hashes), doc64)
    frequent = frequent_lines(total_lines(counts), rules)
    removal = remove_lines(texts, frequent, rules, hashes)
    assert (removal.places >= 0).tolist() == [True] * 4 + [False] * 4
    assert in_buckets(np.array([IGNORED]), np.array([3])).tolist() == [IGNORED]


def test_lines_of_an_earlier_run_count() -> None:
    """A line that an earlier run knows goes at its first appearance here."""
    rules = DEFAULT.model_copy(update={"max_occurrences": 1})
    texts = ["old\nknown line", "new line\nnew line"]
    doc64 = np.arange(2, dtype=np.uint64)
    lines = line_hashes(texts, rules)
    counts = add_known(
        total_lines(count_lines(lines, doc64)),
        np.array([lines.hashes[1], 12345], np.uint64),
        np.array([1, 99]),
        np.array([1, 0]),
        np.array([1, 0]),
    )
    removal = remove_lines(texts, frequent_lines(counts, rules), rules)
    assert removal.texts.to_pylist() == ["old", "new line\nnew line"]


def test_bytes_held_by_lines() -> None:
    texts = ["Menü\nb c", "MENÜ\nb c d"]
    lines = line_hashes(texts, DEFAULT)
    doc64 = np.arange(2, dtype=np.uint64)
    counts = count_lines(lines, doc64)
    assert dict(zip(counts.hashes, counts.bytes, strict=True))[lines.hashes[0]] == 10
    doubled = merge_counts([counts, counts])
    assert doubled.bytes.tolist() == (2 * counts.bytes).tolist()


def test_buckets_are_even_and_few() -> None:
    buckets = assign_buckets(np.arange(10_000, dtype=np.uint64), 10_000, 4_000)
    assert np.bincount(buckets).min() > 3_000
    assert len(np.unique(buckets)) == 3
    assert assign_buckets(np.arange(5, dtype=np.uint64), 5, 30_000_000).tolist() == [0] * 5


def test_documents_left_too_short_are_removed() -> None:
    rules = DEFAULT.model_copy(update={"max_occurrences": 1, "min_characters": 10})
    texts = ["menu\nshort", "menu\nlong enough", "tiny"]
    found = verdicts(run(texts, rules), rules)
    assert found.reason.to_pylist() == ["lines.too_short", None, None]
    assert found.value.to_pylist() == [5.0, None, None]
    assert found.threshold.to_pylist() == [10.0, None, None]


@pytest.mark.parametrize(
    ("text", "length"),
    [("新闻，カナ", 13), ("ข่าว", 4), ("ข่าว新闻\nnew", 14), ("뉴스", 2)],
)
def test_letters_of_han_and_kana_count_as_several_characters(text: str, length: int) -> None:
    rules = DEFAULT.model_copy(update={"max_occurrences": 1, "min_characters": length + 1})
    removal = run([f"menu\n{text}", "menu"], rules)
    assert removal.texts[0].as_py() == text
    found = verdicts(removal, rules)
    assert (found.reason[0].as_py(), found.value[0].as_py()) == ("lines.too_short", length)
    enough = rules.model_copy(update={"min_characters": length})
    assert verdicts(removal, enough).reason[0].as_py() is None


@pytest.mark.parametrize("texts", [[], ["", ""], ["\n\n"]])
def test_nothing_to_remove(texts: list[str]) -> None:
    removal = run(texts, DEFAULT)
    assert removal.texts.to_pylist() == texts
    assert len(removal.cut_rows) == 0
