"""MinHash signatures of other tools on a file of texts; run by benchmarks/dedup.py --peers PYTHON.

    python3 -m venv peers && peers/bin/pip install datatrove spacy "xxhash<4" tokenizers text-dedup
    python benchmarks/dedup.py --peers peers/bin/python

Reads JSON lines with `text` (English); prints one JSON object with processor seconds by tool, for
signatures of 14 x 8 values of word 5-grams: datatrove's whole signature step with its files, as
FineWeb runs it, and text-dedup's function for one document. What is not installed is left out.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version


def datatrove(texts: list[str]) -> float:
    from datatrove.data import Document
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig

    with tempfile.TemporaryDirectory() as folder:
        step = MinhashDedupSignature(folder, MinhashConfig())
        step.get_shingles(texts[0])  # load the tokenizer
        documents = (Document(text=text, id=str(i)) for i, text in enumerate(texts))
        began = time.process_time()
        step.run(documents)
        return time.process_time() - began


def text_dedup(texts: list[str]) -> float:
    import numpy as np
    from text_dedup.minhash import embed_func
    from text_dedup.utils import sha1_hash

    prime, rng = np.uint64((1 << 61) - 1), np.random.RandomState(42)
    permutations = (
        rng.randint(1, prime, size=112, dtype=np.uint64),
        rng.randint(0, prime, size=112, dtype=np.uint64),
    )
    began = time.process_time()
    for i, text in enumerate(texts):
        embed_func(
            text,
            i,
            num_perm=112,
            ngram_size=5,
            min_length=5,
            hashranges=[(b * 8, b * 8 + 8) for b in range(14)],
            permutations=permutations,
            hash_func=lambda token: sha1_hash(token, d=32),
            dtype=np.uint64,
            max_hash=np.uint64((1 << 32) - 1),
            modulo_prime=prime,
        )
    return time.process_time() - began


def main() -> None:
    texts = [json.loads(line)["text"] for line in sys.stdin]
    found: dict[str, dict[str, object]] = {}
    for name, run in (("datatrove", datatrove), ("text-dedup", text_dedup)):
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        found[name] = {"version": installed, "seconds": run(texts)}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
