"""Recipes of published mixes: shares counted from the copies that they draw."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.mix.columns import NARROW
from curation.mix.draw import draw
from curation.mix.levels import plan_tables
from curation.mix.schedule import spans
from curation.recipe import load
from curation.schema import DOMAINS
from curation.stages import find

MIXES = [
    *(("llama3", ""), ("llama3-schedule", ""), ("olmo3", ""), ("nemotron3", "")),
    *(("fineweb2-rehydrated", ""), ("llama3-annealing", ""), ("llama3-annealing", "judge")),
    *(("llama3-long-context", ""), ("llama3-long-context", "128k")),
]


@pytest.mark.parametrize(("recipe", "name"), MIXES)
def test_shares_are_within_a_thousandth(recipe: str, name: str) -> None:
    settings = load(recipe).mix.mixture(name)
    settings = settings.model_copy(update={"budget": "auto", "on_shortage": "shrink"})
    rows, rng = 60_000, np.random.default_rng(1)
    groups = list(settings.inputs or DOMAINS)
    domains = np.array(groups)[rng.integers(0, len(groups), rows)]
    columns = {
        "id_hash": rng.integers(0, 2**64, rows, np.uint64),
        "source": domains if settings.inputs else np.repeat("unnamed", rows),
        "domain": np.repeat("general", rows) if settings.inputs else domains,
        "quality": rng.random(rows) * 5,
        "cluster_size": rng.choice([1, 2, 3, 70, 5000], rows),
        "variety": np.ones(rows, np.float32),
        "date": pa.array(rng.integers(10**15, 17 * 10**14, rows), pa.timestamp("us", "UTC")),
        "tokens": rng.integers(10, 2000, rows) + (settings.min_tokens or 0),
    }
    empty = {f.name: pa.nulls(rows, f.type) for f in NARROW if f.name not in columns}
    table = pa.table(columns | empty, schema=NARROW)
    found = draw(table, plan_tables([table], settings))
    copies = np.repeat(np.arange(rows), found.repeats)
    place = np.zeros(len(copies))
    if found.places is not None:
        place = found.places.flatten().to_numpy() / 2.0**64
    tokens, domains = columns["tokens"][copies], domains[copies]
    for span in spans(settings):
        inside = (place >= span.start) & (place < span.end)
        for domain in groups:
            got = tokens[inside & (domains == domain)].sum() / tokens[inside].sum()
            assert got == pytest.approx(span.share(domain), abs=1e-3)


def test_annealing_refuses_to_run_without_the_sets_that_it_leaves_out() -> None:
    recipe = load("llama3-annealing")
    assert recipe.stages.index("decontaminate") < recipe.stages.index("mix")
    stage = find("decontaminate")
    with pytest.raises(ConfigError, match="names no evaluation set"):
        stage.load(recipe.section(stage))


def test_context_lengths_go_from_8k_to_128k() -> None:
    recipe = load("llama3-long-context")
    names = ("", "16k", "32k", "64k", "96k", "128k")
    assert set(recipe.mixes) == {*names} - {""}
    lengths = [recipe.settings("tokenize", name).context_length for name in names]
    assert lengths == [k * 1024 for k in (8, 16, 32, 64, 96, 128)]
    for name, length in zip(names, lengths, strict=True):
        mix = recipe.settings("mix", name)
        assert (mix.min_tokens or length // 2) == length // 2 or not name
        assert mix.min_variety == 0.9 and mix.formats == {"listing": 0}
