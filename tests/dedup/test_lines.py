import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup import count_lines, frequent_lines, line_hashes, merge_counts, remove_lines
from curation.dedup.lines import IGNORED, LineRemoval, assign_buckets, line_scopes, verdicts
from curation.dedup.settings import LineDedupSettings, defaults
from tests.dedup import reference

DEFAULT = defaults(LineDedupSettings)
TEXTS = st.lists(
    st.lists(
        st.sampled_from(["", " ", "Menu", "menu ", "}", "Page 1", "Page 2", "日本語", "é", "own"])
        | st.text(alphabet="ab\r", max_size=3),
        max_size=8,
    ).map("\n".join),
    max_size=8,
)
OPTIONS = st.fixed_dictionaries(
    {
        "max_occurrences": st.integers(1, 3),
        "keep_first": st.booleans(),
        "count_per_document": st.booleans(),
        "min_line_characters": st.integers(0, 3),
    }
)


def run(texts: list[str], rules: LineDedupSettings, parts: int = 1) -> LineRemoval:
    """The whole stage in memory, counts taken in several parts."""
    doc64 = np.arange(len(texts), dtype=np.uint64)
    counts = []
    for part in range(parts):
        some = np.flatnonzero(doc64 % parts == part)
        lines = line_hashes([texts[i] for i in some], rules)
        counts.append(count_lines(lines, doc64[some], rules))
    frequent = frequent_lines(merge_counts(counts), rules)
    return remove_lines(texts, doc64, frequent, rules)


@given(TEXTS, OPTIONS, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_removal_equals_the_reference(texts: list[str], options: dict, parts: int) -> None:
    rules = DEFAULT.model_copy(update=options)
    removal = run(texts, rules, parts)
    assert removal.texts.to_pylist() == reference.without_lines(texts, rules)


@given(TEXTS, OPTIONS)
@settings(max_examples=100, deadline=None)
def test_text_and_cuts_give_back_the_original(texts: list[str], options: dict) -> None:
    removal = run(texts, DEFAULT.model_copy(update=options))
    restored = [text.encode() for text in removal.texts.to_pylist()]
    cuts = zip(removal.cut_rows, removal.cut_positions, removal.cut_texts.to_pylist(), strict=True)
    for row, position, text in cuts:  # ascending positions: each cut finds its place
        restored[row] = restored[row][:position] + text.encode() + restored[row][position:]
    assert [text.decode() for text in restored] == texts
    lengths = [len(text) for text in removal.texts.to_pylist()]
    assert removal.characters_left.tolist() == lengths
    assert (removal.characters_removed + lengths).tolist() == [len(text) for text in texts]


def test_llama3_threshold_on_one_bucket() -> None:
    """Six appearances stay, the seventh removes all copies."""
    six = [f"Unique text {chr(97 + i)}\nCookie notice 1" for i in range(6)]
    assert run(six, DEFAULT).texts.to_pylist() == six
    seven = [*six, "Other\n  cookie  NOTICE 2\nlast"]
    assert run(seven, DEFAULT).texts.to_pylist() == [
        *(f"Unique text {chr(97 + i)}" for i in range(6)),
        "Other\nlast",
    ]


def test_blank_and_short_lines_are_ignored() -> None:
    lines = line_hashes(["a b\n\n \t\n}\nab\n"], DEFAULT)
    ignored = lines.hashes == IGNORED
    assert ignored.tolist() == [False, True, True, True, False, True]
    assert lines.spans.tolist() == [[0, 3], [4, 4], [5, 7], [8, 9], [10, 12], [13, 13]]


def test_one_document_that_repeats_itself() -> None:
    refrain = "\n".join(["la la la"] * 7)
    assert run([refrain], DEFAULT).texts.to_pylist() == [""]
    once = DEFAULT.model_copy(update={"count_per_document": True})
    assert run([refrain], once).texts.to_pylist() == [refrain]
    first = DEFAULT.model_copy(update={"keep_first": True})
    assert run([refrain], first).texts.to_pylist() == ["la la la"]


def test_scopes_count_apart() -> None:
    rules = DEFAULT.model_copy(update={"max_occurrences": 1})
    texts = ["same line\nx y"] * 2 + ["same line\nz"]
    doc64 = np.arange(3, dtype=np.uint64)
    scopes = line_scopes(np.array([0, 0, 0]), ["en", "en", "de"])
    lines = line_hashes(texts, rules, scopes)
    frequent = frequent_lines(count_lines(lines, doc64, rules), rules)
    removal = remove_lines(texts, doc64, frequent, rules, scopes)
    assert removal.texts.to_pylist() == ["", "", "same line\nz"]
    assert line_scopes(np.array([0, 1])).tolist() == [0, 1]


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


@pytest.mark.parametrize("texts", [[], ["", ""], ["\n\n"]])
def test_nothing_to_remove(texts: list[str]) -> None:
    removal = run(texts, DEFAULT)
    assert removal.texts.to_pylist() == texts
    assert len(removal.cut_rows) == 0
