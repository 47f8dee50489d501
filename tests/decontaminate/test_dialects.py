"""Dialects against their published descriptions."""

from __future__ import annotations

import pytest

from curation.decontaminate.dialects import DIALECTS, Decon, Gpt3, Llama3, Marin, Palm
from curation.decontaminate.items import Item

WORDS = [f"w{i}" for i in range(40)]


def item(words: list[str], answer: str = "") -> Item:
    return Item("set", "1", " ".join(words), answer=answer)


def other(n: int) -> str:
    return " ".join(f"x{i}" for i in range(n))


def test_gpt3_takes_n_from_the_fifth_percentile_between_8_and_13() -> None:
    def size(lengths: list[int]) -> int:
        return Gpt3([item(WORDS[:n]) for n in lengths]).sizes["set"]

    assert size([3] * 20) == 8
    assert size([40] * 20) == 13
    assert size([4] + [10] * 39) == 10  # 5 % of 40 items are shorter than the third


def test_gpt3_matches_any_13_gram_and_no_12_gram() -> None:
    gpt3 = Gpt3([item(WORDS)])
    assert gpt3.flags(f"{other(5)} {' '.join(WORDS[3:16]).upper()}. {other(5)}")
    assert not gpt3.flags(f"{other(5)} {' '.join(WORDS[3:15])} {other(5)}")


def test_gpt3_cuts_200_characters_on_each_side() -> None:
    gpt3 = Gpt3([item(WORDS)])
    match = " ".join(WORDS[:13])
    text = "a" * 450 + " " + match + " " + "b" * 450
    assert [len(piece) for piece in gpt3.clean(text)] == [251, 251]
    assert gpt3.clean("a" * 350 + " " + match) == []  # the piece left is under 200
    assert gpt3.clean("short") == ["short"]  # nothing matched, nothing goes
    many = "".join("c" * 800 + f" {match} " for _ in range(12))
    assert gpt3.clean(many) == []  # more than 10 pieces


def test_llama3_counts_tokens_inside_shared_8_grams() -> None:
    text = f"{other(3)} {' '.join(WORDS[:16])} {other(3)}"
    (found,) = Llama3([item(WORDS)], {"set": 0.4}).find(text)
    assert found.score == pytest.approx(16 / 40)
    assert not Llama3([item(WORDS)], {"set": 0.41}).find(text)
    assert not Llama3([item(WORDS)], {"set": 0.01}).find(" ".join(WORDS[:7]))


def test_palm_wants_70_percent_of_the_8_grams() -> None:
    palm = Palm([item(WORDS)])  # 33 8-grams; 31 words have 24 of them, 30 have 23
    assert palm.flags(" ".join(WORDS[:31])) and not palm.flags(" ".join(WORDS[:30]))


def test_decon_looks_up_every_tenth_ngram() -> None:
    long, short = Decon([item(WORDS)]), Decon([item(WORDS[:12])])
    assert long.flags(f"{other(7)} {' '.join(WORDS)} {other(7)}")
    # 8 n-grams of a 12-word item may lie between two that are looked up
    assert short.flags(" ".join(WORDS[:12]))
    assert not short.flags(f"{other(1)} {' '.join(WORDS[:12])} {other(3)}")


def test_decon_bridges_misses_and_wants_the_answer() -> None:
    decon = Decon([item(WORDS, "forty two")])
    edited = [*WORDS[:20], "edit", *WORDS[20:]]
    assert decon.flags(" ".join([*edited, "forty two"]))
    assert not decon.flags(" ".join(edited))
    assert not decon.flags(" ".join([*edited, *other(60).split(), "forty two"]))
    apart = [*WORDS[:20], *other(20).split(), *WORDS[20:], "forty two"]
    assert not decon.flags(" ".join(apart))  # 11 misses in a row end a cluster


def test_decon_wants_short_items_whole() -> None:
    decon = Decon([item(WORDS[:19])])
    assert decon.flags(" ".join(WORDS[:19]))
    assert not decon.flags(" ".join(WORDS[:18]))


def test_decon_scores_a_whole_item_1_whatever_the_order_of_its_sum() -> None:
    texts = [" ".join(f"w{(k * k + j) % 97}x{j % 7}" for j in range(40 + k)) for k in range(30)]
    decon = Decon([item(text.split()) for text in texts])
    for number, text in enumerate(texts):
        assert {m.item: m.score for m in decon.find(text)}[number] == 1


def test_marin_judges_each_line() -> None:
    marin = Marin([item(WORDS)])
    assert marin.flags(f"{other(30)}\n{' '.join(WORDS)}\n{other(30)}")
    assert not marin.flags(f"{other(60)} {' '.join(WORDS)}")  # embedded: under half of the line
    wrapped = "\n".join(" ".join(WORDS[i : i + 8]) for i in range(0, 40, 8))
    assert not marin.flags(wrapped)


@pytest.mark.parametrize("name", DIALECTS)
def test_no_item_in_an_empty_text(name: str) -> None:
    assert not DIALECTS[name]([item(WORDS), item(["one"])]).flags("")


@pytest.mark.parametrize("name", ["gpt3", "llama3", "palm", "marin"])
def test_an_item_of_two_sets_is_found_in_both(name: str) -> None:
    twice = [item(WORDS), item(WORDS)._replace(set="another"), item([f"y{w}" for w in WORDS])]
    assert [m.item for m in DIALECTS[name](twice).find(" ".join(WORDS))] == [0, 1]
