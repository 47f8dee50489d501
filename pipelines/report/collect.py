"""Collect what manifests, timings and removed documents say of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from curation.stages import counted_columns
from pipelines.report.values import skipped
from pipelines.run_folder import load_run, root_hash, stage_before, stale_stages
from pipelines.storage.files import Folder
from pipelines.storage.manifest import TIMINGS, read_manifest
from pipelines.storage.shards import read_batches

#: Removed documents shown per reason, and how much of their text.
_EXAMPLES = 3
_SNIPPET = 240
#: Shards that are read for examples; more of them add nothing.
_EXAMPLE_SHARDS = 8


def collect(directory: str) -> dict[str, Any]:
    """Facts of a run: `run`, `recipe`, `funnel` (stages in order), `problems` of its counts, and
    `root`: one hash for all that the run wrote, and
    `stale`: stages that the folder holds of an earlier run with another recipe or other documents.

    Raises ConfigError when the folder is no run.
    """
    folder, stages = load_run(directory)
    funnel = [_stage(folder, stage) for stage in stages]
    recipe = read_manifest(folder / stages[-1])["recipe"]
    return {
        "run": folder.shown,
        "recipe": recipe,
        "funnel": funnel,
        "problems": _problems(funnel),
        "root": root_hash(folder, stages),
        "stale": stale_stages(folder, stages),
    }


def _stage(folder: Folder, stage: str) -> dict[str, Any]:
    place = folder / stage
    manifest = read_manifest(place)
    counts = manifest["counts"]
    seconds = place.read_own_json(TIMINGS).get("steps", {})
    other = {k: v for k, v in counts.items() if isinstance(v, int) and k not in _KNOWN}
    return {
        "stage": stage,
        "documents_in": counts["documents_in"],
        "documents": counts["documents"],
        "documents_removed": counts["documents_removed"],
        "characters_in": counts.get("characters_in", 0),
        "characters": counts.get("characters", 0),
        "tokens": counts.get("tokens"),
        "bytes": manifest["bytes"],
        "shards": len(manifest["files"]),
        "removed": counts.get("removed", {}),
        **{plural(column): counts.get(column, {}) for column in counted_columns()},
        "counters": other,
        "notes": manifest.get("notes", {}),
        "cpu_seconds": round(sum(s["cpu"] for s in seconds.values()), 3),
        "steps": seconds,
        "examples": _examples(place, manifest["files"]),
    }


def plural(column: str) -> str:
    """The key under which an entry of the funnel has the values of a column: `languages`."""
    return f"{column}s"


_KNOWN = {"documents_in", "documents", "documents_removed", "characters_in", "characters", "tokens"}


def _examples(place: Folder, files: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    names = [n for n, f in sorted(files.items()) if n.startswith("removed/") and f["rows"]]
    columns = ["id", "url", "reason", "value", "threshold", "kept_id", "text"]
    for name in names[:_EXAMPLE_SHARDS]:
        for batch in read_batches(place, name, columns):
            short = pc.utf8_slice_codeunits(batch.column("text"), 0, _SNIPPET)
            rows = batch.set_column(batch.schema.get_field_index("text"), "text", short)
            for row in rows.to_pylist():
                examples = found.setdefault(row["reason"], [])
                if len(examples) < _EXAMPLES:
                    examples.append(row)
            break  # the first batch of a shard is sample enough
    return dict(sorted(found.items()))


def _problems(funnel: Sequence[dict[str, Any]]) -> list[str]:
    """Places where counts don't add up. Empty unless files were changed by hand."""
    problems = []
    for entry in funnel:
        if entry["documents"] + entry["documents_removed"] != entry["documents_in"]:
            problems.append(f"{entry['stage']}: kept and removed do not add up to the input")
        counters = entry["counters"]
        documents = counters.get("records", 0) - skipped(counters) - counters.get("set_aside", 0)
        if "records" in counters and documents != entry["documents_in"]:
            problems.append(f"{entry['stage']}: records do not add up to documents")
        removed = sum(r["documents"] for r in entry["removed"].values())
        if removed != entry["documents_removed"]:
            problems.append(f"{entry['stage']}: reasons do not add up to the removed documents")
    entries = {entry["stage"]: entry for entry in funnel}
    for after in funnel:
        before = entries.get(stage_before(after["stage"], list(entries)) or "")
        if before and before["documents"] != after["documents_in"]:
            problems.append(
                f"{after['stage']} read {after['documents_in']} documents, "
                f"{before['stage']} had kept {before['documents']}"
            )
    return problems
