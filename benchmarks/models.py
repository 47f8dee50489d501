"""Measure the models: language identification, quality, domain, topic, and their speed.

  python benchmarks/models.py --data FOLDER [--only language,quality,domain,topic,speed]
      [--documentation docs.jsonl.gz] [--out result.json]

FOLDER holds lid/dev.jsonl.gz (`text`, `lang`), lid/outofset-dev.jsonl.gz (languages the model does
not have), quality/dev.jsonl.gz (`text`, `url`, `quality`, `domain`, `topic`) and
domain/dev.jsonl.gz (`text`, `label`, `source`). Prints JSON. The language model is judged as it stands, and its
corrector, which was trained on these texts, by the cross-validation on its card. Quality, domain
and topic are judged
by cross-validation, with folds that share no site or source: models are trained anew for it, with
the settings of configs/train. Speed is documents per second of processor time on one core at
3,000 characters, best of `--rounds`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from curation import classify, language, resources
from curation.classify.classifier import sigmoid
from curation.models import read_card
from curation.train import About, metrics, train_domain, train_topic
from curation.train.heldout import folds_of
from curation.train.inputs import read_examples
from curation.train.linear import features_of, grade_calibration, out_of_fold
from curation.train.settings import LinearTraining, default_settings

#: Languages of most web pages (Common Crawl's statistics of languages, CC-MAIN-2025-05).
LARGE = (
    "en ru de ja zh es fr it pt pl nl tr vi id cs ko fa ar sv hu el uk ro th da fi no sk bg he"
).split()
CHARACTERS = 3000
ABOUT = About("0", "", "", "")


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def judge_language(data: Path) -> dict[str, Any]:
    """F1 by language; `accepted` is the share of foreign texts above their language's threshold."""
    rows = rows_of(data / "lid" / "dev.jsonl.gz")
    settings = language.default_settings().model_copy(update={"corrector": None})
    found, _ = language.identify([r["text"] for r in rows], settings)
    names = sorted({r["lang"] for r in rows} | set(found))
    index = {n: i for i, n in enumerate(names)}
    truth = np.array([index[r["lang"]] for r in rows])
    guess = np.array([index[n] for n in found])
    by_class = metrics.by_class(truth, guess, names)
    f1 = {
        name: round(2 * c["precision"] * c["recall"] / max(c["precision"] + c["recall"], 1e-9), 4)
        for name, c in by_class.items()
        if c["documents"]
    }
    large = np.isin(truth, [index[n] for n in LARGE if n in index])
    foreign = pa.array([r["text"] for r in rows_of(data / "lid" / "outofset-dev.jsonl.gz")])
    labels, scores = language.LanguageIdentifier(settings).apply(foreign)
    removed = language.decide(labels, scores, settings).reason.is_valid().to_numpy(False)
    named = np.array(labels.to_pylist()) != language.UNKNOWN
    return {
        "documents": len(rows),
        "languages": len(f1),
        "macro_f1": round(metrics.macro_f1(truth, guess), 4),
        "accuracy": round(metrics.accuracy(truth, guess), 4),
        "accuracy_30_largest": round(metrics.accuracy(truth[large], guess[large]), 4),
        "out_of_set": {
            "documents": len(foreign),
            "named": round(float(named.mean()), 4),
            "accepted": round(float((named & ~removed).mean()), 4),
        },
        "f1": f1,
        "corrector": read_card(resources.root() / "models" / "corrector").metrics[
            "at_threshold_0.5"
        ],
    }


def judge_quality(data: Path) -> dict[str, Any]:
    """Ranking of unseen sites' pages, and what the default thresholds keep of them."""
    settings = default_settings("quality", LinearTraining)
    examples = read_examples(
        [data / "quality" / "dev.jsonl.gz"],
        settings.text_column,
        settings.label_column,
        settings.group_columns,
    )
    grades = np.array(examples.labels, float)
    good = grades >= (settings.positive_grade or 0)
    scores = out_of_fold(
        features_of(examples.texts, settings),
        grades[:, None],
        None,
        folds_of(examples.groups, settings),
        settings,
    )
    slopes, offsets = grade_calibration(scores, grades, good)
    quality = sigmoid(scores[:, 0] * slopes[0, 1] + offsets[1])
    languages, _ = language.identify(examples.texts)
    domains = classify.Classifier(classify.default_settings()).apply(
        examples.texts, pa.array(languages)
    )
    least = classify.default_settings().min_quality
    kept = quality >= np.array([least.get(d, 0.0) for d in domains.domain.to_pylist()])
    tongues = np.array(languages)
    common = [n for n, count in Counter(languages).most_common() if count >= 15]

    def row(rows: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {
            "documents": int(rows.sum()),
            "kept": round(float(kept[rows].mean()), 4),
            "good_kept": round(float(kept[rows & good].mean()), 4) if (rows & good).any() else None,
            "spearman": round(metrics.spearman(grades[rows], scores[rows, 0]), 4),
            "auc_good": round(metrics.auc(good[rows], scores[rows, 0]), 4),
        }

    return {
        **row(np.ones(len(grades), bool)),
        "kept_by_grade": {
            f"{g:g}": round(float(kept[grades == g].mean()), 4) for g in np.unique(grades)
        },
        "quality_by_kept_share": {
            f"{share:.1f}": round(float(np.quantile(quality, 1 - share)), 4)
            for share in (0.9, 0.8, 0.7, 0.5, 0.3, 0.1)
        },
        "by_language": {n: row(tongues == n) for n in common},
        "other_languages": row(~np.isin(tongues, common)),
    }


def judge_classes(train: Callable[..., Any], inputs: list[Path]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return dict(train(inputs, folder, ABOUT).metrics)


def judge_domain(sourced: Path, graded: Path, documentation: Path | None) -> dict[str, Any]:
    """With the documentation pages (models/domain/make_corpus.py) as the built-in model, or not."""
    inputs = [sourced, graded, *([documentation] if documentation else [])]
    weights = (1.0, 2.0, 1.0)[: len(inputs)]
    settings = default_settings("domain", LinearTraining).model_copy(
        update={"file_weights": weights}
    )
    return judge_classes(partial(train_domain, settings=settings), inputs)


def measure_speed(data: Path, rounds: int) -> dict[str, float]:
    """Documents per second of processor time, whole batches of 1,000."""
    texts = [r["text"] for r in rows_of(data / "quality" / "dev.jsonl.gz")]
    stream = "\n".join(texts)
    batch = pa.array(
        [stream[i : i + CHARACTERS] for i in range(0, 1000 * CHARACTERS, CHARACTERS)],
        pa.large_string(),
    )
    identifier = language.LanguageIdentifier(language.default_settings())
    classifier = classify.Classifier(classify.default_settings())

    def both() -> None:
        labels, _ = identifier.apply(batch)
        classifier.apply(batch, labels)

    tasks: dict[str, Callable[[], Any]] = {
        "language": lambda: identifier.apply(batch),
        "quality_domain_topic": lambda: classifier.apply(batch),
        "all_models": both,
    }
    speed = {}
    with threadpool_limits(1):
        for name, task in tasks.items():
            task()  # loads models and compiles
            seconds = []
            for _ in range(rounds):
                begin = time.process_time()
                task()
                seconds.append(time.process_time() - begin)
            speed[name] = round(len(batch) / min(seconds), 1)
    return speed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documentation", type=Path, help="made by models/domain/make_corpus.py")
    parser.add_argument("--only", default="language,quality,domain,topic,speed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    graded = options.data / "quality" / "dev.jsonl.gz"
    sourced = options.data / "domain" / "dev.jsonl.gz"
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "language": lambda: judge_language(options.data),
        "quality": lambda: judge_quality(options.data),
        "domain": lambda: judge_domain(sourced, graded, options.documentation),
        "topic": lambda: judge_classes(train_topic, [graded]),
        "speed": lambda: measure_speed(options.data, options.rounds),
    }
    chosen = options.only.split(",")
    if unknown := sorted(set(chosen) - set(parts)):
        parser.error(f"--only {unknown[0]}: known are {', '.join(parts)}")
    result = {name: parts[name]() for name in chosen}
    text = json.dumps(result, indent=1, ensure_ascii=False)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
