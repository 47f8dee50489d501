"""Plain Python counterparts of the compiled kernels, by whole-string operations."""

import re
import unicodedata
from collections import Counter

import numpy as np
import xxhash

from curation.arrow import text_buffers
from curation.dedup.characters import _unspaced, character_table
from curation.dedup.dedup_settings import LineDedupSettings, TextNormalization
from curation.dedup.normalize import scratch_bytes, write_normalized

NUMBER = re.compile(r"\d+(?:[.,،٫⎖⎗⎘]\d+)?")
_SINGLE = {chr(point) for point in _unspaced().tolist()}


def normalized(texts: list[str], rules: TextNormalization) -> list[str]:
    """What the package's hashes see, as strings; itself held against `fineweb`."""
    buffers = text_buffers(texts)
    table = character_table(rules)
    out = np.empty(scratch_bytes(buffers, table.growth), np.uint8)
    collapse = rules.whitespace == "collapse"
    result = []
    for start, end in zip(buffers.offsets[:-1], buffers.offsets[1:], strict=True):
        written = write_normalized(buffers.data, start, end, table, collapse, out)
        result.append(out[:written].tobytes().decode())
    return result


def fineweb(text: str) -> str:
    """The `fineweb` normalization."""
    text = NUMBER.sub("0", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    text = "".join(map(_without_punctuation, text))
    text = unicodedata.normalize("NFD", text.casefold())
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    return " ".join(text.split())


def _without_punctuation(char: str) -> str:
    category = unicodedata.category(char)
    if char.isspace() or category[0] in "ZPS":
        return " "
    return "" if category in ("Cc", "Cf") else char


def tokens(text: str) -> list[str]:
    """Tokens of a normalised text."""
    found: list[str] = []
    for word in text.split(" "):
        fresh = True
        for char in word:
            mark = unicodedata.category(char)[0] == "M"
            after_single = not fresh and found[-1][0] in _SINGLE
            if fresh or char in _SINGLE or (after_single and not mark):
                found.append(char)
            else:
                found[-1] += char
            fresh = False
    return found


def shingle_bytes(words: list[str], n: int) -> list[bytes]:
    return [" ".join(words[i : i + n]).encode() for i in range(len(words) - n + 1)]


def components(edges: list[tuple[int, int]]) -> dict[int, int]:
    """Smallest node of the component of each node, by repeated relaxation."""
    labels = {node: node for edge in edges for node in edge}
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            least = min(labels[a], labels[b])
            changed |= labels[a] != least or labels[b] != least
            labels[a] = labels[b] = least
    return labels


def line_key(line: str, settings: LineDedupSettings) -> int | None:
    """Hash of a line, None for one that is neither counted nor removed."""
    # Digits count in short lines, as all here are.
    rules = settings.normalization.model_copy(update={"digits": "keep"})
    text = normalized([line], rules)[0]
    if not text or len(text) < settings.min_line_characters:
        return None
    return xxhash.xxh64_intdigest(text.encode())


def frequent(texts: list[str], settings: LineDedupSettings) -> list[str]:
    """Frequent lines of texts of one scope, in order; lines count once per document."""
    counts: Counter[int | None] = Counter()
    for text in texts:
        counts.update({line_key(line, settings) for line in text.split("\n")} - {None})
    lines = (line for text in texts for line in text.split("\n"))
    return [x for x in lines if counts[line_key(x, settings)] > settings.max_occurrences]
