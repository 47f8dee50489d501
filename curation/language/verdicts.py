"""Languages of documents that come without one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from curation.language.identifier import LanguageIdentifier
from curation.language.language_settings import LanguageSettings
from curation.schema import column_of, with_column


def with_language(batch: pa.RecordBatch, settings: LanguageSettings) -> pa.RecordBatch:
    """Add the language of documents that have none."""
    known = column_of(batch, "language")
    absent = pc.is_null(known)
    if pc.any(absent).as_py():
        labels, _ = LanguageIdentifier(settings).apply(batch.column("text").filter(absent))
        known = pc.replace_with_mask(known, absent, labels)
    return with_column(batch, "language", known)
