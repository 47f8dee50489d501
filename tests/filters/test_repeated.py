"""Passages held again: the first of all copies stays, and what repeats too much is left alone."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.apply import Filter
from curation.filters.edits import edit
from curation.filters.filter_settings import CopySettings, EditSettings, default_settings
from curation.filters.signals import Meter

METER = Meter(default_settings().signals)
DEFAULT = default_settings().edits.copies

STORY = [
    "The ferry to the islands did not sail on Tuesday, because the wind had turned in the night.",
    "Passengers waited in the hall beside the pier, where the kiosk gave out tea and old papers.",
    "At noon the harbour master said that nothing would leave before the following morning.",
    "Most went home; a few stayed on the benches, and one of them played the accordion till late.",
]


def cut(text: str, limits: CopySettings | None = DEFAULT) -> tuple[str, list[str]]:
    wanted = EditSettings(c4=False, llama3=True, copies=limits)
    result = edit([text], METER, wanted)
    return result.texts[0].as_py(), result.reasons.to_pylist()


def test_an_article_in_both_layouts_stays_once() -> None:
    once = "\n".join(STORY)
    left, reasons = cut(f"{once}\n{once}")
    assert left == once
    assert reasons == ["copies.passage"] * 4


def test_three_copies_are_cut_though_their_ngrams_repeat() -> None:
    once = "\n\n".join(STORY)
    assert cut("\n\n".join([once] * 3))[0] == once


def test_copies_do_not_count_for_lines_that_stay() -> None:
    """With them every n-gram would stand five times, and all lines would go as a log does."""
    once = "\n".join(STORY)
    limits = DEFAULT.model_copy(update={"max_share": 0.9}) if DEFAULT else None
    assert cut("\n".join([once] * 5), limits)[0] == once


def test_a_quoted_post_goes_and_the_answer_stays() -> None:
    post = "\n".join(STORY)
    text = f"{post}\nExpand\n{post}\nI was there, and the accordion was out of tune.\nExpand"
    assert cut(text)[0] == (
        f"{post}\nExpand\nI was there, and the accordion was out of tune.\nExpand"
    )


def test_white_space_around_lines_makes_no_difference() -> None:
    again = "\n \n".join(f"  {line}\t" for line in STORY)
    assert cut("\n".join(STORY) + "\n\n" + again)[0] == "\n".join(STORY)


def test_refrains_and_other_short_runs_stay() -> None:
    refrain = "Row the boat ashore again,\nfor the river is deep.\n"
    text = "".join(f"{line}\n{refrain}" for line in STORY[:3])
    assert cut(text) == (text, [])


def test_lines_in_another_order_are_no_copy() -> None:
    text = "\n".join([*STORY, *reversed(STORY)])
    assert cut(text) == (text, [])


def test_what_repeats_too_much_is_left_to_the_rules() -> None:
    text = "\n".join(STORY * 4)
    limits = default_settings().edits.model_copy(update={"llama3": False})
    assert edit([text], METER, limits).texts[0].as_py() == text


def test_letters_of_han_count_as_several() -> None:
    line = "渡船在星期二没有开往群岛因为风在夜里转了方向乘客们在码头旁的大厅里等候"
    once = f"{line}那里的小店送出茶水和旧报纸\n{line}第二天早晨之前什么船都不会离开"
    assert 85 <= len(once) < 120
    assert cut(f"{once}\n{once}")[0] == once


@pytest.mark.parametrize("kind", ["code", "math"])
def test_documents_of_exempt_kinds_stay(kind: str) -> None:
    import pyarrow as pa

    lines = {
        "code": [
            f"    for (int i{n} = 0; i{n} < count; i{n}++) {{ total += i{n}; }}" for n in range(9)
        ],
        "math": [
            f"Hence $\\sum_{{k=1}}^{{{n}}} x_k^2 \\leq C_{{{n}}}$ for every $x$." for n in range(9)
        ],
    }[kind]
    text = "\n".join(lines * 2)
    batch = pa.RecordBatch.from_pydict({"id": ["1"], "url": ["http://a.example/"], "text": [text]})
    result = Filter(default_settings()).apply(batch)
    assert "copies.passage" not in result.edits.column("reason").to_pylist()


def plain(text: str, limits: CopySettings) -> list[int]:
    """Lines that are copies, by a reading of the rule that is not made to be fast."""
    places = [k for k, line in enumerate(text.splitlines()) if line.strip()]
    lines = [text.splitlines()[k].strip() for k in places]

    def size(line: str) -> int:
        han = ("CJK", "HIRAGANA", "KATAKANA")
        return sum(
            3 if unicodedata.name(c, "").startswith(han) else 1 for c in line if not c.isspace()
        )

    copied: list[int] = []
    j = 0
    while j < len(lines):
        source, length = lines.index(lines[j]), 0
        while (
            source < j and j + length < len(lines) and lines[j + length] == lines[source + length]
        ):
            length += 1
        if sum(map(size, lines[j : j + length])) >= limits.min_characters:
            copied += range(j, j + length)
        j += max(length, 1)
    if sum(size(lines[j]) for j in copied) > limits.max_share * sum(map(size, lines)):
        return []
    return [places[j] for j in copied]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["", "ab cd", "ef", " ef", "数学", "ghij klm", "nop q"]), max_size=24),
    st.integers(1, 12),
    st.sampled_from([0.3, 0.5, 0.75, 1.0]),
)
def test_kernel_finds_what_the_plain_reading_finds(
    lines: list[str], least: int, share: float
) -> None:
    limits = CopySettings(min_characters=least, max_share=share)
    text = "\n".join(lines)
    wanted = EditSettings(c4=False, llama3=False, copies=limits)
    result = edit([text], METER, wanted)
    breaks = [i + 1 for i, c in enumerate(text.encode()) if c == 10]
    # a cut at the end takes the break before it along
    cut_lines = [
        sum(
            b <= at + (part.startswith("\n")) * (len(part) - len(part.lstrip("\n ")))
            for b in breaks
        )
        for at, part in zip(result.positions.tolist(), result.cut.to_pylist(), strict=True)
    ]
    assert cut_lines == plain(text, limits)
