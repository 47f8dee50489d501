"""Run the stages of a recipe, one after the other, in one run folder."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from curation import resources
from curation.errors import ConfigError, InputError
from curation.readers import InputFile, discover
from curation.recipe import STAGES, Recipe, check_order
from pipelines.engine.execute import Executor
from pipelines.engine.files import Folder, fingerprint
from pipelines.engine.stage import MANIFEST, Shard, StageRun, stage_inputs
from pipelines.facts import stage_facts

#: The resolved recipe beside the stage folders; `curate report` and `why` read the stages from it.
RECIPE_FILE = "recipe.yaml"
_LOCK = ".lock"
#: Sections of the recipe that a stage reads besides its own.
_ALSO_READS = {"extract": ("readers",), "mix": ("tokenize",)}


@dataclass(frozen=True)
class Plan:
    """What to run, on what, where to."""

    recipe: Recipe
    stages: tuple[str, ...]
    inputs: tuple[str, ...]
    output: Folder
    facts: dict[str, dict[str, Any]]  # by stage: versions and checksums
    files: tuple[InputFile, ...]  # that `extract` reads


def _also(stage: str, recipe: Recipe) -> dict[str, Any]:
    return {name: getattr(recipe, name) for name in _ALSO_READS.get(stage, ())}


def plan(
    recipe: Recipe, output: str, inputs: Sequence[str] = (), stages: Sequence[str] = ()
) -> Plan:
    """Decide stages and inputs, and look at every model and list, before anything runs.

    Raises ConfigError when they don't fit together, or a file is absent or the wrong one.
    """
    chosen = tuple(stages) or recipe.stages
    check_order(chosen)
    folder = Folder(output.rstrip("/") or "/")
    given = tuple(inputs)
    if not given and chosen[0] == "extract":
        given = recipe.inputs
        if not given:
            raise ConfigError("no input: name files with --input, or in the recipe as inputs:")
    if not given:
        given = (_complete_before(chosen[0], recipe, folder),)
    facts = {
        stage: stage_facts(stage, [recipe.settings(stage), *_also(stage, recipe).values()])
        for stage in chosen
    }
    try:
        found = discover([resources.resolve(g) for g in given]) if chosen[0] == "extract" else []
        if chosen[0] != "extract":
            stage_inputs(given)
    except InputError as error:
        raise ConfigError(f"--input: {error}") from None
    return Plan(recipe, chosen, given, folder, facts, tuple(found))


def _complete_before(stage: str, recipe: Recipe, folder: Folder) -> str:
    order = recipe.stages if stage in recipe.stages else STAGES
    for earlier in reversed(order[: order.index(stage)]):
        if (folder / earlier).exists(MANIFEST):
            return (folder / earlier).url
    raise ConfigError(
        f"{stage} needs documents: name a stage folder with --input; "
        f"{folder.shown} holds no complete earlier stage"
    )


def run_plan(work: Plan, executor: Executor, fresh: bool = False) -> dict[str, dict[str, Any]]:
    """Run every stage of a plan that is not complete; return the manifests by stage."""
    manifests: dict[str, dict[str, Any]] = {}
    with _locked(work.output):
        if fresh:
            for stage in work.stages:
                work.output.remove(stage)
        _write_recipe(work)
        inputs = work.inputs
        for stage in work.stages:
            manifests[stage] = run_stage(stage, work, inputs, executor)
            inputs = ((work.output / stage).url,)
    return manifests


def run_stage(stage: str, work: Plan, inputs: Sequence[str], executor: Executor) -> dict[str, Any]:
    """Run one stage; a complete one costs a look at its manifest."""
    settings = work.recipe.settings(stage)
    also = _also(stage, work.recipe)
    facts = work.facts[stage]
    key = [s.model_dump(mode="json") for s in (settings, *also.values())]
    recipe = {"name": work.recipe.name, "sha256": work.recipe.sha256, "stages": list(work.stages)}
    shards: list[Shard] = [] if stage == "extract" else stage_inputs(inputs)
    run = StageRun(
        stage,
        work.output / stage,
        settings,
        fingerprint([key, facts]),
        executor,
        recipe,
        facts,
        shards,
        also,
        work.files if stage == "extract" else (),
    )
    executor.display.stage(stage, "started")
    before, started = _manifest_key(run), time.perf_counter()
    module = importlib.import_module(f"pipelines.{stage.replace('-', '_')}")
    manifest = module.run(run)
    counts = manifest["counts"]
    executor.display.stage(
        stage,
        "complete" if before == manifest["key"] else "done",
        documents=counts["documents_in"],
        kept=counts["documents"],
        removed=counts["documents_removed"],
        seconds=round(time.perf_counter() - started, 1),
    )
    return manifest  # type: ignore[no-any-return]


def _manifest_key(run: StageRun) -> str | None:
    try:
        return str(run.folder.read_json(MANIFEST)["key"])
    except (InputError, KeyError, TypeError):
        return None


def _write_recipe(work: Plan) -> None:
    content = work.recipe.model_dump(mode="json", by_alias=True, exclude={"inputs"})
    content["inputs"] = []
    content["stages"] = list(work.stages)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    data = text.encode()
    if not work.output.exists(RECIPE_FILE) or work.output.read_bytes(RECIPE_FILE) != data:
        if work.output.is_local:
            os.makedirs(work.output.path(), exist_ok=True)
        work.output.write_bytes(RECIPE_FILE, data)
        work.output.remove(".work")


@contextlib.contextmanager
def _locked(folder: Folder) -> Iterator[None]:
    """One run at a time in a local run folder; the lock goes with the process that holds it."""
    if not folder.is_local:
        yield
        return
    os.makedirs(folder.path(), exist_ok=True)
    path = folder.path(_LOCK)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConfigError(
                f"{folder.shown}: another run (process {holder}) is at work in this folder"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            os.unlink(path)


def load_run(directory: str) -> tuple[Folder, list[str]]:
    """A run folder and its complete stages in order. Raises ConfigError when it is none."""
    folder = Folder(directory.rstrip("/"))
    if not folder.exists():
        raise ConfigError(f"{directory}: no such run folder")
    order: Sequence[str] = STAGES
    if folder.exists(RECIPE_FILE):
        order = yaml.safe_load(folder.read_bytes(RECIPE_FILE))["stages"]
    stages = [s for s in order if (folder / s).exists(MANIFEST)]
    stages += [s for s in STAGES if s not in stages and (folder / s).exists(MANIFEST)]
    if not stages:
        raise ConfigError(f"{directory}: holds no complete stage")
    return folder, stages


def dumps(value: Any) -> str:
    """JSON for people and machines."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
