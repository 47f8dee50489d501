"""A batch may be a slice of a larger one: its texts then begin in the midst of a buffer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.dedup.lines import (
    Buckets,
    frequent_lines,
    languages,
    lines_of,
    remove_lines,
    total_lines,
    verdicts,
    with_pages,
)
from curation.recipe import load
from curation.schema import Verdicts
from pipelines.classify import ClassifyDocuments
from pipelines.filter import FilterDocuments
from pipelines.identify_language import IdentifyLanguage

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
    settings = load("llama3").settings(stage)
    if stage == "dedup-lines":
        return _without_lines(batch, settings)
    outcome = _TRANSFORMS[stage](settings).apply(batch, 0)
    return outcome.batch.to_pylist(), outcome.verdicts


_TRANSFORMS = {
    "identify-language": IdentifyLanguage,
    "classify": ClassifyDocuments,
    "filter": FilterDocuments,
}


def _without_lines(
    batch: pa.RecordBatch, settings: Any
) -> tuple[list[dict[str, object]], Verdicts]:
    buckets = Buckets(
        settings, tuple(sorted(Counter(languages(batch, settings).to_pylist()).items()))
    )
    numbers = np.arange(batch.num_rows, dtype=np.uint64)
    counts, _, hosts, hashes = lines_of(batch, numbers, buckets)
    frequent = frequent_lines(total_lines(with_pages(counts, hosts)), settings)
    removal = remove_lines(batch["text"], frequent, settings, hashes.flatten().to_numpy())
    return [{"text": text} for text in removal.texts.to_pylist()], verdicts(removal, settings)


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
