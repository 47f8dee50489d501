"""What a plan would do: stages and shards that would be done again, why, and at what cost."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curation.stages import find
from pipelines.engine.stage import StageRun, settings_written
from pipelines.extract.sources import fingerprint_now
from pipelines.plan import Plan
from pipelines.run import draws, mixes_of, stage_run
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.runners.tasks import Task
from pipelines.storage.files import Folder
from pipelines.storage.manifest import MANIFEST, TIMINGS, Manifest, named_files, read_manifest

#: Most changes that are named, and characters of a value.
_NAMED, _SHOWN = 3, 40


class Forecast(NamedTuple):
    """What would be done in a stage, or a named mix of it; None for what can't be estimated."""

    stage: str
    shards: int  # to be done
    of: int
    documents: int | None  # that these shards read
    cpu_seconds: float | None
    bytes: int | None  # to be written
    why: str  # empty for a complete stage


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
        mixes = work.recipe.mixes if before[""].made_by else mixes_of(stage, work, inputs)
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
    manifest = read_manifest(run.folder)
    then = {entry["name"]: entry["fingerprint"] for entry in manifest.get("inputs", ())}
    read, tasks = _planned(run, flow, then)
    names = [task.name for task in tasks]
    found = run.folder.each(lambda name: run.folder.read_own_json(f"shards/{name}.json"), names)
    records = dict(zip(names, found, strict=True))
    left = {t.name for t in tasks if fresh or records[t.name].get("key") != t.key(run.settings_key)}
    why, made_by = "--fresh" if fresh else _why(run, manifest, flow, then, read), run.stage
    if not fresh and all(dict(read).values()) and manifest.get("key") == run.key(read):
        wrong = run.folder.differing(named_files(manifest), MANIFEST, None)
        left = {
            n for n, r in records.items() if {f"shards/{n}.json", *r.get("files", ())} & {*wrong}
        }
        # What is damaged is made again with the same bytes.
        why, made_by = f"missing or damaged: {', '.join(wrong[:_NAMED])}" if wrong else "", ""
    documents = {n: r["files"].get(f"documents/{n}.parquet", {}) for n, r in records.items() if r}
    shards = {n: "" if n in left else documents[n].get("sha256", "") for n in documents}
    one, leaving = _estimated(run, manifest, flow.documents, (len(left), len(tasks)))
    return one._replace(why=why), _Flow(dict.fromkeys(names, "") | shards, leaving, made_by)


def _estimated(
    run: StageRun, manifest: Manifest, entering: int | None, shards: tuple[int, int]
) -> tuple[Forecast, int | None]:
    """Return the forecast by what the stage did last, and how many documents leave the stage."""
    described = find(run.stage.partition("/")[0])
    counts = manifest.get("counts", {"documents_in": 0, "documents": 0})
    then, share = max(1, counts["documents_in"]), shards[0] / max(1, shards[1])
    if entering is None and manifest:  # a source, whose input may have grown
        entering = round(counts["documents_in"] * shards[1] / max(1, len(manifest["records"])))
    if entering is None:
        return Forecast(run.stage, *shards, None, None, None, ""), None
    steps = run.folder.read_own_json(TIMINGS).get("steps", {}).values()
    cost = sum(s["cpu"] for s in steps) / then if steps else described.cost / 1000
    size = round(share * manifest["bytes"] * entering / then) if manifest else None
    documents = round(share * entering)
    one = Forecast(run.stage, *shards, documents, round(documents * cost, 1), size, "")
    return one, round(entering * counts["documents"] / then) if manifest else entering


def _planned(
    run: StageRun, flow: _Flow, then: Mapping[str, str]
) -> tuple[list[tuple[str, str]], list[Task]]:
    """Return what a stage reads, with fingerprints as far as they are known, and its tasks."""
    described = find(run.stage.partition("/")[0])
    if described.is_source:
        hashes = {f.name: fingerprint_now(f, run.folder, then.get(f.name, "")) for f in run.files}
        return sorted(hashes.items()), importlib.import_module(described.module).source_tasks(
            run, hashes
        )
    read = sorted(flow.shards.items())
    return [*read, *run.indexed], [Task(name, ((name, sha256),)) for name, sha256 in read]


def _why(
    run: StageRun,
    manifest: Manifest,
    flow: _Flow,
    then: Mapping[str, str],
    read: Sequence[tuple[str, str]],
) -> str:
    """Return why a stage is done again: what differs from its manifest."""
    if not manifest:
        return "interrupted" if run.folder.exists("shards") else "not run yet"
    stage = run.stage.partition("/")[0]
    now = {stage: settings_written(run.settings), **run.facts}
    now |= {name: settings_written(section) for name, section in run.also.items()}
    past = dict(_flat({name: manifest.get(name) for name in now} | {stage: manifest["settings"]}))
    changed = [
        f"{key}: {str(past.get(key))[:_SHOWN]} -> {str(value)[:_SHOWN]}"
        for key, value in _flat(now)
        if past.get(key) != value
    ]
    more = [f"{len(changed) - _NAMED} more settings"] if len(changed) > _NAMED else []
    if flow.made_by:
        more.append(f"reads what {flow.made_by} makes")
    else:
        new = sum(name not in then for name, _ in read)
        other = sum(name in then and then[name] != sha256 for name, sha256 in read)
        gone = len(then.keys() - dict(read).keys())
        counts = {"new": new, "changed": other, "gone": gone}
        more += [f"inputs {word}: {count:,}" for word, count in counts.items() if count]
    return "; ".join([*changed[:_NAMED], *more]) or "what decides its output has changed"


def _flat(tree: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a tree with their keys, joined by dots."""
    if isinstance(tree, dict) and tree:
        for name, value in tree.items():
            yield from _flat(value, f"{key}.{name}" if key else str(name))
    else:
        yield key, tree
