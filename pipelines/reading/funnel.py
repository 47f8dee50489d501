"""The funnel of a run: what its manifests count, stage by stage, and whether it adds up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.readers.records import skipped
from curation.stages import counted_columns
from pipelines.reading.values import token_facts
from pipelines.run_folder import load_run, root_hash, stage_before, stale_stages
from pipelines.storage.files import Folder
from pipelines.storage.manifest import TIMINGS, read_manifest


def counts(directory: str) -> dict[str, Any]:
    """Return the facts in the manifests.

    These are `run`, `recipe`, `funnel` (stages in order), `problems` of its counts, `root` (one
    hash for everything the run wrote), and `stale` (stages left by an earlier run with another
    recipe or other documents). Raises ConfigError if the folder is not a run.
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
        **token_facts(manifest),
        "bytes": manifest["bytes"],
        "shards": len(manifest["files"]),
        "removed": counts.get("removed", {}),
        **{plural(column): counts.get(column, {}) for column in counted_columns()},
        "counters": other,
        "notes": manifest.get("notes", {}),
        "cpu_seconds": round(sum(s["cpu"] for s in seconds.values()), 3),
        "steps": seconds,
    }


def plural(column: str) -> str:
    """Return the key of a column's values in a funnel entry, such as `languages`."""
    return f"{column}s"


_KNOWN = {
    *("documents_in", "documents", "documents_removed", "characters_in", "characters"),
    *("tokens", "distinct_tokens"),
}


def _problems(funnel: Sequence[dict[str, Any]]) -> list[str]:
    """Return where counts don't add up; empty unless files were changed by hand."""
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
