"""Generated mathematics that the domain model learns from."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from curation import resources
from models.training.inputs import rows


@pytest.fixture(scope="module")
def problems() -> ModuleType:
    path = resources.root() / "models" / "domain" / "problems.py"
    spec = importlib.util.spec_from_file_location("problems", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_seed_writes_the_same_problems(problems: ModuleType) -> None:
    found = problems.documents(20, 3)
    assert found == problems.documents(20, 3)
    assert len({row["text"] for row in found}) == len(found) == 80
    assert len({row["source"] for row in found}) == 4


def test_every_place_is_filled_and_sums_are_right(problems: ModuleType) -> None:
    for row in problems.documents(40, 0):
        if not row["source"].endswith(":tex"):  # TeX has braces of its own
            assert "{" not in row["text"], row["text"]
        for a, b, c in re.findall(r"(?<![-−+·*/×] )\b(\d+) \+ (\d+) = (\d+)\b", row["text"]):
            assert int(a) + int(b) == int(c), row["text"]
        for a, b, c in re.findall(r"(?<![-−+·*/×] )\b(\d+) [-−] (\d+) = (\d+)\b", row["text"]):
            assert int(a) - int(b) == int(c), row["text"]


def test_labels_name_each_page_once() -> None:
    path = resources.root() / "models" / "domain" / "labels.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["set", "id", "label"]
    assert len({(a, b) for a, b, _ in rows[1:]}) == len(rows) - 1
    assert {label for *_, label in rows[1:]} == {"-", "code", "math_reasoning"}


def test_written_pages_are_whole_and_different() -> None:
    found = [row for _, row in rows(resources.root() / "models" / "domain" / "written.jsonl.gz")]
    assert {row["label"] for row in found} == {"code", "general", "math"}
    assert all(len(row["text"]) >= 100 for row in found)
    assert len({row["id"] for row in found}) == len({row["text"] for row in found}) == len(found)
