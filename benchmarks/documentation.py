"""Extraction of software documentation, by the elements that its generators put content in.

    python benchmarks/documentation.py --pages pages [--engines curation trafilatura resiliparse]

--pages is laid out as for `python -m models.training.extract.documentation`, which says how to get
pages and what gold text is; sites that a model learned from must not be among them. Scores are
those of benchmarks/extraction.py (sh4), the mean of a generator's pages; the macro mean weighs
generators alike.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.extraction import extractor, f1, precision_recall, using  # noqa: E402
from curation.extract import default_settings  # noqa: E402
from curation.extract.model import read_model  # noqa: E402
from models.training.extract.documentation import Page, documentation  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--engines", nargs="+", default=["curation"])
    parser.add_argument("--model", type=Path, help="blocks.npz instead of the recipe's")
    parser.add_argument("--per-site", type=int, default=14)
    options = parser.parse_args()
    pages: dict[str, list[Page]] = defaultdict(list)
    for page in documentation(options.pages, options.per_site):
        pages[page.generator].append(page)
    print(f"{'':18}{'sites':>6}{'pages':>6}" + "".join(f"{e:>30}" for e in options.engines))
    table: dict[str, dict[str, list[float]]] = defaultdict(dict)
    with (
        using(read_model(options.model, str(options.model)))
        if options.model
        else contextlib.nullcontext()
    ):
        for engine in options.engines:
            text_of = extractor(default_settings(), engine)
            for name, found in pages.items():
                scores = [precision_recall(page.gold, text_of(page.source)) for page in found]
                table[name][engine] = [
                    statistics.mean(p for p, _ in scores),
                    statistics.mean(r for _, r in scores),
                    statistics.mean(f1(p, r) for p, r in scores),
                ]
    for name, found in sorted(pages.items()):
        cells = "".join(_cell(table[name][engine]) for engine in options.engines)
        print(f"{name:18}{len({page.site for page in found}):6}{len(found):6}{cells}")
    whole = "".join(
        _cell([statistics.mean(row[engine][i] for row in table.values()) for i in range(3)])
        for engine in options.engines
    )
    print(f"{'macro':30}{whole}")


def _cell(values: list[float]) -> str:
    precision, recall, score = values
    return f"    F1 {score:.4f} P {precision:.3f} R {recall:.3f}"


if __name__ == "__main__":
    main()
