"""Do our pages train better models? The same real pages through four pipelines, at equal tokens.

    python benchmarks/proof.py --data DATA --datatrove PYTHON --corpora FOLDER   # n-gram models
    python benchmarks/proof.py --corpora FOLDER --size 150M --device cuda        # transformers, too
    python benchmarks/proof.py --corpora FOLDER --size 5M --prepare ELSEWHERE

The English pages of DATA (extraction sets, graded texts, WARC files) that are distinct go through
our recipes `llama3` and `fineweb`, datatrove's FineWeb pipeline with trafilatura, and plain text
without boilerplate removal. Models learn from each, and are measured on gold main texts of sites
and whole sets that no pipeline was given (benchmarks/proofs/pages.py). FOLDER keeps what the
pipelines made, a few MB; with it alone the rest runs anywhere.

Printed are bits per byte, with intervals over sites and seeds, for

once    equal tokens, each read once: as many as the smallest output has
all     equal tokens read, from all that each pipeline kept: the smallest output's `--epochs` times
        (default 4), so that a larger output repeats less

of trigram models for all pipelines and their parts, and with --size of transformers (`curate
ablate`'s) for four of them; both of all pages, and of those of sets that no model of the toolkit
learned from.

--prepare writes two folders, `all` and `unseen`, from which `python -m curation.ablate` trains where
only numpy and PyTorch are.

Making the corpora takes about 15 minutes on two cores (benchmarks/datatrove_fineweb.py says how to
make the interpreter), trigrams one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from proofs.corpora import CORPORA, GOLD, TRAINED, make

from curation.ablate.compare import count_all, train_all
from curation.ablate.experiment import Experiment, save
from curation.ablate.prepare import Text, experiment, smaller
from curation.ablate.results import markdown, summary, write
from curation.ablate.training import SIZES, Training
from curation.tokenize import load_tokenizer

TRIGRAM_VOCABULARY = 16_384
PAGES = ("all", "unseen")  # unseen: of sets that no model of the toolkit learned from


def texts_of(path: Path, pages: str = "all") -> list[Text]:
    """Return the texts of a file that are of some of PAGES."""
    rows = pq.read_table(path).to_pylist()
    return [Text(row["text"], row["url"]) for row in rows if pages == "all" or row["unseen"]]


def prepared(folder: Path, names: Sequence[str], vocabulary: int, pages: str) -> Experiment:
    """Return the experiment of some pipelines' outputs."""
    gold = sorted(folder.glob(f"{GOLD}-*.parquet"))
    return experiment(
        smaller(load_tokenizer("curation-128k"), vocabulary),
        [(name, texts_of(folder / f"{name}.parquet", pages)) for name in names],
        [(path.stem.removeprefix(f"{GOLD}-"), texts_of(path)) for path in gold],
        [],
    )


def silent(text: str) -> None:
    """Say nothing."""


def trigrams(folder: Path, seeds: Sequence[int]) -> None:
    """Print what trigram models of all outputs say."""
    for pages in PAGES:
        found = prepared(folder, list(CORPORA), TRIGRAM_VOCABULARY, pages)
        most = max(corpus.tokens for corpus in found.corpora)
        # Of all that a pipeline kept, counts are the same in any order.
        for title, tokens, used in (("once", found.least_tokens, seeds), ("all", most, seeds[:1])):
            print(f"\n# Trigrams, {pages} pages: {title}\n")
            print(markdown(summary(count_all(found, tokens, used, silent))), flush=True)


def transformers(folder: Path, chosen: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Train, print, and write results beside the corpora."""
    for pages in PAGES:
        found = prepared(folder, TRAINED, SIZES[chosen.size].vocabulary, pages)
        for title, times in (("once", 1), ("all", chosen.epochs)):
            training = Training(chosen.size, chosen.tokens or times * found.least_tokens)
            outcome = train_all(found, training, seeds, chosen.device, chosen.processes, print)
            print(f"\n# {chosen.size}, {pages} pages: {title}\n")
            print(markdown(write(outcome, folder / f"results-{chosen.size}-{pages}-{title}")))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--corpora", type=Path, required=True, help="made unless they are there")
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON", help="needed to make them")
    parser.add_argument("--size", choices=SIZES, help="of transformers; without: trigrams alone")
    parser.add_argument("--tokens", type=int, help="that every transformer reads")
    parser.add_argument("--epochs", type=int, default=4, help="of the smallest output, in `all`")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--processes", type=int, default=1, help="models trained at a time")
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="only write an experiment")
    chosen = parser.parse_args()
    missing = [name for name in CORPORA if not (chosen.corpora / f"{name}.parquet").exists()]
    if missing and not chosen.datatrove:
        parser.error(f"--corpora {chosen.corpora} lacks {', '.join(missing)}: give --datatrove")
    if missing:
        make(chosen.data, chosen.datatrove, chosen.corpora)
    if chosen.prepare and not chosen.size:
        parser.error("--prepare needs --size, which decides the vocabulary")
    return chosen


def main() -> None:
    chosen = options()
    seeds = range(1, chosen.seeds + 1)
    if chosen.prepare:
        vocabulary = SIZES[chosen.size].vocabulary
        for pages in PAGES:
            save(prepared(chosen.corpora, TRAINED, vocabulary, pages), chosen.prepare / pages)
        return
    trigrams(chosen.corpora, seeds)
    if chosen.size:
        transformers(chosen.corpora, chosen, seeds)


if __name__ == "__main__":
    main()
