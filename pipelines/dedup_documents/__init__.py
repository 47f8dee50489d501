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
from pipelines.dedup.losses import loss_passes, losses_of
from pipelines.dedup_documents.buckets import Link, Sign, Solve
from pipelines.dedup_documents.clusters import SAMPLES, Clusters, DocumentVerdicts
from pipelines.dedup_documents.members import Members
from pipelines.engine.stage import StageRun
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
    lost = losses_of(run, passes).get("alarms", [])
    if alarms := _alarms(run, records[Clusters.name]) + lost:
        notes["alarms"] = alarms
    index = records.get(WriteIndex.name, ())
    return run.finish(done["shards"].tasks, run.compared, {"notes": notes}, also=index)


#: Steps whose records have counts for the manifest, or name files that are kept.
_COUNTED = (Clusters.name, WriteIndex.name)


def compared(run: StageRun, places: Sequence[Place]) -> list[Pass]:
    """Return the passes of the stage, over the run's shards and those of the indexes."""
    key, settings, own = run.settings_key, run.settings, len(run.inputs)
    names, tasks = tuple(p.name for p in places), [p.task for p in places]
    sign = Sign(key, settings, run.also.get("rights"))
    link = Link(key, settings, names)
    # A bucket record may become up to `window` pairs of the same size.
    # Records: one for each document's text and one per band.
    size = _RECORD_BYTES * sum(p.shard.rows for p in places) * (1 + settings.minhash.bands)
    buckets = range_tasks(size, _LINK_BYTES)
    solve = Solve(key, tuple(p.shard.rows for p in places))
    edges = [scratch("edges", n) for n in names] + [scratch("links", t.name) for t in buckets]
    members = Members(key, settings, solve.labels, tuple(t.name for t in buckets))
    clusters = Clusters(key, settings, names, own)
    # The data compared for a document is about as large as the compressed document.
    ranges = range_tasks(sum(p.shard.bytes for p in places))
    verdicts = DocumentVerdicts(key, tuple(t.name for t in ranges), settings)
    index = Pass(WriteIndex(key, "facts"), tasks[:own], beside=verdicts.name)
    return [
        Pass(sign, tasks),
        Pass(link, buckets, after=(sign.name,)),
        Pass(solve, [Task("all", (), 0, tuple(edges))], after=(sign.name, link.name)),
        Pass(members, tasks, after=(sign.name, link.name, solve.name)),
        Pass(clusters, ranges, after=(members.name,)),
        *verdict_passes(run, verdicts, clusters.name, audits=True),
        *([index] if settings.index.write else []),
        *loss_passes(run, settings.alarms.lost_share, "documents", verdicts.name),
    ]


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
