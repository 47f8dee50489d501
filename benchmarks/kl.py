"""What the KL divergence finds: gibberish, articles with random words in them, and good pages.

  python benchmarks/kl.py [--data FOLDER] [--pages FILE] [--languages en de ...] [--threshold X]

FOLDER has evals/xquad.jsonl.gz (articles in 12 languages), words/opensubtitles-50k.tar.xz,
quality/dev.jsonl.gz (graded pages) and domain/dev.jsonl.gz. The references were not trained on XQuAD
or on graded pages. FILE is Parquet with `text`, `language` and `set`, web pages for the share that is
removed. Gibberish is made with a fixed seed. "Above" is the share of documents that score higher than
every article of their language; "found" is the share that the rule of the recipe llama3 removes (or
`--threshold`). Speed is the best of `--repeat` runs on one core, with and without references.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tarfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from curation.filters import Filter
from curation.filters.filter_settings import default_settings
from curation.filters.rules import RuleBook
from curation.filters.signals import Meter
from curation.language import identify

DATA = Path(__file__).parents[2] / "shared" / "data"
UNSPACED = {"zh", "ja", "th"}
LATIN = {"de", "en", "es", "fr", "it", "nl", "pl", "pt", "ro", "tr", "vi"}
EACH = 20  # documents of a kind
PARAGRAPHS = 5  # of XQuAD make an article

SPAM = [
    "buy cheap viagra online no prescription discount pharmacy generic pills order now fast shipping",
    "casino bonus poker slots free spins jackpot online gambling win money play roulette blackjack",
    "cheap flights hotel booking travel deals last minute vacation package discount airline tickets",
    "payday loan fast cash bad credit approval instant mortgage refinance debt consolidation lender",
]

Rng = random.Random
Texts = list[str]


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def articles(data: Path) -> dict[str, Texts]:
    """Articles by language: five paragraphs of XQuAD in a row, and English pages of grade 4."""
    paragraphs: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows(data / "evals" / "xquad.jsonl.gz"):
        paragraphs[row["lang"]].setdefault(row["context"])
    found = {
        language: ["\n".join(held[k : k + PARAGRAPHS]) for k in range(0, len(held), PARAGRAPHS)]
        for language, held in ((language, list(own)) for language, own in paragraphs.items())
    }
    pages = [r for r in rows(data / "quality" / "dev.jsonl.gz") if r["quality"] >= 4]
    labels, _ = identify([r["text"] for r in pages])
    found["en"] += [
        r["text"]
        for r, label in zip(pages, labels, strict=True)
        if label == "en" and r["domain"] == "general" and 300 <= len(r["text"].split()) <= 1500
    ]
    return found


def frequency_lists(path: Path) -> dict[str, list[str]]:
    found = {}
    with tarfile.open(path) as held:
        for member in held:
            file = held.extractfile(member)
            if member.name.endswith("_50k.txt") and file is not None:
                name = Path(member.name).name.removesuffix("_50k.txt")
                lines = file.read().decode().splitlines()
                found[{"zh_cn": "zh"}.get(name, name)] = [line.split()[0] for line in lines]
    return found


def sentences(words: list[str], rng: Rng, space: str) -> str:
    """Words as sentences of 6 to 20."""
    out = []
    while words:
        size = rng.randint(6, 20)
        out.append(space.join(words[:size]).capitalize() + ("。" if not space else "."))
        words = words[size:]
    return " ".join(out)


class Maker:
    """Gibberish of one language."""

    def __init__(self, language: str, own: Texts, words: list[str], seed: int) -> None:
        self.rng = Rng(seed)
        self.space = "" if language in UNSPACED else " "
        self.own = own
        self.words = words
        letters = Counter(c for text in own for c in text.lower() if c.isalpha())
        self.letters = [c for c, n in letters.most_common() if n > 3]
        self.weights = [letters[c] for c in self.letters]
        self.lengths = [len(w) for t in own for w in t.split() if len(w) <= 14]
        self.pieces = [piece for text in own for piece in self.split(text)]

    def split(self, text: str) -> list[str]:
        if self.space:
            return text.split()
        line = "".join(text.split())
        return [line[k : k + 2] for k in range(0, len(line), 2)]

    def size(self) -> int:
        return self.rng.randint(200, 800)

    def word(self, kind: str) -> str:
        rng = self.rng
        if not self.space:
            weights = self.weights if kind == "frequent" else None
            return "".join(rng.choices(self.letters, weights, k=2))
        if kind == "mash" and "a" in self.letters:
            keys = ["asdf", "jkl", "sdfg", "hjk", "qwe", "df", "gh", "as", "kl"]
            return "".join(rng.choices(keys, k=rng.randint(1, 3)))
        if kind == "consonants":
            kept = [c for c in self.letters if c not in "aeiouyаеиоуыэюяαεηιουω"]
            return "".join(rng.choices(kept, k=rng.choice(self.lengths)))
        weights = self.weights if kind == "frequent" else None
        return "".join(rng.choices(self.letters, weights, k=rng.choice(self.lengths)))

    def document(self, words: list[str]) -> str:
        return sentences(words, self.rng, self.space)

    def letter_salad(self, kind: str) -> str:
        return self.document([self.word(kind) for _ in range(self.size())])

    def rare_words(self) -> str:
        return self.document(self.rng.sample(self.words[5000:], self.size()))

    def dictionary(self) -> str:
        return self.document(self.rng.sample(self.words, self.size()))

    def alphabet(self) -> str:
        size = self.size()
        listed = sorted(self.words[3000:])
        start = self.rng.randrange(len(listed) - size)
        return self.document(listed[start : start + size])

    def shuffled(self) -> str:
        return self.document(self.rng.sample(self.pieces, self.size()))

    def keywords(self) -> str:
        counts = Counter(w for w in self.split(self.rng.choice(self.own)) if len(w) > 5)
        kept = [w for w, _ in counts.most_common(30)]
        return ", ".join(self.rng.choices(kept, k=self.size()))

    def spam(self, number: int) -> str:
        topic = SPAM[number % len(SPAM)].split()
        return ", ".join(
            " ".join(self.rng.sample(topic, self.rng.randint(2, 4)))
            for _ in range(self.size() // 3)
        )

    def ngrams(self, number: int) -> str:
        topic = SPAM[number % len(SPAM)].split()
        phrase = " ".join(topic[: self.rng.randint(4, 9)])
        return ". ".join(
            f"{phrase} {self.rng.choice(self.words[:3000])}" for _ in range(self.size() // 7)
        )

    def every_fifth(self, text: str, make: Callable[[], str]) -> str:
        pieces = self.split(text)
        pieces[4::5] = [make() for _ in pieces[4::5]]
        return self.space.join(pieces)


def gibberish(
    language: str, texts: dict[str, Texts], maker: Maker, words: list[str] | None
) -> dict[str, Texts]:
    rng = maker.rng
    kinds: dict[str, Callable[[int], str]] = {
        "letters, uniform": lambda i: maker.letter_salad("uniform"),
        "letters, by frequency": lambda i: maker.letter_salad("frequent"),
        "words shuffled": lambda i: maker.shuffled(),
    }
    if maker.space:
        kinds["letters, consonants"] = lambda i: maker.letter_salad("consonants")
        kinds["keywords of an article"] = lambda i: maker.keywords()
    if language in LATIN:
        kinds["letters, keyboard"] = lambda i: maker.letter_salad("mash")
    if words:
        kinds["rare words"] = lambda i: maker.rare_words()
        kinds["dictionary words"] = lambda i: maker.dictionary()
        kinds["dictionary, alphabetical"] = lambda i: maker.alphabet()
    if language == "en":
        kinds["spam, lists"] = maker.spam
        kinds["spam, n-grams"] = maker.ngrams
    found = {name: [make(i) for i in range(EACH)] for name, make in kinds.items()}
    for other in sorted(texts):
        if other != language:
            found[f"{other} labelled {language}"] = rng.sample(texts[other], EACH)
    return found


def table(
    values: dict[str, npt.NDArray[np.float64]], highest: float, threshold: float
) -> tuple[int, int, int]:
    above = found = total = 0
    for name, scores in values.items():
        over, hit = int((scores > highest).sum()), int((scores > threshold).sum())
        above, found, total = above + over, found + hit, total + len(scores)
        print(
            f"  {name:26} {scores.min():7.2f} {np.median(scores):7.2f} {scores.max():7.2f}"
            f"   above {over:3}/{len(scores):<3} found {hit:3}/{len(scores)}"
        )
    return above, found, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--languages", nargs="*")
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--reference", default="builtin:models/reference")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    settings = default_settings(signals={"reference": options.reference})
    meter, book = Meter(settings.signals), RuleBook(settings)

    def score(texts: Texts, language: str) -> npt.NDArray[np.float64]:
        batch = pa.array(texts, pa.large_string())
        held = meter.measure(batch, pa.array([language] * len(texts)))
        return held.field("kl_divergence").to_numpy(zero_copy_only=False)

    def limit(language: str) -> float:
        if options.threshold is not None:
            return float(options.threshold)
        rules = (r.rule.max for r in book.of(language) if r.reason == "llama3.kl_divergence")
        return next((m for m in rules if m is not None), np.inf)

    texts = articles(options.data)
    lists = frequency_lists(options.data / "words" / "opensubtitles-50k.tar.xz")
    for seed, language in enumerate(sorted(options.languages or texts)):
        own = texts[language]
        words = lists.get(language) if language not in ("th", "zh") else None
        maker = Maker(language, own, words or [], seed)
        scores, threshold = score(own, language), limit(language)
        print(f"{language}: threshold {threshold:.2f}")
        table({"articles": scores}, scores.max(), threshold)
        held = gibberish(language, texts, maker, words)
        values = {name: score(made, language) for name, made in held.items()}
        above, found, total = table(values, scores.max(), threshold)
        print(f"  all gibberish: above {above}/{total}, found {found}/{total}")
        sources: dict[str, Callable[[], str]] = {
            "letters, uniform": lambda m=maker: m.word("uniform"),  # type: ignore[misc]
            "letters, by frequency": lambda m=maker: m.word("frequent"),  # type: ignore[misc]
        }
        if words:
            sources["dictionary words"] = lambda m=maker, w=words: m.rng.choice(w)  # type: ignore[misc]
        table(
            {
                f"fifth {name}": score([maker.every_fifth(t, make) for t in own], language)
                for name, make in sources.items()
            },
            scores.max(),
            threshold,
        )
    good_pages(options, score, limit)
    speed(options, settings)


def good_pages(
    options: argparse.Namespace,
    score: Callable[[Texts, str], npt.NDArray[np.float64]],
    limit: Callable[[str], float],
) -> None:
    groups: dict[tuple[str, str], Texts] = defaultdict(list)
    pages = rows(options.data / "quality" / "dev.jsonl.gz")
    labels, _ = identify([r["text"] for r in pages])
    for row, label in zip(pages, labels, strict=True):
        if row["domain"] not in ("code", "math_reasoning"):
            grade = "graded 3 to 5" if row["quality"] >= 3 else f"graded {row['quality']}"
            groups[grade, label].append(row["text"])
    if options.pages:
        for row in pq.read_table(options.pages).to_pylist():
            groups[str(row["set"]), row["language"]].append(row["text"])
    print("pages removed (of 50 words or more)")
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (group, language), own in sorted(groups.items()):
        scores = score(own, language)
        scores = scores[~np.isnan(scores)]
        if not len(scores):
            continue
        removed = int((scores > limit(language)).sum())
        sums[group][0] += removed
        sums[group][1] += len(scores)
        if len(scores) >= 5 or removed:
            high = np.quantile(scores, [0.5, 0.95, 0.99])
            levels = " ".join(f"{v:5.2f}" for v in high)
            print(f"  {group:24} {language:3} {removed:4}/{len(scores):<5} 50, 95, 99 %: {levels}")
    for group, (removed, total) in sums.items():
        print(f"  {group:24} all {removed:4}/{total:<5} {removed / total:.2%}")


def speed(options: argparse.Namespace, settings: Any) -> None:
    pages = rows(options.data / "quality" / "dev.jsonl.gz")
    texts = pa.array([r["text"] for r in pages], pa.large_string())
    languages = pa.array(identify([r["text"] for r in pages])[0])
    characters = sum(len(r["text"]) for r in pages)
    without = settings.signals.model_copy(update={"reference": None})
    best: dict[str, float] = {}
    meters = {"with references": Meter(settings.signals), "without": Meter(without)}
    for _ in range(options.repeat + 1):
        for name, meter in meters.items():
            start = time.process_time()
            meter.measure(texts, languages)
            best[name] = min(best.get(name, np.inf), time.process_time() - start)
    for name, seconds in best.items():
        print(f"signals {name:16} {characters / seconds / 1e6:6.1f} million characters/CPU second")
    batch = pa.record_batch(
        {
            "id": [str(i) for i in range(len(pages))],
            "url": [""] * len(pages),
            "text": texts,
            "language": languages,
        }
    )
    own = settings.model_copy(update={"by_language": {}})
    rules = {**own.rules, "llama3": {**(own.rules["llama3"] or {}), "kl_divergence": None}}
    bare = own.model_copy(update={"signals": without, "rules": rules})
    for name, held in (("with references", own), ("without", bare)):
        stage = Filter(held)
        took = []
        for _ in range(options.repeat):
            start = time.process_time()
            stage.apply(batch)
            took.append(time.process_time() - start)
        rate = characters / min(took) / 1e6
        print(f"filter stage {name:16} {rate:6.1f} million characters/CPU second")


if __name__ == "__main__":
    main()
