"""Labelled pages: blocks with the share of their words that is content."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import InputError, require
from curation.extract import blocks as s
from curation.extract.scan import scan
from curation.readers.charset import utf8_html
from models.training.extract import variants
from models.training.extract.labels import Labels, checksum, keys_of, read_labels
from models.training.extract.settings import ExtractTraining

Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_MAX_DEPTH, _MAX_NODES = 512, 1_000_000
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_HAN}]|[^\\W{_HAN}]+")
_PAGE_WORDS, _GOLD_WORDS = 40_000, 30_000  # of longer texts only the beginning is aligned
_SHORT = 3  # words; shorter runs must be part of a matching run of three, or be the whole block


@dataclass
class Example:
    """A labelled page: share of content [n] and number [n] of its blocks' words.

    Blocks that are not `judged` [n] are features of their neighbours, but are not trained on.
    """

    name: str
    group: str
    source: bytes
    page: s.Page
    label: Floats
    words: Floats
    judged: Bits
    weight: float
    measured: npt.NDArray[np.float32] | None = None
    statistics: tuple[Any, Any] | None = None
    is_variant: bool = False
    wordless: bool = False  # measured without what words say, as pages in unseen languages are
    kind: str = "article"

    def fold(self, folds: int) -> int:
        return fold_of(self.group, folds)

    def block_weights(self) -> Floats:
        """Weight of each block [n] next to the others: the root of its length, 0 if unjudged."""
        return np.where(self.judged, np.sqrt(self.words + 1), 0.0)


def fold_of(group: str, folds: int) -> int:
    """Fold of a site: pages of one site are never on both sides."""
    return zlib.crc32(group.encode()) % folds


def gold_rows(data: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield rows of a set's gold file. Raises InputError when it is absent."""
    path = data / name / "gold.jsonl"
    if not path.is_file():
        raise InputError(f"{path}: no such gold file")
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def group_of(row: dict[str, Any]) -> str:
    """Return the site of a page, or what its set counts as one."""
    group: str = row.get("group") or row["site"]
    return group


def page_bytes(data: Path, name: str, page_id: str) -> bytes:
    """Return a page in UTF-8."""
    raw = (data / name / "html" / f"{page_id}.html").read_bytes()
    return utf8_html(raw, None)[0]


def scanned(source: bytes) -> s.Page:
    page = scan(source, _MAX_DEPTH, _MAX_NODES)
    if page.status == s.STATUS_UNCLOSED_HIDDEN or not len(page.b_start):
        page = scan(source, _MAX_DEPTH, _MAX_NODES, keep_hidden=True)
    return page


def block_texts(page: s.Page) -> list[str]:
    blob = page.text.tobytes()
    return [
        blob[start:end].decode("utf-8", "replace")
        for start, end in zip(page.b_start, page.b_end, strict=True)
    ]


def words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def align(texts: Sequence[str], gold: str) -> tuple[Floats, Floats]:
    """Share of each block's words that the gold text has, in order, and the number of its words.

    A match counts where it is part of a run of three words that the gold text has too, or in blocks
    of at most three words: single common words align anywhere.
    """
    sequences = require("rapidfuzz.distance", "curate train extractor").LCSseq
    found = [words_of(text) for text in texts]
    count = np.array([len(words) for words in found], np.float64)
    ids: dict[str, int] = {}
    page = [ids.setdefault(word, len(ids)) for words in found for word in words][:_PAGE_WORDS]
    target = [ids.setdefault(word, len(ids)) for word in words_of(gold)[:_GOLD_WORDS]]
    if not page or not target:
        return np.zeros(len(texts)), count
    block = np.repeat(np.arange(len(texts)), count.astype(np.int64))[: len(page)]
    matched = np.zeros(len(page), np.bool_)
    for step in sequences.opcodes(page, target):
        if step.tag == "equal":
            matched[step.src_start : step.src_end] = True
    runs = set(zip(target, target[1:], target[2:], strict=False))
    supported = np.zeros(len(page), np.bool_)
    for i, run in enumerate(zip(page, page[1:], page[2:], strict=False)):
        if run in runs:
            supported[i : i + 3] = True
    good = matched & (supported | (count[block] <= _SHORT))
    return np.bincount(block[good], minlength=len(texts)) / np.maximum(count, 1), count


def text_examples(data: Path, settings: ExtractTraining) -> Iterator[Example]:
    """Pages with gold text, each followed by its variants."""
    for name in settings.sets:
        for row in gold_rows(data, name):
            if row.get("text") is None or len(words_of(row["text"])) < 5:
                continue
            source = page_bytes(data, name, row["id"])
            for variant in range(settings.variants + 1):
                seed = zlib.crc32(row["id"].encode()) + variant
                html = variants.rewritten(source, random.Random(seed)) if variant else source
                page = scanned(html)
                label, count = align(block_texts(page), row["text"])
                if not len(label):
                    continue
                weight = settings.weight_of(name) * (settings.variant_weight if variant else 1.0)
                group = group_of(row)
                kind = row.get("page_type") or ("forum" if "forum" in name else "article")
                yield Example(
                    f"{name}/{row['id']}", group, html, page, label, count,
                    np.ones(len(label), np.bool_), weight,
                    is_variant=variant > 0, wordless=variant > 0, kind=kind,
                )  # fmt: skip


def made_examples(originals: Sequence[Example], settings: ExtractTraining) -> Iterator[Example]:
    """Pages made from the originals: content cut short, other pages' content behind articles."""
    others: dict[int, list[Example]] = defaultdict(list)
    for example in originals:
        if example.kind not in ("article", "documentation"):  # what is found behind articles
            others[example.fold(settings.folds)].append(example)
    for example in originals:
        chance = random.Random(zlib.crc32(example.name.encode()))
        cut = [_shortened(example, bounds, settings, chance) for bounds in settings.shortened]
        yield from filter(None, cut)
        guests = others[example.fold(settings.folds)]
        if settings.grafted_weight and example.kind == "article" and guests:
            host = chance.choice([example, *filter(None, cut)])
            if made := _grafted(host, chance.choice(guests), settings, chance):
                yield made


def _shortened(
    example: Example, bounds: tuple[float, float], settings: ExtractTraining, chance: random.Random
) -> Example | None:
    left = variants.shortened(example.label, example.words, bounds, chance)
    if left is None:
        return None
    weight = settings.weight_of(example.name.partition("/")[0], example.kind)
    return dataclasses.replace(
        example,
        page=variants.subset(example.page, left),
        label=example.label[left],
        words=example.words[left],
        judged=example.judged[left],
        weight=weight * settings.shortened_weight,
        statistics=None,
        is_variant=True,
    )


def _grafted(
    example: Example, guest: Example, settings: ExtractTraining, chance: random.Random
) -> Example | None:
    low, high = settings.grafted
    limit = math.exp(chance.uniform(math.log(low), math.log(high)))
    blocks = variants.foreign_content(guest.label, guest.words, limit, chance)
    if len(blocks) < 3:
        return None
    return dataclasses.replace(
        example,
        page=variants.grafted(example.page, guest.page, blocks),
        label=np.concatenate([example.label, np.zeros(len(blocks))]),
        words=np.concatenate([example.words, guest.words[blocks]]),
        judged=np.concatenate([example.judged, np.ones(len(blocks), np.bool_)]),
        weight=settings.grafted_weight,
        statistics=None,
        is_variant=True,
    )


def labelled_examples(data: Path, settings: ExtractTraining) -> Iterator[Example]:
    """Pages whose blocks we labelled, each followed by its variants.

    Raises InputError when a page is absent or is another than the one that was labelled.
    """
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for labels in read_labels(settings.label_file):
        name, page_id = labels.set_name, labels.page_id
        if name not in rows:
            rows[name] = {row["id"]: row for row in gold_rows(data, name)}
        if page_id not in rows[name]:
            raise InputError(f"{data / name / 'gold.jsonl'}: no page {page_id}, which is labelled")
        row = rows[name][page_id]
        original = _labelled(page_bytes(data, name, page_id), group_of(row), labels)
        yield original
        for variant in range(1, settings.variants + 1):
            yield _rewritten(original, labels, zlib.crc32(page_id.encode()) + variant, settings)


def _labelled(source: bytes, group: str, labels: Labels) -> Example:
    page = scanned(source)
    texts = block_texts(page)
    keys = keys_of(texts)
    name = f"{labels.set_name}/{labels.page_id}"
    found = len(labels.main.intersection(keys))
    if found < len(labels.main) / 2:
        raise InputError(f"{name}: {found} of {len(labels.main)} labelled blocks are on the page")
    return Example(
        name,
        group,
        source,
        page,
        label=np.array([key in labels.main for key in keys], np.float64),
        words=np.array([len(words_of(text)) for text in texts], np.float64),
        judged=np.array([key not in labels.left_open for key in keys], np.bool_),
        weight=1.0,
    )


def _rewritten(example: Example, labels: Labels, seed: int, settings: ExtractTraining) -> Example:
    """Return the page in other markup, whose blocks are cut otherwise: labelled by the text's
    words."""
    content = zip(block_texts(example.page), example.label, strict=True)
    html = variants.rewritten(example.source, random.Random(seed))
    page = scanned(html)
    texts = block_texts(page)
    label, count = align(texts, "\n".join(text for text, share in content if share))
    left_open = {key.partition("/")[0] for key in labels.left_open}
    return dataclasses.replace(
        example,
        source=html,
        page=page,
        label=label,
        words=count,
        judged=np.array([checksum(text) not in left_open for text in texts], np.bool_),
        weight=settings.variant_weight,
        is_variant=True,
        wordless=True,
    )
