"""Write the models that stages read. Each reader is beside the model's class in `curation`.

The same model gives the same bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.classify.features import BITS
from curation.classify.linear import FEATURES_VERSION, OTHERS, VARYING, LinearModel
from curation.extract.features import COUNT
from curation.extract.features import VERSION as BLOCKS
from curation.extract.model import Model
from curation.filters.reference import Reference
from curation.language.corrector import VERSION as CORRECTOR
from curation.language.corrector import Corrector

#: Date of every entry of an archive.
_DATE = (1980, 1, 1, 0, 0, 0)


def save_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name, compressed; the same arrays give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            held = io.BytesIO()
            np.save(held, array)
            entry = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(entry, held.getvalue(), zipfile.ZIP_DEFLATED, 9)


def save_headed(path: Path, head: str, arrays: Mapping[str, Any]) -> None:
    """Write JSON and arrays, compressed, for `read_headed`; the same give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez_compressed(file, head=np.frombuffer(head.encode(), np.uint8), **arrays)


def save_linear(model: LinearModel, path: Path) -> None:
    """Write the model; the same model gives the same bytes."""
    head = {
        "kind": model.kind,
        "labels": list(model.labels),
        "max_bytes": model.max_bytes,
        "features": FEATURES_VERSION,
        "bits": BITS,
    }
    arrays: dict[str, Any] = _arrays(model)
    if model.others is not None:
        head["languages"] = list(model.languages)
        arrays |= {OTHERS + name: array for name, array in _arrays(model.others).items()}
    save_headed(path, json.dumps(head, sort_keys=True), arrays)


def _arrays(model: LinearModel) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        "buckets": model.buckets,
        "weights": model.weights.astype(np.float16),
        "mean": model.mean,
        "deviation": model.deviation,
        "shape_weights": model.shape_weights,
        "intercept": model.intercept,
    }
    if len(model.scales):
        arrays["scales"] = model.scales.astype(np.float16)
    if model.varying is not None:
        arrays[VARYING + "columns"] = model.varying.columns
        arrays[VARYING + "weights"] = model.varying.weights.astype(np.float16)
        arrays[VARYING + "shape_weights"] = model.varying.shape_weights
    return arrays


def save_reference(reference: Reference, path: Path) -> None:
    """Write an .npz file; the same reference gives the same bytes."""
    held = np.zeros(int(reference.tokens[-1]) + 1 if len(reference.tokens) else 0, bool)
    held[reference.tokens] = True
    arrays: dict[str, npt.NDArray[Any]] = {
        "words": reference.words,
        "word_costs": reference.word_costs,
        "word_classes": reference.word_classes,
        "tokens": np.packbits(held),
        "costs": reference.costs,
        "unseen": reference.unseen,
        "endings": reference.endings,
        "ending_classes": reference.ending_classes,
        "pairs": reference.pairs,
        "curve": reference.curve,
        "header": np.array([reference.unknown, reference.bound, reference.trained], np.int64),
    }
    save_arrays(path, arrays)


def save_blocks(model: Model, path: Path) -> None:
    """Write the model; the same model gives the same bytes."""
    head = {"features": BLOCKS, "columns": COUNT, "sure": model.forest.sure}
    arrays = {
        "head": np.frombuffer(json.dumps(head, sort_keys=True).encode(), np.uint8),
        "class_keys": model.classes.keys,
        "class_weights": model.classes.values.astype(np.float16),
        "word_keys": model.words.keys,
        "word_weights": model.words.values.astype(np.float16),
        "region_keys": model.regions.keys,
        "region_bits": model.regions.values.astype(np.int32),
        "bases": model.forest.bases,
        "roots": model.forest.roots,
        "feature": model.forest.feature,
        "threshold": model.forest.threshold,
        "left": model.forest.left,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, buffer.getvalue())


def save_corrector(corrector: Corrector, path: Path) -> None:
    """Write the corrector; the same one gives the same bytes. Rows are kept in 8 bits each."""
    file, evidence = corrector.model.file, corrector.evidence
    scale = np.maximum(np.abs(file.rows).max(1), 1e-12) / 127
    head = {
        "version": CORRECTOR,
        "labels": list(file.labels),
        "min_n": file.min_n,
        "max_n": file.max_n,
        "buckets": file.buckets,
        "floor": corrector.floor,
        "everywhere": corrector.familiar.everywhere,
        "strange_from": evidence.strange_from,
        "close": corrector.close.groups,
    }
    arrays = {
        "words": np.frombuffer(b"\n".join(file.words), np.uint8),
        "rows": np.rint(file.rows / scale[:, None]).astype(np.int8),
        "scale": scale.astype(np.float16),
        "outputs": file.outputs.astype(np.float32),
        "given": corrector.given.astype(np.float16),
        "favoured": corrector.favoured,
        "weights": evidence.weights,
        "refusal": evidence.refusal,
        "table": corrector.familiar.table,
        "usual": corrector.familiar.usual.astype(np.float32),
        "spread": corrector.familiar.spread.astype(np.float32),
        "runs": corrector.familiar.runs.astype(np.float32),
        "close_starts": corrector.close.starts,
        "close_keys": np.diff(corrector.close.keys, prepend=np.uint32(0)),  # small ones
        "close_odds": corrector.close.odds,
        "close_weights": corrector.close.weights,
    }
    save_headed(path, json.dumps(head, sort_keys=True), arrays)
