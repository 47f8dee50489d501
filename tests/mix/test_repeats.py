"""Repeats by curves: expected copies by bucket, exact shares, draws by the document alone."""

from __future__ import annotations

import itertools
import json
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.errors import ConfigError
from curation.mix.draw import draw
from curation.mix.levels import plan_tables
from curation.mix.mix_settings import Mixture, Repeats
from curation.mix.mix_table import advice
from curation.mix.plan import MixPlan
from curation.mix.ranks import groups, learn, rank
from curation.mix.repeats import UNIT, copies, fitted, halved
from curation.recipe import check_order, load
from tests.mix.test_mix import DOMAINS, START, drawn_by, mixing, narrow

OLMO = [[0, 0], [0.4, 0], [0.95, 2], [1, 7]]


def one(repeats: dict[str, Any], **changes: Any) -> Mixture:
    """A mix of everything that there is, each domain by its curve."""
    return mixing(domains={"general": {"share": 1, "max_epochs": 100}}, repeats=repeats, **changes)


def general(rows: int, seed: int = 0) -> pa.Table:
    table = narrow(rows, seed, ("web",))
    place = table.schema.get_field_index("domain")
    return table.set_column(place, "domain", pa.array(["general"] * rows))


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    """Assert that the mean is off by 1 % at most, or by 4 standard deviations of whole draws."""
    part = expected - np.floor(expected)
    noise = np.sqrt((part * (1 - part)).sum()) / len(found)
    assert abs(found.mean() - expected.mean()) <= max(0.01 * expected.mean(), 4 * noise)


def copies_of(table: pa.Table, s: Mixture) -> np.ndarray:
    mix = plan_tables([table], s)
    again = MixPlan.from_dict(json.loads(json.dumps(mix.as_dict())))
    found = draw(table, again).repeats
    assert (found == draw(table, mix).repeats).all()
    return found


def test_every_bucket_has_the_copies_that_the_curve_expects() -> None:
    table = general(100_000)
    found = copies_of(table, one({"by": "quality", "curve": OLMO}))
    ranks = np.empty(len(table))
    for language in ("de", "fr"):
        rows = np.flatnonzero(np.array(table["language"]) == language)
        order = np.argsort(np.array(table["quality"])[rows])
        ranks[rows[order]] = (np.arange(len(rows)) + 0.5) / len(rows)
    expected = np.interp(ranks, *zip(*OLMO, strict=True))
    for bucket in range(20):
        rows = (ranks * 20).astype(int) == bucket
        assert_near(found[rows], expected[rows])
        assert bucket >= 8 or not found[rows].any()
    # whole copies, drawn as floor and one more by chance: none is off by a whole one
    assert np.abs(found - expected).max() < 1.1


def plain(table: pa.Table, rates: list[float], phases: list[float], target: int) -> list[int]:
    """Give out copies one by one, in the order of their levels, as long as that comes nearer."""
    tokens = table["tokens"].to_pylist()
    events = [
        ((k - phases[row]) / rate, row)
        for row, rate in enumerate(rates)
        for k in range(1, 60)
        if rate > 0
    ]
    found, total = [0] * len(tokens), 0
    for _, row in sorted(events):
        if total + tokens[row] - target >= target - total:
            break
        found[row] += 1
        total += tokens[row]
        if total >= target:
            break
    return found


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(0.05, 3))
def test_draws_equal_copies_given_out_one_by_one(seed: int, rows: int, most: float) -> None:
    from curation.mix.columns import cell_names
    from curation.mix.columns import rows as rows_of

    table = general(rows, seed)
    s = one({"by": "length", "curve": [[0, most / 6], [2000, most]]}, seed=seed)
    mix = plan_tables([table], s)
    r = rows_of(table, cell_names(table), s, *mix.streams[0])
    (cell,) = mix.cells
    expected = plain(table, r.rates.tolist(), r.phases.tolist(), cell.target)
    assert draw(table, mix).repeats.tolist() == expected


def test_shares_stay_exact_with_curves() -> None:
    table = narrow(20_000)
    s = mixing(budget=1_500_000, repeats={"by": "quality", "curve": OLMO})
    mix = plan_tables([table], s)
    got = drawn_by(table, draw(table, mix).repeats, "domain")
    for domain, share in zip(DOMAINS, (0.5, 0.25, 0.17, 0.08), strict=True):
        assert abs(got[domain] - share * mix.budget) <= 2 * 1000 + 1
    assert not mix.short


@settings(max_examples=15)
@given(st.lists(st.integers(0, 600), max_size=5), st.sampled_from(["domain", "topic", "format"]))
def test_partition_and_order_change_nothing(cuts: list[int], within: str) -> None:
    table = narrow(600, 4)
    repeats = {"by": "quality", "within": within, "curve": OLMO}
    s = mixing(budget=200_000, repeats=repeats)
    whole = plan_tables([table], s)
    places = [0, *sorted(cuts), 600]
    shards = [table.slice(a, b - a) for a, b in itertools.pairwise(places)]
    assert plan_tables(reversed(shards), s) == whole
    parts = [draw(shard, whole).repeats for shard in shards]
    assert np.concatenate(parts).tolist() == draw(table, whole).repeats.tolist()


def test_buckets_are_steps() -> None:
    table = general(50_000, 2)
    # Nemotron-CC's five levels of quality, each with repeats of its own
    steps = [[0, 0], [0.2, 0.25], [0.4, 0.5], [0.6, 1], [0.8, 3]]
    found = copies_of(table, one({"by": "quality", "steps": steps}))
    quality = np.array(table["quality"]) / 5
    for place, height in steps:
        rows = (quality > place + 0.01) & (quality < place + 0.19)
        assert_near(found[rows], np.full(rows.sum(), height))


def test_recent_documents_repeat_more_often() -> None:
    table = general(60_000, 3)
    table = table.set_column(
        table.schema.get_field_index("date"),
        "date",
        pa.array([None] * 1000 + table["date"].to_pylist()[1000:], pa.timestamp("us", tz="UTC")),
    )
    days = (np.array(table["date"], "datetime64[us]") - START) / np.timedelta64(1, "D")
    halving = {"by": "date", "half_life": 365, "as_of": "2024-12-28", "undated": 2}
    found = copies_of(table, one(halving))
    age = (np.datetime64("2024-12-28") - START) / np.timedelta64(1, "D") - days
    for year in range(9):
        rows = (age >= year * 365) & (age < (year + 1) * 365)
        assert_near(found[rows], 2.0 ** -(age[rows] / 365))
    assert found[:1000].mean() == pytest.approx(2, rel=0.02)

    windows = {"by": "date", "steps": [["2020-01-01", 1], ["2024-01-01", 3]], "undated": 0}
    found = copies_of(table, one(windows))
    since = (np.datetime64("2020-01-01") - START) / np.timedelta64(1, "D")
    latest = (np.datetime64("2024-01-01") - START) / np.timedelta64(1, "D")
    assert not found[(days < since) | np.isnan(days)].any()
    assert found[(days >= since) & (days < latest)].mean() == pytest.approx(1, rel=0.02)
    assert found[days >= latest].mean() == pytest.approx(3, rel=0.02)


def test_long_documents_repeat_more_often_in_their_domain_alone() -> None:
    table = narrow(20_000, 5)
    domains = mixing().model_dump()["domains"]
    domains["general"]["repeats"] = {"by": "length", "steps": [[0, 1], [1000, 2]]}
    mix = plan_tables([table], mixing(domains=domains, budget=1_000_000))
    found, tokens = draw(table, mix).repeats, np.array(table["tokens"])
    ours = np.array(table["domain"]) == "general"
    ratio = found[ours & (tokens >= 1000)].mean() / found[ours & (tokens < 1000)].mean()
    assert ratio == pytest.approx(2, rel=0.1)
    others = draw(table, plan_tables([table], mixing(budget=1_000_000))).repeats
    assert (found == others)[~ours].all()


def test_a_document_without_copies_has_its_place_and_where_copies_begin() -> None:
    table = general(2000, 7)
    verdicts = draw(table, plan_tables([table], one({"by": "quality", "curve": OLMO}))).verdicts
    gone = np.array(verdicts.reason.to_pylist(), object) == "mix.no_repeats"
    assert gone.mean() == pytest.approx(0.4, abs=0.01)
    assert set(np.array(verdicts.threshold.to_pylist(), float)[gone]) == {0.4}
    assert (np.array(verdicts.value.to_pylist(), float)[gone] <= 0.4).all()


def test_a_curve_limits_what_a_domain_can_give() -> None:
    table = general(5000, 8)
    s = one({"by": "quality", "curve": [[0, 0.5], [1, 1.5]]}, budget=10**8)
    mix = plan_tables([table], s)
    (row,) = mix.rows()
    assert row["epochs"] == pytest.approx(1, rel=0.01)
    assert "epochs on average (its repeats" in advice(mix)[0]


@given(st.floats(0, 1000))
def test_powers_of_one_half_agree_with_the_library(times: float) -> None:
    assert halved(np.array([times]))[0] == pytest.approx(2.0**-times, rel=1e-13, abs=1e-300)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 9)), min_size=1, max_size=6))
def test_curves_by_quality_never_fall(points: list[tuple[float, float]]) -> None:
    xs, ys = sorted({x for x, _ in points}), sorted(y for _, y in points)
    points = list(zip(xs, ys, strict=False))
    if not any(y for _, y in points):
        return
    for shape in ("curve", "steps"):
        found = copies(np.linspace(0, 1, 101), Repeats(by="quality", **{shape: points}))
        assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize(
    ("repeats", "message"),
    [
        ({"by": "length"}, "one of curve, steps and half_life, not none"),
        ({"by": "budget", "curve": OLMO}, "by budget take no curve"),
        ({"by": "quality", "curve": OLMO, "steps": OLMO}, "not curve and steps"),
        ({"by": "quality", "curve": [[0, 2], [1, 1]]}, "better documents must not repeat less"),
        ({"by": "quality", "curve": [[0, 0], [2, 1]]}, "2.0 is not a rank"),
        ({"by": "quality", "curve": [[0.5, 0], [0.5, 1]]}, "from lower to higher places"),
        ({"by": "quality", "curve": [[0, 0], [1, 0]]}, "no document would be drawn"),
        ({"by": "length", "curve": [[-1, 0], [1, 1]]}, "-1 is below 0"),
        ({"by": "date", "curve": [[0, 0], [1, 1]]}, "0.0 is not a place on a curve by date"),
        ({"by": "quality", "steps": [["2020-01-01", 1]]}, "2020-01-01 is not a place"),
        ({"by": "date", "half_life": 9}, "give both half_life and as_of"),
        ({"by": "length", "half_life": 9, "as_of": date(2024, 1, 1)}, "not by length"),
    ],
)
def test_impossible_curves_are_refused(repeats: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Repeats.model_validate(repeats)


def supply(rows: int) -> pa.Table:
    return narrow(rows, 11, ("web",))


def ranked(table: pa.Table) -> np.ndarray:
    """The rank of each document among those of its domain and language."""
    ranks = np.empty(len(table))
    groups = [f"{d} {g}" for d, g in zip(table["domain"], table["language"], strict=True)]
    for group in set(groups):
        rows = np.flatnonzero(np.array(groups) == group)
        order = np.argsort(np.array(table["quality"])[rows])
        ranks[rows[order]] = (np.arange(len(rows)) + 0.5) / len(rows)
    return ranks


@pytest.mark.parametrize("times", [0.03, 0.1, 0.5, 1, 2, 3.9])
def test_a_budget_is_met_by_the_best_documents(times: float) -> None:
    table, tokens = supply(40_000), np.array(supply(40_000)["tokens"])
    only = {d: {"share": float(d == "general"), "max_epochs": 4} for d in DOMAINS}
    here = np.array(table["domain"]) == "general"
    budget = int(times * tokens[here].sum())
    found = copies_of(table, mixing(budget=budget, domains=only, repeats={"by": "budget"}))
    assert abs((found * tokens).sum() - budget) <= tokens.max() / 2
    assert found.max() <= 4
    buckets = (ranked(table)[here] * 20).astype(int)
    means = [found[here][buckets == k].mean() for k in range(20)]
    noise = 4 * 0.5 / np.sqrt(min(np.bincount(buckets)))
    assert all(better >= worse - noise for worse, better in itertools.pairwise(means))
    # the curves by which it is chosen: a bucket begins where a further epoch of the best is worth
    # as little, and no repeat is worth less than the first epoch of what is left out
    worth = np.exp(-1.12 * np.maximum(0.9 - (np.arange(20) + 0.5) / 20, 0))
    last = worth * np.exp(-np.maximum(np.array(means) - 1, 0) / 15.39)
    left_out = max([w for w, m in zip(worth, means, strict=True) if m < 1 - noise], default=0)
    repeated = [v for v, m in zip(last, means, strict=True) if 1 + noise < m]
    assert all(value >= left_out * 0.97 for value in repeated)


def test_more_supply_is_kept_less_of() -> None:
    shares = []
    for rows in (2000, 4000, 20_000, 80_000):
        table = supply(rows)
        s = mixing(budget=4_000_000, repeats={"by": "budget"}, on_shortage="relax")
        shares.append((copies_of(table, s) > 0).mean())
    assert shares == sorted(shares, reverse=True) and shares[0] > 0.5 and shares[-1] < 0.2


@given(st.lists(st.integers(0, 10**13), min_size=20, max_size=20), st.floats(0, 1), st.booleans())
@settings(max_examples=100)
def test_better_buckets_are_never_drawn_less(tokens: list[int], part: float, limited: bool) -> None:
    most = 4.0
    target = int(part * most * sum(tokens))
    found = fitted(tokens, target, most, limited)
    assert found == sorted(found) and found[0] >= 0 and found[-1] <= most
    drawn = sum(n * t for n, t in zip(found, tokens, strict=True))
    assert drawn == pytest.approx(target, abs=sum(tokens) / UNIT + 1)
    if not limited and 0 < target <= sum(tokens):  # nothing twice while something is left
        assert max(found) <= 1 + 1 / UNIT


def test_documents_without_quality_are_drawn_alike() -> None:
    table = supply(5000)
    place = table.schema.get_field_index("quality")
    table = table.set_column(place, "quality", pa.nulls(5000, pa.float64()))
    by_budget = copies_of(table, mixing(budget=900_000, repeats={"by": "budget"}))
    assert (by_budget == copies_of(table, mixing(budget=900_000))).all()


def test_a_curve_or_none_keeps_its_say_under_a_budget() -> None:
    table = supply(20_000)
    curve = {"by": "quality", "steps": [[0, 0], [0.5, 1]]}
    domains = mixing().model_dump()["domains"]
    domains["general"]["repeats"] = curve
    s = mixing(budget=2_000_000, domains=domains, repeats={"by": "budget"})
    general = np.array(table["domain"]) == "general"
    found = copies_of(table, s)
    written = copies_of(table, mixing(budget=2_000_000, domains=domains))
    alike = copies_of(table, mixing(budget=2_000_000))
    assert (found[general] == written[general]).all()
    assert (found != alike)[~general].any() and (written == alike)[~general].all()
    assert load("llama3").mix.repeats_of("general") is None
    chosen = load("llama3", ["mix.budget=20B"]).mix
    assert chosen.budget == 20 * 10**9 and chosen.repeats_of("general").fitted
    assert load("llama3", ["mix.budget=20B", "mix.repeats=null"]).mix.repeats_of("code") is None


@pytest.mark.parametrize(
    ("text", "tokens"), [("20B", 2 * 10**10), ("1.5t", 15 * 10**11), ("500M", 5 * 10**8), (7, 7)]
)
def test_a_budget_may_be_written_short(text: Any, tokens: int) -> None:
    assert mixing(budget=text).budget == tokens


@pytest.mark.parametrize(
    ("assignment", "place"),
    [
        ("mix.quality_weights=[[0, 1], [5, 4]]", "mix.repeats"),
        ("mix.mixes={late: {quality_weights: []}}", "mix.repeats"),
        ("mix.domains.code.rank_weights=[[0, 1]]", "repeats: {by: quality}"),
        ("mix.mixes={late: {domains: {code: {rank_weights: []}}}}", "repeats: {by: quality}"),
    ],
)
def test_weights_of_earlier_versions_name_the_new_place(assignment: str, place: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load("llama3", [assignment])
    assert "no longer a setting" in str(refused.value) and place in str(refused.value)


def test_a_named_mix_has_its_own_curve_or_none() -> None:
    base = "mix.repeats={by: quality, curve: [[0, 0], [1, 2]]}"
    mixes = (
        "mix.mixes={long: {repeats: {by: length, steps: [[0, 1]]}}, flat: {repeats: null}, as: {}}"
    )
    mix = load("llama3", [base, mixes]).mix
    assert mix.mixture("long").repeats.by == "length" and mix.mixture("flat").repeats is None
    assert mix.mixture("as").repeats == mix.repeats


def test_a_recipe_names_the_key_that_is_wrong() -> None:
    with pytest.raises(ConfigError, match=r"mix\.repeats: better documents must not"):
        load("llama3", ["mix.repeats={by: quality, curve: [[0, 1], [1, 0.5]]}"])
    wanted = ["mix.repeats={by: quality, within: topic, curve: [[0, 0], [1, 2]]}"]
    with pytest.raises(ConfigError, match="mix needs the column 'quality'; classify adds it"):
        check_order(load("llama3", [*wanted, "stages=[mix, tokenize]"]), columns=["domain"])
    dated = load("llama3", ["mix.repeats={by: date, steps: [[2024-01-01, 2]]}"])
    assert dated.mix.repeats.steps == [(date(2024, 1, 1), 2.0)]


def test_duplicates_bring_copies_back() -> None:
    table = general(8000, 9)
    sizes = np.random.default_rng(0).choice([1, 2, 4, 50, 2000], len(table))
    place = table.schema.get_field_index("cluster_size")
    table = table.set_column(place, "cluster_size", pa.array(sizes))
    weights = [[1, 1], [2, 2], [3, 3], [5, 5], [100, 8], [1000, 1]]  # FineWeb2's
    found = copies_of(table, one({"by": "duplicates", "steps": weights}))
    for size, times in ((1, 1), (2, 2), (4, 3), (50, 5), (2000, 1)):
        assert found[sizes == size].mean() == pytest.approx(times, rel=0.01)


def test_shares_may_be_those_of_inputs() -> None:
    table = narrow(20_000)
    inputs = {"books": {"share": 0.9, "max_epochs": 2}, "web": {"share": 0.1, "max_epochs": 1}}
    mix = plan_tables([table], mixing(inputs=inputs, budget=2_000_000))
    got = drawn_by(table, draw(table, mix).repeats, "source")
    assert got["books"] == pytest.approx(1_800_000, abs=1000)
    assert got["web"] == pytest.approx(200_000, abs=1000)
    assert [row["domain"] for row in mix.rows()] == ["books", "web"]
    with pytest.raises(ConfigError, match=r"\['books'\] \(mix.inputs.books={"):
        plan_tables([table], mixing(inputs={"web": {"share": 1, "max_epochs": 1}}))


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 2), max_size=60), max_size=5))
def test_variety_is_the_distinct_part_of_runs(documents: list[list[int]]) -> None:
    from curation.mix.repeats import RUN, varieties

    offsets = np.cumsum([0, *map(len, documents)])
    tokens = np.array([t for document in documents for t in document], np.uint32)
    for document, found in zip(documents, varieties(tokens, offsets).to_pylist(), strict=True):
        runs = [tuple(document[k : k + RUN]) for k in range(len(document) - RUN + 1)]
        assert found == pytest.approx(len(set(runs)) / len(runs) if runs else 1, abs=1e-4)


def test_documents_long_by_repetition_are_left_out() -> None:
    table = general(1000, 10)
    variety = np.linspace(0, 1, 1000, dtype=np.float32)
    place = table.schema.get_field_index("variety")
    table = table.set_column(place, "variety", pa.array(variety))
    result = draw(
        table, plan_tables([table], one({"by": "length", "steps": [[0, 1]]}, min_variety=0.5))
    )
    reasons = np.array(result.verdicts.reason.to_pylist(), object)
    assert (reasons[variety < 0.5] == "mix.low_variety").all()
    assert not (reasons[variety >= 0.5] == "mix.low_variety").any()


def test_the_best_of_several_ranks_counts() -> None:
    """A document is as good as its best view says, whatever the scale of that view."""
    n = 400
    table = narrow(n, 3, ("web",))
    scores = np.random.default_rng(5).random(n) / 100
    views = pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), scores)
    place = table.schema.get_field_index("views")
    both = table.set_column(place, table.schema.field(place), views)
    for domain in ("general", "code"):
        found = {}
        for name, rows in (("quality", table), ("both", both)):
            ranks = learn([rows.slice(0, 150), rows.slice(150)], {domain: "domain"})
            ((_, ours),) = groups(rows, domain, "domain")
            found[name] = rank(rows.filter(pa.array(ours)), ranks[domain][""])
        languages = both.column("language").to_numpy(zero_copy_only=False)[ours]
        for language in np.unique(languages):
            of = languages == language
            size = of.sum()
            plain = (np.argsort(np.argsort(scores[ours][of])) + 0.5) / size
            best = np.maximum(found["quality"][of], plain)
            assert (np.diff(found["both"][of][np.argsort(best)]) > -1e-9).all()
            assert abs(found["both"][of].mean() - 0.5) < 0.01  # ranked in its turn
            assert found["both"][of].argmax() in np.flatnonzero(best > 1 - 1 / size)
