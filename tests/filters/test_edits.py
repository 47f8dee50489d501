"""Line cuts: what goes, where it stood, and that text and cuts give back the original."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.columns import CODE_PATH, PROSE_PATH
from curation.filters.content import look_at
from curation.filters.edits import Edited, edit
from curation.filters.filter_settings import (
    CopySettings,
    EditSettings,
    FilterSettings,
    default_settings,
)
from curation.filters.line_ngrams import LineNgrams
from curation.filters.signals import Meter

_COPIES = CopySettings(min_characters=20, max_share=0.9)
_ALL = EditSettings(c4=True, llama3=True, copies=_COPIES)
_C4 = EditSettings(c4=True, llama3=False, copies=None)
_LLAMA3 = EditSettings(c4=False, llama3=True, copies=None)
SETTINGS: FilterSettings = default_settings()
METER = Meter(SETTINGS.signals)


def run(text: str, wanted: EditSettings) -> tuple[str, list[tuple[str, int, str]]]:
    result = edit([text], METER, wanted)
    return result.texts[0].as_py(), cuts_of(result)


def cuts_of(result: Edited) -> list[tuple[str, int, str]]:
    reasons, cut = result.reasons.to_pylist(), result.cut.to_pylist()
    return list(zip(reasons, result.positions.tolist(), cut, strict=True))


def restored(text: bytes, cuts: list[tuple[str, int, str]], left: bytes) -> bytes:
    """Put the cuts back where they were."""
    out, taken = b"", 0
    for _, position, cut in cuts:
        keep = position - len(out)
        out += left[taken : taken + keep] + cut.encode()
        taken += keep
    return out + left[taken:]


def test_c4_lines_go_and_their_neighbours_stay() -> None:
    text = "A first sentence stands here.\nHome\nPlease enable javascript now.\nThe last one stays."
    left, cuts = run(text, _C4)
    assert left == "A first sentence stands here.\nThe last one stays."
    assert [(r, c) for r, _, c in cuts] == [
        ("c4.few_words", "Home\n"),
        ("c4.javascript", "Please enable javascript now.\n"),
    ]
    assert text.encode()[cuts[0][1] :].startswith(b"Home")


def test_citation_marks_go() -> None:
    left, cuts = run(
        "Water boils at a hundred degrees.[12] It freezes at zero.[citation needed]", _C4
    )
    assert left == "Water boils at a hundred degrees. It freezes at zero."
    assert [r for r, _, _ in cuts] == ["c4.citation", "c4.citation"]


def test_citation_marks_have_digits_of_any_script() -> None:
    left, _ = run("First of all words.[۱] Second of them.[١] Third of them.[১২] Fourth[²].", _C4)
    assert left == "First of all words. Second of them. Third of them. Fourth[²]."


def test_lines_are_those_that_the_signals_read() -> None:
    text = "One whole sentence here.\u2028Menu\u2028Another whole sentence here.\r\nTop\x0b"
    left, cuts = run(text, _C4)
    assert left == "One whole sentence here.\u2028Another whole sentence here."
    assert [c for _, _, c in cuts] == ["Menu\u2028", "\r\nTop\x0b"]


def test_lines_that_condemn_a_document_stay() -> None:
    text = "Lorem\nipsum dolor sit amet"
    assert run(text, _C4)[0] == text


def test_paragraphs_keep_one_blank_line_between_them() -> None:
    left, _ = run("One whole sentence here.\n\nMenu\n\nAnother whole sentence here.", _C4)
    assert left == "One whole sentence here.\n\nAnother whole sentence here."


def test_nothing_is_left_at_the_end() -> None:
    assert run("One whole sentence here.\n\nMenu\nTop", _C4)[0] == "One whole sentence here."
    assert run("Menu", _C4)[0] == ""
    assert run("Menu\n\nOne whole sentence here.", _C4)[0] == "One whole sentence here."


def log_of(lines: int) -> str:
    return "\n".join(
        f"2024-03-0{i} ERROR worker {i} failed to open the connection to host {i * 7}"
        for i in range(1, lines + 1)
    )


def test_a_few_lines_that_are_alike_stay() -> None:
    few = LineNgrams().min_run - 1
    story = "The engineers met on Friday to talk about what had gone wrong with the new release."
    text = f"{log_of(few)}\n{story}\n{log_of(few)}"
    assert run(text, _LLAMA3)[1] == []
    assert run(f"{log_of(few)}\n\n{log_of(few)}", _LLAMA3)[0] == ""  # blank lines end no run


def test_log_lines_go_although_each_is_unique() -> None:
    log = log_of(12)
    prose = "The engineers met on Friday to talk about what had gone wrong with the new release."
    left, cuts = run(f"{prose}\n{log}", _LLAMA3)
    assert left == prose
    assert {r for r, _, _ in cuts} == {"llama3.line_ngram_coverage"}


def test_rows_of_different_figures_stay() -> None:
    """Words and units that repeat beside them make no row the copy of another."""
    years = range(2011, 2021)
    tables = [
        *(f"{year} {year * 7 % 91}.4 {year * 3 % 83}.2 {year * 9 % 97}.8" for year in years),
        *(f"| {year} | {year * 7 % 91} | {year * 3 % 83} | {year * 9 % 97} |" for year in years),
        *(f"January {year} {year * 7 % 91}.4 {year * 3 % 83}.2" for year in years),
        *(f"{year * 7 % 91}.41 mm {year * 3 % 83}.25 mm {year * 9}.8 mm {year}.3 mm"
          for year in years),
        *(f"Total number of pupils {year * 7} {year * 3} {year * 9} {year * 5} {year * 2}"
          for year in years),
    ]  # fmt: skip
    assert run("\n".join(tables), _LLAMA3)[1] == []


def test_messages_that_differ_in_numbers_go() -> None:
    messages = [
        *(f"2024-05-0{i} 12:0{i}:17 [INFO] Connection from 10.0.0.{i} port {22 * i} accepted"
          for i in range(1, 6)),
        *(f"错误 {i}：服务器 {i * 7} 无法打开数据库连接" for i in range(1, 6)),
        *(f"ข้อผิดพลาด {i}: เซิร์ฟเวอร์ {i * 7} เปิดการเชื่อมต่อไม่ได้" for i in range(1, 6)),
    ]  # fmt: skip
    assert run("\n".join(messages), _LLAMA3)[0] == ""


# Letters between two of them, letters of a word, what is between words
SCRIPTS = {
    "Latin": ("az", 6, " "),
    "Thai": ("กฮ", 4, ""),
    "Lao": ("ກຮ", 4, ""),
    "Khmer": ("កអ", 4, ""),
    "Myanmar": ("ကအ", 4, ""),
    "Han": ("一是", 2, ""),
    "kana": ("ぁん", 2, ""),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_long_documents_of_few_words_stay(script: str) -> None:
    """Four letters come again in a long text; four words don't."""
    (first, last), length, space = SCRIPTS[script]
    rng = random.Random(script)
    letters = list(filter(str.isalpha, map(chr, range(ord(first), ord(last) + 1))))
    vocabulary = ["".join(rng.choices(letters, k=length)) for _ in range(500)]
    lines = [space.join(rng.choices(vocabulary, k=12)) for _ in range(1000)]
    assert run("\n".join(lines), _LLAMA3)[1] == []


def test_code_and_formulas_stay() -> None:
    """Lines of a listing on a page, and a source file as a whole."""
    listing = "int main() {\n    return f(x);\n}\n"
    page = f"Menu\nThis is how every program of the course begins, as you know.\n{listing}Menu"
    kept = [f"This is how every program of the course begins, as you know.\n{listing}".rstrip("\n")]
    settings = default_settings().paths
    assert settings is not None
    found = look_at([page, listing], settings)
    assert found.paths.tolist() == [PROSE_PATH, CODE_PATH]
    assert edit([page, listing], METER, _C4, found).texts.to_pylist() == [*kept, listing]
    assert edit([listing], METER, _C4).texts.to_pylist() != [listing]


LINES = [
    "", " ", "Home", "A whole sentence stands here.", "javascript is needed for this", "[1]",
    "12 likes", "ALL CAPITALS HERE NOW", "数学は楽しい。", "word[2] and [edit] more words.",
    "x" * 30, "error 1 in module a b c d", "error 2 in module a b c d",
    "error 3 in module a b c d", "error 4 in module a b c d",
]  # fmt: skip
BREAKS = ["\n", "\n", "\n", "\r\n", "\u2028", ""]
lines = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(BREAKS)).map("".join), max_size=14
)


@settings(max_examples=200)
@given(st.lists(lines, min_size=1, max_size=4))
def test_text_and_cuts_give_back_the_original(documents: list[list[str]]) -> None:
    texts = [*map("".join, documents)]
    result = edit(texts, METER, _ALL)
    rows = result.rows.tolist()
    for i, text in enumerate(texts):
        mine = [c for row, c in zip(rows, cuts_of(result), strict=True) if row == i]
        left = result.texts[i].as_py().encode()
        assert restored(text.encode(), mine, left) == text.encode()
        alone = edit([text], METER, _ALL)
        assert alone.texts[0].as_py().encode() == left
