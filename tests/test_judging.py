"""What users' functions may return, and what happens when they don't."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.judging import Judged, answer_all, check_opens, judge_all
from curation.user_code import UserCode

TEXTS = pa.array(["one", "two", "three", "boom", "five"], pa.large_string())
BATCH = pa.RecordBatch.from_arrays([TEXTS], ["text"])
ALL = list(range(len(TEXTS)))


def _exit_on_boom(texts: list[str]) -> list[float]:
    if "boom" in texts:
        sys.exit("bye")
    return [1.0] * len(texts)


class _MuteError(asyncio.CancelledError):
    """No `Exception`, and without a message that can be read."""

    def __str__(self) -> str:
        raise KeyError("no message")


def _mute_on_boom(texts: list[str]) -> list[float]:
    if "boom" in texts:
        raise _MuteError
    return [1.0] * len(texts)


def _long_on_boom(texts: list[str]) -> list[float]:
    if "boom" in texts:
        raise ValueError("x" * 1_000_000)
    return [1.0] * len(texts)


def test_a_very_long_message_is_cut() -> None:
    _, (failure,) = answer_all(_long_on_boom, TEXTS, "f", pa.float64())
    assert failure.detail.startswith("f: ValueError: xxx") and len(failure.detail) < 1100


@pytest.mark.parametrize(
    ("function", "failed", "detail"),
    [
        (lambda texts: None, ALL, "returned NoneType, not a value for each document"),
        (lambda texts: 1.0, ALL, "returned float, not a value for each document"),
        (lambda texts: np.float64(1), ALL, "returned float64, not a value"),
        (lambda texts: [1.0], ALL, "1 values for 5 documents"),
        (lambda texts: [1.0] * (len(texts) + 1), ALL, "2 values for 1 documents"),
        (lambda texts: [1.0 for t in texts if t != "boom"], [3], "0 values for 1 documents"),
        (_exit_on_boom, [3], "SystemExit: bye"),
        (_mute_on_boom, [3], "_MuteError: its message can't be read (KeyError)"),
        (lambda texts: [1 / (t != "boom") for t in texts], [3], "ZeroDivisionError"),
        (lambda texts: (1.0 for _ in texts), [], ""),
        (lambda texts: np.ones(len(texts), np.int8), [], ""),
    ],
)
def test_answers_that_do_not_fit_fail_what_they_are_for(
    function: Callable[[Any], Any], failed: list[int], detail: str
) -> None:
    values, failures = answer_all(function, TEXTS, "f", pa.float64())
    assert [failure.row for failure in failures] == failed
    assert all(detail in failure.detail for failure in failures)
    assert values.to_pylist() == [None if row in failed else 1.0 for row in ALL]


@pytest.mark.parametrize(
    ("function", "failed"),
    [
        (lambda batch: True, ALL),
        (lambda batch: [True], ALL),
        (lambda batch: [True] * batch.num_rows, []),
        (lambda batch: Judged({"n": 1}, value=2.0, threshold=1), []),
    ],
)
def test_a_single_answer_for_a_batch_is_no_answer(
    function: Callable[[Any], Any], failed: list[int]
) -> None:
    _, verdicts, failures = judge_all(function, BATCH, "mine", "f")
    assert [failure.row for failure in failures] == failed
    assert [row for row in ALL if verdicts.reason[row].as_py() == "error.mine"] == failed


def _with(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("function", "detail"),
    [
        (lambda b: _with(b, "id", ["z"] * b.num_rows), "changed the column 'id'"),
        (lambda b: Judged({"id": ["z"] * b.num_rows}), "changed the column 'id'"),
        (lambda b: b.select(["text", "source"]), "without the column 'id'"),
        (lambda b: _with(b, "text", [None] * b.num_rows), "without a text"),
        (lambda b: _with(b, "source", ["g"] * b.num_rows), "changed the column 'source'"),
        (lambda b: _with(b, "text", ["new"] * b.num_rows), ""),
        (lambda b: _with(b, "id", pa.array(list("abcde"), pa.large_string())), ""),
    ],
)
def test_documents_keep_what_tells_them_apart(function: Callable[[Any], Any], detail: str) -> None:
    batch = BATCH.append_column("id", pa.array(list("abcde")))
    batch = batch.append_column("source", pa.array(["f"] * 5))
    made, _, failures = judge_all(function, batch, "mine", "f")
    assert [failure.row for failure in failures] == (ALL if detail else [])
    assert all(detail in failure.detail for failure in failures)
    assert made["id"].to_pylist() == list("abcde")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def f(): return []", "called with 1 arguments, but takes 0"),
        ("class f:\n    pass", "its objects can't be called; give the class a `__call__`"),
        ("class f:\n    def __call__(self): pass", "called with 1 arguments, but takes 0"),
        ("class f:\n    def __init__(self): raise SystemExit(3)", "SystemExit: 3"),
        ("import sys\nsys.exit('no main')\ndef f(texts): pass", "SystemExit: no main"),
        ("def f(texts, more): pass", "the argument 'more' has no value"),
        ("def f(*texts): pass", ""),
        ("def f(texts, **more): pass", ""),
    ],
)
def test_functions_that_can_not_be_called_are_told_before_a_run(
    tmp_path: Path, body: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(body)
    code = UserCode("mine.py:f", [str(tmp_path)])
    if not message:
        check_opens(code, {}, "a.b")
        return
    with pytest.raises(ConfigError, match=r"^a\.b: ") as told:
        check_opens(code, {}, "a.b")
    assert message in str(told.value)
