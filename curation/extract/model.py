"""The extractor's model: what class names and words say, and the trees that judge blocks.

A model file is an npz archive without pickles. Hash tables are rebuilt from sorted keys when it is
loaded, so the file is the same bytes for the same training.

Boosted trees: their arrays and their sum for every row, compiled.

Gradient boosting after J. Friedman, Greedy Function Approximation (2001); the trees are learned by
scikit-learn's histogram method and kept as flat arrays. They are not walked: following QuickScorer
(C. Lucchese et al., SIGIR 2015), every node that a row goes right at strikes out the leaves to its
left, and the first leaf left is the row's. That has no branches to guess, and many rows go through
a node at once.

A forest has several bags of trees, each learned from other rows and features; their mean owes less
to chance than each of them (L. Breiman, Bagging Predictors, 1996). Most rows are clear to the first
bag already, and the others are not asked about these.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.archive import read_as, read_headed
from curation.bytes.hash_tables import of_hashes
from curation.compiled import (
    Float,
    Float32s,
    Float64s,
    Int,
    Int32s,
    Int64s,
    Uint32s,
    apart,
    inlined,
    kernel,
)
from curation.errors import ConfigError
from curation.extract.containers import WEIGHED
from curation.extract.features import COUNT, VERSION, Lexicons, Names
from curation.kernels import kept
from curation.models import ModelFile, locate

MAX_LEAVES = 32  # a bit each
_ROWS = 64  # rows side by side: their features fit the first cache
_AT_ONCE = 16  # of them: fewer take as long
_NODES = 4  # nodes side by side
_ALL = np.uint32(0xFFFFFFFF)
# The place of a leaf's value by its bit: this product has another upper five bits for each.
_DE_BRUIJN = np.uint32(0x077CB531)
_PLACES = [((1 << bit) * int(_DE_BRUIJN) & int(_ALL)) >> 27 for bit in range(MAX_LEAVES)]


class Branches(NamedTuple):
    """The trees by their branches: node k sends rows right where feature > threshold.

    Each tree is filled up to a multiple of _NODES with nodes that leave all leaves.
    """

    starts: npt.NDArray[np.int32]  # [trees + 1] where the nodes of each tree start
    feature: npt.NDArray[np.int32]  # [nodes]
    threshold: npt.NDArray[np.float32]  # [nodes]
    left_out: npt.NDArray[np.uint32]  # [nodes] leaves that are left to rows which go right
    values: npt.NDArray[np.float32]  # [trees, MAX_LEAVES] of the leaves, at their _PLACES


@dataclass(frozen=True)
class Forest:
    """Trees laid end to end, as many of each bag. A node's children are side by side: `left` and
    `left + 1`."""

    roots: npt.NDArray[np.int32]  # [trees]
    feature: npt.NDArray[np.int16]  # [nodes], -1: a leaf
    threshold: npt.NDArray[np.float32]  # [nodes]; a leaf's value
    left: npt.NDArray[np.int32]  # [nodes]
    bases: npt.NDArray[np.float64]  # [bags] log odds before the first tree of each
    sure: float  # log odds, of either sign, from which the first bag decides alone

    @functools.cached_property
    def branches(self) -> Branches:
        """Raises ValueError when a tree has more than MAX_LEAVES leaves."""
        starts, nodes, left_out = [0], list[int](), list[int]()
        values = np.zeros((len(self.roots), MAX_LEAVES), np.float32)
        for tree, root in enumerate(self.roots.tolist()):
            leaves = 0
            # From left to right: a node is seen again when the leaves to its left are known.
            waiting = [(root, -1, 0)]
            while waiting:
                node, place, first = waiting.pop()
                if place >= 0:
                    left_out[place] = ~((1 << leaves) - (1 << first)) & int(_ALL)
                elif self.feature[node] >= 0:
                    place = len(nodes)
                    nodes.append(node)
                    left_out.append(0)
                    left = int(self.left[node])
                    waiting += [(left + 1, -1, 0), (node, place, leaves), (left, -1, 0)]
                elif leaves == MAX_LEAVES:
                    raise ValueError(f"a tree with more than {MAX_LEAVES} leaves")
                else:
                    values[tree, _PLACES[leaves]] = self.threshold[node]
                    leaves += 1
            filler = -len(nodes) % _NODES
            nodes += [root] * filler
            left_out += [int(_ALL)] * filler
            starts.append(len(nodes))
        return Branches(
            np.array(starts, np.int32),
            self.feature[nodes].astype(np.int32),
            self.threshold[nodes],
            np.array(left_out, np.uint32),
            values,
        )


@inlined
def _left(at: Float, edge: Float, left_out: Int) -> Int:
    """The leaves that a node leaves to a row whose feature is `at`."""
    return left_out | (np.uint32(at > edge) - np.uint32(1))


@apart
def _strike_out(
    columns: Float32s,
    feature: Int32s,
    threshold: Float32s,
    left_out: Uint32s,
    start: Int,
    end: Int,
    alive: Uint32s,
) -> None:
    for r in range(len(alive)):
        alive[r] = _ALL
    # Four nodes for each time that `alive` is read and written, which takes most of the time.
    for k in range(np.uint64(start), np.uint64(end), np.uint64(_NODES)):
        second, third, last = k + np.uint64(1), k + np.uint64(2), k + np.uint64(3)
        one, two = columns[np.uint64(feature[k])], columns[np.uint64(feature[second])]
        three, four = columns[np.uint64(feature[third])], columns[np.uint64(feature[last])]
        a, b, c, d = threshold[k], threshold[second], threshold[third], threshold[last]
        e, f, g, h = left_out[k], left_out[second], left_out[third], left_out[last]
        for r in range(len(alive)):
            alive[r] &= (
                _left(one[r], a, e)
                & _left(two[r], b, f)
                & _left(three[r], c, g)
                & _left(four[r], d, h)
            )


@apart
def _add_leaves(alive: Uint32s, values: Float32s, sums: Float64s) -> None:
    for r in range(len(alive)):
        lowest = alive[r] & (~alive[r] + np.uint32(1))
        sums[r] += values[np.uint32(lowest * _DE_BRUIJN) >> np.uint32(27)]


@kernel
def _add_trees(
    branches: Branches, first: Int, last: Int, rows: Float32s, chosen: Int64s, out: Float64s
) -> None:
    """Add the leaves of trees first to last - 1 to `out` for the rows that are chosen."""
    starts, feature, threshold, left_out, values = branches
    # Longer than they are filled: the places of one row would be in few of the cache's sets.
    columns = np.empty((rows.shape[1], _ROWS + _AT_ONCE), np.float32)
    alive, sums = np.empty(_ROWS, np.uint32), np.zeros(_ROWS, np.float64)
    for at in range(0, len(chosen), _ROWS):
        some = chosen[at : at + _ROWS]
        for r in range(len(some)):
            sums[r] = out[some[r]]
            for f in range(len(columns)):
                columns[f, r] = rows[some[r], f]
        left = alive[: len(some) + -len(some) % _AT_ONCE]
        for t in range(first, last):
            _strike_out(columns, feature, threshold, left_out, starts[t], starts[t + 1], left)
            _add_leaves(left, values[t], sums)
        for r in range(len(some)):
            out[some[r]] = sums[r]


@kernel
def judge_rows(branches: Branches, bases: Float64s, sure: Float, rows: Float32s) -> Float64s:
    """The `probabilities` of rows [n, features]."""
    bags, trees = len(bases), len(branches.values)
    out = np.full(len(rows), bases[0])
    _add_trees(branches, 0, trees // bags, rows, np.arange(len(rows)), out)
    unsure = np.flatnonzero(np.abs(out) < sure)
    out[unsure] += bases[1:].sum()
    _add_trees(branches, trees // bags, trees, rows, unsure, out)
    out[unsure] /= bags
    return 1.0 / (1.0 + np.exp(-out))


def probabilities(forest: Forest, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Probability of each row [n, features]; NaN goes left."""
    found: npt.NDArray[np.float64] = judge_rows(forest.branches, forest.bases, forest.sure, rows)
    return found


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
        empty = Lexicon(self.words.keys[:0], self.words.values[:0])
        return Lexicons(_names(self.classes, self.regions), _names(self.words, empty))

    @functools.cached_property
    def arrays(self) -> tuple[Any, ...]:
        """Lexicons, branches, bases and `sure`, as plain tuples."""
        forest = self.forest
        return tuple(self.lexicons), tuple(forest.branches), forest.bases, forest.sure


def _names(classes: Lexicon, regions: Lexicon) -> Names:
    """One table for both, so that each name of a page is looked up once; of words, `classes` alone."""
    all_keys = np.union1d(classes.keys, regions.keys)
    names = np.zeros(
        len(all_keys) + 1, [("key", np.uint64), ("weight", np.float32), ("bits", np.int32)]
    )
    names["key"][:-1] = all_keys
    weighed = np.searchsorted(all_keys, classes.keys)
    names["weight"][weighed] = classes.values
    names["bits"][weighed] = WEIGHED
    names["bits"][np.searchsorted(all_keys, regions.keys)] |= regions.values.astype(np.int32)
    # The last one is that of free slots, whose entry is -1.
    slots = names[of_hashes({key: i for i, key in enumerate(all_keys.tolist())}).values]
    return slots["key"].copy(), slots["weight"].copy(), slots["bits"].copy()


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
    found = Model(
        Lexicon(part["class_keys"], part["class_weights"].astype(np.float32)),
        Lexicon(part["word_keys"], part["word_weights"].astype(np.float32)),
        Lexicon(part["region_keys"], part["region_bits"]),
        forest,
    )
    _ = found.arrays  # which are kept with it
    return found


@functools.cache
def load(model: ModelFile) -> Model:
    """The model that settings name, loaded once per process and verified."""
    path, _ = locate(model)
    return kept(read_model)(path, model.path)
