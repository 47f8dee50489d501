"""The extractor's model: what class names and words say, and the trees that judge blocks.

A model file is an npz archive without pickles. Hash tables are rebuilt from sorted keys when it is
loaded, so the file is the same bytes for the same training.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.archive import read_as, read_headed
from curation.bytes.hash_tables import of_hashes
from curation.errors import ConfigError
from curation.extract.containers import WEIGHED
from curation.extract.features import COUNT, VERSION, Lexicons, Names, Weights
from curation.extract.forest import Forest
from curation.models import ModelFile, locate

#: A fixed date inside archives: the same model gives the same bytes.


@dataclass(frozen=True)
class Lexicon:
    """Weights by hash: of class names, of words, or bits of regions."""

    keys: npt.NDArray[np.uint64]  # [k] ascending
    values: npt.NDArray[Any]  # [k] float32 weights or int32 bits


@dataclass(frozen=True)
class Model:
    """What judges blocks."""

    classes: Lexicon
    words: Lexicon
    regions: Lexicon
    forest: Forest

    @functools.cached_property
    def lexicons(self) -> Lexicons:
        """The lexicons as the hash tables that kernels read."""
        return Lexicons(_names(self.classes, self.regions), _weights(self.words))

    @functools.cached_property
    def arrays(self) -> tuple[Any, ...]:
        """Lexicons, branches, bases and `sure`, as plain tuples."""
        forest = self.forest
        return tuple(self.lexicons), tuple(forest.branches), forest.bases, forest.sure


def _weights(lexicon: Lexicon) -> Weights:
    keys, entries = of_hashes({key: i for i, key in enumerate(lexicon.keys.tolist())})
    return keys, _at(entries, lexicon.values.astype(np.float32))


def _names(classes: Lexicon, regions: Lexicon) -> Names:
    """One table for both, so that each name of a page is looked up once."""
    all_keys = np.union1d(classes.keys, regions.keys)
    keys, entries = of_hashes({key: i for i, key in enumerate(all_keys.tolist())})
    weights = np.zeros(len(all_keys), np.float32)
    bits = np.zeros(len(all_keys), np.int32)
    weighed = np.searchsorted(all_keys, classes.keys)
    weights[weighed] = classes.values
    bits[weighed] = WEIGHED
    bits[np.searchsorted(all_keys, regions.keys)] |= regions.values.astype(np.int32)
    return keys, _at(entries, weights), _at(entries, bits)


def _at(entries: npt.NDArray[np.int32], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The value of the entry in each slot, 0 in free ones."""
    return np.where(entries >= 0, np.append(values, values.dtype.type(0))[entries], 0)


def read_model(path: Path, name: str) -> Model:
    """Read a model file. Raises ConfigError, naming it, when it is none or of another version."""
    with read_as(name, "an extraction model of this toolkit"):
        head, part = read_headed(path)
    if head.get("features") != VERSION or head.get("columns") != COUNT:
        raise ConfigError(
            f"{name}: trained on features of version {head.get('features')}, not {VERSION}; "
            "retrain it with `python -m models.training.extract`"
        )
    forest = Forest(
        part["roots"], part["feature"], part["threshold"], part["left"], part["bases"], head["sure"]
    )
    return Model(
        Lexicon(part["class_keys"], part["class_weights"].astype(np.float32)),
        Lexicon(part["word_keys"], part["word_weights"].astype(np.float32)),
        Lexicon(part["region_keys"], part["region_bits"]),
        forest,
    )


@functools.cache
def load(model: ModelFile) -> Model:
    """The model that settings name, loaded once per process and verified."""
    path, _ = locate(model)
    return read_model(path, model.path)
