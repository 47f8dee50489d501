"""`curate why`: show every decision that a run took on one document."""

from __future__ import annotations

import argparse
import contextlib
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.text import Text

from curation.errors import ConfigError, CurationError, InputError
from curation.rights.telling import told
from curation.schema import CLUSTER_SIZE, VALUE_TEXT
from curation.stages import find as find_stage
from curation.stages import known_stages, meaning
from pipelines.commands.options import add_json, add_run
from pipelines.console import PlainConsole
from pipelines.dedup.indexes import open_index
from pipelines.engine.errors import ERRORS
from pipelines.report.values import value_text
from pipelines.run_folder import load_run, run_settings, stage_before
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest
from pipelines.storage.shards import read_batches, read_kinds
from pipelines.terminal import say_json

#: Shown differences between a duplicate and the kept copy: number, length, and context.
_CHANGES = 20
_CHANGE_CHARACTERS = 400
_CONTEXT = 40
#: URLs listed when several end with the one asked for.
_URLS_SHOWN = 3
_ASIDE = "set_aside"
#: Kinds of files of the first stage that name its documents and records.
_KINDS = ("documents", "removed", _ASIDE)
#: Columns read of a page on which the extractor failed.
_FAILED = ("source", "detail")
#: Columns shown of a document.
FACTS = tuple(column for stage in known_stages().values() for column in stage.shown)


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument("document", metavar="ID_OR_URL")
    add_run(parser)
    add_json(parser)
    parser.set_defaults(command=why)


def why(options: argparse.Namespace) -> int:
    """Find the document by id or URL and print its path through the stages."""
    if not options.document.strip():
        raise ConfigError("ID_OR_URL: an empty name of a document")
    folder, stages = load_run(options.run)
    found = find(folder, stages, options.document) or _by_end(folder, stages, options.document)
    stories = [_story(folder, stages, row) for row in found]
    if options.json:
        say_json(stories)
    else:
        console = PlainConsole()
        for number, story in enumerate(stories):
            if number:
                console.print()
            console.print(*_text(story), sep="\n", soft_wrap=True)
    return 0


def find(folder: Folder, stages: list[str], document: str) -> list[dict[str, Any]]:
    """Yield documents of the first stage with this id or URL, and their shards.

    Records with this URL that the stage set aside, which are not documents, come last.
    """
    found: list[dict[str, Any]] = []
    for name in files_of(read_manifest(folder / stages[0]), *_KINDS):
        aside = name.startswith(f"{_ASIDE}/")
        columns = ["url", "date", "source", *(("reason", "detail") if aside else ("id",))]
        for batch in read_batches(folder / stages[0], name, columns):
            match = pc.equal(batch["url"], document)
            if not aside:
                match = pc.or_kleene(pc.equal(batch["id"], document), match)
            for row in batch.filter(pc.fill_null(match, False)).to_pylist():
                # A page on which the extractor failed is in `removed`, too.
                if not (aside and any(row["source"] == known["source"] for known in found)):
                    found.append({"id": None} | row | {"shard": name.split("/", 1)[1]})
    return found


def _by_end(folder: Folder, stages: list[str], end: str) -> list[dict[str, Any]]:
    """Return documents of the one page whose URL ends so: `bees.html` for `file:bees.html`.

    Raises InputError if no URL matches, or several do, naming some of them.
    """
    urls: set[str] = set()
    for batch in read_kinds(folder / stages[0], _KINDS, ["url"]):
        match = pc.fill_null(pc.ends_with(batch["url"], end), False)
        urls.update(batch["url"].filter(match).to_pylist())
    # http and https captures are of the same page.
    if len({url.rpartition("://")[2] for url in urls}) == 1:
        return [row for url in sorted(urls) for row in find(folder, stages, url)]
    none = f"{end}: no document of {folder.shown} has this id or URL"
    if not urls:
        raise InputError(f"{none}, and no URL ends with it")
    some = ", ".join(sorted(urls)[:_URLS_SHOWN])
    raise InputError(f"{none}; {len(urls):,} URLs end with it: {some}")


def _story(folder: Folder, stages: list[str], row: dict[str, Any]) -> dict[str, Any]:
    decisions: list[dict[str, Any]] = []
    last: dict[str, str] = {}  # decision by stage
    if row["id"] is None:
        aside = {"stage": stages[0], "decision": "set aside"}
        decisions.append(aside | {name: row[name] for name in ("reason", "detail")})
    for stage in stages if row["id"] is not None else ():
        before = stage_before(stage, stages)
        if before is not None and last.get(before) != "kept":
            continue
        decision = _decision(folder, stage, row)
        if decision is not None:
            decisions.append(decision)
            last[stage] = decision["decision"]
    return {
        "id": row["id"],
        "url": row["url"],
        "date": row["date"],
        "source": row["source"],
        "decisions": decisions,
    }


def _decision(folder: Folder, stage: str, row: dict[str, Any]) -> dict[str, Any] | None:
    place = folder / stage
    removed = _row(place, f"removed/{row['shard']}", row)
    if removed is not None:
        decision: dict[str, Any] = {"stage": stage, "decision": "removed"}
        decision |= {
            k: removed[k]
            for k in ("reason", "value", VALUE_TEXT, "threshold", CLUSTER_SIZE)
            if removed.get(k) is not None
        }
        if removed["kept_id"]:
            decision["kept_id"] = removed["kept_id"]
            decision |= _kept_instead(folder, stage, removed)
        return decision | _more(folder, removed, row["shard"], stage) | cuts_of(place, row)
    kept = _row(place, f"documents/{row['shard']}", row)
    if kept is None:
        return token_spans(place, row, stage) if find_stage(stage).is_sink else None
    decision = {"stage": stage, "decision": "kept"}
    return decision | _more(folder, kept, row["shard"], stage) | cuts_of(place, row)


def _row(place: Folder, name: str, row: dict[str, Any]) -> dict[str, Any] | None:
    if not place.exists(name):
        return None
    for batch in read_batches(place, name):
        same = pc.and_(
            pc.equal(batch["id"], row["id"]),
            pc.equal(pc.struct_field(batch["source"], "offset"), row["source"]["offset"]),
        )
        found = batch.filter(same)
        if found.num_rows:
            return found.slice(0, 1).to_pylist()[0]  # type: ignore[no-any-return]
    return None


def _more(folder: Folder, row: dict[str, Any], shard: str, stage: str) -> dict[str, Any]:
    """Return what the stage measured, or repaired before reading the document."""
    facts = {k: row[k] for k in FACTS if row.get(k) is not None}
    facts |= mended(folder / stage, row | {"shard": shard})
    described, settings = find_stage(stage), run_settings(folder, stage)
    if columns := {k: row[k] for k in described.shows(settings) if row.get(k) is not None}:
        facts["columns"] = columns
    if described.is_source and (rights := told(row)):
        facts["rights"] = rights
    facts |= judged(stage, settings, row)
    beside = _rows(folder / stage, f"{described.beside}/{shard}", row) if described.beside else []
    return facts | ({"beside": beside} if beside else {})


def judged(stage: str, settings: Mapping[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the limits that the stage compared, and what the one that removed it measures."""
    described, reason = find_stage(stage), row.get("reason")
    # The limit that removed it is shown already, unless there are several.
    several = reason is None or described.has_signals
    rules = list(described.limits(settings, row)) if several else []
    signals = {rule["rule"]: rule.get("signal") for rule in rules}
    means = meaning(reason, signals.get(reason)) if reason else ""
    return {"rules": rules} | ({"means": means} if means else {})


def mended(place: Folder, row: dict[str, Any]) -> dict[str, Any]:
    """Return what was wrong with the document's record, or failed on it, in this stage."""
    failed = _row(place, f"{ERRORS}/{row['shard']}", row)
    failed = failed or _set_aside(place, row)
    facts = {"detail": failed["detail"]} if failed else {}
    broken = _row(place, f"mended/{row['shard']}", row)
    return facts | ({"mended": broken["reason"], "detail": broken["detail"]} if broken else {})


def _set_aside(place: Folder, row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the document's row among those set aside, which may have no ids."""
    name = f"{_ASIDE}/{row['shard']}"
    if not place.exists(name):
        return None
    for batch in read_batches(place, name, _FAILED):
        offset = pc.struct_field(batch["source"], "offset")
        for found in batch.filter(pc.equal(offset, row["source"]["offset"])).to_pylist():
            if found["source"] == row["source"]:
                return found  # type: ignore[no-any-return]
    return None


def cuts_of(place: Folder, row: dict[str, Any]) -> dict[str, Any]:
    """Return what the stage cut out of the document before keeping or removing it."""
    rows = _rows(place, f"edits/{row['shard']}", row)
    cuts = [{name: cut[name] for name in ("reason", "position", "text")} for cut in rows]
    return {"cut": cuts} if cuts else {}


def _rows(place: Folder, name: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows about this document in one of the stage's further tables."""
    if not place.exists(name):
        return []
    rows = (b.filter(pc.equal(b["id"], row["id"])) for b in read_batches(place, name))
    return [found for batch in rows for found in batch.to_pylist()]


def _kept_instead(folder: Folder, stage: str, removed: dict[str, Any]) -> dict[str, Any]:
    """Return the URL of the document kept instead of a duplicate, and how the texts differ.

    With an index, it may be in another run.
    """
    settings = read_manifest(folder / stage)["settings"]
    places = [folder / stage]
    for path in settings.get("index", {}).get("against", []):
        with contextlib.suppress(CurationError):  # deleted, or reachable only with credentials
            places.append(open_index(path, stage)[0])
    for place in places:
        kept = _document(place, removed["kept_id"])
        if kept is not None:
            found = {"kept_url": kept["url"]}
            found |= {"kept_in": place.shown} if place != places[0] else {}
            return found | {"difference": list(_difference(removed["text"], kept["text"]))}
    return {}


def _document(place: Folder, name: str) -> dict[str, Any] | None:
    for batch in read_kinds(place, ["documents"], ["id", "url", "text"]):
        found = batch.filter(pc.equal(batch["id"], name))
        if found.num_rows:
            return found.slice(0, 1).to_pylist()[0]  # type: ignore[no-any-return]
    return None


def _difference(removed: str, kept: str) -> Iterator[str]:
    """Return a line diff: `-` lines only in the removed text, `+` only in the kept one."""
    ours, theirs = removed.splitlines(), kept.splitlines()
    changes = difflib.SequenceMatcher(None, ours, theirs).get_opcodes()
    changes = [change for change in changes if change[0] != "equal"]
    for _, i, i_end, j, j_end in changes[:_CHANGES]:
        lost, gained = "\n".join(ours[i:i_end]), "\n".join(theirs[j:j_end])
        first, last = _common(lost, gained)
        for sign, text in (("-", lost), ("+", gained)):
            shown = text[first : len(text) - last][:_CHANGE_CHARACTERS]
            before = "…" if first and lost and gained else ""
            after = "…" if len(text) - first - last > _CHANGE_CHARACTERS or last else ""
            for line in shown.splitlines() if text else []:
                yield f"{sign} {before}{line}{after}"
    if len(changes) > _CHANGES:
        yield f"… and {len(changes) - _CHANGES} more changes"


def _common(first: str, second: str) -> tuple[int, int]:
    """Count the characters shared at the start and end, leaving some for context."""
    start = _shared(first, second)
    end = _shared(first[start:][::-1], second[start:][::-1])
    return max(0, start - _CONTEXT), max(0, end - _CONTEXT)


def _shared(first: str, second: str) -> int:
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def token_spans(place: Folder, row: dict[str, Any], stage: str) -> dict[str, Any] | None:
    """Return where the document's tokens are in the token shards."""
    spans: list[dict[str, Any]] = []
    for name in files_of(read_manifest(place), "index"):
        for batch in read_batches(place, name):
            if "id" in batch.schema.names:
                found = batch.filter(pc.equal(batch["id"], pa.scalar(row["id"])))
                spans += [{"file": name} | r for r in found.to_pylist()]
    return {"stage": stage, "decision": "written", "spans": spans} if spans else None


def _text(story: dict[str, Any]) -> Iterator[str | Text]:
    source = story["source"]
    yield from [
        f"document {story['id']}" if story["id"] is not None else "a record without a document",
        f"  url     {story['url']}",
        f"  date    {story['date']}",
        f"  source  {source['file']} at offset {source['offset']}",
    ]
    known: dict[str, Any] = {}
    for decision in story["decisions"]:
        yield from _decision_text(decision, known)
        known |= decision


def _decision_text(decision: dict[str, Any], known: Mapping[str, Any]) -> Iterator[str | Text]:
    """Yield the lines of a decision, without facts that are `known` from stages before it."""
    head = f"{decision['stage']}: {decision['decision']}"
    if "reason" in decision:
        head += f" by {decision['reason']}"
    if "value" in decision:
        head += f", value {value_text(decision['reason'], decision['value'])}"
    if VALUE_TEXT in decision:
        head += f", value {decision[VALUE_TEXT]}"
    if "threshold" in decision:
        head += f", threshold {value_text(decision['reason'], decision['threshold'])}"
    yield Text(head, "red" if "reason" in decision else "green")
    if "means" in decision:
        yield f"    {decision['means']}"
    if "detail" in decision:
        broken = f"{decision['mended']}: " if "mended" in decision else ""
        yield f"    {broken}{decision['detail']}"
    fresh = (k for k in FACTS if k in decision and decision[k] != known.get(k))
    facts = [f"{k} {_short(decision[k])}" for k in fresh]
    facts += [f"{k} {_short(v)}" for k, v in decision.get("columns", {}).items()]
    if facts:
        yield "    " + ", ".join(facts)
    yield from (f"    {line}" for line in decision.get("rights", []))
    if "kept_id" in decision:
        place = f" of {decision['kept_in']}" if "kept_in" in decision else ""
        kept_url = decision.get("kept_url", "")
        yield f"    kept in its place: {decision['kept_id']} {kept_url}{place}"
    if "cluster_size" in decision:
        size = f"    cluster of {decision['cluster_size']} documents"
        if decision["reason"] == "document.near" and decision["value"] < decision["threshold"]:
            size += ": linked to the kept one through other documents"
        yield size
    yield from (f"    | {line}" for line in decision.get("difference", []))
    yield from _rules_text(decision)
    beside = find_stage(decision["stage"]).tell(decision.get("beside", []))
    yield from (f"    {line}" for line in beside)
    for cut in decision.get("cut", []):
        yield f"    cut by {cut['reason']} at byte {cut['position']}: {cut['text'].strip()}"
    for span in decision.get("spans", []):
        yield "    " + ", ".join(f"{k} {v}" for k, v in span.items() if k != "id")


def _rules_text(decision: dict[str, Any]) -> Iterator[str | Text]:
    """Yield the limits, the one that decided marked, and those without a value on one line."""
    unmeasured = []
    for rule in decision.get("rules", []):
        if rule["value"] is None:
            unmeasured.append(rule["rule"])
            continue
        limits = ", ".join(f"{k} {rule[k]:.10g}" for k in ("min", "max") if k in rule)
        line = f"{rule['rule']:<36} {_short(rule['value']):>12}  ({limits})"
        decided = rule["rule"] == decision.get("reason")
        yield Text(f"  > {line}", "bold red") if decided else f"    {line}"
    if unmeasured:
        yield f"    not measured: {', '.join(unmeasured)}"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
