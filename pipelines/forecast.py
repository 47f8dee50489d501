"""What a plan would do: stages and shards that would be done again, why, and at what cost."""

import importlib
from collections.abc import Mapping
from typing import NamedTuple

from curation.config import differences
from curation.stages import find
from pipelines.engine.stage import StageRun, settings_written
from pipelines.extract.sources import fingerprints_now
from pipelines.plan import Plan
from pipelines.run import draws, mixes_of, stage_run
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.runners.tasks import Task
from pipelines.storage.files import Folder
from pipelines.storage.manifest import (
    MANIFEST,
    TIMINGS,
    Manifest,
    named_files,
    read_manifest,
    shard_name,
)

#: Most changes that are named, and characters of a value.
_NAMED, _SHOWN = 3, 40


class Forecast(NamedTuple):
    """What would be done in a stage, or a named mix of it; None for what can't be estimated."""

    stage: str
    shards: int  # to be done
    of: int
    why: str  # empty for a complete stage
    documents: int | None = None  # that these shards read
    cpu_seconds: float | None = None
    bytes: int | None = None  # to be written

    def words(self) -> str:
        """Return the forecast of a stage that is not complete, for people."""
        known = {"documents": self.documents, "CPU s": self.cpu_seconds, "bytes": self.bytes}
        facts = [f"{'?' if n is None else format(n, ',')} {unit}" for unit, n in known.items()]
        return f"{self.shards:,} of {self.of:,} shards, {', '.join(facts)}: {self.why}"


class _Flow(NamedTuple):
    """The documents between two stages, before they are made."""

    shards: Mapping[str, str]  # fingerprints by name; empty for one that is to be made
    documents: int | None = None
    made_by: str = ""  # stage that is not complete


def forecast(work: Plan) -> list[Forecast]:
    """Return what `run_plan` would do, at most: documents made again may come out the same."""
    executor, found = Executor(RunnerOptions()), list[Forecast]()
    inputs, flows = work.inputs, {"": _Flow({})}
    for stage in work.stages:
        before, flows = flows, {}
        mixes = [name for name in before if name] or mixes_of(stage, work, inputs)
        for mix in (*mixes, "") if find(stage).per_mix else ("",):
            flow = before.get(mix, before[""])
            own = inputs if not mix or draws(stage, work) else ((Folder(inputs[0]) / mix).url,)
            run = stage_run(stage, work, () if flow.made_by else own, executor, mix)
            if run.inputs:
                flow = _Flow(dict(run.read), run.documents)
            one, flows[mix] = _of_stage(run, flow, work.fresh)
            found.append(one)
        inputs = ((work.output / stage).url,)
    return found


def _of_stage(run: StageRun, flow: _Flow, fresh: bool) -> tuple[Forecast, _Flow]:
    """Return the forecast of a stage, and the documents that leave it."""
    manifest, place = read_manifest(run.folder), run.folder
    then = {entry["name"]: entry["fingerprint"] for entry in manifest.get("inputs", ())}
    read, tasks = _planned(run, flow, then)
    names = [task.name for task in tasks]
    found = place.each(lambda name: place.read_own_json(f"shards/{name}.json"), names)
    records = dict(zip(names, found, strict=True))
    left = {t.name for t in tasks if fresh or records[t.name].get("key") != t.key(run.settings_key)}
    why, made_by = "--fresh" if fresh else _why(run, manifest, flow, then, dict(read)), run.stage
    if not fresh and all(dict(read).values()) and manifest.get("key") == run.key(read):
        wrong = place.differing(named_files(manifest), MANIFEST, None)
        left = {n for n in names if {f"shards/{n}.json", *records[n].get("files", ())} & {*wrong}}
        # What is damaged is made again with the same bytes.
        why, made_by = f"missing or damaged: {', '.join(wrong[:_NAMED])}" if wrong else "", ""
    files = {f"documents/{n}.parquet": records[n].get("files", {}) for n in names if n not in left}
    made = {shard_name(file): held[file]["sha256"] for file, held in files.items() if file in held}
    one = Forecast(run.stage, len(left), len(tasks), why)
    one, leaving = _estimated(one, run, manifest, flow.documents)
    return one, _Flow(dict.fromkeys(names, "") | made, leaving, made_by)


def _planned(
    run: StageRun, flow: _Flow, then: Mapping[str, str]
) -> tuple[list[tuple[str, str]], list[Task]]:
    """Return what a stage reads, with fingerprints as far as they are known, and its tasks."""
    if find(run.stage).is_source:
        hashes = fingerprints_now(run.files, run.folder, then)
        module = importlib.import_module(find(run.stage).module)
        return sorted(hashes.items()), module.source_tasks(run, hashes)
    read = sorted(flow.shards.items())
    return [*read, *run.indexed], [Task(name, ((name, sha256),)) for name, sha256 in read]


def _estimated(
    one: Forecast, run: StageRun, manifest: Manifest, entering: int | None
) -> tuple[Forecast, int | None]:
    """Add what it costs, by what the stage did last; return how many documents leave it, too."""
    counts = manifest.get("counts", {"documents_in": 0, "documents": 0})
    then, share = max(1, counts["documents_in"]), one.shards / max(1, one.of)
    if entering is None and manifest:  # a source, whose input may have grown
        entering = round(then * one.of / max(1, len(manifest["records"])))
    if entering is None:
        return one, None
    steps = run.folder.read_own_json(TIMINGS).get("steps", {}).values()
    usual = find(run.stage.partition("/")[0]).cost / 1000
    cost = sum(step["cpu"] for step in steps) / then if steps else usual
    one = one._replace(
        documents=round(share * entering),
        cpu_seconds=round(share * entering * cost, 1),
        bytes=round(share * manifest["bytes"] * entering / then) if manifest else None,
    )
    return one, round(entering * counts["documents"] / then) if manifest else entering


def _why(
    run: StageRun,
    manifest: Manifest,
    flow: _Flow,
    then: Mapping[str, str],
    read: Mapping[str, str],
) -> str:
    """Return why a stage is done again: what differs from its manifest."""
    if not manifest:
        return "interrupted" if run.folder.exists("shards") else "not run yet"
    sections = {run.stage: run.settings, **run.also}
    now = {name: settings_written(section) for name, section in sections.items()} | run.facts
    known = manifest | {run.stage: manifest["settings"]}
    changed = [
        f"{key}: {str(old)[:_SHOWN]} -> {str(new)[:_SHOWN]}"
        for key, old, new in differences({name: known.get(name) for name in now}, now)
    ]
    why = [*changed[:_NAMED], *(["other settings"] if len(changed) > _NAMED else [])]
    if flow.made_by:
        return "; ".join([*why, f"reads what {flow.made_by} makes"])
    other = sum(name in then and then[name] != sha256 for name, sha256 in read.items())
    counts = {"new": len(read.keys() - then), "changed": other, "gone": len(then.keys() - read)}
    why += [f"inputs {word}: {count:,}" for word, count in counts.items() if count]
    return "; ".join(why) or "what decides its output has changed"
