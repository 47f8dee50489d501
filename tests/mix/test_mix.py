"""Mixing: exact shares, draws that depend on nothing but the document, and honest shortages."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.errors import ConfigError, InputError
from curation.mix.columns import NARROW, rows
from curation.mix.draw import draw
from curation.mix.levels import plan_tables
from curation.mix.mix_settings import MixSettings, Mixture
from curation.mix.mix_table import advice, by_quality, lacking, plan_table
from curation.mix.plan import MixPlan, Supply, plan
from curation.resources import root

DOMAINS = ["general", "math_reasoning", "code", "multilingual"]
LATER = {"general": 0.4, "math_reasoning": 0.3, "code": 0.2, "multilingual": 0.1}
START = np.datetime64("2015-01-01", "us")


def mixing(**changes: Any) -> Mixture:
    """The default mix, but that all documents of a domain are drawn alike."""
    defaults = yaml.safe_load((root() / "configs/defaults/mix.yaml").read_text())
    return MixSettings.model_validate(defaults | {"seed": 1, "repeats": None} | changes).mixture()


def narrow(rows: int, seed: int = 0, sources: tuple[str, ...] = ("books", "web")) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id_hash": rng.integers(0, 2**64, rows, np.uint64),
            "source": rng.choice(sources, rows),
            "domain": rng.choice(DOMAINS, rows, p=[0.7, 0.1, 0.15, 0.05]),
            "topic": rng.choice(["art", "sport"], rows),
            "format": np.resize(["news", "blog"], rows),
            "language": rng.choice(["de", "fr"], rows),
            "quality": rng.random(rows) * 5,
            "views": pa.nulls(rows, pa.list_(pa.float64())),
            "date": START + np.timedelta64(1, "D") * rng.integers(0, 3650, rows),
            "cluster_size": pa.nulls(rows, pa.int64()),
            "variety": pa.nulls(rows, pa.float32()),
            "licence": pa.nulls(rows, pa.string()),
            "tokens": rng.integers(1, 2000, rows),
        },
        schema=NARROW,
    )


def drawn_by(table: pa.Table, repeats: np.ndarray, column: str) -> dict[str, int]:
    names = table.column(column).to_numpy(zero_copy_only=False)
    tokens = repeats.astype(np.int64) * table.column("tokens").to_numpy()
    return {str(name): int(tokens[names == name].sum()) for name in np.unique(names)}


@pytest.mark.parametrize("budget", ["auto", 2_000_000])
@pytest.mark.parametrize("repeats", [None, {"by": "budget"}, {"by": "quality"}])
def test_shares_are_exact_to_half_a_document_per_cell(budget: Any, repeats: Any) -> None:
    table = narrow(20_000)
    s = mixing(budget=budget, repeats=repeats)
    mix = plan_tables([table], s)
    got = drawn_by(table, draw(table, mix).repeats, "domain")
    for domain, share in zip(DOMAINS, (0.5, 0.25, 0.17, 0.08), strict=True):
        assert abs(got[domain] - share * mix.budget) <= 2 * 1000 + 1
    for cell in mix.cells:
        assert abs(cell.drawn - cell.target) <= 1000
    assert not mix.short
    assert {row["domain"]: row["kept"] for row in mix.rows()} == got


def test_auto_is_the_largest_budget_without_shortage() -> None:
    table = narrow(3000)
    mix = plan_tables([table], mixing(on_shortage="shrink"))
    more = plan_tables([table], mixing(budget=mix.budget + math.ceil(1 / 0.08) + 1))
    assert not mix.short and len(more.short) == 1
    assert more.short[0].domain in {r["domain"] for r in mix.rows() if r["epochs"] > 3.999}


@settings(max_examples=25)
@given(st.lists(st.integers(0, 500), max_size=5), st.integers(0, 2**32))
def test_partition_and_order_change_nothing(cuts: list[int], seed: int) -> None:
    table = narrow(500, 3)
    s = mixing(budget=300_000, topics={"art": 0.5}, seed=seed)
    whole = plan_tables([table], s)
    repeats = draw(table, whole).repeats
    places = [0, *sorted(cuts), 500]
    shards = [table.slice(a, b - a) for a, b in itertools.pairwise(places)]
    mix = plan_tables(reversed(shards), s)
    assert mix == whole
    parts = [draw(shard, mix).repeats for shard in shards]
    assert np.concatenate(parts).tolist() == repeats.tolist()


def test_the_level_equals_walking_the_documents_in_order() -> None:
    table = narrow(2000, 5, ("web",))
    mix = plan_tables([table], mixing(budget=600_000))
    phases = rows(table, mix.cell_names, mix.settings).phases
    repeats = draw(table, mix).repeats
    names = table.column("domain").to_numpy(zero_copy_only=False)
    tokens = table.column("tokens").to_numpy()
    for cell in mix.cells:
        mine = np.flatnonzero(names == cell.domain)
        epochs, left = divmod(cell.target, cell.available)
        chosen = set()
        for row in mine[np.argsort(-phases[mine])]:
            if left * 2 <= tokens[row]:
                break
            chosen.add(int(row))
            left -= tokens[row]
            if left <= 0:
                break
        partial = {int(row) for row in mine if repeats[row] > epochs}
        assert partial == chosen and partial


def test_epochs_repeat_documents_up_to_the_cap() -> None:
    table = narrow(2000)
    mix = plan_tables([table], mixing(budget=10**9))
    assert {r["epochs"] for r in mix.rows()} == {4.0}
    assert set(draw(table, mix).repeats.tolist()) == {4}
    for short, row in zip(mix.short, mix.rows(), strict=True):
        assert short.missing == row["wanted"] - 4 * row["available"]
        assert short.epochs_needed == pytest.approx(row["wanted"] / row["available"])
        assert 4 * (row["available"] + short.tokens_needed) >= row["wanted"]


def test_a_missing_domain_is_reported_and_the_rest_keeps_its_shares() -> None:
    table = narrow(4000)
    table = table.filter(pa.compute.not_equal(table.column("domain"), "code"))
    mix = plan_tables([table], mixing())
    (short,) = mix.short
    assert (short.domain, short.epochs_needed) == ("code", None)
    assert short.missing == mix.wanted["code"] > 0
    assert "code is short of" in plan_table(mix)
    got = drawn_by(table, draw(table, mix).repeats, "domain")
    assert got["general"] / got["math_reasoning"] == pytest.approx(2, rel=0.01)


def scarce(tokens: int) -> pa.Table:
    """Ordinary amounts of three domains, and one document of mathematics."""
    table = narrow(4000)
    others = table.filter(pa.compute.not_equal(table.column("domain"), "math_reasoning"))
    one = table.slice(0, 1).to_pylist()[0] | {"domain": "math_reasoning", "tokens": tokens}
    return pa.concat_tables([others, pa.Table.from_pylist([one], schema=table.schema)])


def test_a_scarce_domain_gives_what_it_has_and_the_others_keep_their_proportions() -> None:
    table = scarce(1250)
    without = plan_tables([table.slice(0, table.num_rows - 1)], mixing())
    mix = plan_tables([table], mixing())
    got = drawn_by(table, draw(table, mix).repeats, "domain")
    assert got["math_reasoning"] == 4 * 1250
    assert mix.drawn == without.drawn + 4 * 1250
    for domain, share in (("general", 0.5), ("code", 0.17), ("multilingual", 0.08)):
        assert abs(got[domain] - share * mix.budget) <= 2 * 1000 + 1
    assert sum(row["kept_share"] for row in mix.rows()) == pytest.approx(1)
    short, shrunk = advice(mix)
    assert "math_reasoning is short of" in short and "instead of 25.00%" in short
    assert "a budget of 20,000 tokens" in shrunk and not mix.unused

    table = scarce(10**7)  # as much as its share takes
    assert not plan_tables([table], mixing()).short


def test_one_document_of_the_largest_share_does_not_decide_the_budget() -> None:
    table = narrow(4000)
    code = table.filter(pa.compute.equal(table.column("domain"), "code"))
    one = table.slice(0, 1).to_pylist()[0] | {"domain": "general", "tokens": 200}
    table = pa.concat_tables([code, pa.Table.from_pylist([one], schema=table.schema)])
    mix = plan_tables([table], mixing())
    got = drawn_by(table, draw(table, mix).repeats, "domain")
    assert got == {"code": 4 * sum(code.column("tokens").to_pylist()), "general": 4 * 200}
    assert {s.domain for s in mix.short} == {"general", "math_reasoning", "multilingual"}


def test_what_is_lacking_is_one_sentence() -> None:
    said = lacking(plan_tables([scarce(1250)], mixing()))
    assert said is not None and "\n" not in said
    assert re.fullmatch(
        r"the documents lack math_reasoning \(0\.\d% of the mix instead of 25\.0%\); the most is "
        r"general \(\d\d\.\d% of the mix instead of 50\.0%\), and documents are drawn "
        r"\d\.\d\d times on average: --set mix\.budget=all takes each once",
        said,
    )
    without = scarce(1250).slice(0, scarce(1250).num_rows - 1)
    assert "the documents lack math_reasoning (none); " in str(
        lacking(plan_tables([without], mixing(budget=10**6)))
    )
    assert lacking(plan_tables([narrow(4000)], mixing())) is None
    assert lacking(plan_tables([scarce(1250)], mixing(on_shortage="shrink"))) is None


@pytest.mark.parametrize("repeats", [None, {"by": "budget"}, {"by": "quality"}])
@pytest.mark.parametrize("phases", [[], [{"end": 1}, {"end": 4, "shares": LATER}]])
def test_all_documents_may_be_drawn_once_whatever_the_shares(repeats: Any, phases: Any) -> None:
    table = scarce(1250)
    table = pa.concat_tables([table, narrow(500, 9, ("web",))])
    chosen = mixing(budget="all", repeats=repeats, phases=phases, on_shortage="stop")
    mix = plan_tables([table], chosen)
    result = draw(table, mix)
    assert set(result.repeats.tolist()) == {1}
    assert mix.drawn == mix.budget == sum(table.column("tokens").to_pylist())
    assert advice(mix) == [] and lacking(mix) is None
    none = {**chosen.model_dump()["domains"], "code": {"share": 0.0, "max_epochs": 4}}
    none["general"] = {"share": 0.67, "max_epochs": 4}
    left = draw(table, plan_tables([table], mixing(budget="all", domains=none))).repeats
    code = np.array(table.column("domain").to_pylist()) == "code"
    assert set(left[code].tolist()) == {0} and set(left[~code].tolist()) == {1}


def test_a_curve_decides_about_the_copies_of_all_documents() -> None:
    table = narrow(3000)
    steps = {"by": "quality", "steps": [[0, 0], [0.5, 1], [0.9, 3]]}
    result = draw(table, plan_tables([table], mixing(budget="all", repeats=steps)))
    assert Counter(result.repeats.tolist()).keys() == {0, 1, 3}


def test_a_scarce_domain_may_lower_the_budget_or_stop_the_run() -> None:
    table = scarce(1250)
    mix = plan_tables([table], mixing(on_shortage="shrink"))
    assert mix.budget == mix.most == 20_000 and not mix.short
    (line,) = advice(mix)
    assert mix.unused > 10**6 and f"{mix.unused:,} tokens of other domains are not" in line
    assert "math_reasoning sets the budget" in line and "mix.on_shortage: relax" in line
    assert plan_tables([table], mixing(on_shortage="shrink", budget=10**9)).budget == 20_000
    for budget in ("auto", 10**9):
        with pytest.raises(ConfigError, match=r"math_reasoning is short of .* mix\.on_shortage"):
            plan_tables([table], mixing(on_shortage="stop", budget=budget))
    assert plan_tables([table], mixing(on_shortage="stop", budget=10_000)).budget == 10_000


def test_source_weights_shift_the_draw_within_a_domain() -> None:
    table = narrow(20_000)
    even = plan_tables([table], mixing(budget=1_000_000))
    tilted = plan_tables([table], mixing(budget=1_000_000, sources={"books": {"weight": 3}}))

    def ratio(mix: MixPlan) -> float:
        got = drawn_by(table, draw(table, mix).repeats, "source")
        return got["books"] / got["web"]

    assert ratio(tilted) / ratio(even) == pytest.approx(3, rel=0.02)


def test_a_full_source_hands_its_part_to_the_others() -> None:
    table = pa.table(
        {
            "id_hash": np.arange(1010, dtype=np.uint64),
            "source": ["small"] * 10 + ["large"] * 1000,
            "domain": ["general"] * 1010,
            "topic": [None] * 1010,
            "format": [None] * 1010,
            "language": [None] * 1010,
            "quality": [None] * 1010,
            "views": [None] * 1010,
            "date": [None] * 1010,
            "cluster_size": [None] * 1010,
            "variety": [None] * 1010,
            "licence": [None] * 1010,
            "tokens": [10] * 1010,
        },
        schema=NARROW,
    )
    s = mixing(
        budget=5000,
        sources={"small": {"weight": 100}},
        domains={"general": {"share": 1, "max_epochs": 1}},
    )
    mix = plan_tables([table], s)
    assert {c.source: c.target for c in mix.cells} == {"large": 4900, "small": 100}
    assert draw(table, mix).repeats.sum() == 500


@pytest.mark.parametrize(("share", "epochs"), [(0.01, 0.32), (0.03, 0.96), (0.045, 1.44)])
def test_the_best_of_every_language_go_first(share: float, epochs: float) -> None:
    """Without a budget: each as far as its share goes, and none twice before all are drawn."""
    table = narrow(40_000, 8, sources=("web",))
    german = table.column("language").to_numpy(zero_copy_only=False) == "de"
    # a judge that knows less of German: its scores are a tenth
    quality = table.column("quality").to_numpy() * np.where(german, 0.1, 1.0)
    place = table.schema.get_field_index("quality")
    table = table.set_column(place, "quality", pa.array(quality))
    domains = mixing().model_dump()["domains"]
    domains["general"]["share"] += domains["multilingual"]["share"] - share
    domains["multilingual"]["share"] = share
    alike = mixing(domains=domains)
    domains["multilingual"]["repeats"] = {"by": "quality"}
    s = mixing(domains=domains)
    mix = plan_tables([table.slice(0, 17_000), table.slice(17_000)], s)
    drawn = draw(table, MixPlan.from_dict(json.loads(json.dumps(mix.as_dict())))).repeats
    assert (drawn == draw(table, plan_tables([table], s)).repeats).all()
    multilingual = table.column("domain").to_numpy(zero_copy_only=False) == "multilingual"
    for ours in (multilingual & german, multilingual & ~german):
        assert drawn[ours].mean() == pytest.approx(epochs, rel=0.1)
        ordered = drawn[ours][np.argsort(quality[ours])]
        if epochs < 1:
            assert set(ordered) == {0, 1}
            places = [int((1 - epochs + off) * len(ordered)) for off in (-0.08, 0.08)]
            assert not ordered[: max(places[0], 0)].any() and ordered[places[1] :].mean() > 0.95
        else:
            assert set(ordered) == {1, 2}
    others = draw(table, plan_tables([table], alike)).repeats
    assert (drawn == others)[~multilingual].all()


def test_topics_are_downsampled_before_anything_else() -> None:
    table = narrow(20_000)
    s = mixing(topics={"art": 0.25})
    result = draw(table, plan_tables([table], s))
    art = table.column("topic").to_numpy(zero_copy_only=False) == "art"
    reasons = np.array(result.verdicts.reason.to_pylist(), object)
    assert (reasons[art] == "mix.topic_downsampled").mean() == pytest.approx(0.75, abs=0.02)
    assert "mix.topic_downsampled" not in set(reasons[~art])
    gone = reasons == "mix.topic_downsampled"
    assert (result.repeats[gone] == 0).all()
    values = np.array(result.verdicts.value.to_pylist(), float)
    assert (values[gone] >= 0.25).all()
    assert set(np.array(result.verdicts.threshold.to_pylist(), float)[gone]) == {0.25}


def test_shares_of_topic_and_format_multiply() -> None:
    table = narrow(20_000)
    s = mixing(topics={"art": 0.5}, formats={"blog": 0.4})
    result = draw(table, plan_tables([table], s))
    art = table.column("topic").to_numpy(zero_copy_only=False) == "art"
    blog = table.column("format").to_numpy(zero_copy_only=False) == "blog"
    reasons = np.array(result.verdicts.reason.to_pylist(), object)
    thresholds = np.array(result.verdicts.threshold.to_pylist(), float)
    by_topic, by_format = (reasons == f"mix.{k}_downsampled" for k in ("topic", "format"))
    assert by_format[blog & ~art].mean() == pytest.approx(0.6, abs=0.02)
    assert (by_topic | by_format)[blog & art].mean() == pytest.approx(0.8, abs=0.02)
    assert not by_format[~blog].any() and not by_topic[~art].any()
    assert set(thresholds[by_format & art]) == {0.2}


def test_documents_over_the_budget_have_value_and_threshold() -> None:
    table = narrow(5000)
    result = draw(table, plan_tables([table], mixing(budget=400_000)))
    over = result.repeats == 0
    assert over.any()
    verdicts = result.verdicts
    assert set(np.array(verdicts.reason.to_pylist(), object)[over]) == {"mix.over_budget"}
    assert (verdicts.kept.to_numpy(zero_copy_only=False) == ~over).all()
    value = np.array(verdicts.value.to_pylist(), float)[over]
    threshold = np.array(verdicts.threshold.to_pylist(), float)[over]
    assert (value >= threshold).all() and (value > threshold).sum() >= over.sum() - 4


def test_a_plan_survives_json() -> None:
    mix = plan_tables([narrow(1000)], mixing(budget=10**8))
    assert MixPlan.from_dict(mix.as_dict()) == mix


def test_nothing_to_draw_is_an_empty_mix() -> None:
    for each in (mixing(), mixing(budget=1000)):
        mix = plan_tables([narrow(0)], each)
        assert sum(row["kept"] for row in mix.rows()) == 0
        assert advice(mix) == ["nothing to draw: no domain with a share has any tokens"]
        assert len(draw(narrow(0), mix).repeats) == 0
    too_long = plan_tables([narrow(50)], mixing(min_tokens=10**9))
    assert not draw(narrow(50), too_long).repeats.any()


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValidationError, match="sum to"):
        mixing(domains={"general": {"share": 0.5, "max_epochs": 1}})
    domains = mixing().model_dump()["domains"] | {"coed": {"share": 0, "max_epochs": 1}}
    with pytest.raises(ConfigError, match=r"of the domain 'coed'; did you mean 'code'\? \(there "):
        plan_tables([narrow(50)], mixing(domains=domains))
    with pytest.raises(ConfigError, match="no share for the domains"):
        plan_tables([narrow(50)], mixing(domains={"code": {"share": 1, "max_epochs": 1}}))
    table = narrow(50)
    supplies = [Supply(s, d, 9, 99, 99) for s in ("books", "web") for d in DOMAINS]
    open_plan = plan(supplies, mixing())
    with pytest.raises(ConfigError, match="no levels"):
        draw(table, open_plan)
    mix = plan_tables([narrow(50, sources=("web",))], mixing())
    with pytest.raises(InputError, match="not in the plan"):
        draw(table, mix)
    nulls = table.set_column(2, "domain", pa.array([None] * 50, pa.string()))
    with pytest.raises(InputError, match="'domain' has nulls"):
        plan_tables([nulls], mixing())


def test_a_run_without_documents_has_a_plan() -> None:
    nothing = pa.Table.from_batches([], NARROW)
    mix = plan_tables([nothing], mixing(budget=1000))
    assert (mix.drawn, by_quality(nothing, mix, 1)["tokens"]) == (0, 0)
