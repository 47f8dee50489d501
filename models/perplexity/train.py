"""Train the built-in models of characters.

  python -m models.perplexity.train --corpus CORPUS --texts domain/dev.jsonl.gz quality/dev.jsonl.gz

CORPUS holds `<language>.jsonl.gz` as models/tokenizer/make_corpus.py writes them with FAMILIES;
`--texts` adds labelled web texts, of which mathematics, code and low grades are left out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from curation.train import About
from curation.train.by_language import CARD
from curation.train.perplexity import train_perplexity_files
from models.reference.train import prose

FAMILIES = "aptitude-doc debian-faq debian-reference gimp-help manpages"
LANGUAGES = [
    *("ar", "ca", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "hr", "hu", "id", "it"),
    *("ja", "ko", "lt", "nl", "no", "pl", "pt", "ro", "ru", "sl", "sr", "sv", "tr", "uk", "vi"),
    "zh",
]
ABOUT = About(
    version="1",
    licence="Apache-2.0",
    source="Rounded statistics of frequent character sequences, no text: Debian's translated "
    f"documentation (make_corpus.py --families {FAMILIES}), graded web pages, WCXB articles "
    "(CC BY 4.0), OpenStax textbooks (CC BY 4.0), XQuAD (CC BY-SA 4.0), Leipzig sentences (CC BY). "
    "Outside English most of it is documentation of software: calibrate percentiles on your crawl.",
    command="python -m models.perplexity.train --corpus CORPUS "
    "--texts domain/dev.jsonl.gz quality/dev.jsonl.gz",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    for old in [options.output / CARD, *options.output.glob("*.npz")]:
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        good = [prose(path, Path(folder) / str(i)) for i, path in enumerate(options.texts)]
        for language in LANGUAGES:
            corpus = options.corpus / f"{language}.jsonl.gz"
            inputs = [*good, *([corpus] if corpus.exists() else [])]
            print(train_perplexity_files(inputs, language, options.output, ABOUT), flush=True)


if __name__ == "__main__":
    main()
