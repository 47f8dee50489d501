"""Fit the weights of `models/quality/evidence.yaml` for pages, and show what they are worth.

  python -m models.training.extract --data SETS --output FOLDS --cross-fit
  python benchmarks/page_evidence.py --data DATA --models FOLDS

DATA has `extract/dev.tar.xz` (SETS are its sets, unpacked) and `quality/dev.jsonl.gz`. The pages of
the sets that may train a shipped model are read by extraction models, and judged by quality models,
of other sites: both are surer of pages that they learned from. A logistic regression of a good
grade (3 and more) on the quality model's log odds and the columns of `extract` gives the weights,
relative to that of the log odds.

Prints JSON. `held_out` are these pages set by set, by weights fitted on the other sets; `unseen` are
the sets that train nothing, by models and weights as they are shipped. `rubbish_kept` is the share
of rubbish (grades 0 and 1) over the limit below which 1.5 % of good pages are.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from extraction import rows_of as pages_of
from extraction import sets_in
from model_quality import held_out, host_of
from model_quality import rows_of as json_rows
from sklearn.linear_model import LogisticRegression
from yields.pages import UNSEEN, read_labels

from curation.classify import classify_settings
from curation.classify.classifier import Classifier
from curation.extract import Extractor
from curation.extract.extractor import default_settings as extract_settings
from curation.language import identify
from curation.models import ModelFile
from models.quality import make_corpus as quality_corpus
from models.training import metrics
from models.training.extract import model_name
from models.training.extract.pages import fold_of, group_of
from models.training.extract.settings import default_training
from models.training.linear import Floats
from models.training.settings import LinearTraining, default_settings

COLUMNS = classify_settings.PageEvidence.columns()
GOOD, GOOD_LOST = 3, 0.015


@dataclass(frozen=True)
class Pages:
    """Labelled pages as an extractor read them, [n] each."""

    sets: list[str]
    sites: list[str]
    texts: list[str]
    grades: Floats
    evidence: Floats  # [n, len(COLUMNS)]

    @property
    def good(self) -> Any:
        return self.grades >= GOOD


def fold_extractors(models: Path) -> list[Extractor]:
    """An extractor for each fold of sites, by the model that saw none of them."""
    settings = extract_settings()
    files = [models / model_name(fold, False) for fold in range(default_training().folds)]
    return [
        Extractor(settings.model_copy(update={"model": ModelFile(path=str(file))}))
        for file in files
    ]


def read(sets: Path, names: list[str], extractors: list[Extractor]) -> Pages:
    """Read labelled pages, each with the extractor of its fold."""
    labels = read_labels()
    rows: list[tuple[str, str, str, int, list[float]]] = []
    for name in names:
        for row, html in pages_of(sets, name):
            page = f"{name}/{row['id']}"
            if page not in labels:
                continue
            found = extractors[fold_of(group_of(row), len(extractors))].extract(html)
            values = [getattr(found, column) for column in COLUMNS]
            if None not in values:  # the page states its text
                site = host_of(row.get("url") or page)
                rows.append((name, site, found.text, labels[page].grade, values))
    where, sites, texts, grades, evidence = zip(*rows, strict=True)
    return Pages(
        list(where), list(sites), list(texts), np.array(grades, float), np.array(evidence, float)
    )


def separated(grades: Floats, log_odds: Floats) -> dict[str, float]:
    limit = np.quantile(log_odds[grades >= GOOD], GOOD_LOST)
    return {
        "auc_good": round(metrics.auc(grades >= GOOD, log_odds), 4),
        "auc_not_rubbish": round(metrics.auc(grades > 1, log_odds), 4),
        "rubbish_kept": round(float((log_odds[grades <= 1] > limit).mean()), 4),
    }


def log_odds_of_others(pages: Pages, graded: list[dict[str, Any]]) -> Floats:
    """Log odds of a good grade by quality models that saw no page of the site.

    [pages + graded], the pages first.
    """
    grades = np.array([*pages.grades, *(row["quality"] for row in graded)], float)
    _, log_odds = held_out(
        [*pages.texts, *(row["text"] for row in graded)],
        grades,
        grades >= GOOD,
        [*pages.sites, *(host_of(row["url"] or row["id"]) for row in graded)],
        default_settings("quality", LinearTraining),
        list(quality_corpus.written("pages.written")),
    )
    return log_odds


def fitted(table: Floats, good: Any) -> LogisticRegression:
    return LogisticRegression(C=1e6, max_iter=1000).fit(table, good)


def training(pages: Pages, graded: list[dict[str, Any]]) -> dict[str, Any]:
    log_odds = log_odds_of_others(pages, graded)[: len(pages.texts)]
    table = np.column_stack([log_odds, pages.evidence])
    by_other_sets = np.zeros(len(table))
    for name in set(pages.sets):
        inside = np.array(pages.sets) == name
        model = fitted(table[~inside], pages.good[~inside])
        by_other_sets[inside] = model.decision_function(table[inside])
    model = fitted(table, pages.good)
    of_odds, *of_columns = model.coef_[0]
    weights = dict(zip(COLUMNS, of_columns, strict=True))
    return {
        "pages": len(table),
        "weights": {
            name: round(float(weight / of_odds), 2)
            for name, weight in ({"offset": model.intercept_[0]} | weights).items()
        },
        "held_out": {
            "without": separated(pages.grades, table[:, 0]),
            "with": separated(pages.grades, by_other_sets),
        },
    }


def unseen(pages: Pages) -> dict[str, Any]:
    shipped = classify_settings.default_settings()
    languages = pa.array(identify(pages.texts)[0])
    of_pages = {name: pa.array(pages.evidence[:, i]) for i, name in enumerate(COLUMNS)}
    result: dict[str, Any] = {"pages": len(pages.texts)}
    for name, columns in (("without", None), ("with", of_pages)):
        quality = Classifier(shipped).apply(pages.texts, languages, columns).quality
        result[name] = separated(pages.grades, quality.to_numpy(zero_copy_only=False))
    return result


def options(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True, metavar="FOLDS")
    return parser.parse_args()


def taught_and_unseen(data: Path, models: Path) -> tuple[Pages, Pages]:
    """Pages of the sets that may train, read by models of other sites, and of those that do not."""
    with sets_in(data / "extract") as sets:
        names = sorted(path.parent.name for path in sets.glob("*/gold.jsonl"))
        taught = read(sets, [n for n in names if n not in UNSEEN], fold_extractors(models))
        others = read(sets, [n for n in names if n in UNSEEN], [Extractor(extract_settings())])
    return taught, others


def main() -> None:
    chosen = options(__doc__)
    graded = json_rows(chosen.data / "quality" / "dev.jsonl.gz")
    taught, others = taught_and_unseen(chosen.data, chosen.models)
    print(json.dumps({**training(taught, graded), "unseen": unseen(others)}, indent=1))


if __name__ == "__main__":
    main()
