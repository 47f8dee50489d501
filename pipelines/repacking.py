"""Pack token shards again without some documents: a run of `withdraw` and `tokenize`.

They read what the run had tokenized, such as the documents of its mix, and write a run folder of
their own. So its shards are those that `tokenize` writes of the documents that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.errors import ConfigError
from curation.recipe import Recipe, load
from curation.stages import find
from pipelines.engine.stage import settings_written
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.run_folder import RECIPE_FILE
from pipelines.runners.execute import Executor
from pipelines.storage.files import Folder
from pipelines.storage.manifest import is_stage, read_manifest

_STAGES = ("withdraw", "tokenize")


def repack(
    run: Folder, sinks: Sequence[str], place: Folder, table: str, executor: Executor
) -> dict[str, dict[str, Any]]:
    """Write `tokenize` and its named mixes again, without the documents of a table.

    Returns the number of sequences and the record of each file, by stage. Raises ConfigError if the
    run does not have what it tokenized, or its recipe or tokenizer is another one now.
    """
    withdraw, tokenize = _STAGES
    settings = find(withdraw).settings(documents=table)
    recipe = _recipe_of(run, sinks).model_copy(
        update={"stages": _STAGES, "inputs": (), withdraw: settings}
    )
    work = plan(recipe, place.url, [_tokenized(run, tokenize).url], _STAGES)
    if work.facts[tokenize]["models"] != read_manifest(run / tokenize)["models"]:
        raise ConfigError(f"{(run / tokenize).shown}: the tokenizer has changed since")
    run_plan(work, executor)
    written = {sink: read_manifest(place / sink) for sink in sinks}
    return {
        sink: {"packed": manifest["counts"]["sequences"], "files": manifest["files"]}
        for sink, manifest in written.items()
    }


def _recipe_of(run: Folder, sinks: Sequence[str]) -> Recipe:
    """Return the recipe in a run folder, if it is that of its token shards."""
    recipe = load(run.url_of(RECIPE_FILE))
    for sink in sinks:
        stage, _, mix = sink.partition("/")
        if settings_written(recipe.settings(stage, mix)) != read_manifest(run / sink)["settings"]:
            raise ConfigError(f"{run.shown}/{RECIPE_FILE}: not the recipe of {sink}; run it again")
    return recipe


def _tokenized(run: Folder, stage: str) -> Folder:
    """Return the stage folder with the documents that became tokens."""
    before = read_manifest(run / stage).get("after", {}).get("stage")
    if before is None or not is_stage(run / before):
        raise ConfigError(
            f"{run.shown}: does not have the documents of {stage}, to pack them again; leave out "
            "--repack to mask them"
        )
    return run / str(before)
