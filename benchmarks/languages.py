"""Compare language identifiers on labelled texts, by length: ours, lid.176, CLD2, CLD3, lingua, langid.

python benchmarks/languages.py TEXTS.jsonl.gz ... [--lengths 15,30,50,0] [--per-source 100] [--model NAME=FILE.bin ...]

A line is {"text", "lang"[, "source"]}; labels are those of lid.176, and `xho_Latn` beyond it. Use
sources that no model was trained on: the sources of ours are on its card, whose metrics come from
sources held out. Every text is cut to its first characters (0: whole). Peers are compared where
they are installed, on the languages that lid.176 and the peer have in common; fastText models
(GlotLID, OpenLID) where a file is named. Prints JSON: accuracy over the 35 large languages, and
macro-F1 over the labels of the texts, of ours and lid.176 on the same texts as each peer.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curation.language import LanguageSettings, default_settings, identify
from models.training.inputs import rows
from models.training.metrics import macro_f1

Identifier = Callable[[Sequence[str]], list[str]]

#: Languages of most pages (Common Crawl's statistics of languages, CC-MAIN-2025-05).
LARGE = (
    "en ru de ja zh es fr it pt pl nl tr vi id cs ko fa ar sv hu el uk ro th da fi no sk bg he hr sr "
    "lt sl ca"
).split()
#: Codes of other identifiers and labels of lid.176.
SAME = {
    "nb": "no",
    "iw": "he",
    "jw": "jv",
    "zh-Hant": "zh",
    "zh-Latn": "zh",
    "fil": "tl",
    "in": "id",
}


def ours(labels: Any = 176, corrector: bool = True) -> Identifier:
    """The built-in identifier, or lid.176 alone."""
    base = default_settings().model_dump() | {"labels": labels, "unknown_below": 0}
    settings = LanguageSettings.model_validate(base if corrector else base | {"corrector": None})
    return lambda texts: identify(texts, settings)[0]


def of_file(path: str) -> Identifier:
    """A fastText model of a file."""
    base = default_settings().model_dump() | {"corrector": None, "unknown_below": 0}
    settings = LanguageSettings.model_validate(base | {"model": {"path": path, "sha256": None}})
    return lambda texts: [_usual(label) for label in identify(texts, settings)[0]]


def _usual(code: str) -> str:
    code = SAME.get(code, code)
    return SAME.get(code.split("-")[0], code.split("-")[0])


def peers() -> dict[str, Identifier]:
    """The other identifiers that are installed."""
    found: dict[str, Identifier] = {}
    for name, module, make in (
        ("CLD2", "pycld2", _cld2),
        ("CLD3", "gcld3", _cld3),
        ("langid", "py3langid", _langid),
        ("lingua", "lingua", _lingua),
    ):
        try:
            found[name] = make(importlib.import_module(module))
        except ImportError:
            continue
    return found


def _cld2(module: Any) -> Identifier:
    def one(text: str) -> str:
        try:
            return _usual(module.detect(text.encode(), bestEffort=True)[2][0][1])
        except module.error:
            return "und"

    return lambda texts: [one(text) for text in texts]


def _cld3(module: Any) -> Identifier:
    model = module.NNetLanguageIdentifier(0, 3000)
    return lambda texts: [_usual(model.FindLanguage(text).language) for text in texts]


def _langid(module: Any) -> Identifier:
    return lambda texts: [_usual(module.classify(text)[0]) for text in texts]


def _lingua(module: Any) -> Identifier:
    model = module.LanguageDetectorBuilder.from_all_languages().build()

    def code(found: Any) -> str:
        return _usual(found.iso_code_639_1.name.lower()) if found else "und"

    return lambda texts: [code(found) for found in model.detect_languages_in_parallel_of(texts)]


def read(paths: Sequence[Path], per_source: int) -> list[tuple[str, str]]:
    """Label and text, at most so many of each language and source."""
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    found = []
    for path in paths:
        for _, row in rows(path):
            key = (row["lang"], str(row.get("source", "")).split(":")[0])
            counts[key] += 1
            if counts[key] <= per_source:
                found.append((row["lang"], " ".join(row["text"].split())))
    return found


def judge(truth: list[str], found: list[str]) -> dict[str, Any]:
    """Accuracy over large languages and macro-F1 over all labels of the texts."""
    names = {name: i for i, name in enumerate(sorted({*truth, *found}))}
    a, b = (np.array([names[x] for x in v], np.int64) for v in (truth, found))
    large = np.isin(truth, LARGE)
    return {
        "texts": len(truth),
        "large": round(float((a == b)[large].mean()), 4) if large.any() else None,
        "macro_f1": round(macro_f1(a, b), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--lengths", default="15,30,50,0")
    parser.add_argument("--per-source", type=int, default=100)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE")
    options = parser.parse_args()
    texts = read(options.texts, options.per_source)
    all_peers = peers() | {n: of_file(f) for n, _, f in (m.partition("=") for m in options.model)}
    report: dict[str, Any] = {}
    for length in map(int, options.lengths.split(",")):
        cut = [text[: length or None].strip() for _, text in texts]
        truth = [label for label, _ in texts]
        first, both, every = (
            make(cut) for make in (ours(corrector=False), ours(), ours(labels="all"))
        )
        table = {"lid.176": judge(truth, first), "ours": judge(truth, both)}
        table["ours, all labels"] = judge(truth, every)
        for name, peer in all_peers.items():
            answers = peer(cut)
            known = set(answers)
            shared = [i for i, label in enumerate(truth) if label in known]
            pick = [[v[i] for i in shared] for v in (truth, answers, first, both)]
            table[f"shared with {name}"] = {
                title: judge(pick[0], column)
                for title, column in ((name, pick[1]), ("lid.176", pick[2]), ("ours", pick[3]))
            }
        report[str(length or "whole")] = table
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
