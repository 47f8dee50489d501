"""Linear classifiers over hashed features: their file, and their scores for a batch.

A model file is an npz archive: weights of the buckets that have any (float16), weights of the
dense features with the means and deviations that standardise them, and what its outputs mean. With
scales of the buckets, a text's values are multiplied by them and brought back to unit length over
the model's buckets, so that those it does not have count nothing. The weights may vary with some
of the dense features: a word says one thing in an article and another in a list of headlines.
Outputs are calibrated: a sigmoid or softmax of them is a probability. A file may have a second
model, for texts in other languages than the first one's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.archive import read_as, read_headed
from curation.classify.features import BITS, Features
from curation.compiled import Float32s, Float64s, Int32s, Int64s, kernel
from curation.errors import ConfigError
from curation.language.corrector import softmax as softmax
from curation.language.fasttext import add_products

#: Changes whenever the same text would give other features: models of another version don't load.
FEATURES_VERSION = 4

#: Before the names of the second model's arrays.
OTHERS = "others_"

#: Before the names of the arrays of `Varying`.
VARYING = "varying_"

#: Standardised dense features are cut here, so that one odd page can't outvote its words.
CLIP = 4.0

Floats = npt.NDArray[np.float64]
Kind = Literal["quality", "classes", "scores"]


class Varying(NamedTuple):
    """What is added to a model's weights per deviation of some dense features from their means."""

    columns: npt.NDArray[np.int32]  # [v], of SHAPE
    weights: npt.NDArray[np.float32]  # [rows, v * k]
    shape_weights: npt.NDArray[np.float32]  # [len(SHAPE), v * k]


@dataclass(frozen=True)
class LinearModel:
    """A classifier with k outputs.

    kind `quality`: outputs are the grade on the scale of the training labels, and the log odds
    that the grade is high (its sigmoid is the quality). kind `classes`: one output per label, whose
    softmax is the probability. kind `scores`: as fitted, before calibration; never in a file.
    """

    kind: Kind
    labels: tuple[str, ...]  # [k]
    max_bytes: int  # how much of a text it was trained to read
    buckets: npt.NDArray[np.int32]  # [rows] ascending, each below 2 ** BITS
    weights: npt.NDArray[np.float32]  # [rows, k]
    mean: npt.NDArray[np.float32]  # [len(SHAPE)]
    deviation: npt.NDArray[np.float32]  # [len(SHAPE)], above 0
    shape_weights: npt.NDArray[np.float32]  # [len(SHAPE), k]
    intercept: npt.NDArray[np.float32]  # [k]
    scales: npt.NDArray[np.float32] = field(  # [rows], or none: values count as they are
        default_factory=lambda: np.zeros(0, np.float32)
    )
    varying: Varying | None = None
    languages: tuple[str, ...] = ()  # whose texts it judges, if `others` judges the rest
    others: LinearModel | None = None

    @functools.cached_property
    def _rows(self) -> npt.NDArray[np.int32]:
        """The row of each bucket, or -1."""
        rows = np.full(1 << BITS, -1, np.int32)
        rows[self.buckets] = np.arange(len(self.weights), dtype=np.int32)  # as many, or it raises
        return rows

    @functools.cached_property
    def _weights(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Weights of buckets and of dense features, with those that vary beside them."""
        if self.varying is None:
            return self.weights, self.shape_weights
        weights = np.hstack([self.weights, self.varying.weights])
        return weights, np.hstack([self.shape_weights, self.varying.shape_weights])

    def outputs(self, features: Features) -> npt.NDArray[np.float64]:
        """Outputs of every text: [texts, k]."""
        rows, (weights, shape_weights) = self._rows, self._weights
        shape = standardise(features.shape, self.mean, self.deviation)
        k = len(self.labels)
        sums = np.zeros((len(features), weights.shape[1]))
        sums[:, :k] = self.intercept
        _add_sparse(
            features.starts, features.ids, features.values, rows, weights, self.scales, sums
        )
        add_products(shape, shape_weights.astype(np.float64), sums)
        out = sums[:, :k]
        if self.varying is not None:
            for number, column in enumerate(self.varying.columns, 1):
                out = out + shape[:, column, None] * sums[:, number * k : (number + 1) * k]
        return out

    def graded(self, features: Features, languages: pa.Array | None) -> npt.NDArray[np.float64]:
        """Return the outputs of every text, each by the part for its language: [texts, k]."""
        foreign = self.of_others(languages, len(features))
        if self.others is None or not foreign.any():
            return self.outputs(features)
        out = np.empty((len(features), len(self.labels)))
        for model, rows in ((self, ~foreign), (self.others, foreign)):
            out[rows] = model.outputs(features.take(np.flatnonzero(rows)))
        return out

    def of_others(self, languages: pa.Array | None, texts: int) -> npt.NDArray[np.bool_]:
        """Which texts the part for other languages judges: [texts]; a null language is none."""
        if self.others is None or languages is None:
            return np.zeros(texts, bool)
        encoded = languages.cast(pa.string()).dictionary_encode()
        other = [name not in self.languages for name in encoded.dictionary.to_pylist()]
        codes = encoded.indices.fill_null(len(other)).to_numpy(zero_copy_only=False)
        return np.array([*other, False])[codes]


def load(path: Path, name: str) -> LinearModel:
    """Read a model file. Raises ConfigError, naming it, when it is none or of another version."""
    with read_as(name, "a classifier of this toolkit"):
        head, arrays = read_headed(path)
    if head.get("features") != FEATURES_VERSION or head.get("bits") != BITS:
        raise ConfigError(
            f"{name}: trained on features of version {head.get('features')}, not "
            f"{FEATURES_VERSION}; retrain it with `curate train`"
        )
    for key, array in arrays.items():
        if array.dtype == np.float16:
            arrays[key] = array.astype(np.float32)
    make: Callable[..., LinearModel] = functools.partial(
        LinearModel, head["kind"], labels=tuple(head["labels"]), max_bytes=head["max_bytes"]
    )

    def part(arrays: dict[str, Any], **more: Any) -> LinearModel:
        varying = _taken(arrays, VARYING)
        return make(**arrays, varying=Varying(**varying) if varying else None, **more)

    others = _taken(arrays, OTHERS)
    return part(
        arrays,
        languages=tuple(head.get("languages", ())),
        others=part(others) if others else None,
    )


def _taken(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Remove the arrays whose names begin with `prefix`; return them by the rest of their names."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays.pop(name) for name in names}


def standardise(
    shape: npt.NDArray[np.float32],
    mean: npt.NDArray[np.float32],
    deviation: npt.NDArray[np.float32],
) -> npt.NDArray[np.float64]:
    """Dense features in deviations from the mean, cut at CLIP."""
    return np.clip((shape.astype(np.float64) - mean) / deviation, -CLIP, CLIP)


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


@kernel
def _add_sparse(
    starts: Int64s,
    ids: Int32s,
    values: Float32s,
    rows: Int32s,
    weights: Float32s,
    scales: Float32s,
    out: Float64s,
) -> None:
    outputs = weights.shape[1]
    scaled = len(scales) > 0
    known, given = np.empty(len(ids), np.uint64), np.empty(len(ids), np.float64)
    for doc in range(len(starts) - 1):
        n = 0
        for k in range(np.uint64(starts[doc]), np.uint64(starts[doc + 1])):
            row = rows[np.uint64(ids[k])]
            known[n], given[n] = np.uint64(row), values[k]
            n += row >= 0  # without branches, which no processor could foresee
        factor = 1.0
        if scaled:
            square = 0.0
            for k in range(n):
                square += (given[k] * scales[known[k]]) ** 2
            factor = 1 / np.sqrt(square) if square > 0 else 0.0
        for k in range(n):
            value = given[k] * factor
            if scaled:
                value *= scales[known[k]]
            for j in range(outputs):
                out[doc, j] += value * weights[known[k], j]
