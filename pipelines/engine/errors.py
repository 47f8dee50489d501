"""Documents on which user code raised an exception: a table, and an alarm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from curation.judging import Failure
from curation.schema import MENDED
from pipelines.engine.stage import StageRun
from pipelines.storage.shards import read_batches

#: Folder of the tables, and the key of their count.
ERRORS = "errors"
#: Most errors listed in the manifest.
_TOLD = 20


def errors_table(batch: pa.RecordBatch, failures: Sequence[Failure], stage: str) -> pa.RecordBatch:
    """Return the documents of a batch on which user code failed, as rows of MENDED."""
    named = batch.select([n for n in ("id", "url", "source") if n in batch.schema.names])
    rows = named.take(pa.array([failure.row for failure in failures], pa.int64())).to_pylist()
    failures = [
        row | {"reason": f"error.{stage}", "detail": failure.detail}
        for row, failure in zip(rows, failures, strict=True)
    ]
    return pa.RecordBatch.from_pylist(failures, MENDED)


def errors_of(run: StageRun) -> dict[str, Any]:
    """Return notes for the manifest: an alarm and the first errors; empty if there are none."""
    names = sorted(f"{ERRORS}/{shard.name}.parquet" for shard in run.inputs)
    count, failures = 0, list[dict[str, Any]]()
    for name in names:
        if run.folder.exists(name):
            for batch in read_batches(run.folder, name):
                count += batch.num_rows
                failures += batch.slice(0, _TOLD - len(failures)).to_pylist()
    if not failures:
        return {}
    source = failures[0]["source"]
    where = f"{failures[0]['id']} ({source['file']} at offset {source['offset']})"
    what = f"own code failed on {count:,} documents; on {where}: {failures[0]['detail']}"
    return {"alarms": [{"alarm": what}], "errors": failures}
