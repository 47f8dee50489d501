"""Train the built-in models of languages, quality, domain and topic.

python models/train.py --data FOLDER [--only NAME]

FOLDER holds lid/dev.jsonl.gz, lid/outofset-dev.jsonl.gz, quality/dev.jsonl.gz and
domain/dev.jsonl.gz. The same data and library versions give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from curation.train import (
    About,
    train_citable,
    train_corrector,
    train_domain,
    train_quality,
    train_topic,
)
from curation.train.settings import LinearTraining, default_settings

COMMAND = "python models/train.py --data FOLDER --only {}"
MORE = {"domain": " --corpus CORPUS  # models/domain/make_corpus.py --data FOLDER CORPUS"}
LICENCE = "Apache-2.0"
VERSION = "1"
GRADED = (
    "Real web pages in several languages, graded 0-5 and labelled by one pass of a language model "
    "against a rubric; only weights are distributed, no text."
)
SOURCED = (
    "The same pages' domain labels, and documents labelled by source: OpenStax, Open Logic, "
    "WCXB, XQuAD (CC BY, CC BY-SA), gsm8k, AQuA, TheAlgorithms, Rust by Example, Vue docs, jwarc, "
    "warcio.js (MIT, Apache-2.0, CC BY), with 16 corrections; web pages of public extraction sets "
    "(WCXB, scrapinghub, magic-html, readability, trafilatura, WebMainBench) and documentation "
    "packages of Debian 12 (free licences), labelled by us; generated mathematics; 1,230 pages "
    "written for this by a language model (written.jsonl.gz). Only weights are distributed."
)
SPOKEN = (
    "Texts in 176 languages and in 391 others: FLORES (SIB-200), Leipzig corpora, Universal "
    "Declaration of Human Rights, Tatoeba, Universal Dependencies, African Storybook, Pratham "
    "Books, WordPress and MediaWiki messages (CC BY, CC BY-SA, GPL); web pages by the first "
    "model's labels. Only weights are distributed, no text."
)


#: Weights of the files of examples of the domains; None: the graded pages.
DOMAIN_FILES = {
    "sourced.jsonl.gz": 1.0,
    None: 3.0,
    "documentation.jsonl.gz": 0.5,
    "web.jsonl.gz": 3.0,
    "problems.jsonl.gz": 0.5,
    "written.jsonl.gz": 8.0,
}


def domain_inputs(graded: Path, corpus: Path) -> list[Path]:
    """The files of `DOMAIN_FILES`, in order."""
    return [corpus / name if name else graded for name in DOMAIN_FILES]


def domain_settings() -> LinearTraining:
    """Web pages count more: they are what the model is for, and few of them are code."""
    settings = default_settings("domain", LinearTraining)
    return settings.model_copy(update={"file_weights": tuple(DOMAIN_FILES.values())})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--corpus", type=Path, help="for the domains: made by models/domain/make_corpus.py"
    )
    parser.add_argument("--only", choices=["corrector", "citable", "quality", "domain", "topic"])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    graded = options.data / "quality" / "dev.jsonl.gz"
    spoken = [options.data / "lid" / n for n in ("dev.jsonl.gz", "outofset-dev.jsonl.gz")]
    tasks = {
        "corrector": (partial(train_corrector, pages=[graded]), spoken, SPOKEN),
        "citable": (train_citable, [graded], GRADED),
        "quality": (train_quality, [graded], GRADED),
        "domain": (
            partial(train_domain, settings=domain_settings()),
            domain_inputs(graded, options.corpus) if options.corpus else [],
            SOURCED,
        ),
        "topic": (train_topic, [graded], GRADED),
    }
    for name, (train, inputs, source) in tasks.items():
        if options.only in (None, name):
            if not inputs:
                parser.error("the domain model needs --corpus")
            about = About(VERSION, LICENCE, source, COMMAND.format(name) + MORE.get(name, ""))
            print(train(inputs, options.output / name, about), file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
