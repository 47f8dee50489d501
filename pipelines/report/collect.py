"""Collect the facts of a run from its manifests, timings and documents.

The parts of a report about documents: signals, hosts, duplicates, random samples.

The answers are the explorer's. For a large run, evenly spaced whole files are read, so that a
report costs the same for a run of any size.

Alarms: what a reader of a report should see first.
"""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from curation.config import read_yaml
from curation.credentials import redact
from curation.errors import InputError, first_line
from curation.readers.records import skipped
from curation.resources import root
from curation.schema import VALUE_TEXT
from curation.stages import find
from pipelines.engine.transform import never_answered
from pipelines.reading.explorer import Explorer
from pipelines.reading.funnel import counts
from pipelines.reading.ledger import main_stages
from pipelines.reading.search import KEPT, draw
from pipelines.reading.signals import measuring_stage
from pipelines.run_folder import REPORT_DATA, load_run
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest

#: Set-aside reasons of documents that crashed a stage.
_POISON = ("crash.", "memory.")
#: What documents without a language are counted as.
_NOT_KNOWN = "None"
_ENTRY = Mapping[str, Any]


#: Kinds of what is no text: how the names of the counters or reasons begin that count it, and what
#: there is to say.
_NOISE = {
    "binary": ("set_aside.http.binary", "bodies are not text (http.binary)"),
    "repaired": ("repaired.", "pages had letters of another encoding, which were repaired"),
    "undecodable": ("text.", "documents are not as they were written (rules text.*)"),
    "und": ("language.low_score", "documents are in no language that is known for sure"),
}


class Alarms(NamedTuple):
    """Shares of documents or records, from 0 to 1, above which there is an alarm."""

    set_aside_share: float
    removed_share: float
    rule_share: float
    language_share: float
    language_documents: int
    noise_share: Mapping[str, float]  # by kind, see _NOISE


def alarms(facts: Mapping[str, Any], limits: Alarms) -> list[str]:
    """Return one sentence per finding that needs attention, the most serious first."""
    funnel = facts["funnel"]
    return [
        *(f"Counts do not add up: {problem}." for problem in facts["problems"]),
        *_stale(facts["stale"]),
        *_poison(funnel),
        *(f"{entry['stage']}: {what}." for entry in funnel for what in _noted(entry)),
        *_unread(funnel[0], limits),
        *(line for entry in funnel for line in _noise(entry, limits)),
        *(line for entry in funnel for line in _removed(entry, limits)),
        *_languages(funnel, limits),
        *_advice(funnel),
    ]


def _stale(stages: Sequence[str]) -> Iterator[str]:
    if stages:
        yield f"Not shown, as recipe, documents or manifest changed since: {', '.join(stages)}."


def _poison(funnel: Sequence[_ENTRY]) -> Iterator[str]:
    for entry in funnel:
        for name, records in sorted(entry["counters"].items()):
            reason = name.removeprefix("set_aside.")
            if reason.startswith(_POISON):
                yield f"{entry['stage']}: {records:,} documents were set aside for {reason}."


def _noted(entry: _ENTRY) -> Iterator[str]:
    """Yield what the stage itself raised an alarm about, the most serious first."""
    yield from (found["alarm"] for found in entry["notes"].get("alarms", []))
    yield from never_answered({**entry["counters"], "documents_in": entry["documents_in"]})


def _unread(first: _ENTRY, limits: Alarms) -> Iterator[str]:
    counters = first["counters"]
    aside = counters.get("set_aside", 0)
    of = counters.get("records", 0) - skipped(counters)
    if of and aside / of > limits.set_aside_share:
        yield f"{aside:,} of {of:,} records ({aside / of:.1%}) could not be read."


def _noise(entry: _ENTRY, limits: Alarms) -> Iterator[str]:
    """Yield one sentence for each kind of what is no text that is more frequent than usual."""
    removed = {reason: n["documents"] for reason, n in entry["removed"].items()}
    counts = entry["counters"] | removed
    for kind, (counted, said) in _NOISE.items():
        found = sum(counts[name] for name in counts if name.startswith(counted))
        into = entry["documents_in"] + (found if kind == "binary" else 0)
        if into and found / into > limits.noise_share[kind]:
            yield f"{entry['stage']}: {found:,} of {into:,} {said} ({found / into:.1%})."


def _removed(entry: _ENTRY, limits: Alarms) -> Iterator[str]:
    into, stage = entry["documents_in"], find(entry["stage"])
    if not into or stage.per_mix:  # a mix drops documents by design
        return
    if entry["documents_removed"] / into > limits.removed_share:
        yield (
            f"{entry['stage']} removed {entry['documents_removed']:,} of {into:,} documents "
            f"({entry['documents_removed'] / into:.1%})."
        )
    for reason, found in sorted(entry["removed"].items()):
        if found["documents"] / into > limits.rule_share:
            yield (
                f"{entry['stage']}: the rule {reason} alone removed {found['documents']:,} of "
                f"{into:,} documents ({found['documents'] / into:.1%})."
            )


def _languages(funnel: Sequence[_ENTRY], limits: Alarms) -> Iterator[str]:
    labelled = [e for e in funnel if e["languages"] and _NOT_KNOWN not in e["languages"]]
    known = [e for e in labelled if not find(e["stage"]).per_mix]
    named = [k for k, e in enumerate(known) if "language" in find(e["stage"]).adds]
    known = known[max(named, default=0) :]  # before, languages are the input's own
    if len(known) < 2:
        return
    first, last = known[0]["languages"], known[-1]["languages"]
    for name, found in sorted(first.items()):
        had, left = found["documents"], last.get(name, {"documents": 0})["documents"]
        if had >= limits.language_documents and 1 - left / had > limits.language_share:
            yield (
                f"Language {name}: of {had:,} documents after "
                f"{known[0]['stage']}, {left:,} are left after {known[-1]['stage']}."
            )


def _advice(funnel: Sequence[_ENTRY]) -> Iterator[str]:
    for entry in funnel:
        notes = entry["notes"]
        for line in [notes["lacking"]] if notes.get("lacking") else notes.get("advice", []):
            yield f"{entry['stage']}: {line}."
        yield from copies_together(entry["stage"], entry["counters"])


def copies_together(stage: str, counters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentence on copies that share a sequence, as a shard has too few; none without."""
    if together := counters.get("copies_together"):
        yield (
            f"{stage}: {together:,} copies are in a sequence with another copy of their document: "
            "a shard has fewer sequences than such a document has copies."
        )


def collect(directory: str, command: str | None = None) -> dict[str, Any]:
    """Return the facts of a run: `counts`, and its documents (`pipelines.report.collect`).

    Also `command` (the run's, as given or as in an earlier report), `software`, `inputs`, `written`
    (a time) and `alarms`. For large runs, documents are read from a sample of files. Raises
    ConfigError if the folder is not a run.
    """
    facts = counts(directory)
    folder, stages = load_run(directory)
    first, last = (read_manifest(folder / stage) for stage in (stages[0], stages[-1]))
    limits = _limits()
    try:
        read = documents(directory, limits["documents"])
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
    return read_yaml(root() / "configs" / "report.yaml")


#: Documents sampled per rule and of the kept ones, and characters shown of their text.
_SAMPLES, _KEPT_SAMPLES, _CHARACTERS = 3, 8, 700
_HOSTS, _CLUSTERS = 30, 20
#: Characters shown of a title or URL.
_LINE = 300
_COLUMNS = ("id", "url", "title", "text", "language", "value", VALUE_TEXT, "threshold", "kept_id")


def documents(directory: str, most: int) -> dict[str, Any]:
    """Return facts of a run's documents, at most about `most` of them.

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
    """Return every rule with its thresholds, those removing most first."""
    if measuring_stage(explorer.ledger.stages) is None:
        return []
    rules: dict[str, dict[str, Any]] = {}
    for limit in explorer.limits({})["limits"]:
        held = {"reason": limit["reason"], "signal": limit["signal"], "limits": []}
        rules.setdefault(limit["reason"], held)["limits"].append(limit)
    for rule in rules.values():
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
