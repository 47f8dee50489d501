"""datatrove's MinHash stage on a file of texts; run by benchmarks/dedup.py --datatrove PYTHON.

    python3 -m venv dt && dt/bin/pip install datatrove spacy xxhash
    python benchmarks/dedup.py --datatrove dt/bin/python

Reads JSON lines with `text` (English) and prints one JSON object: processor seconds of its whole
signature step, files included, as FineWeb runs it (14 x 8, word 5-grams).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.metadata import version

from datatrove.data import Document
from datatrove.pipeline.dedup import MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig


def main() -> None:
    texts = [json.loads(line)["text"] for line in sys.stdin]
    with tempfile.TemporaryDirectory() as folder:
        step = MinhashDedupSignature(folder, MinhashConfig())
        step.get_shingles(texts[0])  # load the tokenizer
        documents = (Document(text=text, id=str(i)) for i, text in enumerate(texts))
        began = time.process_time()
        step.run(documents)
        seconds = time.process_time() - began
    json.dump({"version": version("datatrove"), "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
