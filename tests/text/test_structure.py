"""Lines of code, formulas and prose; files of Python's own library as real code."""

from __future__ import annotations

import pathlib
import sysconfig

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.columns import CODE_PATH, MATH_PATH, PROSE_PATH, document_paths
from curation.text.structure import BLANK, CODE, FORMULA, PROSE, SENTENCE, structure


def kinds(text: str) -> list[int]:
    return structure([text]).kinds.tolist()


LISTING = """def area(radius):
    \"\"\"The area of a circle.

    Nothing else is known about it, and this sentence is as long as any in prose.
    \"\"\"
    if radius < 0:
        raise ValueError("negative")
    else:
        return 3.14 * radius ** 2
"""

PROSE_TEXT = """Tomatoes from the market
The farmers come on Tuesday, and everybody buys what they can carry; nobody minds the rain.
Ingredients
200 g flour
1 teaspoon salt
Mix everything (carefully), then wait for an hour.
For sale: one boat.
Call us at 030 123456!"""


@pytest.mark.parametrize(
    "code",
    [
        LISTING,
        "function add(a, b) {\n  return a + b;\n}\n",
        "SELECT name\nFROM users\nWHERE id = 3;",
        "services:\n  web:\n    image: nginx\n    ports:\n      - 80",
        '#include <stdio.h>\nint main(void)\n{\n  puts("x");\n}',
        "Sub Main\n  Dim x As Integer\n  x = f(3)\nEnd Sub",
        "try {\n  run();\n} catch (error) {\n  log(error);\n}",
    ],
)
def test_listings_are_code_to_the_last_line(code: str) -> None:
    assert {k for k in kinds(code) if k != BLANK} == {CODE}


def test_a_listing_in_an_article_is_found_and_nothing_around_it() -> None:
    article = "We begin with the area of a circle, which everybody knows from school."
    found = kinds(f"{article}\n{LISTING}\n{article}")
    assert found[0] == found[-1] == PROSE
    assert {k for k in found[1:-1] if k != BLANK} == {CODE}


LICENCE = """{0} Copyright 2020 by the people who wrote this program, all of them.
{0} You may use and change it as you like, and give it to others on the same terms.
{0}
{0} It comes without any warranty, as far as the law of your country allows that."""


@pytest.mark.parametrize(
    "comment",
    [
        LICENCE.format("//"),
        LICENCE.format("#"),
        LICENCE.format("--"),
        "/*\n" + LICENCE.format(" *") + "\n */",
        "/*\n" + LICENCE.replace("{0} ", "").format("") + "\n*/",
        '"""' + LICENCE.replace("{0} ", "").format("") + '\n"""',
    ],
)
def test_comments_that_touch_code_are_code(comment: str) -> None:
    lines = [k for k in kinds(f"{comment}\n\n{LISTING}\n{comment}") if k != BLANK]
    assert set(lines) == {CODE}


def test_comments_of_nothing_are_prose() -> None:
    for sign in ("//", "#", "--"):
        assert CODE not in kinds(f"{LICENCE.format(sign)}\n\n{PROSE_TEXT}")
    heading = "# How to compute the area of a circle, which everybody knows from school"
    assert kinds(f"{heading}\n{LISTING}")[0] == PROSE  # of one line: Markdown's as often
    never_closed = "/* This begins like a comment, but it is the first of many sentences."
    assert kinds(f"{never_closed}\n{PROSE_TEXT}\n{LISTING}")[:2] == [PROSE, PROSE]


def test_prose_recipes_and_headings_are_no_code() -> None:
    assert set(kinds(PROSE_TEXT)) == {PROSE}


@pytest.mark.parametrize(
    "line",
    [r"\frac{a}{b} \leq \sqrt{c}", "$$x^2 + y^2 = z^2$$", "x^{2} + y_{1}", "α ∈ A ∪ B ≤ C"],
)
def test_formulas(line: str) -> None:
    text = f"Consider the following statement about numbers of this kind.\n{line}\nIt is true."
    assert kinds(text) == [PROSE, FORMULA, PROSE]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("The proof is that $x^2$ is positive, that $y$ is too, and the rest is plain.", SENTENCE),
        ("Let $f(x) = x^2$, $g(y) = y^3$ and $h(z) = z^4$ hold.", FORMULA),
    ],
)
def test_a_sentence_has_more_words_than_formulas(line: str, kind: int) -> None:
    assert kinds(f"Some prose first.\n{line}") == [PROSE, kind]


def test_paths() -> None:
    found = structure([LISTING, r"Let $x^2 = y_1$ and $\alpha > 0$.", PROSE_TEXT, ""])
    paths = document_paths(found).tolist()
    assert paths == [CODE_PATH, MATH_PATH, PROSE_PATH, PROSE_PATH]


@pytest.mark.parametrize(
    "text",
    [
        "The resistor has a tolerance of ±5 %, the sensor of ±0.5 °C and the clock of ±3 s a day. ",
        "Guests ≤ 12 years stay free, rooms ≥ 20 m² cost more, the trip takes ≈ 3 hours. ",
        "√ Free delivery √ Best price √ Friendly staff. We ♥ you to ∞ and beyond. ",
        "Погрешность весов ±2 г, часов ±3 секунды, а дети ≤ 12 лет входят бесплатно. ",
        "誤差は±3%で、価格は≈40ユーロ、参加者は≥10名です。",
    ],
)
def test_signs_of_everyday_are_no_mathematics(text: str) -> None:
    assert document_paths(structure([text * 6]))[0] == PROSE_PATH


def test_signs_that_relate_letters_are() -> None:
    text = "Let f be continuous. Then ∃ c ∈ (a, b) with f(x) ≥ 0 ∀ x ∈ (a, b), since x ≤ y ± z. "
    assert document_paths(structure([text * 6]))[0] == MATH_PATH


def test_python_s_library_is_code() -> None:
    files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))[:120]
    texts = [f.read_text("utf-8", "replace") for f in files]
    assert (structure(texts).code_share > 0.5).mean() > 0.97


@given(st.lists(st.text(alphabet="ab {}();=\t\n$\\^日é", max_size=40), max_size=5))
@settings(max_examples=200)
def test_lines_are_those_between_line_feeds(texts: list[str]) -> None:
    found = structure(texts)
    data = "".join(texts).encode()
    for i, text in enumerate(texts):
        first, past = found.doc_offsets[i : i + 2]
        spans = zip(found.starts[first:past], found.ends[first:past], strict=True)
        lines = [data[a:b].decode() for a, b in spans]
        assert lines == (text.split("\n") if text else [])
        blank = found.kinds[first:past] == BLANK
        assert blank.tolist() == [not line.strip() for line in lines]
    assert np.all((found.code_share >= 0) & (found.code_share <= 1))


def test_a_batch_that_begins_inside_its_buffer() -> None:
    import pyarrow as pa

    texts = pa.array(["x", LISTING, PROSE_TEXT], pa.large_string())
    whole, part = structure(texts), structure(texts.slice(1))
    assert part.kinds.tolist() == whole.kinds[whole.doc_offsets[1] :].tolist()
    assert part.code_share.tolist() == whole.code_share[1:].tolist()
