"""The parts of a report about documents: signals, hosts, duplicates, random samples.

The answers are the explorer's. For a large run, evenly spaced whole files are read, so that a
report costs the same for a run of any size.
"""

from __future__ import annotations

from typing import Any

from curation.schema import VALUE_TEXT
from pipelines.reading.explorer import Explorer
from pipelines.reading.labels import draw
from pipelines.reading.ledger import main_stages
from pipelines.reading.search import KEPT
from pipelines.reading.signals import measuring_stage
from pipelines.run_folder import load_run

#: Documents sampled per rule and of the kept ones, and characters shown of their text.
_SAMPLES, _KEPT_SAMPLES, _CHARACTERS = 3, 8, 700
_HOSTS, _CLUSTERS = 30, 20
#: Characters shown of a title or URL.
_LINE = 300
_COLUMNS = ("id", "url", "title", "text", "language", "value", VALUE_TEXT, "threshold", "kept_id")


def documents(directory: str, most: int | None) -> dict[str, Any]:
    """Return facts of a run's documents, at most about `most` of them unless that is None.

    Returns `read` (documents), `signals`, `hosts`, `clusters`, `samples` by stage and reason, and
    `meanings` of reasons and signals.
    """
    if not main_stages(load_run(directory)[1]):  # tokens alone
        return nothing()
    explorer = Explorer(directory, most=most)
    return {
        "read": len(explorer.ledger),
        "signals": _signals(explorer),
        "hosts": _cut(explorer.hosts({})["values"][:_HOSTS], "value"),
        "clusters": _cut(explorer.clusters({})["clusters"][:_CLUSTERS], "url"),
        "samples": _samples(explorer),
        "meanings": explorer.meanings,
    }


def nothing() -> dict[str, Any]:
    """Return the facts for a run without readable documents."""
    return {"read": 0, "signals": [], "hosts": [], "clusters": [], "samples": {}, "meanings": {}}


def _signals(explorer: Explorer) -> list[dict[str, Any]]:
    """Return every rule with thresholds and its signal's histogram, those removing most first.

    A histogram counts documents with the signal, of the languages without thresholds of their own,
    by outcome: kept, removed by the rule, or removed by another rule.
    """
    if measuring_stage(explorer.ledger.stages) is None:
        return []
    rules: dict[str, dict[str, Any]] = {}
    measured = set(explorer.signals.names)  # none if no document reached the stage
    for limit in explorer.limits({})["limits"]:
        if limit["signal"] not in measured:
            continue
        held = rules.setdefault(
            limit["reason"], {"reason": limit["reason"], "signal": limit["signal"], "limits": []}
        )
        held["limits"].append(limit)
    for rule in rules.values():
        rule["histogram"] = explorer.signal({"limit": str(rule["limits"][0]["limit"])})
        rule["removed"] = sum(limit["removed"] for limit in rule["limits"])
    return sorted(rules.values(), key=lambda rule: (-rule["removed"], rule["reason"]))


def _samples(explorer: Explorer) -> dict[str, dict[str, list[dict[str, Any]]]]:
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for fate in sorted(explorer.ledger.fates, key=lambda fate: fate.reason or ""):
        reason = fate.reason or KEPT
        rows = draw(explorer.ledger, reason, _KEPT_SAMPLES if reason == KEPT else _SAMPLES, seed=0)
        shown = explorer.ledger.read(explorer.folder, rows.tolist(), _COLUMNS, _shown)
        stage = KEPT if reason == KEPT else fate.stage
        found.setdefault(stage, {})[reason] = shown
    return found


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    text = row["text"] or ""
    more = len(text) - _CHARACTERS
    lines = {name: (row[name] or "")[:_LINE] for name in ("url", "title", VALUE_TEXT)}
    return row | lines | {"text": text[:_CHARACTERS], "more_characters": max(more, 0)}


def _cut(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row | {name: (row[name] or "")[:_LINE]} for row in rows]
