"""Fit the weights of `models/quality/evidence.yaml` for formats, and show what they are worth.

  python -m models.training.extract --data SETS --output FOLDS --cross-fit
  python benchmarks/format_evidence.py --data DATA --models FOLDS

DATA and FOLDS are as for page_evidence.py. Pages in English and German of the sets that may train a
shipped model are read by extraction models, and judged by quality and format models, of other
sites. A logistic regression of a good grade (3 and more) on the log odds (with `page_evidence`) and
the probabilities of formats gives the weights, relative to that of the log odds.

Prints JSON. `held_out` are these pages set by set, by weights fitted on the other sets; `unseen` are
the sets that train neither quality nor formats, as shipped with and without the weights. At the
limit are the good pages lost and the rubbish kept at the default limit of quality.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from model_quality import host_of
from model_quality import rows_of as json_rows
from page_evidence import (
    GOOD,
    Pages,
    log_odds_of_others,
    options,
    separated,
    taught_and_unseen,
)
from sklearn.linear_model import LogisticRegression
from train import class_settings, labelled_files, quality_settings

from curation.classify import classify_settings
from curation.classify.classifier import Classifier, page_log_odds
from curation.classify.linear import softmax
from curation.language import identify
from curation.resources import NamedFile
from models.training.classes import balance, calibration
from models.training.inputs import Examples, read_labelled
from models.training.linear import Floats, features_of, fit

PENALTY = 0.3  # C of the regression: AUC on held-out sets is the same from .1 to 1
PARTS = 5


def part_of(site: str) -> int:
    """The part of a site, 0 to PARTS - 1: pages are judged by models of the other parts."""
    return sum(site.encode()) % PARTS


def formats_of_others(texts: list[str], sites: list[str], examples: Examples) -> tuple[Any, Floats]:
    """Labels, and their probabilities by models that saw no page of a text's site: [texts, k]."""
    settings = class_settings("format")
    labels = tuple(sorted(set(examples.labels)))
    truth = np.array([labels.index(label) for label in examples.labels])
    weights = balance(
        truth, examples.weights(settings.file_weights), len(labels), settings.balanced
    )
    targets = np.eye(len(labels))[truth]
    taught, judged = features_of(examples.texts, settings), features_of(texts, settings)
    real = np.array(examples.inputs) == 0
    of_examples = np.where(real, [part_of(host_of(g)) for g in examples.groups], -1)
    of_texts = np.array([part_of(site) for site in sites])
    scores, out = np.zeros(targets.shape), np.zeros((len(texts), len(labels)))
    for part in range(PARTS):
        rows = np.flatnonzero(of_examples != part)
        model = fit(taught.take(rows), targets[rows], weights[rows], settings)
        own = np.flatnonzero(of_examples == part)
        scores[own] = model.outputs(taught.take(own))
        own = np.flatnonzero(of_texts == part)
        out[own] = model.outputs(judged.take(own))
    slopes, offsets = calibration(scores[real], truth[real], weights[real], settings)
    return labels, softmax(out @ slopes + offsets)


def fitted(log_odds: Floats, formats: Floats, good: Any) -> tuple[Floats, float]:
    """Weights of formats and offset, relative to the weight of the log odds."""
    # 30 times the log odds, so that the penalty leaves their weight alone
    table = np.column_stack([log_odds * 30, formats])
    model = LogisticRegression(C=PENALTY, max_iter=4000).fit(table, good)
    of_odds, *of_formats = model.coef_[0]
    return np.array(of_formats) / (of_odds * 30), float(model.intercept_[0] / (of_odds * 30))


def at_limit(grades: Floats, log_odds: Floats) -> dict[str, list[int]]:
    least = classify_settings.default_settings().min_quality["general"]
    kept = 1 / (1 + np.exp(-log_odds)) >= least
    good, rubbish = grades >= GOOD, grades <= 1
    return {
        "good_lost": [int((good & ~kept).sum()), int(good.sum())],
        "rubbish_kept": [int((rubbish & kept).sum()), int(rubbish.sum())],
    }


def own_language(texts: list[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which texts the quality model's part for its own languages judges."""
    parts = quality_settings().others
    assert parts is not None
    return np.isin(identify(texts)[0], parts.languages)


def training(pages: Pages, graded: list[dict[str, Any]], examples: Examples) -> dict[str, Any]:
    texts = [*pages.texts, *(row["text"] for row in graded)]
    sites = [*pages.sites, *(host_of(row["url"] or row["id"]) for row in graded)]
    sets = np.array([*pages.sets, *["quality"] * len(graded)])
    grades = np.array([*pages.grades, *(row["quality"] for row in graded)], float)
    columns = {
        name: pa.array([*pages.evidence[:, i], *[None] * len(graded)])
        for i, name in enumerate(classify_settings.PageEvidence.columns())
    }
    of_pages = page_log_odds(columns, classify_settings.default_settings().weights.page)
    log_odds = log_odds_of_others(pages, graded) + of_pages
    labels, formats = formats_of_others(texts, sites, examples)
    ours = own_language(texts)
    sets, grades, log_odds, formats = sets[ours], grades[ours], log_odds[ours], formats[ours]
    good = grades >= GOOD
    by_other_sets = log_odds.copy()
    for name in set(sets):
        inside = sets == name
        weights, offset = fitted(log_odds[~inside], formats[~inside], good[~inside])
        by_other_sets[inside] += formats[inside] @ weights + offset
    weights, offset = fitted(log_odds, formats, good)
    return {
        "pages": len(grades),
        "offset": round(offset, 2),
        "weights": {
            n: round(float(w), 2) for n, w in zip(labels, weights, strict=True) if abs(w) >= 0.005
        },
        "held_out": {
            name: {**separated(grades, odds), "at_limit": at_limit(grades, odds)}
            for name, odds in (("without", log_odds), ("with", by_other_sets))
        },
    }


def unseen(pages: Pages) -> dict[str, Any]:
    shipped = classify_settings.default_settings()
    ours = own_language(pages.texts)
    texts = [text for text, own in zip(pages.texts, ours, strict=True) if own]
    of_pages = {
        name: pa.array(pages.evidence[ours, i])
        for i, name in enumerate(classify_settings.PageEvidence.columns())
    }
    result: dict[str, Any] = {"pages": len(texts)}
    alone = Path(tempfile.mkdtemp(), "page.yaml")
    alone.write_text(yaml.safe_dump({"page": shipped.weights.page._asdict()}))
    for name, evidence in (("without", NamedFile(str(alone))), ("with", shipped.evidence)):
        settings = shipped.model_copy(update={"evidence": evidence})
        quality = Classifier(settings).apply(texts, None, of_pages).quality
        odds = np.clip(quality.to_numpy(zero_copy_only=False).astype(float), 5e-5, 1 - 5e-5)
        odds = np.log(odds / (1 - odds))
        result[name] = {
            **separated(pages.grades[ours], odds),
            "at_limit": at_limit(pages.grades[ours], odds),
        }
    return result


def main() -> None:
    chosen = options(__doc__)
    graded = json_rows(chosen.data / "quality" / "dev.jsonl.gz")
    with tempfile.TemporaryDirectory() as folder:
        files = labelled_files(chosen.data, Path(folder))[:2]  # pages, and written ones
        examples = read_labelled(class_settings("format"), files)
    taught, others = taught_and_unseen(chosen.data, chosen.models)
    print(json.dumps({**training(taught, graded, examples), "unseen": unseen(others)}, indent=1))


if __name__ == "__main__":
    main()
