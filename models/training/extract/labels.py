"""Labels of ours: which blocks of a page are its main content, and which are left open.

A block is named by a checksum of its letters and digits and, where these have stood on the page
before, how often (`1f9a03c2/1`). So the file holds no text of pages, and a change of the scanner
costs only the labels of blocks it cuts otherwise. Blocks that are left open, such as comments below
articles, which are content elsewhere, teach nothing.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from curation import resources
from curation.errors import ConfigError


@dataclass(frozen=True)
class Labels:
    """Names of the labelled blocks of a page."""

    set_name: str
    page_id: str
    main: frozenset[str]
    left_open: frozenset[str]


def keys_of(texts: Sequence[str]) -> list[str]:
    """Return names of a page's blocks [n], by their words and how often the same have stood
    before."""
    seen: Counter[str] = Counter()
    keys = []
    for text in texts:
        key = checksum(text)
        keys.append(f"{key}/{seen[key]}" if seen[key] else key)
        seen[key] += 1
    return keys


def checksum(text: str) -> str:
    """Of the letters and digits of a block, whatever is between them."""
    letters = "".join(c for c in unicodedata.normalize("NFC", text) if c.isalnum())
    return f"{zlib.crc32(letters.encode()):08x}"


def read_labels(path: str) -> list[Labels]:
    """Return rows of a file of labels. Raises ConfigError when one is malformed."""
    lines = Path(resources.resolve(path)).read_text(encoding="utf-8").splitlines()
    rows = []
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 4:
            raise ConfigError(
                f"{path}:{number}: {len(fields)} columns instead of set, id, main, open"
            )
        name, page_id, main, left_open = fields
        rows.append(Labels(name, page_id, frozenset(main.split()), frozenset(left_open.split())))
    return rows


HEADER = "set\tid\tmain\topen"


def row_of(page: str, texts: Sequence[str], main: Iterable[int], left_open: Iterable[int]) -> str:
    """Return a row of the file, from the numbers of the blocks."""
    keys = keys_of(texts)
    name, page_id = page.split("/", 1)
    return "\t".join(
        [name, page_id, " ".join(keys[i] for i in main), " ".join(keys[i] for i in left_open)]
    )
