"""What `benchmarks/extraction.py` counts as faults of extracted text."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).parents[1] / "benchmarks" / "extraction_faults.py"
_GOLD = """The river and its mills
It rises in the hills behind the town.
Mill number one
Nobody knows who built the first of them.
The last one was closed in the year of the flood."""
_PAGE = (
    "<title>The river and its mills - Gazette</title>"
    + "".join(f"<p>{line}</p>" for line in _GOLD.splitlines())
    + "<p>Share this page</p>"
)


@pytest.fixture(scope="module")
def faults() -> Any:
    spec = importlib.util.spec_from_file_location("extraction_faults", _FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def counted(faults: Any, answer: str, gold: str = _GOLD, page: str = _PAGE) -> dict[str, int]:
    found = faults.Faults()
    found.add(gold, answer, faults.Shown.of(page.encode()))
    return {fault: count for fault, count in found.found.items() if count}


def test_the_gold_text_has_no_faults(faults: Any) -> None:
    assert counted(faults, _GOLD) == {}


def test_each_fault_is_counted(faults: Any) -> None:
    lines = _GOLD.splitlines()
    assert counted(faults, "\n".join(lines[:2] + lines[3:])) == {"holes inside kept runs": 1}
    assert counted(faults, "\n".join(lines[1:])) == {"title lost": 1}
    assert counted(faults, f"{_GOLD}\nShare this page") == {"stock ending": 1}
    assert counted(faults, _GOLD.replace("closed in", "closedin")) == {"joined words": 1}


def test_ends_that_are_cut_off_are_no_holes_nor_what_the_page_lacks(faults: Any) -> None:
    lines = _GOLD.splitlines()
    assert counted(faults, "\n".join(lines[:-1])) == {}
    gold = "\n".join([*lines[:2], "This line was added by an editor later", *lines[2:]])
    assert counted(faults, _GOLD, gold) == {}


def test_a_page_without_text_has_no_figures(faults: Any) -> None:
    assert counted(faults, "", "", "") == {}
    assert str(faults.Faults()) == ""
