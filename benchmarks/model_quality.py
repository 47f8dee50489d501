"""Measure the models: language identification, quality, domain, topic, format, and their speed.

  python benchmarks/model_quality.py --data FOLDER --corpus CORPUS [--out result.json]
      [--only language,quality,domain,topic,format,unseen,speed]

FOLDER holds lid/dev.jsonl.gz (`text`, `lang`), lid/outofset-dev.jsonl.gz (languages the model does
not have), quality/dev.jsonl.gz (`text`, `url`, `quality`), extract/dev.tar.xz and
domain/dev.jsonl.gz (`text`, `label`, `source`); CORPUS is made by models/domain/make_corpus.py.
Prints JSON. The language model is judged as it is, and its corrector, which was trained on
these texts, by the cross-validation on its card. Quality, domain and topic are judged by
cross-validation, with folds that share no site or source: models are trained again for it, with the
settings of configs/train. `unseen` judges the built-in models on the labelled pages of the sets that
train none of them, without hosts of training pages. Speed is documents per second of processor time
on one core at 3,000 characters, best of `--rounds`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models" / "domain"))

from make_corpus import copies
from train import DOMAIN_FILES, class_settings, domain_inputs, domain_settings, labelled_files

from curation import resources
from curation.classify import classify_settings
from curation.classify.classifier import Classifier, decide_domains
from curation.classify.linear import sigmoid, softmax
from curation.extract import extract
from curation.language import LanguageIdentifier, identify, language_settings
from curation.language.decide import decide
from curation.models import read_card
from models.topic import make_corpus as topic
from models.training import metrics
from models.training.classes import ClassTask, train_classes
from models.training.heldout import folds_of
from models.training.inputs import read_examples
from models.training.linear import (
    Floats,
    features_of,
    grade_calibration,
    out_of_fold,
    temperature,
)
from models.training.report import About
from models.training.settings import LinearTraining, default_settings

#: Languages of most web pages (Common Crawl's statistics of languages, CC-MAIN-2025-05).
LARGE = (
    "en ru de ja zh es fr it pt pl nl tr vi id cs ko fa ar sv hu el uk ro th da fi no sk bg he"
).split()
CHARACTERS = 3000
COLUMNS = classify_settings.PageEvidence.columns()
SPLITS = 5  # of the few web pages about code
#: The files of examples that are labelled web pages; None: the graded pages.
WEB_FILES = (None, "web.jsonl.gz")
PRECISION = 0.8
ABOUT = About("0", "", "", "")
#: What models/topic/labels.tsv calls the domains of content.
DOMAIN_LETTERS = {"code": "c", "math_reasoning": "m"}
#: What the data call the domains; the rest is called the same.
NAMES = {"math": "math_reasoning"}


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def judge_language(data: Path) -> dict[str, Any]:
    """F1 of the first model by language, and what the card of its corrector says of both."""
    rows = rows_of(data / "lid" / "dev.jsonl.gz")
    settings = language_settings.default_settings().model_copy(update={"corrector": None})
    found, _ = identify([r["text"] for r in rows], settings)
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
    labels, scores = LanguageIdentifier(settings).apply(foreign)
    removed = decide(labels, scores, settings).reason.is_valid().to_numpy(False)
    named = np.array(labels.to_pylist()) != language_settings.UNKNOWN
    card = read_card(resources.root() / "models" / "corrector").metrics
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
        "held_out_sources": card["held_out_sources"],
        "close_languages": card["close_languages"],
    }


def judge_quality(pages: Path) -> dict[str, Any]:
    """Ranking of unseen sites' pages, and what the default thresholds keep of them."""
    settings = default_settings("quality", LinearTraining)
    examples = read_examples(
        [pages], settings.text_column, settings.label_column, settings.group_columns
    )
    grades = np.array(examples.labels, float)
    good = grades >= (settings.positive_grade or 0)
    scores, log_odds = held_out(examples.texts, grades, good, examples.groups, settings)
    quality = sigmoid(log_odds)
    languages, _ = identify(examples.texts)
    domains = Classifier(classify_settings.default_settings()).apply(
        examples.texts, pa.array(languages)
    )
    least = classify_settings.default_settings().min_quality
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


def held_out(
    texts: Sequence[str],
    grades: Floats,
    good: np.ndarray[Any, Any],
    groups: Sequence[str],
    settings: LinearTraining,
    always: Sequence[dict[str, Any]] = (),
) -> tuple[Floats, Floats]:
    """Return scores [texts, 1] by models that saw none of a text's group, and log odds of a good
    grade.

    All models learn from `always` too: rows with `text` and `quality` that are not judged.
    """
    more = np.arange(len(texts), len(texts) + len(always))
    targets = np.array([*grades, *(row["quality"] for row in always)], float)
    scores = out_of_fold(
        features_of([*texts, *(row["text"] for row in always)], settings),
        np.minimum(targets, settings.highest_grade or np.inf)[:, None],
        None,
        [(np.concatenate([train, more]), test) for train, test in folds_of(groups, settings)],
        settings,
    )[: len(texts)]
    slopes, offsets = grade_calibration(scores, grades, good)
    return scores, scores[:, 0] * slopes[0, 1] + offsets[1]


def judge_classes(task: ClassTask, inputs: list[Path]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        return dict(train_classes(task, inputs, folder, ABOUT, class_settings(task)).metrics)


def judge_unseen(data: Path) -> dict[str, Any]:
    """The built-in models on labelled pages of sets and hosts that they were not trained on."""
    labels = topic.read_labels()
    known = {host_of(row["url"]) for row in topic.pages(data)}
    sets = unseen_sets(labels)
    texts, truth, of_pages = [], [], []
    for page, html, url in topic.saved_pages(data, sets):
        if page in labels and host_of(url or page) not in known:
            made = extract(html, url=url)
            texts.append(made.text)
            of_pages.append({name: getattr(made, name) for name in COLUMNS})
            truth.append(labels[page])
    languages, _ = identify(texts)
    found = Classifier(classify_settings.default_settings()).apply(
        texts,
        pa.array(languages),
        {name: pa.array([of[name] for of in of_pages], pa.float32()) for name in of_pages[0]},
    )
    english = np.array(languages) == "en"
    grades = np.array([label.grade for label in truth])
    quality = found.quality.to_numpy(zero_copy_only=False).astype(float)

    def of(rows: np.ndarray[Any, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {
            "documents": int(rows.sum()),
            "quality": {
                "auc_good": round(metrics.auc(grades[rows] >= 3, quality[rows]), 4),
                "spearman": round(metrics.spearman(grades[rows], quality[rows]), 4),
            },
        }
        for name, letter in DOMAIN_LETTERS.items():
            given = np.array([label.domain == letter for label in truth])[rows]
            taken = np.array(found.domain.to_pylist())[rows] == name
            result[name] = {
                "documents": int(given.sum()),
                "taken": int(taken.sum()),
                "right": int((given & taken).sum()),
            }
        for name, column in (("topic", found.topic), ("format", found.format)):
            asked = np.array([getattr(label, name) for label in truth])[rows]
            answered = np.array(column.to_pylist())[rows]
            names = sorted({*asked, *answered})
            places = {n: i for i, n in enumerate(names)}
            a, b = (np.array([places[n] for n in x]) for x in (asked, answered))
            result[name] = {
                "accuracy": round(metrics.accuracy(a, b), 4),
                "macro_f1": round(metrics.macro_f1(a, b), 4),
                "by_class": metrics.by_class(a, b, names),
            }
        return result

    return of(np.ones(len(texts), bool)) | {"english": of(english), "others": of(~english)}


def unseen_sets(labels: Iterable[str]) -> list[str]:
    """The sets of labelled pages that train no model."""
    return sorted({page.split("/")[0] for page in labels} - {topic.GRADED, *topic.WEB})


def host_of(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.") or url


def judge_domain(data: Path, corpus: Path) -> dict[str, Any]:
    """Documents labelled by source, and real web pages, each by a model that saw none of its group.

    The documents are judged by the labels that they came with, the four domains as the stage
    decides them; training takes the labels as `make_corpus.py` corrected them, without the
    documents that are copies of graded pages. When documents are judged, such a page is on
    their side of the split; web pages are judged by splits of their own, by site.
    """
    graded = data / "quality" / "dev.jsonl.gz"
    sourced = rows_of(data / "domain" / "dev.jsonl.gz")
    corrected = {row["id"]: row["label"] for row in rows_of(corpus / "sourced.jsonl.gz")}
    settings = domain_settings()
    examples = read_examples(
        [data / "domain" / "dev.jsonl.gz", *domain_inputs(graded, corpus)[1:]],
        settings.text_column,
        settings.label_column,
        settings.group_columns,
    )
    names = ("general", "math_reasoning", "code")
    given = np.array([NAMES.get(label, label) for label in examples.labels], object)
    taught = given.copy()
    taught[: len(sourced)] = [
        NAMES.get(label, label) for label in (corrected.get(row["id"]) for row in sourced)
    ]
    truth = np.array([names.index(v) if v in names else 0 for v in taught])
    files = np.array(examples.inputs)
    weights = np.array(settings.file_weights)[files] * np.isin(taught, names)
    sums = np.bincount(truth, weights, len(names))
    weights_of_classes = weights / sums[truth] * weights.sum() / len(names)
    features = features_of(examples.texts, settings)
    web = np.isin(files, [list(DOMAIN_FILES).index(name) for name in WEB_FILES])

    def probabilities(groups: list[str], seed: int = settings.seed) -> np.ndarray[Any, Any]:
        split = settings.model_copy(update={"seed": seed})
        scores = out_of_fold(
            features,
            np.eye(len(names))[truth],
            weights_of_classes,
            folds_of(groups, split, truth),
            settings,
        )
        return softmax(scores * temperature(scores, truth, weights_of_classes))

    by_source = list(examples.groups)
    for document, page in copies(sourced, rows_of(graded)):
        by_source[len(sourced) + page] = by_source[document]
    found = probabilities(by_source)
    rows = np.flatnonzero(files == 0)
    languages, _ = identify([examples.texts[i] for i in rows])
    stage = classify_settings.default_settings()
    decided = decide_domains(found[rows], names, pa.array(languages), stage)
    four = (*names, "multilingual")
    asked = np.array([four.index(v) for v in given[rows]])
    answered = np.array([four.index(v) for v in decided.to_pylist()])
    content = asked < len(names)
    return {
        "documents": len(rows),
        "macro_f1": round(metrics.macro_f1(asked, answered), 4),
        "macro_f1_by_content": round(
            metrics.macro_f1(asked[content], found[rows][content].argmax(1)), 4
        ),
        "by_class": metrics.by_class(asked, answered, four),
        "web_code": _web_code(
            given[web] == "code",
            [
                probabilities(examples.groups, settings.seed + split)[web, names.index("code")]
                for split in range(SPLITS)
            ],
            stage.domain_at_least["code"],
        ),
    }


def _web_code(
    truth: np.ndarray[Any, Any], splits: list[np.ndarray[Any, Any]], floor: float
) -> dict[str, Any]:
    """Precision and recall at the stage's threshold, and recall where precision is 0.8.

    The pages are few, so that both are means over several splits.
    """
    precision, recall, reached = [], [], []
    for scores in splits:
        order = np.argsort(-scores, kind="stable")
        hits = np.cumsum(truth[order])
        enough = np.flatnonzero(hits >= PRECISION * np.arange(1, len(order) + 1))
        taken = scores >= floor
        precision.append(float(truth[taken].mean()))
        recall.append(float(taken[truth].mean()))
        reached.append(round(float(hits[enough[-1]] / truth.sum()), 4))
    return {
        "documents": int(truth.sum()),
        "precision": round(float(np.mean(precision)), 4),
        "recall": round(float(np.mean(recall)), 4),
        "recall_at_precision_0.8": round(float(np.mean(reached)), 4),
        "that_by_split": reached,
    }


def measure_speed(data: Path, rounds: int) -> dict[str, float]:
    """Documents per second of processor time, whole batches of 1,000."""
    texts = [r["text"] for r in rows_of(data / "quality" / "dev.jsonl.gz")]
    stream = "\n".join(texts)
    batch = pa.array(
        [stream[i : i + CHARACTERS] for i in range(0, 1000 * CHARACTERS, CHARACTERS)],
        pa.large_string(),
    )
    identifier = LanguageIdentifier(language_settings.default_settings())
    classifier = Classifier(classify_settings.default_settings())

    def both() -> None:
        labels, _ = identifier.apply(batch)
        classifier.apply(batch, labels)

    tasks: dict[str, Callable[[], Any]] = {
        "language": lambda: identifier.apply(batch),
        "classify": lambda: classifier.apply(batch),
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
    parser.add_argument("--corpus", type=Path, help="made by models/domain/make_corpus.py")
    parser.add_argument("--only", default="language,quality,domain,topic,format,unseen,speed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "language": lambda: judge_language(options.data),
        "quality": lambda: judge_quality(labelled[0]),
        "domain": lambda: judge_domain(options.data, options.corpus),
        "topic": lambda: judge_classes("topic", labelled),
        "format": lambda: judge_classes("format", labelled[:2]),
        "unseen": lambda: judge_unseen(options.data),
        "speed": lambda: measure_speed(options.data, options.rounds),
    }
    chosen = options.only.split(",")
    if unknown := sorted(set(chosen) - set(parts)):
        parser.error(f"--only {unknown[0]}: known are {', '.join(parts)}")
    if "domain" in chosen and options.corpus is None:
        parser.error("the domains need --corpus")
    with tempfile.TemporaryDirectory() as folder:
        needed = {"quality", "topic", "format"} & set(chosen)
        labelled = labelled_files(options.data, Path(folder)) if needed else []
        result = {name: parts[name]() for name in chosen}
    text = json.dumps(result, indent=1, ensure_ascii=False)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
