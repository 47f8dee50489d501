"""Count the tokens of documents and collect the columns needed for drawing."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.mix.columns import narrow
from curation.mix.variety import varieties
from curation.tokenize.tokenize_settings import EncodeSettings
from curation.tokenize.tokenizer import load_tokenizer


def counted(
    batch: pa.RecordBatch, settings: EncodeSettings, sources: Collection[str]
) -> tuple[pa.RecordBatch, npt.NDArray[np.uint32]]:
    """Return columns NARROW of documents, and their token ids end to end."""
    tokens, offsets = load_tokenizer(settings.tokenizer).encode_batch(batch.column("text"))
    counts = np.diff(offsets) + settings.marks
    return narrow(batch, counts, sources, varieties(tokens, offsets)), tokens
