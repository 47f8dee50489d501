"""Recall and precision of decontamination on a planted set, by class.

  python benchmarks/decontamination.py --data FOLDER [--split dev|test] [--each 100]
                                       [--pages FILE ...] [--show] [--scale FILE]

FOLDER holds evals/ and quality/dev.jsonl.gz. Items of evaluation sets are planted into other texts in
the ways in which they reach the web; half of each set is indexed, the other half is the hard
negatives of the same template. `dev` has SVAMP, half of the tasks of BIG-Bench-Hard and six
languages of XQuAD; `test` has HumanEval, CRUXEval, the other tasks and languages, and other filler.
Settings were chosen on `dev`.

`--set short.bits=60` changes a rule (models/ngrams/rules.yaml).

`--pages` are texts (JSONL, Parquet) in which no item should be found: it prints what was.
`--scale` with `--pages` makes items of another file's texts, 60 words each, until there are 10 million
n-grams: bytes of the index, seconds to build it, and time per page with it.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import regex
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from curation.config import assign, read_yaml
from curation.decontaminate.catalog import build_catalog
from curation.decontaminate.decontaminate_settings import (
    DecontaminationSettings,
    default_settings,
)
from curation.decontaminate.index import load_background
from curation.decontaminate.items import Item
from curation.decontaminate.judge import Decontaminator
from curation.resources import resolve

DATA = Path(__file__).parents[2] / "shared" / "data"
LANGUAGES = {
    "dev": ("ar", "de", "el", "en", "es", "hi"),
    "test": ("ro", "ru", "th", "tr", "vi", "zh"),
}
SETS = {"dev": ("svamp",), "test": ("humaneval", "cruxeval")}
#: Scripts in which a word is not set apart: letters that are edited and counted as one.
LETTERS = {"th": 4, "zh": 2}
#: Tasks of which an item says less than the template around it.
BARE = ("boolean_expressions", "dyck_languages", "multistep_arithmetic_two")
PROVERBS = """A bird in the hand is worth two in the bush. All that glitters is not gold.
The early bird catches the worm. You can lead a horse to water but you can't make it drink.
Actions speak louder than words. Don't count your chickens before they hatch.
A journey of a thousand miles begins with a single step. When in Rome, do as the Romans do.
The pen is mightier than the sword. People who live in glass houses should not throw stones.
An apple a day keeps the doctor away. Where there is smoke there is fire.""".replace("\n", " ")
STOCK = """Which of the following is true? Choose the correct answer from the options below.
Read the following passage and answer the question. None of the above. All of the above.
How many of them are there in total? What is the capital of the country? How much money did he spend?
Complete the following function. Return the sum of the list of numbers. Write a function that returns
true if the given string is a palindrome. If you have any questions, please do not hesitate to contact
us. Select all that apply. Explain your reasoning step by step. Who was the first president?
Given a list of integers, return the largest. What is the name of the author? Options: (A) Yes (B) No
""".replace("\n", " ")


#: Enough words for 10 million n-grams of 4.
MOST_WORDS = 10_600_000


class Planted(NamedTuple):
    """A document, and whether it holds an item."""

    kind: str
    text: str
    item: Item | None


def load(data: Path, split: str) -> dict[str, list[Item]]:
    """Return the items of a split's sets by name."""
    found: dict[str, list[Item]] = defaultdict(list)
    for name in SETS[split]:
        found[name] = [_item(name, row) for row in _jsonl(data / f"evals/{name}.jsonl.gz")]
    rows = list(_jsonl(data / "evals/bbh.jsonl.gz"))
    tasks = sorted({row["task"] for row in rows})[SETS_AT[split] :: 2]
    for row in rows:
        if row["task"] in tasks:
            found[f"bbh-{row['task']}"].append(_item(f"bbh-{row['task']}", row))
    for row in _jsonl(data / "evals/xquad.jsonl.gz"):
        if row["lang"] in LANGUAGES[split]:
            found[f"xquad-{row['lang']}"].append(_item(f"xquad-{row['lang']}", row))
    return found


SETS_AT = {"dev": 0, "test": 1}


def _item(name: str, row: dict[str, Any]) -> Item:
    question = row["question"]
    answer = row.get("answer") or ""
    if isinstance(answer, list):
        answer = answer[0] if answer else ""
    return Item(name, row["id"], question, (), str(answer), row.get("context") or "")


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def words(text: str, language: str = "") -> list[str]:
    """Words of a text, or groups of letters that are about one, with the blank behind each."""
    if language in LETTERS:
        return regex.findall(rf"(?:\S\p{{M}}*){{1,{LETTERS[language]}}}", text)
    return text.split()


def join(parts: list[str], language: str = "") -> str:
    return ("" if language in LETTERS else " ").join(parts)


class Planter:
    """Plants items into filler."""

    def __init__(self, filler: list[str], seed: int) -> None:
        self.random = random.Random(seed)
        self.filler = filler
        self.vocabulary = [w for text in filler[:50] for w in text.split() if w.isalpha()]

    def stuff(self, least: int) -> str:
        """Filler of at least so many words."""
        parts: list[str] = []
        count = 0
        while count < least:
            some = self.random.choice(self.filler).split(" ")
            at = self.random.randrange(max(1, len(some) - least))
            parts += some[at : at + least - count + 5]
            count = len(parts)
        return " ".join(parts)

    def around(self, text: str, times: float = 2) -> str:
        size = max(30, int(len(text.split()) * times / 2))
        return f"{self.stuff(size)}\n\n{text}\n\n{self.stuff(size)}"

    def edited(self, text: str, edits: int, language: str = "") -> str:
        """Change so many words in every 20: another word, none, or one more."""
        parts = words(text, language)
        for first in range(0, len(parts), 20):
            block = range(first, min(first + 20, len(parts)))
            chosen = self.random.sample(block, min(edits, max(1, len(block) * edits // 20)))
            for i in chosen if len(block) * edits >= 10 else ():
                word = self.random.choice(self.vocabulary)
                parts[i] = self.random.choice([word, "", f"{parts[i]} {word}"])
        return join([part for part in parts if part], language)

    def wrapped(self, text: str, language: str = "") -> str:
        parts = words(text, language)
        lines = [join(parts[i : i + 8], language) for i in range(0, len(parts), 8)]
        return "\n".join(lines)

    def restyled(self, text: str) -> str:
        text = re.sub(
            r"[.,;:?!](?=\s|$)", lambda m: self.random.choice([m.group(), "", " -", ";"]), text
        )
        text = text.replace('"', "“").replace("'", "’")
        return self.random.choice([str.upper, str.lower, str.title])(text)

    def split(self, text: str, language: str = "") -> str:
        parts = words(text, language)
        pieces = self.random.choice([2, 3]) if len(parts) >= 24 else 2
        size = -(-len(parts) // pieces)
        paragraphs = [join(parts[i : i + size], language) for i in range(0, len(parts), size)]
        between = f"\n\n{self.stuff(12)}\n\n" if self.random.random() < 0.5 else "\n\n"
        return between.join(paragraphs)

    def apart(self, text: str, language: str = "") -> str:
        """The halves of a text, in either order, with 30 to 800 words between."""
        parts = words(text, language)
        half = len(parts) // 2
        halves = [join(parts[:half], language), join(parts[half:], language)]
        self.random.shuffle(halves)
        between = self.stuff(self.random.choice([30, 200, 800]))
        return self.around(f"\n\n{between}\n\n".join(halves))


def plant(
    sets: dict[str, list[Item]], planter: Planter, each: int
) -> tuple[list[Item], list[Planted]]:
    """Return the items to index, and documents with and without such items."""
    indexed = {name: items[::2] for name, items in sets.items()}
    others = {name: items[1::2] for name, items in sets.items()}
    rng = planter.random

    def language(item: Item) -> str:
        return item.set.partition("-")[2] if item.set.startswith("xquad") else ""

    def some(of: Callable[[Item], bool], count: int = each) -> list[Item]:
        usable = {name: [i for i in items if of(i)] for name, items in indexed.items()}
        names = [name for name, items in usable.items() if items and not name.endswith(BARE)]
        return [rng.choice(usable[rng.choice(names)]) for _ in range(count)]

    def size(item: Item) -> int:
        return len(words(item.question, language(item)))

    def full(item: Item) -> str:
        """The question, and its answer where that is needed."""
        return item.question if size(item) >= 20 else f"{item.question}\n{item.answer}"

    makers: dict[str, Callable[[Item], str]] = {
        "whole item": lambda i: planter.around(f"{i.question}\n{i.answer}"),
        "question alone": lambda i: planter.around(i.question),
        "1 edit in 20": lambda i: planter.around(planter.edited(full(i), 1, language(i))),
        "2 edits in 20": lambda i: planter.around(planter.edited(full(i), 2, language(i))),
        "wrapped": lambda i: planter.around(planter.wrapped(full(i), language(i))),
        "restyled": lambda i: planter.around(planter.restyled(full(i))),
        "in 20 times filler": lambda i: planter.around(full(i), 20),
        "split": lambda i: planter.around(planter.split(full(i), language(i))),
    }
    documents = []
    for kind, make in makers.items():
        least = 20 if "edits" in kind or kind == "split" else 8
        chosen = some(lambda i, least=least: size(i) >= least)
        documents += [Planted(kind, make(i), i) for i in chosen]
    short = some(lambda i: 8 <= size(i) < 20)
    documents += [
        Planted("under 20 words", planter.around(f"{i.question} {i.answer}"), i) for i in short
    ]
    for name in [n for n in sets if n.startswith("xquad")]:
        items = some(lambda i, name=name: i.set == name and size(i) >= 8, each // 2)
        for i, item in enumerate(items):
            text = planter.edited(full(item), 1, language(item)) if i % 3 == 0 else full(item)
            documents.append(Planted(f"language {name[6:]}", planter.around(text), item))
    number = len(documents)
    pool = [i for items in indexed.values() for i in items]
    passages = [i.passage for i in pool if i.passage]
    foreign = [i for items in others.values() for i in items if not _twin(i, indexed[i.set])]
    licences = [p.read_text("utf-8", "replace") for p in sorted(LICENCES)]
    negatives: list[Callable[[], tuple[str, str]]] = [
        lambda: ("not: stock phrases", planter.around(STOCK)),
        lambda: ("not: proverbs", planter.around(PROVERBS)),
        lambda: ("not: licences", planter.around(_piece(rng, rng.choice(licences)))),
        lambda: ("not: quoted passages", planter.around(rng.choice(passages))),
        lambda: ("not: same template", planter.around(rng.choice(foreign).question)),
        lambda: ("not: same template", planter.around(rng.choice(foreign).question)),
    ]
    for i in range(number):
        documents.append(Planted(*negatives[i % len(negatives)](), None))
    documents += [
        Planted("halves apart", planter.apart(i.question, language(i)), i)
        for i in some(lambda i: size(i) >= 20)
    ]
    documents += [
        Planted("short, 1 edit", planter.around(planter.edited(full(i), 1, language(i))), i)
        for i in short
    ]
    return pool, documents


LICENCES = [p for p in Path("/usr/share/common-licenses").glob("*") if p.is_file()] or [
    Path(__file__).parents[1] / "LICENSE"
]


def _piece(rng: random.Random, text: str) -> str:
    at = rng.randrange(max(1, len(text) - 3000))
    return text[at : at + 3000]


def _twin(item: Item, indexed: list[Item]) -> bool:
    """Whether an indexed item says the same, all but a word in ten."""
    own = re.findall(r"\w+", item.question.lower())
    numbers = sorted(w for w in own if w.isdigit())
    for other in indexed:
        theirs = re.findall(r"\w+", other.question.lower())
        if abs(len(own) - len(theirs)) * 10 > max(len(own), len(theirs)):
            continue
        if sorted(w for w in theirs if w.isdigit()) != numbers:
            continue
        if difflib.SequenceMatcher(None, own, theirs, False).ratio() >= 0.85:
            return True
    return False


def measure(documents: list[Planted], flags: list[bool]) -> dict[str, Any]:
    """Recall and precision over all, share flagged by class."""
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for document, flag in zip(documents, flags, strict=True):
        by_kind[document.kind].append(flag)
    hits = sum(f for d, f in zip(documents, flags, strict=True) if d.item)
    flagged, planted = sum(flags), sum(1 for d in documents if d.item)
    return {
        "recall": hits / planted,
        "precision": hits / flagged if flagged else 1.0,
        "classes": {kind: sum(some) / len(some) for kind, some in by_kind.items()},
    }


def decontaminator(items: list[Item], changes: Sequence[str] = ()) -> Decontaminator:
    """The default settings, with changes of their rules as of `--set`, on items in memory."""
    tree = default_settings().model_dump(mode="json")
    rules = read_yaml(Path(resolve(tree["rules"])))
    for change in changes:
        assign(rules, change)
    tree["evals"] = {name: {"files": ["-"]} for name in sorted({item.set for item in items})}
    tree["rules"] = str(Path(tempfile.mkdtemp(), "rules.yaml"))
    Path(tree["rules"]).write_text(yaml.safe_dump(rules))
    settings = DecontaminationSettings.model_validate(tree)
    return Decontaminator(settings, build_catalog(items, load_background(settings.background)))


def planted(options: argparse.Namespace) -> tuple[list[Item], list[Planted]]:
    """Items and documents of a split."""
    texts = [row["text"] for row in _jsonl(options.data / "quality/dev.jsonl.gz")]
    filler = [text for text in texts if len(text.split()) > 100][SETS_AT[options.split] :: 2]
    sets = load(options.data, options.split)
    return plant(sets, Planter(filler, options.seed), options.each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="short.bits=60"
    )
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--show", action="store_true", help="print what is missed or flagged wrongly"
    )
    parser.add_argument("--scale", type=Path)
    parser.add_argument("--pages", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    if options.pages:
        if options.scale:
            check_pages(large(options.scale), options.pages)
            return
        items = [
            i for split in ("dev", "test") for s in load(options.data, split).values() for i in s
        ]
        check_pages(decontaminator(items), options.pages)
        return
    indexed, documents = planted(options)
    ours = decontaminator(indexed, options.set)
    started = time.process_time()
    found = list(ours.find([d.text for d in documents]))
    seconds = time.process_time() - started
    flags = [any(f.action == "remove" for f in some) for some in found]
    print(f"{len(indexed):,} items, {len(documents):,} documents, {seconds:.1f} CPU s")
    print_table(measure(documents, flags))
    if options.show:
        show(documents, found, flags)


def large(path: Path) -> Decontaminator:
    """A catalog of 10 million n-grams, made of texts."""
    items: list[Item] = []
    size = 0
    for texts in pages(path):
        for text in texts:
            parts = words(text)
            for at in range(0, len(parts), 60):
                items.append(Item("made", str(len(items)), " ".join(parts[at : at + 60])))
            size += len(parts)
        if size > MOST_WORDS:
            break
    started = time.process_time()
    made = decontaminator(items)
    seconds = time.process_time() - started
    index = made.index
    postings, total = len(index.patterns), sum(array.nbytes for array in index)
    print(
        f"{len(items):,} items, {len(index.starts) - 1:,} n-grams that point at {postings:,} places:"
    )
    print(f"index {total / 1e6:.0f} MB, built in {seconds:.0f} CPU s")
    return made


def print_table(result: dict[str, Any]) -> None:
    print("| | |\n|---|---|")
    for row in ["recall", "precision", *result["classes"]]:
        print(f"| {row} | {result.get(row, result['classes'].get(row)):.3f} |")


def show(documents: list[Planted], found: list[Any], flags: list[bool]) -> None:
    best: dict[str, list[float]] = defaultdict(list)
    for document, some in zip(documents, found, strict=True):
        name = document.item and document.item.id
        scores = [f.score for f in some if f.part == "question" and name in (None, f.id)]
        best[document.kind].append(max(scores, default=0))
    for kind, scores in best.items():
        print(kind, *(f"{s:.2f}" for s in sorted(scores, reverse=kind.startswith("not:"))[:12]))
    for document, some, flag in zip(documents, found, flags, strict=True):
        if flag == (document.item is not None):
            continue
        print("----", document.kind, document.item and (document.item.set, document.item.id))
        if document.item:
            print("item:", document.item.question[:300], "=>", document.item.answer[:80])
        for one in some[:3]:
            span = document.text.encode()[one.start : one.end].decode()
            print("  ", one.action, one.set, one.id, one.part, one.score, repr(span[:300]))


def check_pages(ours: Decontaminator, paths: list[Path]) -> None:
    counts: Counter[str] = Counter()
    started = time.process_time()
    for path in paths:
        for texts in pages(path):
            for text, some in zip(texts, ours.find(texts), strict=True):
                counts["pages"] += 1
                counts["characters"] += len(text)
                acting = [f for f in some if f.action == "remove"]
                counts["flagged"] += bool(acting)
                counts["touched"] += bool(some)
                for one in acting[:1]:
                    span = text.encode()[one.start : one.end].decode()
                    print(one.set, one.id, one.part, one.score, repr(span[:200]))
    seconds = time.process_time() - started
    rate = counts["characters"] / seconds / 1e6
    print(
        dict(counts), f"{1000 * seconds / counts['pages']:.3f} ms a page, {rate:.1f}M characters/s"
    )


def pages(path: Path) -> Iterator[list[str]]:
    if path.suffix == ".parquet":
        for batch in pq.ParquetFile(path).iter_batches(512, columns=["text"]):
            yield [t or "" for t in batch["text"].to_pylist()]
        return
    rows: list[str] = []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            rows.append(json.loads(line).get("text") or "")
            if len(rows) == 512:
                yield rows
                rows = []
    yield rows


if __name__ == "__main__":
    main()
