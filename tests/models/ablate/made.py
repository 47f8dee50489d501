"""Small experiments of made texts."""

from __future__ import annotations

import functools
import random

from curation.decontaminate.items import Item
from curation.tokenize import load_tokenizer
from curation.tokenize.tokenizer import Tokenizer
from models.ablate.experiment import Experiment
from models.ablate.prepare import Text, experiment, smaller

_WORDS = {
    "fish": "the cod swims in cold water near a rock where many small fish hide".split(),
    "law": "a court may order that parties pay all costs of such proceedings".split(),
}


@functools.cache
def vocabulary() -> Tokenizer:
    return smaller(load_tokenizer("curation-128k"), 512)


def texts(topic: str, count: int, seed: int) -> list[Text]:
    """Texts of 40 words on a topic, each with an address."""
    dice = random.Random(f"{topic} {seed}")
    return [
        Text(" ".join(dice.choices(_WORDS[topic], k=40)), f"https://s{k % 7}.example/{k}")
        for k in range(count)
    ]


def made() -> Experiment:
    """Two runs, one of each topic; texts and a task of one of them to measure with."""
    items = [
        Item("quiz", str(k), "what swims in cold water near a", ("rock", "court"), "rock")
        for k in range(6)
    ]
    return experiment(
        vocabulary(),
        [("fish", texts("fish", 60, 1)), ("law", texts("law", 60, 1))],
        [("fish", texts("fish", 12, 2)), ("law", texts("law", 12, 2))],
        [("quiz", items)],
    )
