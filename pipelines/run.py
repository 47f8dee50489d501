"""Run the stages of a recipe, one after the other, in one run folder."""

import importlib
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import yaml

from curation.credentials import redact_all
from curation.errors import AlarmError, ConfigError, InputError, WorkerError
from curation.readers.records import NOT_DRAWN_COUNT, skipped
from curation.readers.settings import NAME_COLUMN
from curation.readers.suffixes import without_compression
from curation.recipe import STAGES, check_order, with_stage
from curation.stages import find
from pipelines.engine.stage import Shard, StageRun, removed_shards, stage_inputs
from pipelines.engine.transform import ERRORS, never_answered
from pipelines.plan import Plan, columns_of, input_files, stage_of
from pipelines.run_folder import (
    KNOWN_BY,
    RECIPE_FILE,
    RECIPE_HEAD,
    SUMS,
    held_recipe,
    load_run,
    locked,
    own_paths,
    present_stages,
    sums,
    whole_recipe,
)
from pipelines.runners.execute import Executor
from pipelines.storage.damage import DamagedError
from pipelines.storage.files import Folder, fingerprint
from pipelines.storage.manifest import complete_manifest, read_manifest
from pipelines.storage.own import refuse_foreign, remove_stage, with_inner
from pipelines.storage.shards import open_parquet, read_kinds

_LOG = logging.getLogger(__name__)

#: Most reasons named in the error for an input without documents.
_REASONS = 3
#: How often a run rewrites damaged files, or rereads changed inputs, before it fails.
_TRIES = 3


def run_plan(work: Plan, executor: Executor, strict: bool = False) -> dict[str, dict[str, Any]]:
    """Run every incomplete stage of a plan; return the manifests by stage.

    A damaged file is written again by its own task; an input that has changed since it was hashed
    is read in its present state.

    With `strict`, raises AlarmError after a stage whose manifest has an alarm; the stage is
    complete nevertheless.
    """
    executor.check(work.output)
    with locked(work.output):
        _refuse_foreign(work)
        if work.fresh:
            executor.prepare()
            for stage in removed_first(work):
                remove_stage(work.output / stage)
        executor.later, executor.output = [partial(_begin, work)], work.output
        executor.stages = (*work.stages, *_sections_read(work))
        executor.display.plan({name: find(name).cost for name in work.stages})
        tries: Counter[str] = Counter()
        while True:
            try:
                manifests = run_stages(work, executor, strict)
                break
            except DamagedError as error:
                tries.update(list(error.files))
                if max(tries.values()) > _TRIES:
                    raise
                work = _without(error, work)
        executor.settle()
        stages = load_run(work.output.url, manifests)[1]
        work.output.write_bytes(SUMS, sums(work.output, stages))
        return manifests


def _sections_read(work: Plan) -> list[str]:
    """Return other stages whose sections a stage reads, and whose kernels it therefore calls."""
    read = [name for stage in work.stages for name in find(stage).also(work.recipe)]
    return [name for name in dict.fromkeys(read) if name in STAGES and name not in work.stages]


def run_stages(work: Plan, executor: Executor, strict: bool) -> dict[str, dict[str, Any]]:
    """Run the stages of a plan; return the manifests by stage. Raises as `run_plan` does."""
    manifests: dict[str, dict[str, Any]] = {}
    inputs = work.inputs
    for stage in work.stages:
        for mix in mixes_of(stage, work, inputs):
            # A named mix passes from its folder in one stage to its folder in the next.
            source = inputs if draws(stage, work) else ((Folder(inputs[0]) / mix).url,)
            manifests[f"{stage}/{mix}"] = run_stage(stage, work, source, executor, mix)
        manifests[stage] = run_stage(stage, work, inputs, executor)
        inputs = ((work.output / stage).url,)
        _check_code(manifests[stage], work)
        if find(stage).is_source:
            _check_found(manifests[stage]["counts"], work)
            _check_columns(inputs, work)
        if strict:
            _check_alarms(manifests[stage])
    return manifests


def _check_found(counts: Mapping[str, Any], work: Plan) -> None:
    """Raise InputError if the input contains no document at all, which is rarely intended."""
    if counts["documents_in"]:
        return
    reasons = {k.partition(".")[2]: v for k, v in counts.items() if k.startswith("set_aside.")}
    most = sorted(reasons, key=lambda reason: -reasons[reason])[:_REASONS]
    left_out = counts.get(NOT_DRAWN_COUNT, 0)
    others = {"not drawn by readers.sample": left_out, "not pages": skipped(counts) - left_out}
    found = [f"{count:,} {what}" for what, count in others.items() if count]
    why = "; ".join([*found, *(f"{reasons[reason]:,} {reason}" for reason in most)])
    one = len(work.files) == 1
    files = work.files[0].path if one else f"{len(work.files):,} files read"
    hint = f"; {NAME_COLUMN}" if any(reason.endswith(".no_text") for reason in most) else ""
    raise InputError(
        f"{files}: no document in {'it' if one else 'them'}{why and f' ({why})'}"
        f"{_first_aside(work.output / work.stages[0], one)}{hint}"
    )


def _check_code(manifest: Mapping[str, Any], work: Plan) -> None:
    """Raise WorkerError if code of the user's own failed on everything that it was given."""
    counts, engine = manifest["counts"], work.recipe.extract.engine
    removed = {reason: found["documents"] for reason, found in counts.get("removed", {}).items()}
    if not {ERRORS, "set_aside.format.corrupt", "extract.error"} & {*counts, *removed}:
        return
    given = {str(engine): counts["documents_in"] - removed.get("http.status", 0)}
    for suffix, code in work.recipe.readers.formats.items():
        files = (without_compression(f.name).endswith(suffix.lower()) for f in work.files)
        given[code.python.reference] = sum(files)
    failed, place = Counter[str](), work.output / manifest["stage"]
    for batch in read_kinds(place, [ERRORS, "set_aside"], ["reason", "detail"]):
        for row in batch.to_pylist():
            detail = row["detail"].removeprefix("after 0 rows: ").removeprefix("RuntimeError: ")
            name = detail.partition(": ")[0]
            failed[name] += 1
            if row["reason"].startswith("error."):
                given[name] = counts["documents_in"]
            if failed[name] == given.get(name):
                raise WorkerError(
                    f"{manifest['stage']}: {name} failed on all that it was given "
                    f"({given[name]:,}): {detail.removeprefix(f'{name}: ')}"
                )


def _first_aside(stage: Folder, one: bool) -> str:
    """Return the place and the details of the first record that a stage set aside, if any."""
    for file, record in sorted(read_manifest(stage)["files"].items()):
        if file.startswith("set_aside/") and record["rows"]:
            with open_parquet(stage, file) as table:
                row = next(table.iter_batches(1, columns=["source", "detail"])).to_pylist()[0]
            place = f"{'' if one else row['source']['file'] + ' '}at {row['source']['offset']:,}"
            return f": {place}: {row['detail']}" if row["detail"] else ""
    return ""


def _check_columns(inputs: Sequence[str], work: Plan) -> None:
    """Raise InputError if the documents of the source lack a column that a later stage needs.

    Those of a table depend on it, so they can't be checked before it is read.
    """
    if len(work.stages) == 1:
        return
    try:
        check_order(work.recipe, work.stages[1:], columns_of(stage_inputs(inputs)))
    except ConfigError as error:
        raise InputError(f"{work.files[0].path}: {error}") from None


def _without(error: DamagedError, work: Plan) -> Plan:
    """Remove damaged files of the stages to run, so that their tasks run again.

    Changed inputs are listed again, and hashed again by the stage that reads them. Raises the error
    if a file belongs to a stage that this run does not include.
    """
    for file, detail in error.files.items():
        inside = file.removeprefix(f"{work.output.url}/")
        if inside == file:
            _LOG.warning("%s: %s; reading its present content", file, detail)
        elif inside.partition("/")[0] in work.stages:
            _LOG.warning("%s: %s; making it again", file, detail)
            work.output.remove(inside)
        else:
            raise DamagedError({file: f"{detail}; run that stage again"}) from error
    if not find(work.stages[0]).is_source:
        return work
    found = input_files(work.recipe, work.inputs, own_paths(work.output, work.recipe))
    return replace(work, files=tuple(found))


def removed_first(work: Plan) -> list[str]:
    """Return what `--fresh` removes: the stages to run and, for a full run, those not in it."""
    if work.stages != work.recipe.stages:
        return list(work.stages)
    return list(dict.fromkeys([*work.stages, *present_stages(work.output)]))


def _refuse_foreign(work: Plan) -> None:
    """Raise ConfigError if a file not written by a run would be overwritten or removed.

    A complete stage is checked only once it turns out that it must run again.
    """
    for stage in removed_first(work) if work.fresh else work.stages:
        for folder in with_inner(work.output / stage):
            if work.fresh or not read_manifest(folder):
                refuse_foreign(folder)
    if present_stages(work.output):
        return  # then the files next to them are the run's, too, damaged or not
    for name in (RECIPE_FILE, *KNOWN_BY):
        if work.output.exists(name) and not _by_a_run(name, work.output.read_bytes(name)):
            raise ConfigError(
                f"{work.output.shown}/{name}: not written by a run, which would overwrite it; "
                "move it away, or give another --output"
            )


def _by_a_run(name: str, data: bytes) -> bool:
    if not data.strip(b"\0"):  # damaged
        return True
    if name == RECIPE_FILE:  # its end may be lost
        return data.startswith(RECIPE_HEAD) or whole_recipe(data) is not None
    return KNOWN_BY[name] in data


def _check_alarms(manifest: dict[str, Any]) -> None:
    alarms = [found["alarm"] for found in manifest.get("notes", {}).get("alarms", [])]
    alarms += never_answered(manifest["counts"])
    if alarms:
        more = f", and {len(alarms) - 1} more" if len(alarms) > 1 else ""
        raise AlarmError(
            f"{manifest['stage']}: {alarms[0]}{more} (--strict; the report shows samples)"
        )


def mixes_of(stage: str, work: Plan, inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the named mixes that a stage processes besides the unnamed one.

    They come first: the shared counts are removed when the unnamed mix is complete. The stage that
    draws mixes processes all of them, a later one those in the stage folder that it reads.
    """
    if not find(stage).per_mix:
        return ()
    if draws(stage, work):
        return work.recipe.mixes
    mixed = [Folder(path) for path in inputs]
    if len(mixed) != 1 or not read_manifest(mixed[0]):
        return ()
    return tuple(mix for mix in work.recipe.mixes if complete_manifest(mixed[0] / mix))


def draws(stage: str, work: Plan) -> bool:
    """Return whether a stage draws the mixes, and so reads the same documents for each."""
    described = find(stage)
    return bool(described.mixes(work.recipe.section(described)))


def run_stage(
    stage: str, work: Plan, inputs: Sequence[str], executor: Executor, mix: str = ""
) -> dict[str, Any]:
    """Run one stage, or one named mix of it; for a complete one, only check its manifest."""
    run = stage_run(stage, work, inputs, executor, mix)
    executor.display.stage(run.stage, "started")
    before, started = read_manifest(run.folder).get("key"), time.perf_counter()
    manifest = complete_or_run(run)
    counts = manifest["counts"]
    executor.display.stage(
        run.stage,
        "complete" if before == manifest["key"] else "done",
        documents=counts["documents_in"],
        kept=counts["documents"],
        removed=counts["documents_removed"],
        seconds=round(time.perf_counter() - started, 1),
    )
    return manifest


def complete_or_run(run: StageRun) -> dict[str, Any]:
    """Return the manifest of a stage, which runs unless it is complete."""
    stage = find(run.stage)
    manifest = None if stage.is_source else run.complete(run.compared)
    if manifest is None:  # load the module, with its kernels, only if there is work
        manifest = importlib.import_module(stage.module).run(run)
    return manifest  # type: ignore[no-any-return]


def stage_run(
    stage: str, work: Plan, inputs: Sequence[str], executor: Executor, mix: str = ""
) -> StageRun:
    """Return what a stage's module needs to run the stage, or one named mix of it."""
    described = find(stage)
    settings: Any = work.recipe.settings(stage, mix)
    also = described.also(work.recipe)
    facts = work.facts[stage]
    key = [s.model_dump(mode="json") for s in (settings, *also.values())]
    recipe: dict[str, Any] = {"name": work.recipe.name, "sha256": work.recipe_sha256}
    recipe["stages"] = _stages_of_run(work)
    recipe |= {"policy": work.policy} if work.policy else {}
    measures = work.recipe.measure and bool(described.decides_by)
    decides = [redact_all(key), facts, *(["measure"] if measures else [])]
    shards: list[Shard] = [] if described.is_source else stage_inputs(inputs)
    indexed: list[tuple[str, str]] = []
    if described.is_indexed and settings.index.against:
        files = importlib.import_module(described.module).check_indexes(settings)
        indexed = [(file.name, file.fingerprint) for file in files]
    if before := described.looks_back(settings):
        indexed = [(s.file, s.fingerprint) for s in removed_shards(before, shards)]
    return StageRun(
        f"{stage}/{mix}" if mix else stage,
        work.output / (f"{stage}/{mix}" if mix else stage),
        settings,
        fingerprint(decides),
        executor,
        recipe,
        facts,
        shards,
        also,
        work.files if described.is_source else (),
        str(work.passed_over.of_others) if described.is_source else "",
        stage_of(inputs, work.output) if shards else "",
        indexed,
        measures,
    )


def _begin(work: Plan) -> None:
    """Write the recipe; remove the report and the sums before there are other files than theirs."""
    work.output.remove_parts()
    _write_recipe(work)
    for name in KNOWN_BY:
        work.output.remove(name)


def _write_recipe(work: Plan) -> None:
    content = work.recipe.model_dump(mode="json", by_alias=True, exclude={"inputs"})
    content["inputs"] = []
    content["stages"] = _stages_of_run(work)
    content = redact_all(content)
    if [*held_recipe(work.output).items()] != [*content.items()]:  # as writing YAML is slow
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
        work.output.write_bytes(RECIPE_FILE, RECIPE_HEAD + text.encode())
        work.output.remove(".work")


def _stages_of_run(work: Plan) -> list[str]:
    """Return all stages of the recipe, even if only some run, and any other requested one.

    Of a table these are the stages that have run on it, and those that run now.
    """
    stages: Sequence[str] = work.recipe.stages
    if find(work.stages[0]).is_source and not set(work.stages) <= set(stages):
        stages = [s for s in stages if s in {*work.stages, *present_stages(work.output)}]
    for stage in work.stages:
        stages = with_stage(stages, stage)
    return list(stages)
