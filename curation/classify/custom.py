"""Further classifiers: each adds a column, and verdicts by it."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.classify.classify_settings import ClassifySettings, CustomClassifier
from curation.judging import Failure, answer_all, error_verdicts, opened
from curation.schema import Verdicts, with_column


def classify(
    batch: pa.RecordBatch, settings: ClassifySettings, views: Mapping[str, pa.Array]
) -> tuple[pa.RecordBatch, Verdicts, list[Failure]]:
    """Add the columns; the verdicts are `classify.<column>`, and `error.classify` of failures.

    Args:
        views: scores of those that are models, by column.
    """
    verdicts, failures = Verdicts.keep_all(batch.num_rows), list[Failure]()
    for name, own in settings.classifiers.items():
        if own.python is None:
            batch = with_column(batch, name, views[name])
            verdicts = verdicts.otherwise(_decided(views[name], own, f"classify.{name}"))
            continue
        kind = pa.string() if own.gives == "label" else pa.float64()
        function, called = opened(own.python, own.settings), own.python.reference
        values, failed = answer_all(function, batch.column("text"), called, kind)
        batch = with_column(batch, name, values)
        verdicts = verdicts.otherwise(error_verdicts(failed, batch.num_rows, "classify"))
        verdicts = verdicts.otherwise(_decided(values, own, f"classify.{name}"))
        failures += failed
    return batch, verdicts, failures


def _decided(values: pa.Array, own: CustomClassifier, reason: str) -> Verdicts:
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
