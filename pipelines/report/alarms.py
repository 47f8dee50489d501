"""Alarms: what a reader of a report should see first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from curation.readers.records import skipped
from curation.stages import find

#: Set-aside reasons of documents that crashed a stage.
_POISON = ("crash.", "memory.")
#: What documents without a language are counted as.
_NOT_KNOWN = "None"
_ENTRY = Mapping[str, Any]


#: Kinds of what is no text: how the names of the counters or reasons begin that count it, and what
#: there is to say.
_NOISE = {
    "binary": ("set_aside.http.binary", "bodies are no text (http.binary)"),
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
        names = ", ".join(stages)
        yield f"Left by an earlier run with another recipe or other documents, not shown: {names}."


def _poison(funnel: Sequence[_ENTRY]) -> Iterator[str]:
    for entry in funnel:
        for name, records in sorted(entry["counters"].items()):
            reason = name.removeprefix("set_aside.")
            if reason.startswith(_POISON):
                yield f"{entry['stage']}: {records:,} documents were set aside for {reason}."


def _noted(entry: _ENTRY) -> Iterator[str]:
    """Yield what the stage itself raised an alarm about, the most serious first."""
    yield from (found["alarm"] for found in entry["notes"].get("alarms", []))


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
    for reason, counts in sorted(entry["removed"].items()):
        if counts["documents"] / into > limits.rule_share:
            yield (
                f"{entry['stage']}: the rule {reason} alone removed {counts['documents']:,} of "
                f"{into:,} documents ({counts['documents'] / into:.1%})."
            )


def _languages(funnel: Sequence[_ENTRY], limits: Alarms) -> Iterator[str]:
    labelled = [e for e in funnel if e["languages"] and _NOT_KNOWN not in e["languages"]]
    known = [e for e in labelled if not find(e["stage"]).per_mix]
    named = [k for k, e in enumerate(known) if "language" in find(e["stage"]).adds]
    known = known[max(named, default=0) :]  # before, languages are the input's own
    if len(known) < 2:
        return
    first, last = known[0]["languages"], known[-1]["languages"]
    for name, counts in sorted(first.items()):
        had, left = counts["documents"], last.get(name, {"documents": 0})["documents"]
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
        if together := entry["counters"].get("copies_together"):
            yield (
                f"{entry['stage']}: {together:,} copies are in a sequence with another copy of "
                "their document: a shard has fewer sequences than such a document has copies."
            )
