"""Signals on portable cases worked out by hand from the published definitions."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.filter_settings import default_settings
from curation.filters.signals import NAMES
from curation.text.structure import structure
from tests.filters import measure
from tests.text.strings import word_list

SETTINGS = default_settings(signals={"reference": None}).signals


def measured(text: str, language: str | None = "en", **changes: object) -> dict[str, float]:
    held = default_settings(signals={"reference": None, **changes}).signals
    row: dict[str, float] = measure([text], pa.array([language], pa.string()), held).to_pylist()[0]
    return row


def gopher(text: str, dialect: str, language: str = "en") -> dict[str, float]:
    row = measured(text, language, gopher={"dialect": dialect})
    return {k.removeprefix("gopher_"): v for k, v in row.items() if k.startswith("gopher_")}


def test_gopher_counts_punctuation_only_in_datatrove() -> None:
    text = "The cat, 12 of them ... sat #there"
    found = gopher(text, "datatrove")
    # tokens: The cat , 12 of them ... sat # there
    assert found["word_count"] == 7
    assert found["mean_word_length"] == pytest.approx((3 + 3 + 2 + 2 + 4 + 3 + 5) / 7, rel=1e-12)
    assert found["symbol_hash_ratio"] == pytest.approx(1 / 10, rel=1e-12)
    assert found["ellipsis_ratio"] == pytest.approx(1 / 10, rel=1e-12)
    assert found["alpha_word_ratio"] == pytest.approx(6 / 10, rel=1e-12)
    assert found["stop_words"] == 1  # `of`; `The` has a capital
    found = gopher(text, "dclm")
    # the same pieces as below; `...` and `#there` begin with no letter or digit
    assert found["word_count"] == 6
    assert found["mean_word_length"] == pytest.approx(
        (3 + 4 + 2 + 2 + 4 + 3 + 3 + 6) / 8, rel=1e-12
    )
    assert found["symbol_hash_ratio"] == pytest.approx(2 / 8, rel=1e-12)
    assert found["ellipsis_ratio"] == pytest.approx(1 / 8, rel=1e-12)
    assert found["alpha_word_ratio"] == pytest.approx(6 / 8, rel=1e-12)
    assert found["stop_words"] == 2


def test_datatrove_counts_no_word_of_brackets_in_full_width() -> None:
    assert gopher("（括弧） （二） （三） word", "datatrove")["word_count"] == 5


def test_gopher_lines() -> None:
    found = gopher("• one\n- two\nthree…\nfour...\nfive", "datatrove")
    assert found["bullet_line_ratio"] == pytest.approx(2 / 5, rel=1e-12)
    assert found["ellipsis_line_ratio"] == pytest.approx(2 / 5, rel=1e-12)


@pytest.mark.parametrize("bullet", "●•*-")
def test_dclm_knows_four_bullets_and_no_blank_lines(bullet: str) -> None:
    text = "\n\n".join([f" {bullet} the red apple of item {i}" for i in range(20)])
    assert gopher(text, "dclm")["bullet_line_ratio"] == 1


def test_bold_words_at_the_head_of_lines_are_no_bullets() -> None:
    bold = "\n".join([f"**Ann {i}:** the red apple\n*one*" for i in range(20)])
    assert gopher(bold, "unicode")["bullet_line_ratio"] == 0.5
    assert gopher(bold, "dclm")["bullet_line_ratio"] == 1


def test_marks_between_cells_are_no_words() -> None:
    table = "Town | River | Founded\nUlm | Danube | long ago"
    found = gopher(table, "dclm")
    assert found["alpha_word_ratio"] == 1
    assert found["mean_word_length"] == pytest.approx(
        len(table.replace("|", "").replace(" ", "").replace("\n", "")) / 7
    )


def test_dclm_as_its_code_measures() -> None:
    """Values of content_filters.py in mlfoundations/dclm."""
    spaced = gopher("\n".join(["we walked on and on . . ."] * 20), "dclm")
    assert spaced["ellipsis_line_ratio"] == 1
    assert spaced["symbol_hash_ratio"] == pytest.approx(1 / 8)
    mixed = gopher("#a of b... " * 10 + "word of the day here " * 8, "dclm")
    assert mixed["symbol_hash_ratio"] == pytest.approx(20 / 70)
    text = "The apple is red. The pear is green, the plum is well-known (or not)."
    found = gopher(text, "dclm")
    assert (found["word_count"], found["stop_words"]) == (13, 3)
    assert found["mean_word_length"] == pytest.approx(len(text.replace(" ", "")) / 14)


def test_dclm_in_scripts_without_spaces() -> None:
    found = gopher("「你好」，世界。ABC好 x", "dclm", "zh")  # 「你 好」， 世 界。 ABC 好 x
    assert found["word_count"] == 7
    assert found["mean_word_length"] == pytest.approx(13 / 7)
    assert found["alpha_word_ratio"] == 1
    assert gopher("བོད་སྐད་ ཡིག་", "dclm", "bo")["word_count"] == 3


def test_stop_words_follow_the_language() -> None:
    assert gopher("Der Hund und die Katze", "datatrove", "de")["stop_words"] == 2
    assert gopher("我是在中国的人", "dclm", "zh")["stop_words"] == 5
    assert gopher("我，是的，「在」", "dclm", "zh")["stop_words"] == 4
    assert math.isnan(gopher("ภาษาไทย", "dclm", "th")["stop_words"])


def test_fineweb() -> None:
    text = "This line ends well enough, for once.\nShort\nShort\n\nEnde。"
    found = measured(text)
    assert found["fineweb_line_punct"] == pytest.approx(2 / 4, rel=1e-12)
    assert found["fineweb_short_lines"] == pytest.approx(3 / 4, rel=1e-12)
    assert found["fineweb_char_dup"] == pytest.approx(5 / (len(text) - 4), rel=1e-12)
    tokens = len(word_list(text, symbols=True))
    assert found["fineweb_newlines_per_word"] == pytest.approx(4 / tokens, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    ["“She left.”", "他说：“走吧。”", "「行こう。」", "(It rained.)", "Why?’”", "He said, “Go!”)"],
)
def test_lines_end_before_what_closes_behind_a_mark(text: str) -> None:
    assert measured(text)["fineweb_line_punct"] == 1
    published = measured(text, fineweb={"closers_end_lines": False})
    assert published["fineweb_line_punct"] == 0
    assert measured("A word “quoted”\n(an aside)\n)")["fineweb_line_punct"] == 0


@pytest.mark.parametrize("end", ["\r\n", " \n", "\u3000\n", "\xa0\t\r\n"])
@pytest.mark.parametrize("published", [False, True])
def test_lines_end_before_white_space(end: str, published: bool) -> None:
    text = end.join(
        ["She left at noon.", "她走了。", "वह चली गई।", "Seven words are here without an end"]
    )
    found = measured(text, fineweb={"closers_end_lines": not published})
    assert found["fineweb_line_punct"] == 0.75


@pytest.mark.parametrize(
    ("text", "language"),
    [("Մեկ բառ կա այստեղ:", "hy"), ("አንድ ሁለት ሦስት::", "am"), ("አንድ ሁለት ሦስት፡፡", "am")],
)
def test_colons_typed_for_a_full_stop_end_lines_and_sentences(text: str, language: str) -> None:
    found = measured("\n".join([text] * 3), language)
    assert found["fineweb_line_punct"] == 1
    assert found["c4_sentences"] == 3
    assert measured(text + " " + text, language)["c4_sentences"] == 2
    published = measured(text, language, fineweb={"colons_end_lines": False})
    assert published["fineweb_line_punct"] == 0
    assert measured("Three words here:")["fineweb_line_punct"] == 0


def test_c4_counts_what_its_lines_leave() -> None:
    text = (
        "One sentence here. Another one there.\nToo short\n"
        "Please enable JavaScript to see this.\nWe use cookies and so on, always.\nA third one."
    )
    found = measured(text)
    assert found["c4_sentences"] == 3
    assert found["c4_characters"] == len(text)
    assert measured("a b c { d\nLorem Ipsum dolor sit")["c4_curly_bracket"] == 1
    assert measured("a b c { d\nLorem Ipsum dolor sit")["c4_lorem_ipsum"] == 1
    assert measured("x" * 200 + "\n" + "y" * 199)["c4_long_lines"] == 1


@pytest.mark.parametrize("space", [" ", "\u00a0", " \t ", "\n", "\r\n", "\n\n"])
def test_c4_finds_lorem_ipsum_over_any_white_space(space: str) -> None:
    text = f"Some text.\nLorem{space}ipsum dolor sit amet.\nMore of the text."
    assert measured(text)["c4_lorem_ipsum"] == 1
    assert measured(f"Lorem{space}ipsum\nA line of other words.")["c4_lorem_ipsum"] == 0


def test_c4_terminal_marks_of_any_script() -> None:
    limits = SETTINGS.c4.model_dump() | {"terminal_punctuation": True}
    text = "これは本です。\nこれは題"
    assert measured(text, "ja", c4=limits)["c4_sentences"] == 1


def test_logs_are_covered_by_their_own_ngrams() -> None:
    log = "\n".join(f"12:00:{i:02d} error: connection {i} refused by peer" for i in range(20))
    prose = "A few words that nobody says twice stand at the end of this log file."
    found = measured(log + "\n" + prose)["llama3_line_ngram_coverage"]
    assert 0.8 < found < 1
    assert measured(prose)["llama3_line_ngram_coverage"] == 0
    for other in ("\r", "\r\n", "\u2028", "\x85"):  # lines are those that edits.llama3 cuts
        text = f"{prose}\n{log}".replace("\n", other)
        assert measured(text)["llama3_line_ngram_coverage"] == found


def test_dirty_words_and_their_excuses() -> None:
    assert measured("porn and more porn here")["dirty_word_count"] == 2
    assert measured("porn and more porn here")["dirty_word_ratio"] == pytest.approx(0.4)
    assert measured("She graduated cum laude")["dirty_word_count"] == 0
    assert measured("这个网站有色情片和更多", "zh")["dirty_word_count"] == 1
    assert measured("港口有码头和船", "zh")["dirty_word_count"] == 0
    assert math.isnan(measured("porn", "eo")["dirty_word_count"])


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "en",
            "A cock crows at dawn. One cock to ten hens; two cocks fight. Blue tits nest.",
        ),
        ("fr", "La chatte nettoie ses petits. Si la chatte déplace la portée, laissez la chatte."),
        ("es", "La paja debe estar seca. Con balas de paja se levanta una casa de paja."),
        ("de", "Die Möpse der Nachbarin und ihre Muschi, eine graue Katze; Fick fand das Gesetz."),
        ("ru", "Качество зависит от того, как хранится сперма быка; сперма хранится годами."),
        ("zh", "禁区内射门得分，感情色彩浓，路口交通堵，人口交流多，红颜射手，没有码头。"),
        ("ja", "フェラーリの展示とぱちんこ屋、鯨の潮吹き、ワンマンコンサート、人妻の日記。"),
    ],
)
def test_everyday_words_need_obscene_company(language: str, text: str) -> None:
    assert measured(text, language)["dirty_word_count"] == 0


def test_everyday_words_count_as_often_as_the_others() -> None:
    assert measured("Fuck that cock and fuck it.")["dirty_word_count"] == 3
    row = measured("cock cock cock porn porn.")
    assert row["dirty_word_count"] == 4
    assert row["dirty_word_ratio"] == pytest.approx(4 / 5)


def test_content_tells_code_and_mathematics_from_prose() -> None:
    code = "def f(x):\n    return g(x) + 1\n\nfor i in range(3):\n    print(f(i))\n"
    tex = r"Let $\alpha \in \mathbb{R}$ and $x^2 = 4$; then $x = \pm 2$."
    prose = "It cost $100 in 2019.\nNobody (but me) knew: why = unknown."
    found = structure([code, tex, prose])
    assert found.code_share[0] >= 0.75
    assert found.code_share[2] == 0
    assert found.math_ratio[1] > 0.1
    assert found.math_ratio[2] == 0
    row = measured(code)
    assert row["code_share"] == found.code_share[0]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("→ a ⇒ b ⟶ c ⬅ d", 0),
        ("네^^ 좋아요^^ ^_^ (^o^)", 0),
        ("one ≤ sign", 0),
        ("x^2 + y^{n} ≤ z", 3),
        ("α^2 ∈ A, f(x)^-1", 3),
    ],
)
def test_arrows_and_faces_are_no_mathematics(text: str, marks: int) -> None:
    assert structure([text]).math_ratio[0] * len(text) == pytest.approx(marks)


def test_empty_texts_measure_nothing() -> None:
    row = measured("", None)
    assert list(row) == list(NAMES)
    assert math.isnan(row["gopher_mean_word_length"])
    assert math.isnan(row["gopher_stop_words"])
    assert row["gopher_word_count"] == 0


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
@settings(max_examples=60)
def test_a_document_is_measured_alone(texts: list[str]) -> None:
    """Neighbours in the batch change nothing, nor do slices."""
    languages = pa.array(["en"] * len(texts))
    together = measure(pa.array(["x y z x y z", *texts]).slice(1), languages, SETTINGS).to_pylist()
    alone = [measure([t], pa.array(["en"]), SETTINGS).to_pylist()[0] for t in texts]
    assert [list(map(repr, r.values())) for r in together] == [
        list(map(repr, r.values())) for r in alone
    ]
