"""Reference that the site generates from code, and links of all pages."""

from __future__ import annotations

import importlib.util
import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from curation.config import Settings, read_yaml
from curation.filters.filter_settings import default_settings
from curation.filters.names import NAMES, signal_of
from curation.filters.rules import flatten
from curation.readers.settings import ReaderSettings
from curation.recipe import built_in, outline
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
_SAID = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
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


def _models(annotation: Any) -> list[type[Settings]]:
    """Return the models of settings in an annotation such as `dict[str, Rule] | None`."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return [annotation] if issubclass(annotation, Settings) else []
    return [model for part in typing.get_args(annotation) for model in _models(part)]


def _keys(model: type[Settings], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (*above, field.alias or name)
        for inner in _models(field.annotation):
            yield from _keys(inner, (*above, field.alias or name))


def _named(tree: Any) -> Iterator[str]:
    """Yield every key of a recipe."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        yield str(key)
        yield from _named(value)


def test_every_setting_is_set_by_a_recipe_or_shown_in_the_docs() -> None:
    """What neither a recipe nor a page names is no choice but a coefficient: it goes elsewhere."""
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    known = set(re.findall(r"[a-z_0-9]+", "".join(_SAID.findall(pages))))
    known |= {key for recipe in built_in() for key in _named(outline(recipe))}
    sections = {name: stage.settings for name, stage in known_stages().items()}
    sections["readers"] = ReaderSettings
    keys = [key for name, model in sections.items() for key in _keys(model, (name,))]
    assert len(keys) > 200
    unknown = sorted({".".join(key) for key in keys if key[-1] not in known})
    assert not unknown, f"set {unknown} in a recipe, or show it as code on a page of docs/"


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
    assert {*known_stages()} <= parts.keys() and "readers" in parts
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
        assert f"## {name}\n\n```text\nusage: curate {name} " in found
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
