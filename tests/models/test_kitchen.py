"""Terse pages are judged by what they are: recipes stay; shops, menus and teasers of food go."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import curation
from curation.language import identify
from tests.damage_of_texts import written

#: Of 60 recipes in 12 languages so many may go: two have fewer words than Gopher asks for.
MOST_LOST = 2
#: Of 26 pages that are none so many may stay: a list of ingredients, a menu that names its days.
MOST_KEPT = 2


def pages() -> list[tuple[str, str, str]]:
    """Language, kind and text of each page in `kitchen.txt`, all written for this."""
    parts = Path(__file__).with_name("kitchen.txt").read_text(encoding="utf-8").split("\n@")
    found = [part.removeprefix("@").partition("\n") for part in parts]
    return [(*head.split(" ", 1), text.strip()) for head, _, text in found]  # type: ignore[misc]


@pytest.fixture(scope="module")
def kept() -> Counter[str]:
    """How many of the pages pass the recipe llama3, recipes and others."""
    every = pages()
    table = pa.table({"id": [str(k) for k in range(len(every))], "text": [p[2] for p in every]})
    stages = ["identify-language", "classify", "dedup-lines", "filter"]
    rows = curation.run("llama3", table, stages=stages).documents["id"].to_pylist()
    return Counter("recipe" if every[int(row)][1] == "recipe" else "other" for row in rows)


def test_recipes_stay(kept: Counter[str]) -> None:
    recipes = [page for page in pages() if page[1] == "recipe"]
    assert len(recipes) == 60 and len({page[0] for page in recipes}) == 12
    assert kept["recipe"] >= 60 - MOST_LOST


def test_shops_menus_and_lists_of_recipes_go(kept: Counter[str]) -> None:
    assert len(pages()) == 86
    assert kept["other"] <= MOST_KEPT


def test_words_that_repeat_are_no_letters_of_another_encoding() -> None:
    """A short page says its few unusual words often."""
    recipes = [page for page in pages() if page[1] == "recipe"]
    labels, _ = identify([page[2] for page in recipes])
    assert labels == [page[0] for page in recipes]


PLACES = """Ahrweiler Altenkirchen Birkenfeld Germersheim Kusel Neuwied Frankenthal Koblenz Landau
Mainz Neustadt Pirmasens Speyer Trier Worms Andernach Bingen Boppard Diez Eisenberg Gerolstein
Hachenburg Idar Kirn Lahnstein Mayen Nassau Prüm Remagen Sinzig""".split()


def test_articles_with_a_list_of_facts_inside_stay_for_the_most_part() -> None:
    """Numbers lower the share of words with letters; what is left of the quality overrules that."""
    facts = [f"{k} – {7 * i + 3}:{i * 5 % 11 + 1}" for i, k in enumerate(PLACES)]
    rows = []
    for language in ("de", "fr", "pl"):
        for lines in (article.split("\n") for article in written(language)[:4]):
            middle = len(lines) // 2
            rows.append("\n".join([*lines[:middle], *facts, *lines[middle:]]))
    table = pa.table({"id": [str(k) for k in range(len(rows))], "text": rows})
    stages = ["identify-language", "classify", "filter"]
    assert len(curation.run("llama3", table, stages=stages).documents) > len(rows) / 2
