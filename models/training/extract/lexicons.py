"""What class names and words say about the blocks around them, as log odds."""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation import resources
from curation.config import read_yaml
from curation.extract.features import text_counts
from curation.extract.markup import fnv
from curation.extract.model import Forest, Lexicon
from models.training.extract.pages import Example
from models.training.extract.settings import ExtractTraining

Floats = npt.NDArray[np.float64]


def read_regions(path: str) -> Lexicon:
    """Bits of the region list by hash of the names. Raises ConfigError when it is malformed."""
    listed = read_yaml(Path(resources.resolve(path)))
    bits: dict[int, int] = defaultdict(int)
    for index, names in enumerate(listed.values()):
        for name in names:
            bits[fnv(str(name).encode())] |= 1 << index
    keys = sorted(bits)
    return Lexicon(np.array(keys, np.uint64), np.array([bits[k] for k in keys], np.int32))


EMPTY = Lexicon(np.zeros(0, np.uint64), np.zeros(0, np.float32))
NO_FOREST = Forest(
    np.zeros(0, np.int32),
    np.zeros(0, np.int16),
    np.zeros(0, np.float32),
    np.zeros(0, np.int32),
    np.zeros(1),
    0.0,
)


def statistics(example: Example) -> tuple[Any, Any]:
    """Hashes of a page's class names and of its words, each with the mean label around them."""
    page, label = example.page, example.label
    elements = len(page.e_parent)
    weight = example.block_weights()
    total = np.bincount(page.b_element, weight, elements)
    positive = np.bincount(page.b_element, weight * label, elements)
    for element in range(elements - 1, 0, -1):
        total[page.e_parent[element]] += total[element]
        positive[page.e_parent[element]] += positive[element]
    owner = np.repeat(np.arange(elements), np.diff(page.e_tokens))
    tokens = page.tokens[: len(owner)]
    useful = total[owner] > 0
    owner, tokens = owner[useful], tokens[useful]
    names, place = np.unique(tokens, return_inverse=True)
    share = np.bincount(place, positive[owner], len(names)) / np.maximum(
        np.bincount(place, total[owner], len(names)), 1e-9
    )
    text = text_counts(example.source, page)
    block = np.repeat(np.arange(len(label)), np.diff(text.hash_starts)).astype(np.uint64)
    taught = example.judged[block.astype(np.int64)]
    pairs = np.unique(np.stack([text.hashes[taught], block[taught]], 1), axis=0)
    seen, place = np.unique(pairs[:, 0], return_inverse=True)
    mean = np.bincount(place, label[pairs[:, 1].astype(np.int64)], len(seen)) / np.maximum(
        np.bincount(place, minlength=len(seen)), 1
    )
    return (names, share), (seen, mean)


def lexicon(
    parts: Iterable[tuple[str, tuple[npt.NDArray[np.uint64], Floats]]], sites: int, smoothing: float
) -> Lexicon:
    """Log odds against the average, by hash, of what is on at least `sites` sites."""
    columns = [(zlib.crc32(group.encode()), *part) for group, part in parts]
    keys = np.concatenate([part[1] for part in columns])
    means = np.concatenate([part[2] for part in columns])
    groups = np.concatenate([np.full(len(part[1]), part[0], np.uint64) for part in columns])
    names, place = np.unique(keys, return_inverse=True)
    count = np.bincount(place, minlength=len(names)).astype(np.float64)
    positive = np.bincount(place, means, len(names))
    seen = np.unique(np.stack([place.astype(np.uint64), groups], 1), axis=0)
    on_sites = np.bincount(seen[:, 0].astype(np.int64), minlength=len(names))
    average = positive.sum() / max(count.sum(), 1)
    if not 0 < average < 1:  # all of one kind: names tell nothing
        return EMPTY
    share = (positive + smoothing * average) / (count + smoothing)
    weight = np.log(share / (1 - share)) - math.log(average / (1 - average))
    common = on_sites >= sites
    return Lexicon(names[common], weight[common].astype(np.float16).astype(np.float32))


def lexicons_of(examples: Sequence[Example], settings: ExtractTraining) -> tuple[Lexicon, Lexicon]:
    """Lexicons of class names and of words, learned from original pages with gold text."""
    first = [(e.group, e.statistics[0]) for e in examples if e.statistics]
    second = [(e.group, e.statistics[1]) for e in examples if e.statistics]
    return (
        lexicon(first, settings.class_sites, settings.smoothing),
        lexicon(second, settings.word_sites, settings.smoothing),
    )
