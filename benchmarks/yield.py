"""Yield of a whole recipe on real, graded pages: what is kept of good text and of rubbish.

    python benchmarks/yield.py --data DATA [--recipe llama3] [--set KEY=VALUE] [--output FOLDER]
                               [--datatrove PYTHON] [--parts kept,structure,sources]
    python benchmarks/yield.py --data DATA --run RUN

DATA has `extract/dev.tar.xz` (pages with gold text) and `quality/dev.jsonl.gz` (graded texts).
Readers' grades, topics and formats of all of them are in models/topic/labels.tsv. The pages go
through the stages of the recipe before the mixture, in the recipe's order. Printed are:

kept       share of good documents (grade 3 and more) and of rubbish (0 and 1) that is removed, by
           rule, language, page type, topic and domain; duplicates are left out, since no text is
           lost with them
structure  listings, formulas, table rows and list items from extraction to the last stage
sources    files of Python's library and generated TeX, run apart: which come out whole

--datatrove PYTHON runs FineWeb's pipeline on the English pages and prints the same tables for both
on these pages (benchmarks/datatrove_fineweb.py says how to make such an interpreter).

--run RUN judges a finished run instead, by default only the part `kept`. Its inputs must be the
files that `--pack FOLDER` writes, or tables with the same rows in files of the same names.

Everything takes about 5 minutes on two cores; datatrove 12 more.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from yields import sources, structure
from yields.pages import Label, Page, pack, places, read_labels, read_pages
from yields.runs import Fate, fates, run
from yields.tables import by_grade, by_group, by_rule, compare
from yields.theirs import datatrove

DATA = Path(__file__).parents[2] / "shared" / "data"
PARTS = ("kept", "structure", "sources")
LEAST = 15  # documents of a group that has a line of its own
Documents = list[tuple[Page, Label, Fate]]


def judged(output: Path, pages: list[Page], labels: dict[str, Label]) -> Documents:
    """Return the documents of a run that are not duplicates, with page and label; print the rest."""
    by_place = places(pages)
    found: Documents = []
    unlabelled: list[str] = []
    unknown = duplicates = 0
    for place, fate in fates(output).items():
        if (page := by_place.get(place)) is None:
            unknown += 1
        elif fate.duplicate:
            duplicates += 1
        elif page.key not in labels:
            unlabelled.append(page.key)
        else:
            found.append((page, labels[page.key], fate))
    print(
        f"{output.name}: {len(found)} documents with a label; left out are {duplicates} removed as "
        f"duplicates, {len(unlabelled)} without a label, {unknown} of other inputs"
    )
    if unlabelled:
        more = f" and {len(unlabelled) - 20} more" if len(unlabelled) > 20 else ""
        print(f"without a label: {', '.join(sorted(unlabelled)[:20])}{more}")
    if not found:
        raise SystemExit(f"{output}: no document of the packed pages; was it run on other inputs?")
    return found


def show(name: str, documents: Documents, parts: Sequence[str]) -> None:
    """Print the tables of one tool."""
    print(f"\n## {name}")
    pairs = [(label, fate) for _, label, fate in documents]
    if "kept" in parts:
        by_grade(pairs)
        by_rule(pairs)
        by_group(pairs, "source", lambda label: label.source, 1)
        by_group(pairs, "language", lambda label: label.language, LEAST)
        by_group(pairs, "page type", lambda label: label.format, LEAST)
        by_group(pairs, "topic", lambda label: label.topic, LEAST)
        by_group(pairs, "domain", lambda label: label.domain, 1)
    if "structure" in parts:
        structure.pages_structure(documents)


def beside(ours: Documents, theirs: dict[str, Fate], parts: Sequence[str]) -> None:
    """Print the tables of both tools on the pages that both were given."""
    shared = [entry for entry in ours if entry[0].key in theirs]
    others = [(page, label, theirs[page.key]) for page, label, _ in shared]
    tools = {"Curation": shared, "datatrove, FineWeb": others}
    print(f"\n# Curation and datatrove on {len(shared)} English documents")
    if "kept" in parts:
        compare(
            {name: [(label, fate) for _, label, fate in found] for name, found in tools.items()}
        )
    for name, documents in tools.items():
        show(name, documents, parts)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--recipe", default="llama3")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--output", type=Path, help="keep inputs and runs here, and resume them")
    parser.add_argument("--run", type=Path, help="judge this finished run")
    parser.add_argument("--pack", type=Path, help="only write the pages here, as inputs of a run")
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON")
    parser.add_argument("--parts", help=f"comma-separated, of {', '.join(PARTS)}")
    chosen = parser.parse_args()
    default = "kept" if chosen.run else ",".join(PARTS)
    chosen.parts = (chosen.parts or default).split(",")
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"--parts: unknown {', '.join(sorted(unknown))}; choose of {', '.join(PARTS)}")
    return chosen


def main() -> None:
    chosen = options()
    if chosen.pack:
        print("\n".join(map(str, pack(read_pages(chosen.data), chosen.pack))))
        return
    with tempfile.TemporaryDirectory(prefix="curation-yield-") as temporary:
        folder = chosen.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if set(chosen.parts) != {"sources"}:
            pages = read_pages(chosen.data)
            output = chosen.run or folder / "run"
            if not chosen.run:
                run(chosen.recipe, pack(pages, folder / "input"), output, chosen.set)
            documents = judged(output, pages, read_labels())
            show("Curation, all languages", documents, chosen.parts)
            if chosen.datatrove:
                english = [page for page, label, _ in documents if label.language == "en"]
                theirs = datatrove(chosen.datatrove, english, folder)
                beside(documents, theirs, chosen.parts)
        if "sources" in chosen.parts:
            print("\n# Source texts")
            sources.measure(chosen.recipe, folder / "sources", chosen.set)


if __name__ == "__main__":
    main()
