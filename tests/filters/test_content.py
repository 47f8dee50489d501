"""Code and formulas within prose: what is measured of the whole text, and what after edits."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from curation.columns import CODE_PATH, PROSE_PATH
from curation.filters.apply import load_filter
from curation.filters.content import has_blocks, look_at
from curation.filters.filter_settings import default_settings
from curation.filters.gopher import DIALECTS
from curation.filters.names import CONTENT, QUALITY
from curation.filters.signals import Meter
from curation.recipe import load as load_recipe
from curation.text.plain import plain

LINES = (
    "A line of plain words that says something about gardens.",
    "def f(x, y):",
    "    return g(x) + y[1]",
    "for (int i = 0; i < n; i++) { a[i] = b(i); }",
    r"$$\sum_{i=1}^{n} x_i^2 = \frac{1}{2} \alpha$$",
    "",
    "Größe und Länge, … и слова, 木の葉が落ちる。",
    "|",
    "short",
)


def texts(number: int, dice: random.Random) -> list[str]:
    return ["\n".join(dice.choices(LINES, k=dice.randrange(12))) for _ in range(number)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_and_characters_are_those_of_the_whole_text(dialect: str) -> None:
    settings = default_settings()
    assert settings.paths is not None
    update = {"dialect": dialect}
    signals = settings.signals.model_copy(
        update={"gopher": settings.signals.gopher.model_copy(update=update)}
    )
    meter = Meter(signals)
    batch = texts(300, random.Random(1))
    assert has_blocks(look_at(batch, settings.paths)).sum() > 30
    whole = meter.measure(batch)
    parts = meter.measure(batch, paths=settings.paths)
    for name in ("gopher_word_count", "c4_characters"):
        assert parts.field(name).to_pylist() == whole.field(name).to_pylist()


@pytest.mark.parametrize("name", ["llama3", "fineweb", "fineweb2"])
def test_signals_are_those_of_the_edited_texts(name: str) -> None:
    dice = random.Random(2)
    held = load_recipe(name).filter
    lines = (
        "{} walks home along the old harbour wall.\n",
        "    value_{} = compute(y[1], z) + {}(x, y)",
        "For any two of {} we know that $x^2 + y^2 = z^2$ holds in a plane.",
    )
    parts = ["\n".join(line.format(c, c) for c in "ABCDEFGHIJKL") for line in lines]
    between = ["".join(dice.choices("aeilmnorst", k=7)) + " \n"[n % 9 == 8] for n in range(270)]
    ends = ("", "\u00a0", *(f"\n{part}\n{''.join(between)}\n{part}" for part in parts))
    before = [text + dice.choice(ends) for text in texts(200, dice)]
    columns = {"id": before, "url": before, "text": pa.array(before, pa.large_string())}
    result = load_filter(held).apply(pa.RecordBatch.from_pydict(columns))
    changed = [a != b for a, b in zip(before, result.texts.to_pylist(), strict=True)]
    assert any(changed) == (name != "fineweb2") and not all(changed)
    expected = Meter(held.signals).measure(plain(result.texts), None, held.paths)
    for field in (each for each in result.signals.type if each.name != QUALITY):
        got, want = (s.field(field.name).to_numpy() for s in (result.signals, expected))
        np.testing.assert_array_equal(got, want, field.name)


SMALL = """{
  "pagination": {
    "ListPermissions": {"input_token": "nextToken", "limit_key": "maxResults"},
    "ListWorkspaces": {"input_token": "nextToken", "limit_key": "maxWorkspaces"}
  }
}
"""
PROSE = (
    "Too short for the rule of fifty words: this page says nothing but that the ferry to the "
    "island leaves at nine each morning, comes back before dark, and does not sail when wind blows "
    "hard.\n"
)


def test_code_is_not_measured_by_words_between_spaces() -> None:
    batch = pa.record_batch(
        {
            "id": ["json", "scrap", "prose"],
            "url": [""] * 3,
            "text": pa.array([SMALL, "x = f(1);\ny = g(2);\n", PROSE], pa.large_string()),
            "language": ["en"] * 3,
        }
    )
    found = load_filter(load_recipe("llama3").filter).apply(batch)
    assert found.paths.to_pylist() == ["code", "code", "prose"]
    reasons = [None, "code.characters", "gopher.word_count"]
    assert found.verdicts.reason.to_pylist() == reasons
    assert found.signals.field("gopher_word_count")[0].as_py() < 50


PLAYLIST = """<?xml version="1.0" encoding="UTF-8"?>
<playlist version="0" xmlns="http://xspf.org/ns/0/">
  <trackList>
    <track><location>http://radio.example/one.mp3</location><annotation>One</annotation></track>
    <track><location>http://radio.example/two.mp3</location><annotation>Two</annotation></track>
  </trackList>
</playlist>
"""
STYLESHEET = """<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:template match="/"><ul><xsl:apply-templates select="//track"/></ul></xsl:template>
  <xsl:template match="track"><li><xsl:value-of select="annotation"/></li></xsl:template>
</xsl:stylesheet>
"""


def test_data_in_xml_is_told_from_programs_in_xml_and_programs_that_write_it() -> None:
    writer = f"def playlist(tracks):\n    out = open(1)\n{' ' * 4}return f(tracks, out)\n" * 3
    batch = [PLAYLIST, STYLESHEET, writer + PLAYLIST, PROSE]
    found = look_at(batch, default_settings().paths)
    names = {name: k for k, name in enumerate(CONTENT)}
    assert found.paths.tolist() == [CODE_PATH] * 3 + [PROSE_PATH]
    np.testing.assert_array_equal(found.signals[:, names["code_xml"]], [1, 0, 0, np.nan])
