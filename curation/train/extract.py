"""Train the extractor's model: python -m curation.train.extract --data DIR --output FOLDER.

DIR holds `<set>/html/<id>.html` and `<set>/gold.jsonl` ({id, text, url, group or site, with?,
without?}). Blocks are labelled by the longest common subsequence of their words with the gold text.
The same data, settings and versions of scikit-learn and RapidFuzz give the same bytes.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import random
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml
from pydantic import BaseModel, ConfigDict, Field

from curation import resources
from curation.errors import ConfigError, InputError
from curation.extract import scanned as s
from curation.extract.features import COUNT, NAMES, Lexicons, features, text_counts
from curation.extract.forest import MAX_LEAVES, Forest
from curation.extract.markup import fnv
from curation.extract.model import Lexicon, Model
from curation.extract.scan import scan
from curation.readers.charset import decode_html
from curation.train import variants

Floats = npt.NDArray[np.float64]

_MAX_DEPTH, _MAX_NODES = 512, 1_000_000
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_HAN}]|[^\\W{_HAN}]+")
_WHITE = re.compile(r"\s+")
_PAGE_WORDS, _GOLD_WORDS = 40_000, 30_000  # of longer texts only the beginning is aligned
_SHORT = 3  # words; shorter runs must be part of a matching run of three, or be the whole block


class ExtractTraining(BaseModel):
    """How the extractor's model is trained; defaults in configs/train/extract.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sets: tuple[str, ...] = Field(description="sets with gold text")
    other_sets: tuple[str, ...] = Field(description="sets that only --all-sets learns from")
    phrase_sets: tuple[str, ...] = Field(description="sets with phrases to keep and to drop")
    phrase_weight: float = Field(ge=0, description="weight of a page of these against 1")
    teacher: str = Field(description="engine whose text labels what the phrases leave open")
    variants: int = Field(ge=0, description="copies of each page with its markup rewritten")
    variant_weight: float = Field(ge=0)
    shortened: tuple[tuple[float, float], ...] = Field(
        description="bounds in words of copies of each page with its content cut short"
    )
    shortened_weight: float = Field(ge=0)
    grafted: tuple[float, float] = Field(
        description="bounds in words of what copies of articles get behind them of other pages"
    )
    grafted_weight: float = Field(ge=0)
    region_list: str = Field(description="groups of class names (YAML)")
    class_sites: int = Field(ge=1)
    word_sites: int = Field(ge=1)
    smoothing: float = Field(gt=0)
    blocks_per_page: int = Field(ge=1)
    label_share: float = Field(gt=0, lt=1)
    trees: int = Field(ge=1)
    leaves: int = Field(ge=2, le=MAX_LEAVES)
    learning_rate: float = Field(gt=0)
    min_samples_leaf: int = Field(ge=1)
    l2: float = Field(ge=0)
    max_features: float = Field(gt=0, le=1)
    bins: int = Field(ge=2, le=255)
    folds: int = Field(ge=2)
    all_folds: int = Field(ge=2)
    seed: int = Field(ge=0)

    def with_all_sets(self) -> ExtractTraining:
        """These settings with all sets, whatever their licences: to measure, never to ship."""
        sets = (*self.sets, *self.other_sets)
        return self.model_copy(update={"sets": sets, "folds": self.all_folds})


@dataclass
class Example:
    """A labelled page: share of gold words [n] and number of words [n] of its blocks."""

    name: str
    group: str
    source: bytes
    page: s.Page
    label: Floats
    words: Floats
    weight: float
    measured: npt.NDArray[np.float32] | None = None
    statistics: tuple[Any, Any] | None = None
    is_variant: bool = False
    wordless: bool = False  # measured without what words say, as pages in unseen languages are
    kind: str = "article"

    def fold(self, folds: int) -> int:
        return fold_of(self.group, folds)


def fold_of(group: str, folds: int) -> int:
    """Fold of a site: pages of one site are never on both sides."""
    return zlib.crc32(group.encode()) % folds


def default_training() -> ExtractTraining:
    path = resources.root() / "configs" / "train" / "extract.yaml"
    return ExtractTraining.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


# ---------------------------------------------------------------------------------- pages


def gold_rows(data: Path, name: str) -> Iterator[dict[str, Any]]:
    """Rows of a set's gold file. Raises InputError when it is absent."""
    path = data / name / "gold.jsonl"
    if not path.is_file():
        raise InputError(f"{path}: no such gold file")
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def page_bytes(data: Path, name: str, page_id: str) -> bytes:
    """A page in UTF-8."""
    raw = (data / name / "html" / f"{page_id}.html").read_bytes()
    return decode_html(raw, None)[0].encode("utf-8", "replace")


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
    from rapidfuzz.distance import LCSseq

    found = [words_of(text) for text in texts]
    count = np.array([len(words) for words in found], np.float64)
    ids: dict[str, int] = {}
    page = [ids.setdefault(word, len(ids)) for words in found for word in words][:_PAGE_WORDS]
    target = [ids.setdefault(word, len(ids)) for word in words_of(gold)[:_GOLD_WORDS]]
    if not page or not target:
        return np.zeros(len(texts)), count
    block = np.repeat(np.arange(len(texts)), count.astype(np.int64))[: len(page)]
    matched = np.zeros(len(page), np.bool_)
    for step in LCSseq.opcodes(page, target):
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
                weight = settings.variant_weight if variant else 1.0
                group = row.get("group") or row["site"]
                kind = row.get("page_type") or ("forum" if "forum" in name else "article")
                yield Example(
                    f"{name}/{row['id']}", group, html, page, label, count, weight,
                    is_variant=variant > 0, wordless=variant > 0, kind=kind,
                )  # fmt: skip


def made_examples(originals: Sequence[Example], settings: ExtractTraining) -> Iterator[Example]:
    """Pages made from the originals: content cut short, other pages' content behind articles."""
    others: dict[int, list[Example]] = defaultdict(list)
    for example in originals:
        if example.kind != "article":
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
    return dataclasses.replace(
        example,
        page=variants.subset(example.page, left),
        label=example.label[left],
        words=example.words[left],
        weight=settings.shortened_weight,
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
        weight=settings.grafted_weight,
        statistics=None,
        is_variant=True,
    )


def phrase_examples(data: Path, settings: ExtractTraining) -> Iterator[Example]:
    """Pages with phrases: these label their blocks, the teacher's text labels the others."""
    from curation.extract import default_settings
    from curation.extract.engines import text_engine

    teach = text_engine(settings.teacher)
    options = default_settings().model_copy(update={"favor": "balanced", "comments": False})
    for name in settings.phrase_sets:
        for row in gold_rows(data, name):
            source = page_bytes(data, name, row["id"])
            gold = teach(source.decode("utf-8"), None, options)
            page = scanned(source)
            texts = block_texts(page)
            if len(words_of(gold)) < 30 or not texts:
                continue
            label, count = align(texts, gold)
            wanted = [_plain(phrase) for phrase in row.get("with") or []]
            unwanted = [_plain(phrase) for phrase in row.get("without") or []]
            for i, text in enumerate(map(_plain, texts)):
                if any(phrase in text for phrase in wanted):
                    label[i] = 1.0
                elif any(phrase in text for phrase in unwanted):
                    label[i] = 0.0
            group = row.get("group") or row["site"]
            yield Example(
                f"{name}/{row['id']}", group, source, page, label, count, settings.phrase_weight
            )


def _plain(text: str) -> str:
    return _WHITE.sub(" ", unicodedata.normalize("NFC", text)).strip()


# ---------------------------------------------------------------------------------- lexicons


def read_regions(path: str) -> Lexicon:
    """Bits of the region list by hash of the names. Raises ConfigError when it is malformed."""
    listed = yaml.safe_load(Path(resources.resolve(path)).read_text(encoding="utf-8"))
    if not isinstance(listed, dict):
        raise ConfigError(f"{path}: not a mapping of groups to lists of names")
    bits: dict[int, int] = defaultdict(int)
    for index, names in enumerate(listed.values()):
        for name in names:
            bits[fnv(str(name).encode())] |= 1 << index
    keys = sorted(bits)
    return Lexicon(np.array(keys, np.uint64), np.array([bits[k] for k in keys], np.int32))


_EMPTY = Lexicon(np.zeros(0, np.uint64), np.zeros(0, np.float32))
_NO_FOREST = Forest(
    np.zeros(0, np.int32),
    np.zeros(0, np.int16),
    np.zeros(0, np.float32),
    np.zeros(0, np.int32),
    0.0,
)


def statistics(example: Example, regions: Lexicon) -> tuple[Any, Any]:
    """Hashes of a page's class names and of its words, each with the mean label around them."""
    page, label = example.page, example.label
    elements = len(page.e_parent)
    weight = np.sqrt(example.words + 1)
    total = np.bincount(page.b_element, weight, elements)
    positive = np.bincount(page.b_element, weight * label, elements)
    for element in range(elements - 1, 0, -1):
        total[page.e_parent[element]] += total[element]
        positive[page.e_parent[element]] += positive[element]
    owner = np.repeat(np.arange(elements), np.diff(page.e_tokens))
    tokens = page.tokens[: len(owner)]
    useful = total[owner] > 0
    owner, tokens = owner[useful], tokens[useful]
    names, place = np.unique(tokens, return_inverse=True)
    share = np.bincount(place, positive[owner], len(names)) / np.maximum(
        np.bincount(place, total[owner], len(names)), 1e-9
    )
    text = text_counts(example.source, page)
    block = np.repeat(np.arange(len(label)), np.diff(text.hash_starts)).astype(np.uint64)
    pairs = np.unique(np.stack([text.hashes, block], 1), axis=0)
    seen, place = np.unique(pairs[:, 0], return_inverse=True)
    mean = np.bincount(place, label[pairs[:, 1].astype(np.int64)], len(seen)) / np.maximum(
        np.bincount(place, minlength=len(seen)), 1
    )
    return (names, share), (seen, mean)


def lexicon(
    parts: Iterable[tuple[str, tuple[npt.NDArray[np.uint64], Floats]]], sites: int, smoothing: float
) -> Lexicon:
    """Log odds against the average, by hash, of what stands on at least `sites` sites."""
    columns = [(zlib.crc32(group.encode()), *part) for group, part in parts]
    keys = np.concatenate([part[1] for part in columns])
    means = np.concatenate([part[2] for part in columns])
    groups = np.concatenate([np.full(len(part[1]), part[0], np.uint64) for part in columns])
    names, place = np.unique(keys, return_inverse=True)
    count = np.bincount(place, minlength=len(names)).astype(np.float64)
    positive = np.bincount(place, means, len(names))
    seen = np.unique(np.stack([place.astype(np.uint64), groups], 1), axis=0)
    on_sites = np.bincount(seen[:, 0].astype(np.int64), minlength=len(names))
    average = positive.sum() / count.sum()
    share = (positive + smoothing * average) / (count + smoothing)
    weight = np.log(share / (1 - share)) - math.log(average / (1 - average))
    common = on_sites >= sites
    return Lexicon(names[common], weight[common].astype(np.float16).astype(np.float32))


def lexicons_of(
    examples: Sequence[Example], settings: ExtractTraining, regions: Lexicon
) -> tuple[Lexicon, Lexicon]:
    """Lexicons of class names and of words, learned from original pages with gold text."""
    first = [(e.group, e.statistics[0]) for e in examples if e.statistics]
    second = [(e.group, e.statistics[1]) for e in examples if e.statistics]
    return (
        lexicon(first, settings.class_sites, settings.smoothing),
        lexicon(second, settings.word_sites, settings.smoothing),
    )


# ---------------------------------------------------------------------------------- trees

# Features whose effect can have one sign only, which holds pages of other times and kinds in check.
_RISING = frozenset(
    "b_words b_sentences b_commas class_min class_max class_sum word_score heading_score "
    "signature_share dominant_in".split()
)
_FALLING = frozenset(
    "dominant_off copies region_1 region_2 region_3 region_5 region_6 region_7".split()
)


def signs() -> npt.NDArray[np.int64]:
    """Direction of each feature's effect: 1 rising, -1 falling, 0 free."""
    sign = np.zeros(COUNT, np.int64)
    for column, name in enumerate(NAMES):
        level = name[0] == "e" and name[1].isdigit()
        rising = level and name.endswith(("_share", "_class_score", "_words_per_block"))
        if name in _RISING or rising:
            sign[column] = 1
        elif name in _FALLING or ("link_density" in name and not name.startswith("page")):
            sign[column] = -1
    return sign


def fit(examples: Sequence[Example], settings: ExtractTraining) -> Forest:
    """Boosted trees over the measured blocks."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(settings.seed)
    rows, labels, weights = [], [], []
    for example in examples:
        assert example.measured is not None
        n = len(example.label)
        drawn = np.arange(n)
        if n > settings.blocks_per_page:
            drawn = np.sort(rng.choice(n, settings.blocks_per_page, replace=False))
        weight = np.sqrt(example.words[drawn] + 1)
        rows.append(example.measured[drawn])
        labels.append(example.label[drawn] > settings.label_share)
        weights.append(weight / weight.sum() * example.weight)
    weight = np.concatenate(weights)
    model = HistGradientBoostingClassifier(
        max_iter=settings.trees,
        max_leaf_nodes=settings.leaves,
        learning_rate=settings.learning_rate,
        max_features=settings.max_features,
        min_samples_leaf=settings.min_samples_leaf,
        l2_regularization=settings.l2,
        max_bins=settings.bins,
        early_stopping=False,
        random_state=settings.seed,
        monotonic_cst=signs(),
    )
    with threadpool_limits(1):  # sums in one order, whatever the machine
        model.fit(
            np.concatenate(rows),
            np.concatenate(labels).astype(np.int64),
            sample_weight=weight * len(weight) / weight.sum(),
        )
    return forest_of(model)


def forest_of(model: Any) -> Forest:
    """The trees of a fitted HistGradientBoostingClassifier, children side by side."""
    roots: list[int] = []
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        roots.append(len(feature))
        waiting = [(0, len(feature))]
        for store, value in ((feature, 0), (threshold, 0.0), (left, 0)):
            store.append(value)  # type: ignore[attr-defined, arg-type]
        while waiting:
            index, at = waiting.pop()
            node = nodes[index]
            if node["is_leaf"]:
                feature[at], threshold[at] = -1, float(node["value"])
                continue
            children = len(feature)
            # float32 inputs compared with a float64 threshold: round down, so that both agree
            edge = np.float32(node["num_threshold"])
            if np.float64(edge) > node["num_threshold"]:
                edge = np.nextafter(edge, np.float32(-np.inf))
            feature[at], threshold[at], left[at] = int(node["feature_idx"]), float(edge), children
            feature += [0, 0]
            threshold += [0.0, 0.0]
            left += [0, 0]
            waiting += [(int(node["left"]), children), (int(node["right"]), children + 1)]
    return Forest(
        np.array(roots, np.int32),
        np.array(feature, np.int16),
        np.array(threshold, np.float32),
        np.array(left, np.int32),
        float(model._baseline_prediction[0, 0]),
    )


# ---------------------------------------------------------------------------------- all of it


def train(
    data: Path,
    settings: ExtractTraining,
    whole: bool = True,
    cross_fit: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[tuple[int | None, Model]]:
    """Train on the sets of the settings: the model of all pages under None when `whole` is set.

    With `cross_fit` also, for each fold of sites, the model that saw none of them. The lexicons
    that an example is measured with are learned without its fold, or its own label would stand in
    its features.
    """
    regions = read_regions(settings.region_list)
    texts = list(text_examples(data, settings))
    say(f"{len(texts)} pages and variants with gold text")
    phrases = list(phrase_examples(data, settings)) if settings.phrase_weight else []
    say(f"{len(phrases)} pages with phrases")
    originals = [example for example in texts if not example.is_variant]
    for example in originals:
        example.statistics = statistics(example, regions)
    made = list(made_examples(originals, settings))
    say(f"{len(made)} pages made from them")
    every = texts + made + phrases
    by_fold: list[tuple[Lexicon, Lexicon]] = []
    for fold in range(settings.folds):
        others = [e for e in originals if e.fold(settings.folds) != fold]
        by_fold.append(lexicons_of(others, settings, regions))
        tables = Model(*by_fold[-1], regions, _NO_FOREST).lexicons
        for example in every:
            if example.fold(settings.folds) == fold:
                example.measured = _measured(example, tables)
    say(f"{len(by_fold[0][0].keys)} class names, {len(by_fold[0][1].keys)} words")
    if whole:
        say("fitting on all pages")
        yield None, Model(*lexicons_of(originals, settings, regions), regions, fit(every, settings))
    if cross_fit:
        for fold in range(settings.folds):
            say(f"fitting without fold {fold}")
            others = [e for e in every if e.fold(settings.folds) != fold]
            yield fold, Model(*by_fold[fold], regions, fit(others, settings))


def _measured(example: Example, tables: Lexicons) -> npt.NDArray[np.float32]:
    if example.wordless:
        empty = Model(_EMPTY, _EMPTY, _EMPTY, _NO_FOREST).lexicons
        tables = tables._replace(words=empty.words)
    return features(example.source, example.page, tables)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m curation.train.extract", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--output", type=Path, required=True, help="folder for blocks.npz")
    parser.add_argument("--settings", type=Path, help="YAML instead of configs/train/extract.yaml")
    parser.add_argument(
        "--cross-fit",
        action="store_true",
        help="also write blocks-fold<k>.npz, the models that saw no site of fold k",
    )
    parser.add_argument(
        "--all-sets",
        action="store_true",
        help="to measure only, never to ship: cross-fit on all sets, those too that the shipped "
        "model never learns from, and write nothing but all-sets-fold<k>.npz",
    )
    options = parser.parse_args(arguments)
    settings = default_training()
    if options.settings:
        listed = yaml.safe_load(options.settings.read_text(encoding="utf-8"))
        settings = ExtractTraining.model_validate(listed)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.all_sets:
        trained = train(options.data, settings.with_all_sets(), False, True, _say)
    else:
        trained = train(options.data, settings, True, options.cross_fit, _say)
    for fold, model in trained:
        path = options.output / model_name(fold, options.all_sets)
        model.save(path)
        print(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}", flush=True)


def model_name(fold: int | None, all_sets: bool) -> str:
    """File of a model: of all pages (None), or of those outside a fold."""
    if fold is None:
        return "blocks.npz"
    return f"all-sets-fold{fold}.npz" if all_sets else f"blocks-fold{fold}.npz"


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
