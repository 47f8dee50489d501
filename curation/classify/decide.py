"""Which documents stay, by quality, topic and format, and by further classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.classify.classify_settings import ClassifySettings, CustomClassifier
from curation.columns import BY_CONTENT
from curation.judging import Failure, answer_all, error_verdicts, opened
from curation.schema import Verdicts, with_column

if TYPE_CHECKING:
    from curation.classify.classifier import ClassifyResult

LOW_SCORE = "quality.low_score"
TOPIC_DROPPED = "topic.dropped"
FORMAT_DROPPED = "format.dropped"
#: Quality of code and formulas from end to end below which they are removed all the same: lists and
#: tables that look like code. 3 of 3 such pages that score below are rubbish; of 2,700 source and
#: configuration files 11 go: generated tables, templates and tests of XML.
LEAST_OF_PATHS = 0.003


def decide(result: ClassifyResult, settings: ClassifySettings) -> Verdicts:
    """Remove documents below their domain's quality, then by topic and format.

    Quality is a matter of prose: what is code or formulas from end to end has rules of its own.
    Only where its domain is neither, and its quality next to nothing, it is a list or a table that
    looks like code.
    """
    verdicts = Verdicts.keep_all(len(result))
    quality = result.quality.to_numpy(zero_copy_only=False)
    domains = np.array(result.domain.to_pylist(), object)
    for domain, least in sorted(settings.min_quality.items()):
        limits = [(result.prose, least)]
        if domain not in BY_CONTENT:
            limits.append((~result.prose, min(least, LEAST_OF_PATHS)))
        for judged, limit in limits:
            low = (domains == domain) & judged & (quality < np.float32(limit))
            verdicts = verdicts.otherwise(
                Verdicts.where(low, LOW_SCORE, quality.astype(np.float64), limit)
            )
    for labels, scores, dropped, reason in (
        (result.topic, result.topic_score, settings.drop_topics, TOPIC_DROPPED),
        (result.format, result.format_score, settings.drop_formats, FORMAT_DROPPED),
    ):
        goes = np.array([label in dropped for label in labels.to_pylist()], bool)
        values = scores.cast(pa.float64()).to_numpy(zero_copy_only=False)
        verdicts = verdicts.otherwise(Verdicts.where(goes, reason, values))
    return verdicts


def classify_further(
    batch: pa.RecordBatch, result: ClassifyResult, settings: ClassifySettings
) -> tuple[pa.RecordBatch, Verdicts, list[Failure]]:
    """Add further columns; verdicts are `classify.<column>`, of failures `error.classify`."""
    verdicts, failures = Verdicts.keep_all(batch.num_rows), list[Failure]()
    for name, own in settings.classifiers.items():
        if own.python is None:
            values = result.views[name]
            batch = with_column(batch, name, values)
            verdicts = verdicts.otherwise(_by_limits(values, own, f"classify.{name}"))
            continue
        kind = pa.string() if own.gives == "label" else pa.float64()
        function, called = opened(own.python, own.settings), own.python.reference
        values, failed = answer_all(function, batch.column("text"), called, kind)
        batch = with_column(batch, name, values)
        verdicts = verdicts.otherwise(error_verdicts(failed, batch.num_rows, "classify"))
        verdicts = verdicts.otherwise(_by_limits(values, own, f"classify.{name}"))
        failures += failed
    return batch, verdicts, failures


def _by_limits(values: pa.Array, own: CustomClassifier, reason: str) -> Verdicts:
    if own.gives == "label":
        dropped = pc.is_in(values, pa.array(own.drop, pa.string()))
        return Verdicts.where(dropped.to_numpy(zero_copy_only=False), reason)
    scores = pc.fill_null(values, np.nan).to_numpy(zero_copy_only=False)
    verdicts = Verdicts.keep_all(len(scores))
    if own.min is not None:
        verdicts = verdicts.otherwise(Verdicts.where(scores < own.min, reason, scores, own.min))
    if own.max is not None:
        verdicts = verdicts.otherwise(Verdicts.where(scores > own.max, reason, scores, own.max))
    return verdicts
