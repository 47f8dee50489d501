"""Every rule says in a sentence what it measures, and the docs have the same sentence."""

from __future__ import annotations

import re

import pytest

from curation.config import read_yaml
from curation.filters.filter_settings import default_settings
from curation.filters.names import NAMES, signal_of
from curation.filters.rules import flatten
from curation.stages import meaning
from tests.conftest import ROOT

_SENTENCES = read_yaml(ROOT / "configs/measures.yaml")
_ROW = re.compile(r"^\| `(\w+(?:\.\w+)?)`(?: \.\.\.)? \|(?:.*\|)? ([A-Z][^|]+\.) \|$", re.MULTILINE)


def _table(page: str, heading: str) -> dict[str, str]:
    """Return the sentences in the tables of a page from a heading on, by the first column."""
    return dict(_ROW.findall((ROOT / "docs" / page).read_text().partition(heading)[2]))


def test_every_signal_has_a_sentence() -> None:
    assert [name for name in NAMES if not meaning(name)] == []
    assert meaning("mine.words") == ""  # of the user's own
    assert meaning("mine.words", "gopher_word_count") == meaning("", "gopher_word_count") != ""


def test_the_docs_have_the_sentences_of_all_rules() -> None:
    table = _table("filters.md", "\n## Rules\n")
    rules = {rule.reason: rule.rule.signal for rule in flatten(default_settings().rules)}
    assert rules.keys() <= table.keys()
    for rule, sentence in table.items():
        family, _, name = rule.partition(".")
        signal = rules.get(rule) or signal_of(family, name)
        assert sentence == meaning(rule, signal), rule


def test_the_docs_have_the_sentences_of_all_other_reasons() -> None:
    assert _table("read-output.md", "\n## Reasons\n") == {
        name: sentence for name, sentence in _SENTENCES.items() if name not in NAMES
    }


@pytest.mark.parametrize(
    ("reason", "begins"),
    [
        ("pii.email", "Counts the items"),
        ("blocklist.adult", "The URL is on a block list"),
        ("blocklist.personal_data", "Measures items of personal data"),
        ("contamination.mmlu", "Measures the share of an item"),
    ],
)
def test_reasons_with_names_of_recipes(reason: str, begins: str) -> None:
    assert meaning(reason).startswith(begins)
