"""datatrove's four filters on a file of texts; run by benchmarks/filters.py --datatrove PYTHON.

  python3 -m venv dt && dt/bin/pip install datatrove==0.10.1 spacy nltk tldextract regex numpy
  python benchmarks/filters.py --datatrove dt/bin/python

Reads JSON lines with `text` (English), runs every filter on every text as FineWeb does, and prints
one JSON object: processor seconds by filter, decisions (null: kept), and the words and sentences
that datatrove found, so that others can be measured on the same ones.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.text import split_into_words

FILTERS = {
    "repetition": GopherRepetitionFilter(),
    "gopher": GopherQualityFilter(),
    "c4": C4QualityFilter(filter_no_terminal_punct=False),
    "fineweb": FineWebQualityFilter(),
}


def decide(held: object, text: str) -> str | None:
    document = Document(text=text, id="")
    try:
        result = held.filter(document)
    except ZeroDivisionError:
        return "division by zero"
    return None if result is True else result[1]


def main() -> None:
    texts = [json.loads(line)["text"] for line in sys.stdin]
    seconds: dict[str, float] = {}
    decisions: dict[str, list[str | None]] = {}
    for name, held in FILTERS.items():
        decide(held, texts[0])  # load the tokenizer
        began = time.process_time()
        decisions[name] = [decide(held, text) for text in texts]
        seconds[name] = time.process_time() - began
    words = [split_into_words(text, "en") for text in texts]
    found = {
        "version": version("datatrove"),
        "seconds": seconds,
        "decisions": decisions,
        "words": words,
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
