"""Count the built-in background of decontamination: tokens and n-grams of ordinary texts.

  python models/ngrams/train.py --multilingual train.jsonl.xz --words opensubtitles-50k.tar.xz
      --common LICENSE /usr/share/common-licenses/*

`--common` are texts whose every n-gram is common: licences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import tarfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from curation.decontaminate.index import LEAST_BITS, LOW, MOST_BITS, Background
from curation.decontaminate.normalize import ngrams, tokenize
from models.training.saving import save_arrays

FILE = "background.npz"
#: Counts below these say little: a token of a language's texts, a text that has an n-gram.
LEAST_TOKENS, LEAST_TEXTS = 5, 3
CARD = {
    "name": "ngrams",
    "version": "1",
    "task": "how common tokens and n-grams are in ordinary texts, for decontamination",
    "file": FILE,
    "licence": "CC-BY-SA-4.0",
    "source": "Counts, no text: sentences and documentation in 57 languages from public "
    "repositories (CC0, CC BY, CC BY-SA, MIT, MPL), word frequencies of OpenSubtitles 2018 by "
    "hermitdave/FrequencyWords (CC BY-SA 4.0), and the texts of licences.",
    "command": "python models/ngrams/train.py --multilingual multilingual/train.jsonl.xz "
    "--words words/opensubtitles-50k.tar.xz --common LICENSE /usr/share/common-licenses/*",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--multilingual", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--common", type=Path, nargs="*", default=[])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    texts: dict[str, list[str]] = defaultdict(list)
    with lzma.open(options.multilingual, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            texts[row["lang"]].append(row["text"])
    common = [path.read_text("utf-8", "replace") for path in sorted(set(options.common))]
    found = count_background(texts, lists(options.words), common, LEAST_TOKENS, LEAST_TEXTS)
    arrays = {"tokens": found.tokens, "bits": found.bits, "ngrams": found.ngrams}
    save_arrays(options.output / FILE, arrays)
    digest = hashlib.sha256((options.output / FILE).read_bytes()).hexdigest()
    counts = {name: len(array) for name, array in arrays.items() if name != "bits"}
    card = CARD | {"sha256": digest, "metrics": counts}
    text = yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=100)
    (options.output / "card.yaml").write_text(text)
    print(counts)


def lists(path: Path) -> dict[str, dict[str, int]]:
    """Word frequencies by the name of the list in the archive."""
    found: dict[str, dict[str, int]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith(".txt") else None
            if content is not None:
                lines = (line.rpartition(" ") for line in content.read().decode().splitlines())
                found[member.name] = {word: int(count) for word, _, count in lines if word}
    return found


def count_background(
    texts: Mapping[str, Sequence[str]],
    words: Mapping[str, Mapping[str, int]],
    common: Sequence[str],
    least_tokens: int,
    least_texts: int,
) -> Background:
    """Count texts by language, word frequencies by language, and texts that are common as a whole.

    A token has the bits of the language in which it is most frequent. Tokens count that occur
    `least_tokens` times in a language's texts, n-grams of `least_texts` texts or of a common one.
    """
    bits: dict[int, int] = {}
    grams: list[npt.NDArray[np.uint32]] = []
    for _, own in sorted(texts.items()):
        hashes = []
        for text in own:
            found = tokenize([text])
            hashes.append((found.hashes & LOW).astype(np.uint32))
            grams.append(_ngrams_of(text))
        kinds, counts = np.unique(np.concatenate(hashes), return_counts=True)
        _note(bits, kinds, counts, least_tokens)
    for _, frequencies in sorted(words.items()):
        found = tokenize(list(frequencies))
        per_word = np.repeat(np.array(list(frequencies.values())), np.diff(found.offsets))
        kinds, inverse = np.unique((found.hashes & LOW).astype(np.uint32), return_inverse=True)
        _note(bits, kinds, np.bincount(inverse, per_word), least_tokens)
    keys, documents = np.unique(np.concatenate(grams), return_counts=True)
    shared = np.concatenate([keys[documents >= least_texts], *map(_ngrams_of, common)])
    tokens = np.array(sorted(bits), np.uint32)
    costs = np.array([bits[t] for t in tokens.tolist()], np.uint8)
    return Background(tokens, costs, np.unique(shared))


def _ngrams_of(text: str) -> npt.NDArray[np.uint32]:
    grams, ends = ngrams(tokenize([text]))
    return np.unique((grams[ends >= 0] >> np.uint64(32)).astype(np.uint32))


def _note(bits: dict[int, int], kinds: Any, counts: Any, least: int) -> None:
    costs = np.clip(np.round(-np.log2(counts / counts.sum())), LEAST_BITS, MOST_BITS)
    for kind, cost, count in zip(kinds.tolist(), costs.tolist(), counts.tolist(), strict=True):
        if count >= least and cost < MOST_BITS:
            bits[kind] = min(bits.get(kind, MOST_BITS), int(cost))


if __name__ == "__main__":
    main()
