"""The funnel of a run: what its manifests count, stage by stage, and whether it adds up."""

from collections.abc import Mapping, Sequence
from typing import Any

from curation.readers.records import NOT_DRAWN_COUNT, skipped
from curation.readers.settings import NAME_COLUMN
from curation.stages import counted_columns
from pipelines.run_folder import load_run, root_hash, stale_stages
from pipelines.storage.files import Folder
from pipelines.storage.manifest import TIMINGS, read_manifest

#: Prefixes of counters by reason, of records set aside and repaired; most reasons shown.
_ASIDE, _MENDED, _SHOWN = "set_aside.", "mended.", 3


def token_facts(*manifests: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens that a run wrote, the distinct ones of them, and epochs; None: unknown.

    The last of the manifests that has a fact counts.
    """
    counts: dict[str, Any] = {}
    for manifest in manifests:
        counts |= manifest["counts"]
    tokens, distinct = counts.get("tokens"), counts.get("distinct_tokens")
    return {
        "tokens": tokens,
        "distinct_tokens": distinct,
        "epochs": round(tokens / distinct, 4) if tokens and distinct else None,
    }


def ranked_reasons(removed: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return reasons and counts of a funnel entry, the reason with the most documents first."""
    return sorted(removed.items(), key=lambda kv: (-kv[1]["documents"], kv[0]))


def records_text(counters: dict[str, int]) -> str:
    """Summarize what became of the input's records."""
    aside = counters.get("set_aside", 0)
    why = _ranked(counters, _ASIDE)
    hint = f"; {NAME_COLUMN}" if why and why[0][0].endswith(".no_text") else ""
    mended = _ranked(counters, _MENDED)
    broken = sum(count for _, count in mended)
    also = f"; {broken:,} are broken and were read as far as they go{_told(mended)}"
    left_out = counters.get(NOT_DRAWN_COUNT, 0)
    drawn = f"{left_out:,} were not drawn (readers.sample), " if left_out else ""
    return (
        f"{counters['records']:,} records read: {drawn}"
        f"{skipped(counters) - left_out:,} are not documents, "
        f"{aside:,} could not be read and were set aside{_told(why)}{hint}"
        f"{also if broken else ''}"
    )


def _ranked(counters: dict[str, int], prefix: str) -> list[tuple[str, int]]:
    counts = {k.removeprefix(prefix): v for k, v in counters.items() if k.startswith(prefix)}
    return sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))


def _told(ranked: list[tuple[str, int]]) -> str:
    return f" ({listed(ranked, _SHOWN)})" if ranked else ""


def listed(ranked: Sequence[tuple[str, int]], most: int) -> str:
    """Return the first of these reasons with their counts, and how many more there are."""
    shown = [f"{reason} {count:,}" for reason, count in ranked[:most]]
    return ", ".join([*shown, *([f"+{len(ranked) - most} more"] if len(ranked) > most else [])])


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
        "follows": (manifest.get("after") or {}).get("stage", ""),
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
        before = entries.get(after["follows"])
        if before and before["documents"] != after["documents_in"]:
            problems.append(
                f"{after['stage']} read {after['documents_in']} documents, "
                f"{before['stage']} had kept {before['documents']}"
            )
    return problems
