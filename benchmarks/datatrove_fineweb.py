"""datatrove's FineWeb pipeline on a file of pages; run by benchmarks/yield.py --datatrove PYTHON.

  python3 -m venv dt && dt/bin/pip install datatrove==0.10.1 trafilatura lxml_html_clean spacy nltk \
      tldextract regex numpy pyahocorasick fasteners orjson fasttext-numpy2-wheel
  python benchmarks/yield.py --data DATA --datatrove dt/bin/python

The steps and their settings are those of datatrove's examples/fineweb.py up to its deduplication:
URL filter with the built-in lists, trafilatura with favour_precision, English from a score of 0.65,
Gopher's repetition and quality rules, C4's rules without the one on terminal punctuation, FineWeb's
rules. Personal data is replaced as the script does after deduplication. Different here: the pages
are decoded already, trafilatura has no time limit, and languages are identified by the model file
of `--language-model` (fastText's lid.176.ftz for its larger lid.176.bin).

Reads JSON lines with key, url and either html or text; writes one JSON line for each with key,
before (extracted text), after (null: removed), stage and reason.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import datatrove.utils.lid  # type: ignore[import-not-found]
from datatrove.data import Document  # type: ignore[import-not-found]
from datatrove.pipeline.extractors import Trafilatura  # type: ignore[import-not-found]
from datatrove.pipeline.filters import (  # type: ignore[import-not-found]
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
    URLFilter,
)
from datatrove.pipeline.formatters import PIIFormatter  # type: ignore[import-not-found]


class FineWeb:
    """The pipeline's steps, applied to one page after another."""

    def __init__(self, language_model: Path) -> None:
        datatrove.utils.lid.cached_asset_path_or_download = lambda *_, **__: str(language_model)
        self.urls = URLFilter()
        self.extractor = Trafilatura(favour_precision=True)
        self.filters = {
            "language": LanguageFilter(languages="en"),
            "gopher repetition": GopherRepetitionFilter(),
            "gopher quality": GopherQualityFilter(),
            "c4": C4QualityFilter(filter_no_terminal_punct=False),
            "fineweb": FineWebQualityFilter(),
        }
        self.personal = PIIFormatter()

    def apply(self, page: dict[str, Any]) -> dict[str, Any]:
        """Return the text before and after, and the step and reason of a removal."""
        html = page.get("html")
        try:
            text = page["text"] if html is None else self.extractor.extract(html) or ""
        except Exception as error:  # datatrove skips the page, too
            return _removed("", "trafilatura", type(error).__name__)
        document = Document(text=text, id=page["key"], metadata={"url": page["url"]})
        if reason := _reason(self.urls, document):
            return _removed(text, "url", reason)
        if not text:
            return _removed("", "trafilatura", "no text")
        for name, step in self.filters.items():
            if reason := _reason(step, document):
                return _removed(text, name, reason)
        return {
            "before": text,
            "after": self.personal.format(document.text),
            "stage": "",
            "reason": "",
        }


def _reason(step: Any, document: Document) -> str | None:
    try:
        result = step.filter(document)
    except ZeroDivisionError:
        return "division by zero"
    if result is True:
        return None
    return str(result[1]) if isinstance(result, tuple) else "removed"


def _removed(text: str, stage: str, reason: str) -> dict[str, Any]:
    return {"before": text, "after": None, "stage": stage, "reason": f"{stage}: {reason}"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", type=Path, help="JSON lines with key, url and html or text")
    parser.add_argument("output", type=Path, help="JSON lines to write")
    parser.add_argument("--language-model", type=Path, required=True, help="lid.176.ftz or .bin")
    options = parser.parse_args()
    pipeline = FineWeb(options.language_model)
    unfinished = options.output.with_suffix(".part")
    with (
        options.pages.open(encoding="utf-8") as pages,
        unfinished.open("w", encoding="utf-8") as out,
    ):
        for line in pages:
            page = json.loads(line)
            out.write(json.dumps({"key": page["key"], **pipeline.apply(page)}) + "\n")
    unfinished.rename(options.output)


if __name__ == "__main__":
    main()
