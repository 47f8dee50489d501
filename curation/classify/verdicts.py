"""Classification of documents: columns, and verdicts by them."""

from __future__ import annotations

import pyarrow as pa

from curation.classify import custom
from curation.classify.classifier import Classifier
from curation.classify.classify_settings import ClassifySettings
from curation.classify.decide import decide
from curation.judging import Failure
from curation.schema import Verdicts, with_column


def classify_documents(
    batch: pa.RecordBatch, settings: ClassifySettings
) -> tuple[pa.RecordBatch, Verdicts, list[Failure]]:
    """Add the columns of all classifiers; the failures are of code of the user's own."""
    found = Classifier(settings).apply_to(batch)
    batch = with_column(batch, "quality", found.quality)
    if found.rank is not None:
        batch = with_column(batch, "quality_rank", found.rank)
    for name in ("domain", "topic", "format"):
        batch = with_column(batch, name, getattr(found, name))
    batch, verdicts, failures = custom.classify(batch, settings)
    return batch, decide(found, settings).otherwise(verdicts), failures
