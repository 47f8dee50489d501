"""Languages of documents: columns, and verdicts by them."""

from __future__ import annotations

import pyarrow as pa

from curation.language.decide import decide
from curation.language.identifier import LanguageIdentifier
from curation.language.language_settings import LanguageSettings
from curation.schema import Verdicts, with_column


def identify_documents(
    batch: pa.RecordBatch, settings: LanguageSettings
) -> tuple[pa.RecordBatch, Verdicts]:
    """Add `language` and `language_score`; with `by_line`, `languages` of the lines, too."""
    identifier, texts = LanguageIdentifier(settings), batch.column("text")
    labels, scores = identifier.apply(texts)
    batch = with_column(batch, "language", labels)
    batch = with_column(batch, "language_score", scores)
    if settings.by_line:
        batch = with_column(batch, "languages", identifier.by_line(texts))
    return batch, decide(labels, scores, settings, texts)
