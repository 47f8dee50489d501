"""`curate measure`: compute all signals and scores without removing documents by them."""

import argparse

from curation.errors import ConfigError
from curation.recipe import load
from pipelines.commands.run import add_options, execute, named_stages, planned
from pipelines.reading.policies import judging, measured_stages
from pipelines.terminal import say

#: Setting that makes a recipe only measure.
MEASURE = "measure=true"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the recipe's stages before its mix. Deduplication still removes duplicates."""
    named = named_stages(options)
    stages = measured_stages(named or load(options.recipe, options.assignments).stages)
    work = planned(options, stages, [MEASURE]) if stages else None
    if work is None or not judging(work.stages):
        raise ConfigError(
            f"{options.stages or options.recipe}: no stage removes documents by measured values"
        )
    execute(work, options)
    if not options.quiet:
        say(f"next: curate policy --run {options.output} --output policy.yaml")
    return 0
