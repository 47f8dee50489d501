"""Evaluation sets as a folder of mapped files: the index of patterns, and the items behind it."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.decontaminate.index import (
    Background,
    Index,
    build_index,
    load_background,
    map_index,
    save_index,
)
from curation.decontaminate.items import Item, fields_of, read_items
from curation.decontaminate.normalize import SIZE, WORD, Tokens, sums, tokenize
from curation.readers.documents import batched

#: Parts by number.
PARTS = ("question", "choices", "answer", "passage")
_QUESTION, _CHOICES, _ANSWER, _PASSAGE = range(len(PARTS))
#: Words from which an answer is looked for by itself.
_LONG_ANSWER = 12
#: Words below which a question is also looked for together with its choices.
_SHORT_QUESTION = 20
_INDEX, _ITEMS, _OWNERS = "index", "items.arrow", "owners.npy"
_READ_AT_ONCE = 1 << 15
ITEMS = pa.schema(
    [
        ("set", pa.dictionary(pa.int32(), pa.string())),
        ("id", pa.string()),
        ("question", pa.large_string()),
        ("choices", pa.list_(pa.large_string())),
        ("answer", pa.large_string()),
        ("passage", pa.large_string()),
    ]
)


class Owner(NamedTuple):
    """An item of which a pattern is a part."""

    item: int  # row of the items
    part: int  # of PARTS


class Catalog(NamedTuple):
    """An index and its items."""

    patterns: Index
    items: pa.Table  # columns ITEMS; `question` with the choices, a line each
    owners: npt.NDArray[np.int32]  # [owners, 3] pattern, item, part; sorted

    def owners_of(self, pattern: int) -> list[Owner]:
        """Return the items that have the pattern, in the order of the sets and their files."""
        first, last = np.searchsorted(self.owners[:, 0], [pattern, pattern + 1])
        return [Owner(int(item), int(part)) for _, item, part in self.owners[first:last]]


def build_catalog(items: Iterable[Item], background: Background) -> Catalog:
    """Build index and tables in memory."""
    known: dict[int, int] = {}
    patterns: list[str] = []
    owners: list[tuple[int, int, int]] = []
    batches: list[pa.RecordBatch] = []
    first = 0
    for some in batched(items, _READ_AT_ONCE):
        sizes = _sizes(tokenize([text for item in some for text in (item.question, item.answer)]))
        parts = [
            (k, part, text)
            for k, item in enumerate(some)
            for part, text in _parts_of(item, sizes[2 * k], sizes[2 * k + 1])
        ]
        tokens = tokenize([text for *_, text in parts])
        for (k, part, text), size, (a, b) in zip(
            parts, _sizes(tokens), pairwise(tokens.offsets.tolist()), strict=True
        ):
            if size < SIZE:
                continue
            key = xxh3_64_intdigest(tokens.hashes[a:b].tobytes())
            if key not in known:
                known[key] = len(patterns)
                patterns.append(text)
            owners.append((known[key], first + k, part))
        first += len(some)
        rows = (i._asdict() | {"question": "\n".join([i.question, *i.choices])} for i in some)
        batches.append(pa.RecordBatch.from_pylist([*rows], ITEMS))
    table = pa.Table.from_batches(batches, ITEMS).unify_dictionaries()
    ranked = np.array(sorted(set(owners)), np.int32).reshape(-1, 3)
    return Catalog(build_index(patterns, background), table, ranked)


def _sizes(tokens: Tokens) -> list[int]:
    return [int(size) for size in np.diff(sums(tokens.sizes)[tokens.offsets])]


def _parts_of(item: Item, size: int, answer: int) -> Iterator[tuple[int, str]]:
    """Return the texts to look for; a short question is also combined with choices or answer.

    `size` and `answer` are the sizes of question and answer.
    """
    choices = "\n".join(item.choices)
    yield _QUESTION, item.question
    if size < _SHORT_QUESTION * WORD and choices:
        yield _QUESTION, f"{item.question}\n{choices}"
    elif size < SIZE and item.answer:
        yield _QUESTION, f"{item.question}\n{item.answer}"
    if choices:
        yield _CHOICES, choices
    if answer >= _LONG_ANSWER * WORD:
        yield _ANSWER, item.answer
    if item.passage:
        yield _PASSAGE, item.passage


def prepare(settings: DecontaminationSettings, folder: Path) -> Catalog:
    """Return the catalog in a folder, built there if it is absent, and mapped into memory.

    Raises InputError or ConfigError for a set that can't be read.
    """
    if not folder.is_dir():
        sets = settings.evals.items()
        items = (item for n, s in sets for item in read_items(n, s.files, fields_of(s)))
        _save(build_catalog(items, load_background(settings.background)), folder)
    with pa.memory_map(str(folder / _ITEMS)) as file:
        table = pa.ipc.open_file(file).read_all()
    return Catalog(map_index(folder / _INDEX), table, np.load(folder / _OWNERS, mmap_mode="r"))


def _save(catalog: Catalog, folder: Path) -> None:
    """Write a folder atomically."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    save_index(catalog.patterns, part / _INDEX)
    np.save(part / _OWNERS, catalog.owners)
    with pa.ipc.new_file(str(part / _ITEMS), ITEMS) as writer:
        writer.write_table(catalog.items)
    try:
        part.rename(folder)
    except OSError:  # another process was first and wrote the same content
        shutil.rmtree(part, ignore_errors=True)
