"""Texts as experiments: vocabulary, order, what is measured, files."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.decontaminate.items import Item
from curation.errors import ConfigError, InputError
from curation.tokenize import load_tokenizer
from models.ablate.experiment import FILE, check, load, save
from models.ablate.order import order, stream
from models.ablate.prepare import Text, corpus, documents, smaller, task_set, without_copies
from models.ablate.windows import task_windows, text_windows
from tests.models.ablate.made import made, texts, vocabulary


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_the_first_tokens_of_a_vocabulary_write_every_text(text: str) -> None:
    ids = vocabulary().encode(text)
    assert max(ids, default=0) < 512
    assert vocabulary().decode(ids) == text


def test_a_vocabulary_has_at_least_all_bytes() -> None:
    with pytest.raises(ConfigError, match="--vocabulary 255"):
        smaller(load_tokenizer("curation-128k"), 255)


def test_runs_read_pages_that_they_share_in_the_same_order() -> None:
    some = texts("fish", 40, 1)
    whole = corpus("whole", some, vocabulary())
    half = corpus("half", [Text(t.text[:50], t.url) for t in some[::2]], vocabulary())
    for seed in (1, 2):
        places = [k // 2 for k in order(whole.keys, seed, 0).tolist() if k % 2 == 0]
        assert places == order(half.keys, seed, 0).tolist()
    assert order(whole.keys, 1, 0).tolist() != order(whole.keys, 2, 0).tolist()
    assert order(whole.keys, 1, 0).tolist() != order(whole.keys, 1, 1).tolist()


@pytest.mark.parametrize("times", [0.3, 1, 2.5])
def test_a_stream_is_epochs_of_whole_documents(times: float) -> None:
    run, mark = corpus("run", texts("law", 9, 1), vocabulary()), 512
    tokens = int(times * run.tokens)
    found = stream(run, tokens, 3, mark)
    plain = [
        token
        for epoch in range(3)
        for k in order(run.keys, 3, epoch).tolist()
        for token in [mark, *run.documents.ids(k).tolist()]
    ]
    assert found.tolist() == plain[:tokens]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 12), st.integers(0, 3))
def test_pieces_of_long_documents_are_read_once_an_epoch_apart(
    lengths: list[int], piece: int, seed: int
) -> None:
    some = [Text("x" * n, f"u:{k}") for k, n in enumerate(lengths)]
    run, mark = corpus("run", some, vocabulary()), 512
    cut = [
        [*run.documents.ids(k).tolist()][first : first + piece]
        for k in range(len(lengths))
        for first in range(0, max(1, len(run.documents.ids(k))), piece)
    ]
    found = stream(run, sum(len(c) + 1 for c in cut), seed, mark, piece)
    ends = np.flatnonzero(np.append(found, mark) == mark)
    pieces = [found[a + 1 : b].tolist() for a, b in itertools.pairwise(ends.tolist())]
    assert sorted(pieces) == sorted(cut)


def test_steps_of_a_long_document_are_spread_over_the_epoch() -> None:
    some = [Text("long " * 4000, "u:long"), *texts("law", 200, 1)]
    run, mark = corpus("run", some, vocabulary()), 512
    long = run.documents.ids(0)[3]  # of its words' tokens
    found = stream(run, run.tokens, 1, mark, 64)
    steps = [float(np.mean(step == long)) for step in np.array_split(found, 8)]
    whole = float(np.mean(found == long))
    assert all(whole / 2 < share < 2 * whole for share in steps)


def test_documents_that_a_mix_repeats_are_read_as_often() -> None:
    run = corpus(
        "mix", [Text("one", "u:1", 3), Text("two", "u:2", 0), Text(" ", "u:3")], vocabulary()
    )
    assert len(run.documents) == 3 and len(set(run.keys.tolist())) == 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=6), st.integers(1, 9))
def test_every_token_is_scored_once_after_those_before_it(some: list[str], context: int) -> None:
    found = documents(some, vocabulary())
    scored: list[list[int]] = [[] for _ in some]
    for window in text_windows(found, 512, context):
        assert 2 <= len(window.ids) <= context + 1
        scored[window.owner] += window.ids[-window.scored :].tolist()
    assert scored == [found.ids(k).tolist() for k in range(len(some))]
    assert found.sizes.tolist() == [len(text.encode()) for text in some]


def test_a_long_question_is_cut_at_its_beginning() -> None:
    task = task_set("t", [Item("t", "0", "why " * 50, ("b", "a"), "a")], vocabulary())
    windows = list(task_windows(task, 512, 16))
    assert [w.owner for w in windows] == [0, 1] and task.right.tolist() == [False, True]
    assert all(
        len(w.ids) == 17 and w.ids[-1] == task.continuations.ids(w.owner)[-1] for w in windows
    )


def test_items_without_an_answer_are_left_out() -> None:
    items = [
        Item("t", "0", "q"),
        Item("t", "1", "q", ("x", "y", "x"), "x"),
        Item("t", "2", "q", (), "z"),
    ]
    task = task_set("t", items, vocabulary())
    assert task.items.tolist() == [0, 0, 0, 1]
    assert task.right.tolist() == [True, False, False, True]
    with pytest.raises(InputError, match="no item has an answer"):
        task_set("t", items[:1], vocabulary())


def test_texts_that_a_run_has_are_not_measured_with() -> None:
    gold = [Text("A  b\nc"), Text("d")]
    kept, left_out = without_copies(gold, [[Text("x")], [Text("A b c")]])
    assert (kept, left_out) == ([Text("d")], 1)


def test_an_experiment_is_the_same_when_read_again(tmp_path: Path) -> None:
    save(made(), tmp_path / "a")
    again = load(tmp_path / "a")
    save(again, tmp_path / "b")
    assert (tmp_path / "a" / FILE).read_bytes() == (tmp_path / "b" / FILE).read_bytes()
    assert [c.name for c in again.corpora] == ["fish", "law"]
    np.testing.assert_array_equal(again.texts[1].groups, made().texts[1].groups)
    (tmp_path / "a" / FILE).write_bytes(b"PK")
    with pytest.raises(InputError, match="not a prepared experiment"):
        load(tmp_path / "a")


def test_two_runs_of_one_name_are_refused() -> None:
    found = made()
    twice = type(found)(**{**vars(found), "corpora": found.corpora[:1] * 2})
    with pytest.raises(ConfigError, match="same name"):
        check(twice)
