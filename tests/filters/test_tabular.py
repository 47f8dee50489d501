"""Documents with tables: the rows say nothing of the prose, and a table alone stays what it is."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest
import regex

from curation.filters.filter_settings import default_settings
from curation.filters.mixed import STRANGE
from curation.filters.reference import measure_references
from curation.filters.signals import Meter, _of_prose, _without_rows
from tests.filters.test_mixed import DE, EN, REFERENCES, gibberish
from tests.filters.test_reference import ENGLISH, GERMAN

PROSE = "\n".join([ENGLISH] * 3)
NAMES = gibberish(len(PROSE)).split()
ROWS = [f"{a.title()} {b.title()} | {len(a)}" for a, b in itertools.pairwise(NAMES)]
TABLE = "\n".join(ROWS)[: len(PROSE) * 9 // 10].rpartition("\n")[0]


def divergence(text: str, number: int = EN) -> float:
    return float(_of_prose(pa.array([text]), np.array([number]), REFERENCES)[0])


def test_rows_do_not_count_against_the_prose_around_them() -> None:
    text = f"{PROSE}\n{TABLE}"
    assert measure_references([text], REFERENCES, EN)[0, 0] > STRANGE
    alone = measure_references([PROSE], REFERENCES, EN)[0, 0]
    assert divergence(text) == pytest.approx(alone, abs=0.05)
    kept = Meter(default_settings().signals).measure([text], pa.array(["en"]))
    assert kept.field("kl_divergence")[0].as_py() == pytest.approx(alone, abs=0.05)


def test_rows_with_outer_bars_are_rows() -> None:
    barred = "\n".join(f"| {line} |" for line in TABLE.split("\n"))
    assert divergence(f"{PROSE}\n{barred}\n{PROSE}") == divergence(f"{PROSE}\n{TABLE}\n{PROSE}")


@pytest.mark.parametrize(
    "row", ["{} kg {}", "{1}: {0}", "- {0}. {1}", "\u2022 {0} {1}", "{1} \u0663"]
)
def test_short_lines_with_a_number_at_an_end_are_rows(row: str) -> None:
    """Quantities of a recipe, places of an earthquake, cases of a district."""
    facts = "\n".join(row.format(len(name), name.title()) for name in NAMES[:200])
    text = f"{PROSE}\n{facts}"
    assert measure_references([text], REFERENCES, EN)[0, 0] > STRANGE
    alone = measure_references([PROSE], REFERENCES, EN)[0, 0]
    assert divergence(text) == pytest.approx(alone, abs=0.05)
    long = "\n".join(f"{len(line)} {line * 30}" for line in facts.split("\n")[:20])
    assert np.isnan(divergence(f"{PROSE}\n{long}")), "a numbered paragraph is prose"
    assert np.isnan(divergence(facts)), "a list alone is measured as one"


def test_rows_are_lines_of_that_form_whatever_they_hold() -> None:
    row = regex.compile(
        r"(?m)^(?:(?:.* )?\| .*|[^\pL\n]*\pN.{0,60}|.{0,60}\pN[^\pL\n]*)$\n?", regex.V1
    )
    dice = random.Random(5)
    signs = [
        "|",
        " | ",
        "| ",
        "7",
        "\u0663",
        "\xbd",
        "word",
        "\u6f22",
        "\U0001f600",
        ".",
        " ",
        "\n",
        "",
    ]
    texts = ["".join(dice.choices(signs, k=dice.randint(0, 90))) for _ in range(300)]
    texts += ["", "\n", f"7{'x' * 60}", f"7{'x' * 61}", f"{'x' * 60}7\n\n", f"{'x' * 61}7\na"]
    assert _without_rows(pa.array(texts, pa.large_string())).to_pylist() == [
        row.sub("", text) for text in texts
    ]


def test_nothing_is_said_of_texts_without_tables_and_of_tables() -> None:
    assert np.isnan(divergence(PROSE))
    assert np.isnan(divergence(TABLE))
    assert np.isnan(divergence(f"{ENGLISH[:300]}\n{TABLE}")), "a table with a little text"
    assert np.isnan(divergence("a|b c||d"))
    assert np.isnan(divergence(""))


def test_texts_have_references_of_their_own() -> None:
    texts = pa.array([f"{GERMAN}\na | b", f"{ENGLISH}\na | b", GERMAN, f"{ENGLISH}\na | b"])
    found = _of_prose(texts, np.array([DE, EN, DE, DE]), REFERENCES)
    assert found[0] < STRANGE > found[1]
    assert np.isnan(found[2])
    assert found[3] > STRANGE, "English by the German reference"
