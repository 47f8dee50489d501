"""Do our pages train better models? The same real pages through four pipelines, at equal tokens.

    python benchmarks/proof.py --calibrate --data DATA                           # the instrument
    python benchmarks/proof.py --data DATA --datatrove PYTHON --corpora FOLDER   # n-gram models
    python benchmarks/proof.py --corpora FOLDER --size 150M                      # transformers, too

The English pages of DATA (extraction sets, graded texts, WARC files) that are distinct go through
our recipes `llama3` and `fineweb`, datatrove's FineWeb pipeline with trafilatura, and plain text
without boilerplate removal. Models learn from each, and are measured on gold main texts of sites
and whole sets that no pipeline was given (benchmarks/proofs/pages.py). FOLDER keeps what the
pipelines made, a few MB; with it alone the rest runs anywhere. --calibrate needs no pipeline: it
compares corpora of which the better is known (benchmarks/proofs/calibration.py), and writes for
`curate ablate --instant` how often the better one is named.

White space is one space in all texts. Printed are bits per byte, with intervals over sites and seeds, for all pages and for those of sets
that no model of the toolkit learned from:

once    equal tokens, each read once: as many as the smallest output has, and by trigrams three
        tenths and a tenth of these, of which every output has more than it reads
all     trigrams of all that each pipeline kept; transformers that read `--epochs` times (default 4)
        the tokens of the smallest output, so that a larger output repeats less

With --size transformers are trained, too, on a GPU where there is one; results are kept in FOLDER,
and a command that was stopped goes on. Where only numpy and PyTorch are, `python -m models.ablate
FOLDER/all` trains them from what the command has written.

Making the corpora takes about 15 minutes on two cores (benchmarks/datatrove_fineweb.py says how to
make the interpreter), trigrams one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from proofs.calibration import calibrate
from proofs.corpora import CORPORA, GOLD, make

from curation.tokenize import load_tokenizer
from models.ablate.compare import count_all
from models.ablate.experiment import Experiment, save
from models.ablate.prepare import Text, experiment, smaller
from models.ablate.results import markdown, summary
from models.ablate.training import SIZES

#: All, or those of sets that no model of the toolkit has seen.
PAGES = ("all", "unseen")
TRIGRAM_VOCABULARY = 16_384
#: Of transformers of all sizes: with so few tokens large vocabularies learn little.
VOCABULARY = 8_192


def texts_of(path: Path, pages: str = "all") -> list[Text]:
    """Return the texts of a file that are of some of PAGES."""
    rows = pq.read_table(path).to_pylist()
    rows = [row for row in rows if pages == "all" or row["unseen"]]
    return [Text(row["text"], row["url"]).one_line() for row in rows]


def prepared(folder: Path, vocabulary: int, pages: str) -> Experiment:
    """Return the experiment of the pipelines' outputs."""
    return experiment(
        smaller(load_tokenizer("curation-128k"), vocabulary),
        [(name, texts_of(folder / f"{name}.parquet", pages)) for name in CORPORA],
        gold_texts(folder),
        [],
    )


def gold_texts(folder: Path) -> list[tuple[str, list[Text]]]:
    """Return what is measured with, by kind."""
    found: dict[str, list[Text]] = {}
    for row in pq.read_table(folder / GOLD).to_pylist():
        found.setdefault(row["kind"], []).append(Text(row["text"], row["url"]).one_line())
    return sorted(found.items())


def silent(text: str) -> None:
    """Say nothing."""


def trigrams(folder: Path, seeds: Sequence[int]) -> None:
    """Print what trigram models of all outputs say."""
    for pages in PAGES:
        found = prepared(folder, TRIGRAM_VOCABULARY, pages)
        most = max(corpus.tokens for corpus in found.corpora)
        least = found.least_tokens
        # Of all that a pipeline kept, counts are the same in any order.
        for title, tokens, used in (
            ("once", least, seeds),
            ("three tenths", least * 3 // 10, seeds),
            ("a tenth", least // 10, seeds),
            ("all", most, seeds[:1]),
        ):
            print(f"\n# Trigrams, {pages} pages: {title}\n")
            print(markdown(summary(count_all(found, tokens, used, silent))), flush=True)


def transformers(folder: Path, chosen: argparse.Namespace) -> None:
    """Train, print, and write results in the corpora's folder."""
    for pages in PAGES:
        found = prepared(folder, VOCABULARY, pages)
        save(found, folder / pages)
        for epochs in (1, chosen.epochs):
            command = [sys.executable, "-m", "models.ablate", str(folder / pages)]
            command += ["--output", str(folder / f"{chosen.size}-{pages}-{epochs}")]
            command += ["--size", chosen.size, "--tokens", str(epochs * found.least_tokens)]
            command += ["--seeds", str(chosen.seeds), "--device", chosen.device]
            subprocess.run(command, check=True, cwd=Path(__file__).parents[1])


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--corpora", type=Path, help="made unless they are there")
    parser.add_argument("--calibrate", action="store_true", help="of pairs whose better is known")
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON", help="needed to make them")
    parser.add_argument("--size", choices=SIZES, help="of transformers; without: trigrams alone")
    parser.add_argument("--epochs", type=int, default=4, help="of the smallest output, in `all`")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    chosen = parser.parse_args()
    if chosen.calibrate:
        return chosen
    if not chosen.corpora:
        parser.error("give --corpora FOLDER, or --calibrate")
    missing = [name for name in CORPORA if not (chosen.corpora / f"{name}.parquet").exists()]
    if missing and not chosen.datatrove:
        parser.error(f"--corpora {chosen.corpora} lacks {', '.join(missing)}: give --datatrove")
    if missing:
        make(chosen.data, chosen.datatrove, chosen.corpora)
    return chosen


def main() -> None:
    chosen = options()
    seeds = range(1, chosen.seeds + 1)
    if chosen.calibrate:
        calibrate(chosen.data, smaller(load_tokenizer("curation-128k"), TRIGRAM_VOCABULARY))
        return
    trigrams(chosen.corpora, seeds)
    if chosen.size:
        transformers(chosen.corpora, chosen)


if __name__ == "__main__":
    main()
