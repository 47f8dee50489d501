"""Collect the facts of a run from its manifests, timings and documents.

The parts of a report about documents: signals, hosts, duplicates, random samples.

The answers are the explorer's. For a large run, evenly spaced whole files are read, so that a
report costs the same for a run of any size.
"""

from __future__ import annotations

import functools
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from curation.config import parse_yaml
from curation.credentials import redact
from curation.errors import InputError, first_line
from curation.resources import root
from curation.schema import VALUE_TEXT
from pipelines.reading.explorer import Explorer
from pipelines.reading.funnel import counts
from pipelines.reading.ledger import main_stages
from pipelines.reading.search import KEPT, draw
from pipelines.reading.signals import measuring_stage
from pipelines.report.alarms import Alarms, alarms
from pipelines.run_folder import REPORT_DATA, load_run
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest


def collect(
    directory: str, command: str | None = None, all_documents: bool = False
) -> dict[str, Any]:
    """Return the facts of a run: `counts`, and its documents (`pipelines.report.collect`).

    Also `command` (the run's, as given or as in an earlier report), `software`, `inputs`, `written`
    (a time) and `alarms`. For large runs, documents are read from a sample of files unless
    `all_documents`. Raises ConfigError if the folder is not a run.
    """
    from pipelines.report.collect import documents, nothing

    facts = counts(directory)
    folder, stages = load_run(directory)
    first, last = (read_manifest(folder / stage) for stage in (stages[0], stages[-1]))
    limits = _limits()
    try:
        read = documents(directory, None if all_documents else limits["documents"])
    except (OSError, pa.ArrowException, InputError) as error:
        read = nothing()
        reason = first_line(error)
        facts["problems"].append(f"documents can't be read ({reason}); see curate verify")
    return {
        **facts,
        "command": redact(command) if command else _command_before(folder, facts["root"]),
        "software": last["software"],
        "inputs": [file["name"] for file in first.get("inputs", [])],
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "alarms": alarms(facts, Alarms(**limits["alarms"])),
        "documents": read,
    }


def _command_before(folder: Folder, root_before: str) -> str | None:
    """Return the command in an earlier report of the same run."""
    try:
        before = json.loads(folder.read_bytes(REPORT_DATA))
        return before["command"] if before["root"] == root_before else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@functools.cache
def _limits() -> dict[str, Any]:
    path = root() / "configs" / "report.yaml"
    return parse_yaml(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


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
