"""Stage `dedup-documents`: exact copies and near duplicates over the whole data set.

Documents that share a bucket (of a MinHash band, or of equal normalised text) are neighbours in one
graph, whose components are groups. In each group, all together in one task, the neighbours are
verified where the recipe says so; of each cluster of confirmed duplicates one document stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.dedup.dedup_settings import AlarmSettings, DocumentDedupSettings
from pipelines.dedup_documents.clusters import Clusters
from pipelines.dedup_documents.indexes import Place, WriteIndex, indexed_shards
from pipelines.dedup_documents.link import Link
from pipelines.dedup_documents.members import Members
from pipelines.dedup_documents.sign import Sign, SignIndexed
from pipelines.dedup_documents.verdicts import DocumentVerdicts, FindLosses
from pipelines.engine.duplicates import (
    apply_verdicts,
    files_of,
    numbered_tasks,
    output_fingerprint,
    range_tasks,
    run_verdicts,
    scratch,
)
from pipelines.engine.graph import Labels, label_components
from pipelines.engine.stage import StageRun
from pipelines.engine.tasks import Task

#: Bytes of bucket records that one task reads.
_LINK_BYTES = 32 << 20

Records = list[dict[str, Any]]


def check_indexes(settings: DocumentDedupSettings) -> None:
    """Raise ConfigError where an index that the settings name can't serve."""
    indexed_shards(settings, 0)


def run(run: StageRun) -> dict[str, Any]:
    """Keep one document of each cluster of copies."""
    indexed = indexed_shards(run.settings, len(run.inputs))
    inputs = [(s.name, s.fingerprint) for s in run.inputs]
    inputs += [(p.name, p.fingerprint) for p in indexed]
    if manifest := run.complete(inputs):
        return manifest
    run.begin()
    last = len(run.settings.index.against)
    own = [Place(s.name, i, s, last) for i, s in enumerate(run.inputs)]
    places = [*own, *indexed]
    signed = _sign(run, indexed)
    linked, labels = _link(run, places, signed)
    clustered, ranges = _cluster(run, places, signed, linked, labels)

    verdicts = DocumentVerdicts(run.settings_key, run.settings, ranges)
    payloads = [(p.index, p.shard) for p in own]
    tasks = run_verdicts(run, verdicts, output_fingerprint(clustered), payloads)
    judged = files_of(run.folder, verdicts, tasks)
    alarms = _alarms(run, judged, clustered)
    index = _index(run, own, judged) if run.settings.index.write else []
    notes = {**_facts_of(run, clustered, labels), **({"alarms": alarms} if alarms else {})}
    return apply_verdicts(run, verdicts, tasks, inputs, notes, index)


def _sign(run: StageRun, indexed: Sequence[Place]) -> Records:
    sign = Sign(run.settings_key, run.settings)
    tasks = numbered_tasks(run.inputs)
    run.run(sign, tasks)
    records = files_of(run.folder, sign, tasks)
    if indexed:
        read = SignIndexed(run.settings_key, run.settings)
        tasks = _place_tasks(indexed, "")
        run.run(read, tasks)
        records += files_of(run.folder, read, tasks)
    return records


def _place_tasks(places: Sequence[Place], source: str) -> list[Task]:
    """One task per shard, whose output depends on its number and on `source`."""
    return [
        Task(
            p.name,
            ((p.name, p.fingerprint), ("index", str(p.index)), ("source", source)),
            p.shard.bytes,
            p,
        )
        for p in places
    ]


def _link(run: StageRun, places: Sequence[Place], signed: Records) -> tuple[Records, Labels]:
    """Neighbours, and the components of their graph."""
    shards = tuple(p.name for p in places)
    link = Link(run.settings_key, run.settings, shards)
    # A record of a bucket may become `window` pairs, each as large.
    tasks = range_tasks(signed, ("exact", "buckets"), _LINK_BYTES)
    run.run(link, tasks)
    linked = files_of(run.folder, link, tasks)
    files = [scratch("edges", s) for s in shards] + [scratch("links", t.name) for t in tasks]
    edges = sum(r["counts"]["edges"] for r in [*signed, *linked])
    source = output_fingerprint([*signed, *linked])
    limit = run.settings.graph.edges_in_memory
    return linked, label_components(run, files, edges, source, limit)


def _cluster(
    run: StageRun, places: Sequence[Place], signed: Records, linked: Records, labels: Labels
) -> tuple[Records, tuple[str, ...]]:
    """Who goes in whose place: runs by document number, and their names."""
    candidates = tuple(r["task"] for r in linked)
    members = Members(run.settings_key, run.settings, labels.names, candidates)
    tasks = _place_tasks(places, f"{labels.source} {output_fingerprint([*signed, *linked])}")
    run.run(members, tasks)
    gathered = files_of(run.folder, members, tasks)
    shards = tuple(p.name for p in places)
    clusters = Clusters(run.settings_key, run.settings, shards, len(run.inputs))
    ranges = range_tasks(gathered, ("members", "pairs", "sets"))
    run.run(clusters, ranges)
    return files_of(run.folder, clusters, ranges), tuple(t.name for t in ranges)


def _index(run: StageRun, own: Sequence[Place], judged: Records) -> Records:
    index = WriteIndex(run.settings_key)
    tasks = _place_tasks(own, output_fingerprint(judged))
    run.run(index, tasks)
    return files_of(run.folder, index, tasks)


def _facts_of(run: StageRun, clustered: Records, labels: Labels) -> dict[str, Any]:
    counts = [r["counts"] for r in clustered]
    total = {k: sum(c[k] for c in counts) for k in ("candidates", "confirmed", "clusters")}
    facts = {
        "clusters": total["clusters"],
        "largest cluster": max((c["largest"] for c in counts), default=0),
        "rounds over partitions": labels.rounds,
    }
    if run.settings.verify.method != "none":
        facts |= {
            "candidate pairs": total["candidates"],
            "confirmed pairs": total["confirmed"],
        }
    return facts


def _alarms(run: StageRun, judged: Records, clustered: Records) -> list[dict[str, Any]]:
    """What looks like a fault, the worst first; each kind up to the recipe's number."""
    find = FindLosses(run.settings_key, run.settings, tuple(s.name for s in run.inputs))
    tasks = range_tasks(judged, "losses")
    run.run(find, tasks)
    settings: AlarmSettings = run.settings.alarms
    large = [c for r in clustered for c in r["counts"]["large"]]
    losing = [c for r in files_of(run.folder, find, tasks) for c in r["counts"]["losing"]]
    large.sort(key=lambda c: (-c["documents"], c["kept_id"]))
    losing.sort(key=lambda c: (-c["removed"], c.get("host", ""), c.get("file", "")))
    alarms = []
    for found in large[: settings.samples]:
        what = f"cluster of {found['documents']:,} documents, above {settings.cluster_size:,}"
        alarms.append({"alarm": what, **found})
    for found in losing[: settings.samples]:
        name = f"host {found['host']}" if "host" in found else f"file {found['file']}"
        lost, documents = found["removed"], found["documents"]
        what = f"{name} loses {lost:,} of {documents:,} documents, above {settings.lost_share:.0%}"
        alarms.append({"alarm": what, **found})
    return alarms
