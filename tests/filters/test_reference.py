"""Reference distributions: divergences against plain Python, calibration, files, training."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from curation.errors import ConfigError, InputError
from curation.filters.lists import read_list
from curation.filters.reference import (
    CLASSES,
    LENGTHS,
    Reference,
    load_reference,
    measure_references,
    reference_tables,
)
from curation.models import list_models
from curation.resources import resolve
from models.training.reference import (
    ReferenceTraining,
    calibration_table,
    cut,
    default_reference,
    train_reference_files,
)
from models.training.reference_counts import WordCounts, count_words, merge_words
from models.training.report import About
from models.training.saving import save_reference
from models.training.word_classes import exchange
from tests.filters.plain import PlainReference, divergence, divergence_parts
from tests.text.strings import token_hash, word_list

ABOUT = About("1", "CC0-1.0", "ours", "command")
SMALL = default_reference().model_copy(
    update={"words": 800, "neighbours": 400, "endings": 10, "rounds": 2, "batch_characters": 50_000}
)
ENGLISH = """The town council met on Tuesday evening to discuss plans for a new library beside the
old railway station. Most of the people who spoke were in favour, although some worried about the
cost and the loss of parking places. The architect explained that the building would use less
energy than the present one, and that the work could be finished within two years if the money was
found. A member of the council said that the question had been put off too often. She asked the
meeting to remember how many children in the town had no quiet place in which to read."""
GERMAN = """Der Stadtrat hat am Dienstagabend über die Pläne für eine neue Bücherei neben dem alten
Bahnhof beraten. Die meisten Redner waren dafür, auch wenn einige sich wegen der Kosten und der
wegfallenden Parkplätze Sorgen machten. Der Architekt erklärte, dass das Gebäude weniger Energie
braucht als das jetzige und dass die Arbeit in zwei Jahren fertig sein könnte, wenn das Geld da ist.
Eine Stadträtin sagte, die Frage sei schon zu oft verschoben worden. Sie bat darum, an die Kinder zu
denken, die in der Stadt keinen ruhigen Ort zum Lesen haben."""


class Language:
    """A made-up language: Zipf's law, and a word of one kind behind one of the other."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        letters = "etaoinshrdlu"
        made = {"".join(rng.choices(letters, k=rng.randint(2, 8))) for _ in range(3000)}
        self.words = sorted(made)
        rng.shuffle(self.words)
        half = len(self.words) // 2
        self.kinds = (self.words[:half], self.words[half:])
        self.weights = [1 / (k + 3) for k in range(half)]

    def text(self, length: int, rng: random.Random) -> str:
        """A text about something: some words are more frequent than elsewhere."""
        own = [list(self.weights) for _ in self.kinds]
        for weights in own:
            for k in rng.sample(range(20, len(weights)), 15):
                weights[k] += 0.1
        parts = [
            rng.choices(kind[: len(weights)], weights, k=length // 2 + 1)
            for kind, weights in zip(self.kinds, own, strict=True)
        ]
        return " ".join(w for pair in zip(*parts, strict=True) for w in pair)

    def corpus(self, texts: int, seed: int) -> list[str]:
        rng = random.Random(seed)
        return [self.text(rng.choice([60, 150, 400, 1000, 3300]), rng) for _ in range(texts)]


def write(path: Path, texts: Sequence[str], language: str = "xx") -> Path:
    path.write_text("\n".join(json.dumps({"text": t, "lang": language}) for t in texts), "utf-8")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Language, Reference]:
    folder = tmp_path_factory.mktemp("made")
    language = Language(1)
    path = write(folder / "texts.jsonl", language.corpus(400, 2))
    train_reference_files([path], "xx", folder, ABOUT, SMALL)
    return language, load_reference(folder / "xx.npz", "xx")


def test_divergence_of_words_by_hand() -> None:
    """Frequent: the (cost 1.0), dog (2.0); another word costs as much as the rarest of them."""
    held = simple({"the": 10, "dog": 20}, {})
    p = {"the": math.exp(-1), "dog": math.exp(-2), "?": math.exp(-2)}
    q = {"the": 2 / 4, "dog": 1 / 4, "?": 1 / 4}
    expected = sum(q[w] * math.log(q[w] / p[w]) for w in q)
    tables = reference_tables([held])
    parts = measure_references(["The the, DOG unknown", "", "... !"], tables, parts=True)
    assert parts[0] == pytest.approx([expected, 0.25, 0])
    assert np.isnan(parts[1:]).all()


def test_an_outlier_counts_once_and_pairs_count_each() -> None:
    held = simple({"a": 10, "b": 20}, {("a", "b"): 32, ("b", "a"): -16})
    tables = reference_tables([held])
    parts = measure_references(["a b a b", "zq zq zq a"], tables, parts=True)
    assert parts[0, 2] == pytest.approx(-(2 + 2 - 1) / 3)
    assert parts[1, 1] == 0.25


def simple(costs: dict[str, int], pairs: dict[tuple[str, str], int]) -> Reference:
    """A reference of a few words, each with a class of its own."""
    names = sorted(costs, key=lambda w: token_hash(w) >> 32)
    classes = {w: k + 1 for k, w in enumerate(names)}
    table = np.zeros((CLASSES, CLASSES), np.int8)
    for (a, b), value in pairs.items():
        table[classes[a], classes[b]] = value
    return Reference(
        "xx",
        np.array([token_hash(w) >> 32 for w in names], np.uint32),
        np.array([costs[w] for w in names], np.uint8),
        np.array([classes[w] for w in names], np.uint8),
        30,
        np.zeros(0, np.uint32),
        np.zeros(0, np.uint8),
        np.full(17, 100, np.uint8),
        np.zeros(0, np.uint32),
        np.zeros(0, np.uint8),
        table,
        40,
        np.ones((len(LENGTHS), 3, 2), np.float32),
        100,
    )


def test_parts_are_the_plain_definition(made: tuple[Language, Reference]) -> None:
    language, held = made
    plain, tables = PlainReference(held), reference_tables([held, held])
    rng = random.Random(3)
    strange = [
        "ЖЖ",
        "Ünïcode",
        "字",
        "กข",
        "42",
        "1,5",
        "x1",
        "a" * 200,
        "é" * 90,
        "don't",
        "…",
        "İ",
    ]
    texts = []
    for _ in range(150):
        words = language.text(rng.choice([2, 20, 60, 300]), rng).split()
        for k in range(0, len(words), rng.randint(2, 9)):
            words[k] = rng.choice([*strange, words[k].upper(), "".join(rng.sample("qxzvkj", 4))])
        texts.append(rng.choice([" ", "\n", ", "]).join(words))
    tokens = [word_list(text, True) for text in texts]
    all_parts = [divergence_parts(words, plain) for words in tokens]
    rows = [list(divergence(words, plain).values()) for words in tokens]
    for number in (0, 1, 0):  # the second and third time from the cache
        found = measure_references(texts, tables, number, parts=True)
        signals = measure_references(texts, tables, number)
        for parts, row, *expected in zip(found, signals, all_parts, rows, strict=True):
            assert parts == pytest.approx(expected[0], abs=1e-9)
            assert row == pytest.approx(expected[1], abs=1e-6, nan_ok=True)


def test_calibration_takes_the_length_away(made: tuple[Language, Reference]) -> None:
    """New texts of any length exceed a spread equally seldom, though raw values fall by half."""
    language, held = made
    tables = reference_tables([held])
    rng = random.Random(4)
    medians, raw = [], []
    for length in (60, 90, 300, 1100, 2500, 6000):
        texts = [language.text(length, rng) for _ in range(80)]
        found = measure_references(texts, tables)[:, 0]
        medians.append(np.median(found))
        raw.append(np.median(measure_references(texts, tables, parts=True)[:, 0]))
        assert np.mean(found > 1.5) < 0.1, length
    assert max(medians) < 0.6
    assert raw[0] > raw[-1] + 0.8
    flat = replace(held, curve=np.repeat(held.curve[3:4], len(LENGTHS), 0))
    short = [language.text(60, rng) for _ in range(80)]
    assert np.mean(measure_references(short, reference_tables([flat]))[:, 0] > 1.5) > 0.5


@pytest.mark.parametrize("kind", ["letters", "rare", "shuffled", "keywords", "fifth"])
@pytest.mark.parametrize("length", [200, 1000])
def test_gibberish_lies_above_all_texts(
    made: tuple[Language, Reference], kind: str, length: int
) -> None:
    language, held = made
    rng = random.Random(5)
    good = [language.text(length, rng) for _ in range(60)]
    words = [w for text in good for w in text.split()]
    letters = "abcdefghijklmnopqrstuvwxyz"

    def gibberish() -> str:
        if kind == "letters":
            return " ".join("".join(rng.choices(letters, k=6)) for _ in range(length))
        if kind == "rare":
            rare = language.kinds[0][500:] + language.kinds[1][500:]
            return " ".join(rng.choices(rare, k=length))
        if kind == "shuffled":
            return " ".join(rng.sample(words, length))
        if kind == "keywords":
            return ", ".join(rng.choices(rng.sample(language.words, 20), k=length))
        text = rng.choice(good).split()
        text[4::5] = ["".join(rng.choices(letters, k=6)) for _ in text[4::5]]
        return " ".join(text)

    tables = reference_tables([held])
    bad = measure_references([gibberish() for _ in range(20)], tables)[:, 0]
    assert bad.min() > measure_references(good, tables)[:, 0].max()


def test_built_in_references_tell_languages_and_gibberish() -> None:
    folder = Path(resolve("builtin:models/reference"))
    names = ["en", "de"]
    tables = reference_tables([load_reference(folder / f"{n}.npz", n) for n in names])
    rng = random.Random(1)
    letters = " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(99))
    words = ENGLISH.split()
    fifth = [w if k % 5 else "qzvx" + w[::-1] for k, w in enumerate(words)]
    texts = [ENGLISH, GERMAN, letters, " ".join(rng.sample(words, len(words))), " ".join(fifth)]
    english = measure_references(texts, tables, 0)[:, 0]
    german = measure_references(texts, tables, 1)[:, 0]
    assert english[0] < 1.5
    assert (english[1:] > 3).all()
    assert german[1] < 1.5
    assert (german[[0, 2]] > 3).all()


def test_too_few_words_are_not_measured() -> None:
    held = simple({"a": 10}, {})
    tables = reference_tables([held])
    found = measure_references(["a " * (LENGTHS[0] - 1), "a " * LENGTHS[0]], tables)
    assert np.isnan(found[0]).all()
    assert not np.isnan(found[1]).any()


def test_batches_count_as_one_corpus() -> None:
    texts = ["the cat saw the dog", "the dog saw 12 cats", "a Cat, 13 birds"]
    whole = count_words(texts)
    parts = WordCounts()
    for text in texts:
        parts.add([text])
    found = parts.words()
    assert np.array_equal(whole.hashes, found.hashes)
    assert np.array_equal(whole.counts, found.counts)
    assert np.array_equal(whole.token_counts(1 << 17), found.token_counts(1 << 17))
    assert np.array_equal(merge_words([whole, whole]).counts, 2 * whole.counts)
    weighted = count_words(["the cat"], [2.5])
    assert weighted.counts.tolist() == [2.5, 2.5]


def test_classes_follow_the_neighbours() -> None:
    """Words 1 to 3 and 4 to 6 alternate, so that two classes tell them apart."""
    pairs = np.array([(a, b) for a in (1, 2, 3) for b in (4, 5, 6)])
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    found = exchange(pairs, np.full(len(pairs), 9), 7, 3, 5)
    assert found[0] == 0
    assert len({*found[1:4]}) == len({*found[4:7]}) == 1
    assert found[1] != found[4]


def test_texts_are_cut_and_joined_to_a_length() -> None:
    whole, joined = cut(["a b c d e", "f g", "h, ü", "i", "j"], 3)
    assert whole == ["a b c"]
    assert joined == ["f g\nh"]
    assert cut([""], 3) == ([], [])


def test_files_keep_it_and_are_reproducible(
    made: tuple[Language, Reference], tmp_path: Path
) -> None:
    held = made[1]
    save_reference(held, tmp_path / "a.npz")
    save_reference(held, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = load_reference(tmp_path / "a.npz", "xx")
    for name, value in vars(held).items():
        assert np.array_equal(getattr(again, name), value), name
    (tmp_path / "c.npz").write_bytes(b"no")
    with pytest.raises(ConfigError, match=r"c\.npz"):
        load_reference(tmp_path / "c.npz", "en")
    (tmp_path / "d.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"d\.npz: not a reference distribution: "):
        load_reference(tmp_path / "d.npz", "en")
    for name, other in (("pairs", held.pairs[:-1]), ("curve", held.curve[:, :-1])):
        save_reference(replace(held, **{name: other}), tmp_path / "e.npz")
        with pytest.raises(ConfigError, match=r"e\.npz: not a reference distribution: "):
            load_reference(tmp_path / "e.npz", "en")


def test_training_from_files_adds_to_the_card(tmp_path: Path) -> None:
    texts = ["the cat saw the dog", "the dog saw 12 cats", "a bird"] * 90
    (tmp_path / "list.txt").write_text("the 90\nwhale 9\n", "utf-8")
    first = write(tmp_path / "en.jsonl", texts, "en")
    second = write(tmp_path / "de.jsonl", ["der Hund der Hund"], "de")
    settings = ReferenceTraining.model_validate(
        SMALL.model_dump() | {"word_list": str(tmp_path / "list.txt")}
    )
    output = tmp_path / "out"
    report = train_reference_files([first, second], "de", output, ABOUT, SMALL)
    assert report.metrics["words"] == 4
    report = train_reference_files([first, second], "en", output, ABOUT, settings)
    assert report.metrics["words"] == 12 * 90
    assert report.metrics["documents"] == 270
    rows = report.metrics["calibration"]
    assert [row["words"] for row in rows] == [50, 100, 200, 400]
    assert calibration_table(rows).count("\n") == 2 * len(rows)
    assert list(rows[0]["kl_divergence"].values()) == sorted(rows[0]["kl_divergence"].values())
    card = yaml.safe_load((output / "card.yaml").read_text("utf-8"))
    assert list(card["sha256"]) == ["de.npz", "en.npz"]
    assert [f["file"] for f in card["data"]["en"]] == ["en.jsonl", "de.jsonl", "list.txt"]
    assert card["settings"]["word_list"] is None
    known = load_reference(output / "en.npz", "en").words
    assert token_hash("whale") >> 32 in known
    assert token_hash("cat") >> 32 in known
    with pytest.raises(InputError, match="'fr'"):
        train_reference_files([first], "fr", output, ABOUT, settings)
    (tmp_path / "bad.txt").write_text("word\n", "utf-8")
    bad = settings.model_copy(update={"word_list": str(tmp_path / "bad.txt")})
    with pytest.raises(InputError, match=r"bad\.txt: not a list"):
        train_reference_files([first], "en", output, ABOUT, bad)


def test_built_in_references_are_those_on_the_card() -> None:
    card = next(card for card in list_models().values() if card.name == "reference")
    folder = Path(resolve("builtin:models/reference"))
    assert isinstance(card.sha256, dict)
    assert sorted(card.sha256) == sorted(path.name for path in folder.glob("*.npz"))
    for path in folder.glob("*.npz"):
        held = load_reference(path, path.stem)
        assert (np.diff(held.words.astype(np.int64)) > 0).all()
        assert (held.curve[:, :, 1] > 0).all()


def test_word_lists_have_no_word_twice() -> None:
    for folder in ("stop_words", "dirty", "allow"):
        for path in Path(resolve(f"builtin:configs/lists/{folder}")).glob("*.txt"):
            entries = (entry.removeprefix("? ") for entry in read_list(path))
            repeated = {w: n for w, n in Counter(entries).items() if n > 1}
            assert not repeated, path.name
