"""A batch may be a slice of a larger one: its texts then begin in the midst of a buffer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from curation.memory_steps import step_of
from curation.recipe import load
from curation.schema import Verdicts

_PROSE = (
    "The river rises in the hills above the town and runs for forty miles to the sea. "
    "Those who live beside it have fished its pools since anyone can remember.\n"
) * 6
_CODE = "def total(values):\n    result = 0\n    for value in values:\n        result += value\n"
_FORMULAS = (
    "\\begin{equation}\nx^{2} + y^{2} = z^{2} \\qquad \\int_0^1 f(t) \\, dt\n\\end{equation}\n"
)
_TEXTS = [
    "Short.",
    _PROSE + _CODE + "    return result\n\n" + _PROSE,
    _CODE * 8,
    "نهر يجري بين التلال إلى البحر، وعلى ضفافه يعيش الناس منذ زمن بعيد.\n" * 8 + _CODE * 2 + _PROSE,
    _PROSE + _FORMULAS * 3 + _PROSE,
    _PROSE,
]


def _batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "id": [f"{i:032x}" for i in range(len(_TEXTS))],
            "url": [f"https://example.org/{i}" for i in range(len(_TEXTS))],
            "text": pa.array(_TEXTS, pa.large_string()),
            "language": ["en", "en", "en", "ar", "en", "en"],
            "quality": [0.9] * len(_TEXTS),
            "domain": ["general"] * len(_TEXTS),
        }
    )


def _answer(stage: str, batch: pa.RecordBatch) -> tuple[list[dict[str, object]], Verdicts]:
    documents, verdicts = step_of(stage, pa.Table.from_batches([batch]))(batch, load("llama3"))
    return documents.to_pylist(), verdicts


@pytest.mark.parametrize("stage", ["identify-language", "classify", "dedup-lines", "filter"])
@pytest.mark.parametrize("first", range(1, len(_TEXTS)))
def test_a_slice_is_judged_like_a_copy(stage: str, first: int) -> None:
    sliced = _batch().slice(first)
    copied = sliced.take(pa.array(range(sliced.num_rows)))
    documents, verdicts = _answer(stage, sliced)
    expected, expected_verdicts = _answer(stage, copied)
    assert repr(documents) == repr(expected)  # NaN is not equal to itself
    assert verdicts.reason == expected_verdicts.reason
    assert repr(verdicts.value.to_pylist()) == repr(expected_verdicts.value.to_pylist())
