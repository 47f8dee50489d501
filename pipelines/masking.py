"""Mask documents in token shards: replace their tokens by padding, drop their index rows.

Sequences keep their places, so a fixed training order remains valid.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.tokenize.megatron import token_dtype
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest, shard_name
from pipelines.storage.shards import TableWriter, read_batches

_CHUNK_TOKENS = 1 << 20


_SPANS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("start", pa.int32()),
        ("length", pa.int32()),
        ("id", pa.string()),
    ]
)


def mask_stage(place: Folder, target: Folder, ids: Collection[str]) -> dict[str, Any]:
    """Write a tokenize stage's shards without the documents of these ids.

    Shards without such documents are not written. Returns the record of each file, and the names
    of the other shards.
    """
    settings = TokenizeSettings.model_validate(read_manifest(place)["settings"])
    wanted = pa.array(sorted(ids), pa.string())
    files: dict[str, Any] = {}
    unchanged = []
    for name in files_of(read_manifest(place), "index"):
        shard = shard_name(name)
        spans = _spans(place, name, wanted)
        if not spans.num_rows:
            unchanged.append(shard)
            continue
        files |= _mask(place, target, shard, spans, settings)
        files[name] = _index_without(place, target, name, wanted)
    return {"unchanged": unchanged, "files": files}


def count_spans(place: Folder, ids: Collection[str]) -> dict[str, int]:
    """Count the documents of these ids in a tokenize stage, their sequences and their tokens."""
    wanted = pa.array(sorted(ids), pa.string())
    found: set[str] = set()
    sequences = tokens = 0
    for name in files_of(read_manifest(place), "index"):
        spans = _spans(place, name, wanted)
        found.update(spans["id"].to_pylist())
        sequences += len(spans["sequence"].unique())
        tokens += pc.sum(spans["length"], min_count=0).as_py()
    return {"documents": len(found), "sequences": sequences, "tokens": tokens}


def _spans(place: Folder, name: str, ids: pa.Array) -> pa.Table:
    """Return the rows of a document index that belong to these documents."""
    batches = read_batches(place, name, _SPANS.names)
    return pa.Table.from_batches((b.filter(pc.is_in(b["id"], ids)) for b in batches), _SPANS)


def _mask(
    place: Folder, target: Folder, shard: str, spans: pa.Table, settings: TokenizeSettings
) -> dict[str, Any]:
    tokenizer = load_tokenizer(settings.tokenizer)
    dtype = token_dtype(tokenizer.vocab_size).newbyteorder("<")
    starts = spans["sequence"].to_numpy() * settings.context_length + spans["start"].to_numpy()
    ends = starts + spans["length"].to_numpy()
    with place.open(f"{shard}.bin") as source, target.create(f"{shard}.bin") as sink:
        at = 0
        while data := source.read(_CHUNK_TOKENS * dtype.itemsize):
            tokens = np.frombuffer(data, dtype).copy()
            _fill(tokens, starts - at, ends - at, tokenizer.pad)
            sink.write(tokens.tobytes())
            at += len(tokens)
    rows = read_manifest(place)["files"][f"{shard}.bin"]["rows"]
    masked = {f"{shard}.bin": sink.record(rows).as_dict()}
    index = target.write_bytes(f"{shard}.idx", place.read_bytes(f"{shard}.idx"))
    return masked | {f"{shard}.idx": index.as_dict()}


def _fill(
    tokens: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    pad: int,
) -> None:
    """Write padding between starts and ends, which may lie outside the array."""
    for start, end in zip(starts.clip(0), ends.clip(0), strict=True):
        tokens[start:end] = pad


def _index_without(place: Folder, target: Folder, name: str, ids: pa.Array) -> dict[str, Any]:
    batches = list(read_batches(place, name))
    with TableWriter(target, name, batches[0].schema) as writer:
        for batch in batches:
            writer.write(batch.filter(pc.invert(pc.is_in(batch["id"], ids))))
    return writer.record.as_dict()
