"""`curate plan`: what a token budget would draw of a run's documents, by quality."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from curation.config import assign, settings_of_run, validate
from curation.dedup.keys import string_keys
from curation.errors import ConfigError
from curation.mix.columns import NARROW
from curation.mix.levels import plan_tables
from curation.mix.mix_settings import MixSettings, Mixture, tokens_of
from curation.mix.mix_table import advice, budget_table, by_quality
from curation.tokenize.tokenize_settings import TokenizeSettings
from pipelines.commands.options import add_json, add_run, add_set, count
from pipelines.engine.stage import Shard, removed_shards, stage_inputs
from pipelines.mix import COLUMNS, CountTokens
from pipelines.reading.policies import measured_stages
from pipelines.run_folder import load_run, run_recipe
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from pipelines.terminal import say, say_json

#: Documents whose tokens are counted; of more, an even sample by their ids stands for all.
_MOST = 50_000
#: What more crawl would bring is shown for these multiples of what there is.
_MORE = (2, 10)
_SECTIONS = ("mix", "tokenize")


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--tokens",
        required=True,
        type=lambda text: count(str(tokens_of(text))),
        metavar="N",
        help="the budget: tokens in all, e.g. 500M, 20B or 1.5T",
    )
    add_set(parser, "the run's mix", "mix.domains.code.max_epochs=2")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Plan the budget on the run's documents and print it. Nothing is written."""
    folder, stages = load_run(options.run)
    mix, tokenize = _settings(folder, options.assignments)
    if options.tokens < tokenize.context_length:
        raise ConfigError(
            f"--tokens {options.tokens:,}: less than one sequence of "
            f"{tokenize.context_length:,} tokens (tokenize.context_length)"
        )
    shards = _shards(folder, stages)
    documents = sum(shard.rows for shard in shards)
    every = max(1, -(-documents // _MOST))
    counting = CountTokens("", tokenize.encoding, mix.input_names, mix.views)
    tables = [pa.Table.from_batches(_counted(shards, counting, every), NARROW)]
    chosen = plan_tables(tables, _limited(mix, options.tokens // every))
    counts = [read_manifest(folder / stage)["counts"].items() for stage in stages]
    overruled = [n for found in counts for name, n in found if name.startswith("overruled.")]
    sampled = f"in what was counted, one document in {every:,}: " if every > 1 else ""
    found: dict[str, Any] = {
        "budget": options.tokens,
        "stage": shards[0].folder.shown if shards else folder.shown,
        "counted": f"{tables[0].num_rows:,} of {documents:,}",
        **by_quality(tables[0], chosen, every),
        "more": [],
        "overruled": sum(overruled),
        "advice": [sampled + line for line in advice(chosen)],
        "recipe": f"mix: {{budget: {options.tokens:_}}}",
    }
    for times in _MORE:
        less = plan_tables(tables, _limited(mix, options.tokens // every // times))
        found["more"].append({"times": times} | by_quality(tables[0], less, every * times))
    say_json(found) if options.json else say(budget_table(found))
    return 0


def _settings(folder: Folder, assignments: Sequence[str]) -> tuple[Mixture, TokenizeSettings]:
    """Return the run's settings with the assigned values. Raises ConfigError."""
    recipe = run_recipe(folder)
    settings_of_run(MixSettings, recipe["mix"])  # of this version
    for assignment in assignments:
        if assign(recipe, assignment).partition(".")[0] not in _SECTIONS:
            raise ConfigError(
                f"--set {assignment}: plan takes keys below {' and '.join(_SECTIONS)}"
            )
    mix = validate(MixSettings, recipe["mix"], "--set mix")
    return mix.mixture(), validate(TokenizeSettings, recipe["tokenize"], "--set tokenize")


def _limited(mix: Mixture, tokens: int) -> Mixture:
    return mix.model_copy(update={"budget": max(tokens, 1)})


def _shards(folder: Folder, stages: Sequence[str]) -> list[Shard]:
    """Return the documents that the mix draws from. Raises ConfigError if none have a quality."""
    before = measured_stages(stages)[-1:]
    for stage in (*before, *(s for s in stages if s == "mix")):
        shards = stage_inputs([(folder / stage).url])
        if all("quality" in shard.schema().names for shard in shards[:1]):
            return [*shards, *(removed_shards(stage, shards) if stage == "mix" else ())]
    raise ConfigError(
        f"{folder.shown}: the documents of {before[0] if before else 'the run'} have no column "
        "`quality`, by which a budget chooses: run the recipe as far as `classify`, which adds it"
    )


def _counted(shards: Sequence[Shard], count: CountTokens, every: int) -> Iterator[pa.RecordBatch]:
    """Yield what the mix knows of the documents, or of an even sample."""
    for shard in shards:
        present = shard.schema().names
        for batch in shard.batches([c for c in (*COLUMNS, *count.views) if c in present]):
            chosen = string_keys(batch.column("id"))[:, 0] % every == 0
            yield count.narrow(batch.filter(pa.array(chosen)), 0)[0]
