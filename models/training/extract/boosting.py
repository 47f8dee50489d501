"""Boosted trees over measured blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.extract.features import COUNT, NAMES
from curation.extract.model import Forest
from models.training.extract.pages import Example
from models.training.extract.settings import ExtractTraining

# Features whose effect can have one sign only, which holds pages of other times and kinds in check.
_RISING = frozenset(
    "b_words b_sentences b_commas class_min class_max class_sum word_score heading_score "
    "signature_share dominant_in".split()
)
_FALLING = frozenset(
    "dominant_off copies region_1 region_2 region_3 region_5 region_6 region_7".split()
)


def signs() -> npt.NDArray[np.int64]:
    """Direction of each feature's effect: 1 rising, -1 falling, 0 free."""
    sign = np.zeros(COUNT, np.int64)
    for column, name in enumerate(NAMES):
        level = name[0] == "e" and name[1].isdigit()
        rising = level and name.endswith(("_share", "_class_score", "_words_per_block"))
        if name in _RISING or rising:
            sign[column] = 1
        elif name in _FALLING or ("link_density" in name and not name.startswith("page")):
            sign[column] = -1
    return sign


def fit(examples: Sequence[Example], settings: ExtractTraining) -> Forest:
    """Boosted trees over the measured blocks. Each bag draws blocks and features of its own."""
    bags = [_boosted(examples, settings, settings.seed + bag) for bag in range(settings.bags)]
    ends = itertools.accumulate(len(bag.feature) for bag in bags)
    laid = [(bag, end - len(bag.feature)) for bag, end in zip(bags, ends, strict=True)]
    return Forest(
        np.concatenate([bag.roots + start for bag, start in laid]),
        np.concatenate([bag.feature for bag in bags]),
        np.concatenate([bag.threshold for bag in bags]),
        np.concatenate([bag.left + start for bag, start in laid]),
        np.concatenate([bag.bases for bag in bags]),
        settings.sure,
    )


def _boosted(examples: Sequence[Example], settings: ExtractTraining, seed: int) -> Forest:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(seed)
    rows, labels, weights = [], [], []
    for example in examples:
        assert example.measured is not None
        drawn = np.flatnonzero(example.judged)
        if len(drawn) > settings.blocks_per_page:
            drawn = np.sort(rng.choice(drawn, settings.blocks_per_page, replace=False))
        weight = example.block_weights()[drawn]
        rows.append(example.measured[drawn])
        labels.append(example.label[drawn] > settings.label_share)
        page_weight = example.weight * (settings.forum_weight if example.kind == "forum" else 1.0)
        weights.append(weight / weight.sum() * page_weight)
    weight = np.concatenate(weights)
    model = HistGradientBoostingClassifier(
        max_iter=settings.trees,
        max_leaf_nodes=settings.leaves,
        learning_rate=settings.learning_rate,
        max_features=settings.max_features,
        min_samples_leaf=settings.min_samples_leaf,
        l2_regularization=settings.l2,
        max_bins=settings.bins,
        early_stopping=False,
        random_state=seed,
        monotonic_cst=signs(),
    )
    with threadpool_limits(1):  # sums in one order, whatever the machine
        model.fit(
            np.concatenate(rows),
            np.concatenate(labels).astype(np.int64),
            sample_weight=weight * len(weight) / weight.sum(),
        )
    return forest_of(model)


def forest_of(model: Any) -> Forest:
    """Return the trees of a fitted HistGradientBoostingClassifier, children side by side."""
    roots: list[int] = []
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        roots.append(len(feature))
        waiting = [(0, len(feature))]
        for store, value in ((feature, 0), (threshold, 0.0), (left, 0)):
            store.append(value)  # type: ignore[attr-defined, arg-type]
        while waiting:
            index, at = waiting.pop()
            node = nodes[index]
            if node["is_leaf"]:
                feature[at], threshold[at] = -1, float(node["value"])
                continue
            children = len(feature)
            # float32 inputs compared with a float64 threshold: round down, so that both agree
            edge = np.float32(node["num_threshold"])
            if np.float64(edge) > node["num_threshold"]:
                edge = np.nextafter(edge, np.float32(-np.inf))
            feature[at], threshold[at], left[at] = int(node["feature_idx"]), float(edge), children
            feature += [0, 0]
            threshold += [0.0, 0.0]
            left += [0, 0]
            waiting += [(int(node["left"]), children), (int(node["right"]), children + 1)]
    return Forest(
        np.array(roots, np.int32),
        np.array(feature, np.int16),
        np.array(threshold, np.float32),
        np.array(left, np.int32),
        np.array([float(model._baseline_prediction[0, 0])]),
        0.0,
    )
