"""Reference that the site generates from code, and links of all pages."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from curation.config import read_yaml
from curation.filters.filter_settings import default_settings
from curation.filters.names import NAMES, signal_of
from curation.filters.rules import flatten
from curation.stages import known_stages, meaning
from pipelines.cli import COMMANDS, plug_ins
from tests.conftest import ROOT

_PAGES = (
    *ROOT.glob("*.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "models").glob("*/CARD.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
    *sorted((ROOT / "deploy").rglob("README.md")),
)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def _site() -> Any:
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs/site.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = _site()


def _rows(table: str) -> dict[str, str]:
    """Return the last column of a table by the first."""
    rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in table.splitlines()[2:]]
    return {row[0].strip("`"): row[-1] for row in rows}


def _anchors(markdown: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", _CODE.sub("", markdown), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in words}


def test_every_rule_is_listed_with_its_limits_and_what_it_measures() -> None:
    found = _rows(SITE.rules())
    for rule in flatten(default_settings().rules):
        assert found.pop(rule.reason) == meaning(rule.reason, rule.rule.signal) != ""
    for rule, says in found.items():  # those that are off
        assert says == meaning(rule, signal_of(*rule.split("."))) != ""
    assert "| `gopher.word_count` | min 50, max 100,000 |" in SITE.rules()
    assert "| `c4.characters` | off |" in SITE.rules()


def test_all_other_reasons_are_listed() -> None:
    sentences = read_yaml(ROOT / "configs/measures.yaml")
    assert _rows(SITE.reasons()) == {n: says for n, says in sentences.items() if n not in NAMES}


def test_every_setting_of_the_defaults_is_listed_with_its_default() -> None:
    parts = dict(re.findall(r"^## (\S+)$(.*?)(?=^## |\Z)", SITE.settings(), re.M | re.S))
    assert {*known_stages()} - {"withdraw"} <= parts.keys() and "readers" in parts
    assert "| `min_quality` | `{" in parts["classify"]
    assert (
        "| `verify.threshold` | `0.7` | Least similarity of a confirmed pair |"
        in (parts["dedup-documents"])
    )
    for name, part in parts.items():
        listed = {key.partition(".")[0] for key in re.findall(r"^\| `([^`]+)` \|", part, re.M)}
        assert read_yaml(ROOT / f"configs/defaults/{name}.yaml").keys() <= listed, name


def test_every_command_is_listed_with_its_options() -> None:
    found = SITE.commands()
    for name in (*COMMANDS, *plug_ins(), *known_stages()):
        assert f"## {name}\n\n```text\nusage: curate {name} " in found or name == "withdraw"
    assert "--dry-run" in found


def test_generated_parts_of_pages_have_generators_and_are_on_a_page() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in _PAGES)
    assert set(re.findall(r"<!-- generated: (\w+) -->", texts)) == SITE.GENERATED.keys()


def test_pages_lead_to_paths_where_links_leave_the_site() -> None:
    page = "a [list](../configs/measures.yaml), <!-- generated: reasons -->"
    made = SITE.on_page_markdown(page, page=None, config=None, files=None)
    assert made.startswith("a list (`configs/measures.yaml`), | reason |")


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Any) -> None:
    text = page.read_text(encoding="utf-8")
    for path, anchor in _LINK.findall(_CODE.sub("", text)):
        target = page.parent / path if path else page
        assert target.exists(), f"{path}: no such file"
        if anchor and target.suffix == ".md":
            markdown = target.read_text(encoding="utf-8")
            names = {*known_stages(), *COMMANDS, *plug_ins()}
            generated = any(f"generated: {n} " in markdown for n in ("settings", "commands"))
            known = _anchors(markdown) | (names if generated else set())
            assert anchor in known, f"{path}#{anchor}: no such heading"
