"""Edited items and other items of the same template."""

from __future__ import annotations

import random
from itertools import pairwise
from math import comb
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.config import read_values
from curation.decontaminate.align import Rival, _tail, is_template, losses
from curation.decontaminate.decontaminate_settings import Rules, default_settings
from tests.decontaminate.test_judge import FILLER, decontaminator_of

RULES = read_values(default_settings().rules, Rules).template
NAMES = "Alice Bob Claire Dave Eve Fred Gertrude Hannah Igor Judith Karl Lena".split()
THINGS = "a black ball,a red kite,an old lamp,a green book,a brass key,a tin drum".split(",")


def shuffled(seed: int) -> str:
    """An item: what differs is who and what, in order."""
    rng = random.Random(seed)
    (a, b, c), (x, y, z) = rng.sample(NAMES, 3), rng.sample(THINGS, 3)
    return (
        f"{a}, {b} and {c} are holding a white elephant gift exchange. At the start of the event "
        f"each of them has one present: {a} has {x}, {b} has {y}, and {c} has {z}. As the event "
        f"goes on, pairs of people swap their gifts. First, {a} and {c} swap. Then {b} and {a} "
        f"swap. Finally, {c} and {b} swap. At the end of the event, what does {c} have?"
    )


ITEMS = [shuffled(seed) for seed in range(40)]


def ids(text: str) -> np.ndarray:
    return np.array([crc32(word.encode()) for word in text.split()], np.uint32)


def edited(text: str, seed: int) -> str:
    """Two edits in every 20 words."""
    rng, words = random.Random(seed), text.split()
    for first in range(0, len(words), 20):
        for i in rng.sample(range(first, min(first + 20, len(words))), 2):
            words[i] = rng.choice(["quartz", "", f"{words[i]} marmot"])
    return " ".join(words)


def test_edited_items_of_a_template_are_found_and_other_items_are_not() -> None:
    ours = decontaminator_of(ITEMS[:20])
    copies = [FILLER + edited(text, k) + FILLER for k, text in enumerate(ITEMS[:20])]
    others = [FILLER + text + FILLER for text in ITEMS[20:]]
    found = [[f for f in some if f.action == "remove"] for some in ours.find([*copies, *others])]
    assert sum(any(f.item == k for f in some) for k, some in enumerate(found[:20])) >= 19
    assert not any(found[20:])


def test_losses_in_the_template_speak_for_an_edited_item() -> None:
    own, rival = ids(ITEMS[0]), Rival(0.9, ids(ITEMS[1]))
    differ = np.flatnonzero(losses(own, rival.tokens))
    alike = np.setdiff1d(np.arange(len(own)), differ)
    fresh = np.uint32(7)
    in_slots, anywhere = own.copy(), own.copy()
    in_slots[differ[:8]] = fresh
    anywhere[alike[:40:6]] = fresh
    assert is_template(own, in_slots, 0.9, [rival], RULES)
    assert not is_template(own, anywhere, 0.9, [rival], RULES)
    assert not is_template(own, in_slots, 0.9, [], RULES)


@pytest.mark.parametrize(("number", "is_found"), [("5", True), ("five", True), ("6", False)])
def test_a_number_in_the_place_of_another_makes_another_item(number: str, is_found: bool) -> None:
    """Without one other item of the template at hand."""
    item = (
        "The ferry to the islands takes 45 passengers and 12 bicycles. How many boats leave the "
        "old harbour if 315 passengers wait and each of the 7 captains has room for {} dogs?"
    )
    text = f"{FILLER}{item.format(number)}{FILLER}"
    (found,) = decontaminator_of([item.format("5")]).find([text])
    assert any(one.action == "remove" for one in found) == is_found


def test_few_losses_that_may_be_either_are_left_to_the_rivals() -> None:
    own, rival = np.arange(12, dtype=np.uint32), np.arange(12, dtype=np.uint32)
    rival[6:] += 100
    span = own.copy()
    span[8] = 99
    rivals = [Rival(0.9, rival)] * 2
    assert is_template(own, span, 0.91, rivals, RULES)
    assert not is_template(own, span, 0.91, rivals[:1], RULES)
    assert not is_template(own, span, RULES.unique, rivals, RULES)


@pytest.mark.parametrize(
    ("other", "lost"),
    [
        ("a b c d e", ""),
        ("x a b c d e y", ""),
        ("a b x c d e", "b"),
        ("a x x c d e", "b"),
        ("a b d e", "c"),
        ("e", "a b c d"),
        ("", "a b c d e"),
    ],
)
def test_losses(other: str, lost: str) -> None:
    words = np.array("a b c d e".split())
    assert words[losses(ids("a b c d e"), ids(other))].tolist() == lost.split()


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_what_is_not_lost_is_a_common_subsequence(own: list[int], other: list[int]) -> None:
    lost = losses(np.array(own, np.uint32), np.array(other, np.uint32))
    kept = [token for token, gone in zip(own, lost, strict=True) if not gone]
    rest = iter(other)
    assert all(token in rest for token in kept)
    best = [0] * (len(other) + 1)
    for token in own:
        best = [0, *_row(best, token, other)]
    insertions = len(other) - 1
    assert best[-1] - max(insertions, 0) <= len(kept) <= best[-1]


def _row(before: list[int], token: int, other: list[int]) -> list[int]:
    row, left = [], 0
    for (corner, up), theirs in zip(pairwise(before), other, strict=True):
        left = max(left, up, corner + (token == theirs))
        row.append(left)
    return row


def test_the_tail_is_the_hypergeometric_one() -> None:
    assert _tail(10, 4, 3, 0) == pytest.approx(1)
    assert _tail(10, 4, 3, 3) == pytest.approx(comb(4, 3) / comb(10, 3))
    assert _tail(5, 5, 2, 2) == 1
