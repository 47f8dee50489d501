"""Languages of documents: columns, and verdicts by them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from curation.language.decide import decide
from curation.language.identifier import LanguageIdentifier
from curation.language.language_settings import LanguageSettings
from curation.language.scripts import by_script
from curation.schema import Verdicts, column_of, with_column


def with_language(batch: pa.RecordBatch, settings: LanguageSettings) -> pa.RecordBatch:
    """Add the language of documents that have none."""
    known = column_of(batch, "language")
    absent = pc.is_null(known)
    if pc.any(absent).as_py():
        labels, _ = LanguageIdentifier(settings).apply(batch.column("text").filter(absent))
        known = pc.replace_with_mask(known, absent, labels)
    return with_column(batch, "language", known)


def identify_documents(
    batch: pa.RecordBatch, settings: LanguageSettings
) -> tuple[pa.RecordBatch, Verdicts]:
    """Add `language` and `language_score`.

    With `by_line`, also `languages` of the lines, with `by_script` also `scripts` of the letters.
    """
    identifier, texts = LanguageIdentifier(settings), batch.column("text")
    labels, scores = identifier.apply(texts)
    batch = with_column(batch, "language", labels)
    batch = with_column(batch, "language_score", scores)
    if settings.by_line:
        batch = with_column(batch, "languages", identifier.by_line(texts))
    if settings.by_script:
        batch = with_column(batch, "scripts", by_script(texts))
    return batch, decide(labels, scores, settings, texts)
