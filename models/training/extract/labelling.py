"""Label the blocks of pages: number them, and turn the numbers into rows of the file of labels.

    python -m models.training.extract.labelling --data DIR SET/ID
    python -m models.training.extract.labelling --data DIR --pack READ.jsonl > labels.tsv

The first prints a page's blocks with their numbers. READ.jsonl has what was read in them:
{"page": "SET/ID", "main": "3-17,19", "open": "40-52"}.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from models.training.extract.labels import HEADER, row_of
from models.training.extract.pages import block_texts, page_bytes, scanned


def numbers_of(ranges: str) -> list[int]:
    """3-5,9 is 3, 4, 5, 9. Raises ValueError."""
    numbers: list[int] = []
    for part in filter(None, ranges.replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.training.extract.labelling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("page", nargs="?", help="SET/ID: print its blocks with their numbers")
    parser.add_argument("--pack", type=Path, help="JSONL of pages with ranges of numbers")
    options = parser.parse_args(arguments)
    if not (options.page or options.pack):
        parser.error("name a page, or a file to --pack")

    def texts_of(page: str) -> list[str]:
        return block_texts(scanned(page_bytes(options.data, *page.split("/", 1))))

    if options.page:
        for number, text in enumerate(texts_of(options.page)):
            print(number, " ".join(text.split()), sep="\t")
    if options.pack:
        print(HEADER)
        for line in options.pack.read_text(encoding="utf-8").splitlines():
            read = json.loads(line)
            chosen = (numbers_of(read["main"]), numbers_of(read["open"]))
            print(row_of(read["page"], texts_of(read["page"]), *chosen))


if __name__ == "__main__":
    main()
