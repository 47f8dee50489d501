"""A rule, a stage, a classifier and an extraction engine for `recipe.yaml`."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from curation.judging import Judged

_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def visible_text(html: str, url: str | None) -> str:
    """Extraction engine: everything between the tags, a paragraph per line."""
    lines = (" ".join(line.split()) for line in _TAGS.sub("\n", html).splitlines())
    return "\n".join(line for line in lines if line)


def share_of_capitals(texts: list[str]) -> list[float]:
    """Rule: capitals per character. Scripts without them give 0."""
    return [sum(c.isupper() for c in text) / max(1, len(text)) for text in texts]


def few_questions(batch: pa.RecordBatch, most: int) -> Judged:
    """Stage: add the column `questions`, remove documents with more than `most`."""
    found = pc.count_substring_regex(batch["text"], "[?？؟]")
    reason = pc.if_else(pc.greater(found, most), "too_many", None)
    return Judged({"questions": found}, reason, value=found, threshold=most)


class Mentions:
    """Classifier: 1 where a text has one of the words, else 0."""

    def __init__(self, words: list[str]) -> None:
        self.pattern = "|".join(map(re.escape, words))

    def __call__(self, texts: pa.Array) -> pa.Array:
        found = pc.match_substring_regex(texts, self.pattern, ignore_case=True)
        return pc.cast(found, pa.float64())
