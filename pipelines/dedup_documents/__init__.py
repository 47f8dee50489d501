"""Stage `dedup-documents`: exact copies and near duplicates over the whole data set.

Documents that share a bucket (of a MinHash band, or of equal normalized text) are neighbours in a
graph, whose components are groups. Each group is processed in one task, which verifies neighbours
if the recipe says so and keeps one document of each cluster of confirmed duplicates.
"""

from collections.abc import Sequence
from typing import Any

from curation.dedup.dedup_settings import AlarmSettings, DocumentDedupSettings
from pipelines.dedup.duplicates import range_tasks, verdict_passes
from pipelines.dedup.indexes import Place, WriteIndex, indexed_shards
from pipelines.dedup_documents.buckets import Link, Sign, Solve
from pipelines.dedup_documents.clusters import SAMPLES, Clusters, DocumentVerdicts
from pipelines.dedup_documents.losses import ROW_BYTES, ListLosses, SumLosses, worst
from pipelines.dedup_documents.members import Members
from pipelines.engine.stage import StageRun
from pipelines.engine.transform import shard_tasks
from pipelines.runners.chain import Pass
from pipelines.runners.tasks import Task, records_of
from pipelines.storage.exchange import scratch

#: Bytes of bucket records per task.
_LINK_BYTES = 32 << 20
#: Bytes of a bucket record.
_RECORD_BYTES = 24


def check_indexes(settings: DocumentDedupSettings) -> list[Place]:
    """Return the shards of the indexes in the settings. Raises ConfigError for an unusable one."""
    return indexed_shards(settings, 0)


def run(run: StageRun) -> dict[str, Any]:
    """Keep one document of each cluster of copies."""
    settings: DocumentDedupSettings = run.settings
    indexed = indexed_shards(settings, len(run.inputs))
    run.begin()
    last = len(settings.index.against)
    own = [Place(s.name, i, s, last) for i, s in enumerate(run.inputs)]
    passes = compared(run, [*own, *indexed])
    run.chain(passes)
    done = {p.step.name: p for p in passes}
    records = {n: records_of(run.folder, p.step, p.tasks) for n, p in done.items() if n in _COUNTED}
    notes = _facts_of(run, records[Clusters.name])
    if alarms := _alarms(run, records[Clusters.name]) + worst(records[SumLosses.name]):
        notes["alarms"] = alarms
    index = records.get(WriteIndex.name, ())
    return run.finish(done["shards"].tasks, run.compared, {"notes": notes}, also=index)


#: Steps whose records have counts for the manifest, or name files that are kept.
_COUNTED = (Clusters.name, SumLosses.name, WriteIndex.name)


def compared(run: StageRun, places: Sequence[Place]) -> list[Pass]:
    """Return the passes of the stage."""
    link = _linked(run, places)
    before = tuple(p.step.name for p in link)
    edges = [scratch("edges", p.name) for p in places]
    edges += [scratch("links", t.name) for t in link[-1].tasks]
    solve = Solve(run.settings_key, tuple(p.shard.rows for p in places))
    graph = Pass(solve, [Task("all", (), 0, tuple(edges))], after=before)
    after = (*before, solve.name)
    return [*link, graph, *_clustered(run, places, solve.labels, link[-1], after)]


def _linked(run: StageRun, places: Sequence[Place]) -> list[Pass]:
    """Return the passes for the facts of each document and the neighbours in each bucket."""
    sign = Sign(run.settings_key, run.settings, run.also.get("rights"))
    link = Link(run.settings_key, run.settings, tuple(p.name for p in places))
    # A bucket record may become up to `window` pairs of the same size.
    # Records: one for each document's text and one per band.
    size = _RECORD_BYTES * sum(p.shard.rows for p in places) * (1 + run.settings.minhash.bands)
    return [
        Pass(sign, _place_tasks(places)),
        Pass(link, range_tasks(size, _LINK_BYTES), after=(sign.name,)),
    ]


def _place_tasks(places: Sequence[Place]) -> list[Task]:
    """Return one task per shard, whose output depends on its number."""
    return [
        Task(p.name, ((p.name, p.fingerprint), ("index", str(p.index))), p.shard.bytes, p)
        for p in places
    ]


def _clustered(
    run: StageRun,
    places: Sequence[Place],
    labels: tuple[str, ...],
    link: Pass,
    after: tuple[str, ...],
) -> list[Pass]:
    """Return the passes that choose survivors, write verdicts and alarms, and apply them."""
    candidates = tuple(t.name for t in link.tasks)
    members = Members(run.settings_key, run.settings, labels, candidates)
    shards, count = tuple(p.name for p in places), len(run.inputs)
    clusters = Clusters(run.settings_key, run.settings, shards, count)
    # The data compared for a document is about as large as the compressed document.
    ranges = range_tasks(sum(p.shard.bytes for p in places))
    verdicts = DocumentVerdicts(run.settings_key, tuple(t.name for t in ranges), run.settings)
    passes = [
        Pass(members, _place_tasks(places), after=after),
        Pass(clusters, ranges, after=(members.name,)),
        *verdict_passes(run, verdicts, clusters.name, audits=True),
    ]
    if run.settings.index.write:
        index = WriteIndex(run.settings_key, "facts")
        passes.append(Pass(index, _place_tasks(places[:count]), beside=verdicts.name))
    lost, share = ListLosses(run.settings_key), run.settings.alarms.lost_share
    total = SumLosses(run.settings_key, share, tuple(s.name for s in run.inputs))
    passes += [
        Pass(lost, shard_tasks(run.inputs), after=(verdicts.name,)),
        Pass(total, range_tasks(ROW_BYTES * run.documents), after=(lost.name,)),
    ]
    return passes


def _facts_of(run: StageRun, clustered: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts = [r["counts"] for r in clustered]
    total = {k: sum(c[k] for c in counts) for k in ("candidates", "confirmed", "clusters")}
    facts = {
        "clusters": total["clusters"],
        "largest cluster": max((c["largest"] for c in counts), default=0),
    }
    if run.settings.verify.method != "none":
        facts |= {
            "candidate pairs": total["candidates"],
            "confirmed pairs": total["confirmed"],
        }
    return facts


def _alarms(run: StageRun, clustered: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an alarm for each cluster that is too large, up to SAMPLES, the largest first."""
    settings: AlarmSettings = run.settings.alarms
    large = [c for r in clustered for c in r["counts"]["large"]]
    large.sort(key=lambda c: (-c["documents"], c["kept_id"]))
    alarms = []
    for found in large[:SAMPLES]:
        what = f"cluster of {found['documents']:,} documents, above {settings.cluster_size:,}"
        alarms.append({"alarm": what, **found})
    return alarms
