"""Recipes: merged, checked, explained."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from curation.config import read_yaml
from curation.errors import ConfigError
from curation.filters.filter_settings import FilterSettings, default_tree
from curation.filters.rules import RuleBook
from curation.recipe import STAGES, built_in, check_order, load, with_stage
from curation.resources import root
from curation.stages import find
from tests.filters import measure


def write(folder: Path, content: object, name: str = "mine.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_built_in_recipes_are_complete() -> None:
    assert set(built_in()) == {
        *("sample", "llama3", "fineweb", "fineweb2", "fineweb2-rehydrated", "olmo3", "nemotron3"),
        *(
            "llama3-schedule",
            "llama3-annealing",
            "llama3-long-context",
            "wikipedia",
            "stackexchange",
            "pdf",
        ),
    }
    for name in built_in():
        recipe = load(name)
        assert recipe.name == name
        assert set(recipe.stages) <= set(STAGES)
        for stage in recipe.stages:
            assert recipe.settings(stage) is not None
    usual = tuple(s for s in STAGES if s != "read-tables" and not find(s).optional)
    assert load("llama3").stages == usual, "a stage that no built-in recipe names is `optional`"


def test_a_recipe_overrides_its_parent(tmp_path: Path) -> None:
    base = write(
        tmp_path,
        {"name": "base", "extends": "llama3", "dedup-lines": {"max_occurrences": 9}},
        "base.yaml",
    )
    child = write(
        tmp_path, {"name": "child", "extends": "base.yaml", "dedup-lines": {"min_characters": 5}}
    )
    recipe = load(child)
    assert (recipe.dedup_lines.max_occurrences, recipe.dedup_lines.min_characters) == (9, 5)
    assert recipe.dedup_documents == load("llama3").dedup_documents
    assert load(base).dedup_lines.min_characters == 300


def test_set_comes_last(tmp_path: Path) -> None:
    recipe = load("llama3", ["dedup-documents.minhash.bands=7", "filter.rules.c4=null"])
    assert recipe.dedup_documents.minhash.bands == 7
    assert recipe.filter.rules["c4"] is None


def test_set_merges_mappings_as_recipes_do() -> None:
    recipe = load("llama3", ["filter.rules.gopher.word_count={min: 20}"])
    gopher = recipe.filter.rules["gopher"]
    assert gopher is not None
    words = gopher["word_count"]
    assert words is not None
    assert (words.min, words.max) == (20, 100_000)
    lines = load("llama3", ["dedup-lines={normalization: ccnet, max_occurrences: 1}"]).dedup_lines
    assert (lines.max_occurrences, lines.bucket_documents) == (1, 30_000_000)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "dedup-documents.minhash.band=7",
            "dedup-documents.minhash.band: unknown key; did you mean 'bands'?",
        ),
        ("filtr.rules=1", "filtr: unknown key; did you mean 'filter'?"),
        ("labels=all", "labels: unknown key; did you mean 'identify-language.labels'?"),
        ("min_quality=1", "did you mean 'classify.min_quality'?"),
        (
            "filter.rules.gopher.word_count.mn=3",
            "filter.rules.gopher.word_count.mn: unknown key; did you mean 'min'?",
        ),
        ("dedup-lines.max_occurrences=often", "dedup-lines.max_occurrences: "),
        ("dedup-lines.max_occurrences=0", "dedup-lines.max_occurrences: "),
        ("dedup-documents.minhash.bands=100", "bands x rows = 100 x 6"),
        ("mix.domains.code.share=0.5", "shares of the domains sum to"),
        ("extract.engine=trafilatora", "extract.engine: "),
        (
            "filter.exempt.code.rules=[gofer]",
            "exempt.code.rules: no rule or family 'gofer'; did you",
        ),
        ("filter.exempt.code.rules=[gopher.stop_wrds]", "did you mean 'gopher.stop_words'?"),
        (
            "filter.by_language={de: {gofer: {word_count: null}}}",
            "by_language.de: no rule or family",
        ),
        ("filter.by_language.de.gopher.wordcount=null", "did you mean 'gopher.word_count'?"),
        ("filter.by_language.de.gofer=null", "(there are: c4, "),
        ("filter.rules.gopher.word_count.min=.inf", "word_count.min: input should be a finite"),
        ("filter.rules.gopher.word_count.max=.nan", "word_count.max: input should be a finite"),
        ("filter.rules.gopher.word_count.min=200000", "word_count: min is above max (200000.0 >"),
        ("extract.max_characters=true", "extract.max_characters: input should be a number"),
        ("mix.domains.code.share=true", "mix.domains.code.share: input should be a number"),
        ("extract.http_status=[400,200]", "extract.http_status: should go from the lower to the"),
        ("mix.max_tokens=8", "no longer a setting: removed; filter.rules.gopher.word_count.max"),
        ("mix.budget=-1", "mix.budget: input should be 'auto' or 'all' or greater than 0 (got -1)"),
        ("mix.domains.nosuch.share=.1", "max_epochs: missing ('nosuch' is next to general, "),
        ("extract={engine: resiliparse, engine: curation}", "duplicate key 'engine'"),
        ("identify-language.languages=[no]", "write 'no' in quotes"),
        ("inputs=a.gz", "inputs: input should be a list or a mapping (got 'a.gz')"),
        (
            "filter.signals.dirty_words=null",
            "llama3.yaml: filter.rules.llama3.dirty_word_ratio: its signal is not measured: name "
            "what it takes in filter.signals.dirty_words",
        ),
        ("extract.favor=precision", "favor is not read by the engine 'curation', only by trafil"),
        ("extract={engine: resiliparse, markdown: true}", "curation: leave it at false"),
        ("nonsense", "expected key.path=value"),
        ("stages.x=1", "--set: stages: input should be a list"),
    ],
)
def test_errors_name_key_and_nearest_name(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load("llama3", [assignment])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_settings_switch_off_the_divergence_in_all_languages() -> None:
    off = ["filter.signals.reference=null", "filter.rules.llama3.kl_divergence=null"]
    recipe = load("llama3", off)
    assert "kl_divergence" in recipe.filter.by_language["de"]["llama3"]
    with pytest.raises(ConfigError, match=r"rules\.llama3\.kl_divergence: its signal"):
        load("llama3", off[:1])


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (["filter", "extract"], "extract must come before filter"),
        (["extract", "filtr"], r"stages\[1\]: unknown stage 'filtr'; did you mean 'filter'\?"),
        (["extract", "extract"], "appears twice"),
        (["filter", "identify-language"], "identify-language must come before filter"),
        (["mix", "classify"], "classify must come before mix"),
        (["tokenize", "filter"], "filter must come before tokenize"),
    ],
)
def test_impossible_orders(stages: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_order(load("llama3"), stages)


def test_columns_that_no_stage_adds_are_named_before_anything_runs() -> None:
    """The stages that need them would fail, but only once all input was read."""
    message = "dedup-lines needs the column 'language'; identify-language adds it"
    with pytest.raises(ConfigError, match=message):
        load("llama3", ["stages=[extract, dedup-lines]"])
    load("llama3", ["stages=[extract, dedup-lines]", "dedup-lines.per_language=false"])
    recipe = load("llama3")
    with pytest.raises(ConfigError, match=message):
        check_order(recipe, ["dedup-lines"], ["id", "text"])
    check_order(recipe, ["dedup-lines"], ["id", "text", "language"])
    check_order(recipe, ["dedup-lines"])  # of which nothing is known


def test_possible_orders() -> None:
    order = ["extract", "identify-language", "filter", "dedup-urls", "dedup-documents"]
    check_order(load("llama3"), order)
    check_order(load("llama3"), ["dedup-documents"])


def test_unknown_recipes_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'llama3'"):
        load("lama3")
    with pytest.raises(ConfigError, match="no such recipe file"):
        load("there/is/none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: [unclosed\n")
    with pytest.raises(ConfigError, match=r"broken.yaml:2:1: not valid YAML"):
        load(str(broken))
    broken.write_text("name: x\nfilter:\n  edits: {c4: true}\nfilter: {}\n")
    with pytest.raises(ConfigError, match=r"broken.yaml:4:1: .*duplicate key 'filter'"):
        load(str(broken))
    circle = write(tmp_path, {"name": "a", "extends": "mine.yaml"})
    with pytest.raises(ConfigError, match="circle"):
        load(circle)


def test_korean_dialogue_has_letters_enough_for_fineweb2() -> None:
    """FineWeb2's 0.791 is of morphemes, of which a word between spaces holds about two."""
    talk = (
        '"지금 어디 가니?" 민수가 길에서 만난 오랜 친구에게 물었다. "도서관에 책을 돌려주러 가요." '
        "친구는 무거운 가방을 들고 웃으며 대답했다. 둘은 천천히 걸었다."
    )
    held = load("fineweb2").filter
    found = measure([talk], pa.array(["ko"]), held.signals)
    assert found.field("gopher_alpha_word_ratio")[0].as_py() < 0.791
    reasons = RuleBook(held).of("ko")
    (limit,) = [r.rule.min for r in reasons if r.reason == "gopher.alpha_word_ratio"]
    assert limit is not None and limit < found.field("gopher_alpha_word_ratio")[0].as_py()


def test_hash_ignores_inputs_and_sees_the_rest(tmp_path: Path) -> None:
    same = load("llama3", ["inputs=[elsewhere]"])
    assert same.sha256 == load("llama3").sha256
    assert load("llama3", ["dedup-lines.max_occurrences=7"]).sha256 != same.sha256


def test_an_assignment_changes_one_of_those_that_share_an_anchor() -> None:
    by_language = load("llama3").filter.by_language
    changed = load("llama3", ["filter.by_language.zh.gopher.word_count.min=5"]).filter.by_language
    assert {k for k in changed if changed[k] != by_language[k]} == {"zh"}


def test_keys_that_a_merge_brings_may_stand_again(tmp_path: Path) -> None:
    path = tmp_path / "merged.yaml"
    rules = "one: &one {min: 3}\nin: {deep: &two {<<: *one, min: 4}}\nlast: {<<: *two, max: 5}\n"
    path.write_text(rules)
    assert read_yaml(path)["last"] == {"min": 4, "max": 5}


@pytest.mark.parametrize("name", ["tokens", "index"])
def test_mixes_are_not_named_like_folders(name: str) -> None:
    with pytest.raises(ConfigError, match=f"mix.mixes: '{name}' is a stage's folder"):
        load("llama3", [f"mix.mixes={{{name}: {{}}}}"])


def test_rules_of_ones_own_join_the_others() -> None:
    mine = {"mine": {"gopher_word_count": {"min": 9}}}
    rules = load("llama3", [f"filter.rules={mine}"]).filter.rules
    assert list(rules)[-1] == "mine"
    assert rules["gopher"]
    # The library takes rules as they are given: none of the defaults needs to be among them.
    alone = FilterSettings.model_validate(default_tree() | {"rules": mine}).rules
    assert list(alone) == ["mine"]


def test_a_key_that_was_moved_is_refused_with_its_new_place(tmp_path: Path) -> None:
    place = "no longer a setting: in models/extract/decision.yaml"
    path = tmp_path / "old.yaml"
    path.write_text("extends: sample\nextract: {decision: {kin_share: 0.25}}\n")
    with pytest.raises(ConfigError, match=rf"old.yaml: extract.decision.kin_share: {place}"):
        load(str(path))
    with pytest.raises(ConfigError, match=rf"^--set: extract.decision.ending_blocks: {place}"):
        load("sample", ["extract.decision.ending_blocks=2"])


@pytest.mark.parametrize("key", read_yaml(root() / "configs/moved.yaml"))
def test_every_moved_key_is_refused(key: str) -> None:
    given = key.replace("*", "x")
    with pytest.raises(ConfigError, match=f"{re.escape(given)}: no longer a setting: "):
        load("llama3", [given if "=" in given else f"{given}=1"])


@pytest.mark.parametrize(
    "content, message",
    [
        ("name: mine\nbase: llama3\n", "base: unknown key"),  # not that `description` is missing
        ("filter: {}\n", "name, description, inputs, stages: missing"),
    ],
)
def test_a_recipe_that_extends_none(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(ConfigError, match=f"^mine.yaml: {message}"):
        load(str(tmp_path / "mine.yaml"))


def test_a_further_stage_keeps_the_order_of_a_recipe() -> None:
    """`rights` behind the deduplication stays there, and is before what comes later."""
    own = ("extract", "dedup-documents", "rights", "tokenize")
    assert with_stage(own, "filter") == (*own[:3], "filter", "tokenize")
    assert with_stage(own, "dedup-urls") == (*own[:3], "dedup-urls", "tokenize")
    assert with_stage(own, "rights") == own
    assert with_stage(own, "mine") == (*own, "mine")
    assert with_stage((), "filter") == ("filter",)
