"""Do our pages train better models? The same real pages through four pipelines, at equal tokens.

    python benchmarks/proof.py --data DATA --datatrove PYTHON --corpora FOLDER   # n-gram models
    python benchmarks/proof.py --corpora FOLDER --size 150M                      # transformers, too
    python benchmarks/proof.py --corpora FOLDER --prepare ELSEWHERE

The English pages of DATA (extraction sets, graded texts, WARC files) that are distinct go through
our recipes `llama3` and `fineweb`, datatrove's FineWeb pipeline with trafilatura, and plain text
without boilerplate removal. Models learn from each, and are measured on gold main texts of sites
and whole sets that no pipeline was given (benchmarks/proofs/pages.py). FOLDER keeps what the
pipelines made, a few MB; with it alone the rest runs anywhere.

White space is one space in all texts. Printed are bits per byte, with intervals over sites and seeds, for all pages and for those of sets
that no model of the toolkit learned from:

once    equal tokens, each read once: as many as the smallest output has, and by trigrams a quarter
        of these, of which every output has more than it reads; also of those pages alone that two
        pipelines both kept, which shows what the choice of pages does
all     trigrams of all that each pipeline kept; transformers that read `--epochs` times (default 4)
        the tokens of the smallest output, so that a larger output repeats less

With --size transformers are trained, too, on a GPU where there is one (benchmarks/proofs/trained.py
says how); results are kept in FOLDER, and a command that was stopped goes on. --prepare writes what
proofs/trained.py trains from, where only numpy and PyTorch are.

Making the corpora takes about 15 minutes on two cores (benchmarks/datatrove_fineweb.py says how to
make the interpreter), trigrams one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import xxhash
from proofs.corpora import CORPORA, GOLD, PLAIN_TEXT, THEIRS, make
from proofs.pages import KINDS, MOST, site_of
from proofs.trained import PAGES, TUNING

from curation.tokenize import load_tokenizer
from models.ablate.compare import count_all
from models.ablate.experiment import Corpus, Documents, Experiment, save
from models.ablate.order import order
from models.ablate.prepare import Text, experiment, smaller
from models.ablate.results import markdown, summary
from models.ablate.training import SIZES

TRIGRAM_VOCABULARY = 16_384
#: Of transformers of all sizes: with so few tokens large vocabularies learn little.
VOCABULARY = 8_192
#: Rates are chosen by the pages of one site in so many.
TUNING_SITE_IN = 8


def texts_of(path: Path, pages: str = "all", kept: Set[str] | None = None) -> list[Text]:
    """Return the texts of a file that are of some of PAGES, of those that were `kept` if need be."""
    rows = pq.read_table(path).to_pylist()
    rows = [row for row in rows if pages == "all" or row["unseen"]]
    rows = [row for row in rows if kept is None or row["id"] in kept]
    return [Text(one_line(row["text"]), row["url"]) for row in rows]


def one_line(text: str) -> str:
    """Return the words of a text with a space between them.

    Where lines break is the annotators' custom in a gold text and the extractor's in an output:
    trafilatura's has no blank lines, some gold texts have one after every paragraph. A model that
    has seen a few needs bits less for each, which would decide between outputs of the same words.
    """
    return " ".join(text.split())


def pages_of(folder: Path, name: str) -> set[str]:
    """Return the pages that a pipeline kept."""
    return set(pq.read_table(folder / f"{name}.parquet", columns=["id"])["id"].to_pylist())


def prepared(
    folder: Path,
    names: Sequence[str],
    vocabulary: int,
    pages: str,
    kept: Set[str] | None = None,
) -> Experiment:
    """Return the experiment of some pipelines' outputs."""
    return experiment(
        smaller(load_tokenizer("curation-128k"), vocabulary),
        [(name, texts_of(folder / f"{name}.parquet", pages, kept)) for name in names],
        list(gold_texts(folder)),
        [],
    )


def gold_texts(folder: Path) -> Iterator[tuple[str, list[Text]]]:
    """Yield what is measured with: texts of other sets and sites, then parts of them by kind."""
    rows = []
    for path in sorted(folder.glob(f"{GOLD}-*.parquet")):
        yield path.stem.removeprefix(f"{GOLD}-"), texts_of(path)
        rows += pq.read_table(path).to_pylist()
    for kind, sets in KINDS.items():
        some = [row for row in rows if row["key"].split("/")[0] in sets]
        yield kind, [Text(one_line(row["text"]), row["url"]) for row in some]


def silent(text: str) -> None:
    """Say nothing."""


def trigrams(folder: Path, seeds: Sequence[int]) -> None:
    """Print what trigram models of all outputs say."""
    for pages in PAGES:
        found = prepared(folder, list(CORPORA), TRIGRAM_VOCABULARY, pages)
        most = max(corpus.tokens for corpus in found.corpora)
        least = found.least_tokens
        # Of all that a pipeline kept, counts are the same in any order.
        for title, tokens, used in (
            ("once", least, seeds),
            ("a quarter", least // 4, seeds),
            ("all", most, seeds[:1]),
        ):
            print(f"\n# Trigrams, {pages} pages: {title}\n")
            print(markdown(summary(count_all(found, tokens, used, silent))), flush=True)


def same_pages(folder: Path, seeds: Sequence[int]) -> None:
    """Print whether extraction or the choice of pages differs: texts of pages that both kept."""
    for pair in ((THEIRS, "fineweb"), (THEIRS, "llama3"), ("fineweb", "llama3")):
        kept = pages_of(folder, pair[0]) & pages_of(folder, pair[1])
        for pages in PAGES:
            found = prepared(folder, pair, TRIGRAM_VOCABULARY, pages, kept)
            print(f"\n# Trigrams, {pages} pages that {pair[0]} and {pair[1]} both kept: once\n")
            outcome = count_all(found, found.least_tokens, seeds, silent)
            print(markdown(summary(outcome)), flush=True)


def sources(folder: Path) -> None:
    """Print which sets the texts come from, of those that no model learned from."""
    rows = {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in CORPORA}
    rows = {name: [row for row in some if row["unseen"]] for name, some in rows.items()}
    names = sorted({row["id"].split("/")[0] for some in rows.values() for row in some})
    print("\n# Documents and MB by set, of those that no model learned from\n")
    print(f"| | {' | '.join(names)} |\n{'|---' * (len(names) + 1)}|")
    for name, some in rows.items():
        cells = []
        for one in names:
            texts = [row["text"] for row in some if row["id"].split("/")[0] == one]
            cells.append(f"{len(texts)}, {sum(len(t.encode()) for t in texts) / 1e6:.2f}")
        print(f"| {name} | {' | '.join(cells)} |")


def tuning(folder: Path, vocabulary: int, tokens: int) -> Experiment:
    """Return what rates are chosen by: plain text, `tokens` of it and pages of other sites."""
    texts = texts_of(folder / f"{PLAIN_TEXT}.parquet")
    apart = [xxhash.xxh64_intdigest(site_of(text.url).encode()) % TUNING_SITE_IN for text in texts]
    rest = [text for text, place in zip(texts, apart, strict=True) if place]
    gold = [text for text, place in zip(texts, apart, strict=True) if not place]
    gold = [Text(text.text[:MOST], text.url) for text in gold]
    tokenizer = smaller(load_tokenizer("curation-128k"), vocabulary)
    found = experiment(tokenizer, [(PLAIN_TEXT, rest)], [("plain text", gold)], [])
    (corpus,) = found.corpora
    ends = np.diff(corpus.documents.bounds)[order(corpus.keys, 0, 0)].cumsum()
    some = order(corpus.keys, 0, 0)[: int(np.searchsorted(ends, tokens)) + 1]
    return replace(found, corpora=(part(corpus, np.sort(some)),))


def part(corpus: Corpus, chosen: npt.NDArray[np.int64]) -> Corpus:
    """Return some documents of a corpus."""
    documents = corpus.documents
    tokens = np.concatenate([documents.ids(k) for k in chosen.tolist()])
    bounds = np.concatenate([[0], np.diff(documents.bounds)[chosen].cumsum()])
    return Corpus(
        corpus.name, Documents(tokens, bounds, documents.sizes[chosen]), corpus.keys[chosen]
    )


def prepare(folder: Path, elsewhere: Path) -> None:
    """Write what proofs/trained.py trains from."""
    for pages in PAGES:
        found = prepared(folder, list(CORPORA), VOCABULARY, pages)
        save(found, elsewhere / pages)
        if pages == "all":
            save(tuning(folder, VOCABULARY, found.least_tokens), elsewhere / TUNING)


def transformers(folder: Path, chosen: argparse.Namespace) -> None:
    """Train, print, and write results in the corpora's folder."""
    prepare(folder, folder / "prepared")
    script = Path(__file__).parent / "proofs" / "trained.py"
    command = [sys.executable, str(script), str(folder / "prepared"), str(folder / "results")]
    command += ["--device", chosen.device]
    for epochs in (1, chosen.epochs):
        command += [f"{chosen.size}:{pages}:{epochs}:{chosen.seeds}" for pages in PAGES]
    subprocess.run(command, check=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--corpora", type=Path, required=True, help="made unless they are there")
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON", help="needed to make them")
    parser.add_argument("--size", choices=SIZES, help="of transformers; without: trigrams alone")
    parser.add_argument("--epochs", type=int, default=4, help="of the smallest output, in `all`")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="only write an experiment")
    chosen = parser.parse_args()
    missing = [name for name in CORPORA if not (chosen.corpora / f"{name}.parquet").exists()]
    if missing and not chosen.datatrove:
        parser.error(f"--corpora {chosen.corpora} lacks {', '.join(missing)}: give --datatrove")
    if missing:
        make(chosen.data, chosen.datatrove, chosen.corpora)
    return chosen


def main() -> None:
    chosen = options()
    seeds = range(1, chosen.seeds + 1)
    if chosen.prepare:
        prepare(chosen.corpora, chosen.prepare)
        return
    trigrams(chosen.corpora, seeds)
    same_pages(chosen.corpora, seeds)
    sources(chosen.corpora)
    if chosen.size:
        transformers(chosen.corpora, chosen)


if __name__ == "__main__":
    main()
