"""Train the built-in models of languages, quality, domain, topic and format.

python models/train.py --data FOLDER [--only NAME]

FOLDER holds lid/dev.jsonl.gz, lid/outofset-dev.jsonl.gz, multilingual/train.jsonl.xz,
words/opensubtitles-50k.tar.xz, quality/dev.jsonl.gz, extract/dev.tar.xz and domain/dev.jsonl.gz.
The same data and library versions give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from models.corrector import make_corpus as corrector
from models.quality import make_corpus as quality
from models.topic import make_corpus as topic
from models.training.classes import train_classes
from models.training.corrector import train_corrector
from models.training.quality import train_quality
from models.training.report import About
from models.training.settings import LinearTraining, OtherLanguages, default_settings

COMMAND = "python models/train.py --data FOLDER --only {}"
MORE = {
    "domain": " --corpus CORPUS  # made by models/domain/make_corpus.py",
    "quality": " --sites formasaurus-0.10.0.tar.gz  # models/quality/make_corpus.py says whence",
    "educational": " --sites formasaurus-0.10.0.tar.gz",
}
#: Models of grades; the second is trained on the last file of models/quality/make_corpus.py.
GRADED = ("quality", "educational")
LICENCE = "Apache-2.0"
VERSION = "1"
LABELLED = (
    "Real web pages in several languages, some of public extraction sets (WCXB, scrapinghub, "
    "magic-html, readability, trafilatura, WebMainBench), labelled by a language model that read "
    "them (labels.tsv and TAXONOMY.md in models/topic); only weights are distributed, no text."
)
WRITTEN = LABELLED + " Pages written for this by a language model (models/topic/written.jsonl.gz)."
GRADED_TEXTS = LABELLED + (
    " Stories, manuals, guides, remarks and encyclopedic texts in 60 languages, graded by a "
    "language model that read them (labels.tsv): African Storybook, Pratham Books (CC BY), "
    "XQuAD, Universal Dependencies (CC BY-SA, CC BY), opensource.guide (CC BY), GNOME, tldr, "
    "Electron, React, Astro, Python, coding-interview-university, bitcoin.org, Mozilla (CC BY-SA, "
    "CC BY, MIT, CC0, MPL-2.0), nsmc, wisesight, thaigov (CC0, public domain); 888 texts in 46 "
    "languages and 283 pages in English and German written for this by a language model "
    "(written.jsonl.gz, pages.written.jsonl.gz). Pages of Formasaurus (MIT) in 30 languages, "
    "graded in the same way."
)
LEARNT = (
    "2,217 of the quality model's pages and texts, in 69 languages, graded by a language model "
    "that read them, for how much a reader learns (labels.tsv). Only weights are distributed."
)
SOURCED = (
    "The same pages' domain labels, and documents labelled by source: OpenStax, Open Logic, "
    "WCXB, XQuAD (CC BY, CC BY-SA), gsm8k, AQuA, TheAlgorithms, Rust by Example, Vue docs, jwarc, "
    "warcio.js (MIT, Apache-2.0, CC BY), with 16 corrections; web pages of public extraction sets "
    "(WCXB, scrapinghub, magic-html, readability, trafilatura, WebMainBench) and documentation "
    "packages of Debian 12 (free licences), labelled by us; generated mathematics; 1,230 pages "
    "written for this by a language model (written.jsonl.gz); pages of Formasaurus (MIT), labelled "
    "by us; GNOME's user manual in 40 languages (CC BY-SA, CC BY). Only weights are distributed."
)
SPOKEN = (
    "Texts in 176 languages and in 346 others: FLORES (SIB-200), Leipzig corpora (some of them by "
    "way of the packages of lingua), Universal Declaration of Human Rights, Tatoeba, Universal "
    "Dependencies, African Storybook, Pratham Books, WordPress and MediaWiki messages (CC BY, "
    "CC BY-SA, GPL); LibreOffice in 11 African languages (MPL-2.0); Common Voice sentences, "
    "nsmc, wisesight, thaigov (CC0, public domain), UD treebanks (CC BY, CC BY-SA), manuals of "
    "GNOME, React, Astro, Electron, Python, opensource.guide, tldr, bitcoin.org, Mozilla, "
    "coding-interview-university (CC BY, CC BY-SA, MIT, MPL-2.0); words by frequency in "
    "OpenSubtitles (hermitdave/FrequencyWords, CC-BY-SA-4.0); web pages by the first model's "
    "labels. Only weights are distributed, no text."
)


#: Weights of the files of examples of the domains; None: the graded pages.
DOMAIN_FILES = {
    "sourced.jsonl.gz": 1.0,
    None: 3.0,
    "documentation.jsonl.gz": 0.5,
    "web.jsonl.gz": 3.0,
    "problems.jsonl.gz": 0.5,
    "written.jsonl.gz": 8.0,
    "sites.jsonl.gz": 3.0,
    "manuals.jsonl.gz": 0.5,
}


#: How the files of models/quality/make_corpus.py count: English pages, pages in other languages,
#: texts of special kinds in English and German, texts in other languages, pages of sites, pages in
#: English and German written for this.
QUALITY_WEIGHTS = (1.0, 1.0, 1.0, 0.0, 0.0, 1.0)
#: The same for the part that judges other languages.
OTHERS = OtherLanguages(
    languages=("en", "de"), file_weights=(0.3, 1, 1, 0.5, 1, 0), min_documents=6, judged=(1, 3)
)

#: Weights of real pages, of pages written for this purpose in English and German and in others, and
#: of lists of words.
WEIGHTS = {"topic": (1.0, 1.0, 1.0, 5.0), "format": (1.0, 2.0)}


def domain_inputs(graded: Path, corpus: Path) -> list[Path]:
    """Return the files of `DOMAIN_FILES`, in order."""
    return [corpus / name if name else graded for name in DOMAIN_FILES]


def domain_settings() -> LinearTraining:
    """Web pages count more: they are what the model is for, and few of them are code."""
    settings = default_settings("domain", LinearTraining)
    return settings.model_copy(update={"file_weights": tuple(DOMAIN_FILES.values())})


def labelled_files(data: Path, out: Path) -> list[Path]:
    """Examples for quality, topic and format, made by models/topic/make_corpus.py."""
    return list(topic.make(data, out))


def quality_settings() -> LinearTraining:
    """Two parts: one for English and German, one for other languages."""
    changed = {"file_weights": QUALITY_WEIGHTS, "judged_files": 2, "others": OTHERS}
    return default_settings("quality", LinearTraining).model_copy(update=changed)


def educational_settings() -> LinearTraining:
    """Return one part for all languages, which learns to tell good texts from each other, too."""
    settings = default_settings("quality", LinearTraining)
    return settings.model_copy(update={"highest_grade": None})


def class_settings(task: Any) -> LinearTraining:
    """Weights of the files; the first one has the real pages, by which the model is judged."""
    settings = default_settings(task, LinearTraining)
    return settings.model_copy(update={"file_weights": WEIGHTS[task], "judged_files": 1})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--corpus", type=Path, help="for the domains: made by models/domain/make_corpus.py"
    )
    parser.add_argument("--sites", type=Path, help="for the quality: the archive of Formasaurus")
    names = ["corrector", *GRADED, "domain", "topic", "format"]
    parser.add_argument("--only", choices=names)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    chosen = [name for name in names if options.only in (None, name)]
    if "domain" in chosen and options.corpus is None:
        parser.error("the domain model needs --corpus")
    if set(GRADED) & set(chosen) and options.sites is None:
        parser.error("models of grades need --sites")
    graded = options.data / "quality" / "dev.jsonl.gz"
    with tempfile.TemporaryDirectory() as folder:
        labelled: list[Path] = []
        spoken: list[Path] = []
        words: list[Path] = []
        if "corrector" in chosen:
            spoken = [corrector.make(options.data, Path(folder))]
            words = [corrector.make_lists(options.data, Path(folder))]
        if set(WEIGHTS) & set(chosen):
            labelled = labelled_files(options.data, Path(folder))
        graded_texts: list[Path] = []
        if set(GRADED) & set(chosen):
            graded_texts = quality.make(options.data, options.sites, Path(folder))
        tasks: dict[str, tuple[Callable[..., Any], list[Path], str]] = {
            "corrector": (
                partial(train_corrector, pages=[graded], words=words),
                spoken,
                SPOKEN,
            ),
            "quality": (
                partial(train_quality, settings=quality_settings()),
                graded_texts[:-1],
                GRADED_TEXTS,
            ),
            "educational": (
                partial(train_quality, settings=educational_settings(), name="educational"),
                graded_texts[-1:],
                LEARNT,
            ),
            "domain": (
                partial(train_classes, "domain", settings=domain_settings()),
                domain_inputs(graded, options.corpus) if options.corpus else [],
                SOURCED,
            ),
            "topic": (
                partial(train_classes, "topic", settings=class_settings("topic")),
                labelled,
                WRITTEN,
            ),
            "format": (
                partial(train_classes, "format", settings=class_settings("format")),
                labelled[:2],
                WRITTEN,
            ),
        }
        for name in chosen:
            train, inputs, source = tasks[name]
            about = About(VERSION, LICENCE, source, COMMAND.format(name) + MORE.get(name, ""))
            print(train(inputs, options.output / name, about), file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
