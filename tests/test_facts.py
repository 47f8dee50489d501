"""What manifests state of the software is installed with the toolkit itself."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

from curation.errors import ConfigError
from curation.models import list_models
from curation.recipe import load
from curation.stages import find, known_stages
from pipelines.named_files import stage_facts


def facts(stage: str, *assignments: str) -> dict[str, Any]:
    recipe, described = load("llama3", assignments), find(stage)
    return stage_facts(described, recipe.section(described), described.also(recipe))


def test_stages_name_only_packages_that_every_installation_has() -> None:
    required = importlib.metadata.requires("curation") or []
    always = {re.split(r"[^A-Za-z0-9._-]", r)[0].lower() for r in required if "extra ==" not in r}
    assert {"pyarrow", *(p for s in known_stages().values() for p in s.packages)} <= always


@pytest.mark.parametrize(
    ("stage", "packages"),
    [
        ("dedup-urls", {"idna"}),
        ("dedup-documents", {"datasketch", "idna", "regex"}),
        ("identify-language", {"regex"}),
        ("filter", {"idna", "regex"}),
    ],
)
def test_packages_that_decide_bytes(stage: str, packages: set[str]) -> None:
    assert packages <= set(facts(stage)["software"])


def test_lists_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text("bad.example\n")
    Path("worse.txt").write_text("worse.example\n")
    held = [
        facts(
            "filter",
            f"filter.blocklists.lists={{bad: {name}}}",
            "filter.blocklists.allow=[bad.txt]",
        )
        for name in ("bad.txt", "./worse.txt")
    ]
    assert "bad.txt" in held[0]["lists"]
    assert {"bad.txt", "./worse.txt"} <= set(held[1]["lists"])
    assert held[0]["lists"]["bad.txt"] != held[1]["lists"]["./worse.txt"]
    with pytest.raises(ConfigError, match=r"none\.txt: no such file"):
        facts("dedup-urls", "dedup-urls.canonical.tracking_parameters=none.txt")


def test_every_default_list_is_stated() -> None:
    lists = facts("filter")["lists"]
    for folder in ("builtin:configs/lists/stop_words", "builtin:models/reference"):
        assert any(name.startswith(f"{folder}/") for name in lists)
    assert list(facts("dedup-urls")["lists"]) == ["builtin:configs/lists/tracking_parameters.txt"]


def test_compiled_modules_beside_lists_are_no_fact(tmp_path: Path) -> None:
    """A run from a checkout and one from a wheel must have the same keys."""
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "en.txt").write_text("the\n")
    option = f"filter.signals.stop_words={tmp_path / 'lists'}"
    before = facts("filter", option)["lists"]
    (tmp_path / "lists" / "__pycache__").mkdir()
    (tmp_path / "lists" / "__pycache__" / "train.cpython-311.pyc").write_bytes(b"compiled")
    assert facts("filter", option)["lists"] == before
    assert f"{tmp_path}/lists/en.txt" in before


def test_a_list_that_changes_is_noticed_in_the_same_process(tmp_path: Path) -> None:
    (tmp_path / "en.txt").write_text("the\n")
    option = f"filter.signals.stop_words={tmp_path}"
    before = facts("filter", option)["lists"]
    (tmp_path / "en.txt").write_text("the and\n")
    after = facts("filter", option)["lists"]
    assert {name for name in before if before[name] != after[name]} == {f"{tmp_path}/en.txt"}


def test_checksums_are_those_of_the_cards() -> None:
    """And so those that `sha256sum` prints."""
    cards = {card.task: card.sha256 for card in list_models().values()}
    (vocabulary,) = (c for c in list_models().values() if c.name == "curation-128k")
    assert facts("tokenize")["models"]["tokenizer"] == vocabulary.sha256
    found = facts("classify")["models"]
    assert found and all(found[task] == cards[task] for task in found)
    lists = facts("filter")["lists"]
    (reference,) = (c for c in list_models().values() if c.name == "reference")
    for name, value in dict(reference.sha256).items():
        assert lists[f"builtin:models/reference/{name}"] == value
