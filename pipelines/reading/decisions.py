"""What a run decided about one document, stage by stage."""

import contextlib
import difflib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import CurationError, InputError
from curation.schema import VERDICT_COLUMNS
from curation.stages import find, known_stages, meaning
from curation.stages.rights import told
from pipelines.dedup.indexes import open_index
from pipelines.engine.transform import ERRORS
from pipelines.run_folder import load_run, run_settings, stage_before
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest
from pipelines.storage.shards import own_ids, read_batches, read_kinds, read_rows

#: Shown differences between a duplicate and the kept copy: lines, length, and context.
_CHANGES = 20
_CHANGE_CHARACTERS = 400
_CONTEXT = 40
#: Words, and single characters of scripts without spaces, that differences within lines are told
#: by; how similar two lines must be; and comparisons of words in all.
_TOKEN = re.compile(r"[^\W\u2e80-\U0003ffff]+|.", re.DOTALL)
_ALIKE, _WORDS = 0.4, 4_000_000
#: URLs listed when several end with the one asked for.
_URLS_SHOWN = 3
_ASIDE = "set_aside"
#: Kinds of files of the first stage that name its documents and records.
_KINDS = ("documents", "removed", _ASIDE)
#: Columns shown of a document.
FACTS = tuple(column for stage in known_stages().values() for column in stage.shown)

#: Selects the rows of a batch.
_Which = Callable[[pa.RecordBatch], pa.Array]


def why(run: str, document: str) -> list[dict[str, Any]]:
    """Return every decision of a run on the documents with this id, URL, or end of one URL.

    Raises ConfigError if there is no run, InputError if there is no document, or several URLs end
    so.
    """
    folder, stages = load_run(run)
    found = named(folder, stages, document) or _by_end(folder, stages, document)
    return [_story(folder, stages, row) for row in found]


def named(folder: Folder, stages: Sequence[str], document: str) -> list[dict[str, Any]]:
    """Return documents of the first stage with this id or URL, and their shards.

    Records with this URL that the stage set aside, which are not documents, come last.
    """
    found: list[dict[str, Any]] = []
    ids = pa.array([document, *own_ids(folder / stages[0], [document])])
    for name in files_of(read_manifest(folder / stages[0]), *_KINDS):
        aside = name.startswith(f"{_ASIDE}/")
        columns = ["url", "date", "source", *(("reason", "detail") if aside else ("id",))]
        for batch in read_batches(folder / stages[0], name, columns):
            match = pc.equal(batch["url"], document)
            if not aside:
                match = pc.or_kleene(pc.is_in(batch["id"], ids), match)
            for row in batch.filter(pc.fill_null(match, False)).to_pylist():
                # A page on which the extractor failed is in `removed`, too.
                if not (aside and any(row["source"] == known["source"] for known in found)):
                    found.append({"id": None} | row | {"shard": name.split("/", 1)[1]})
    return found


def _by_end(folder: Folder, stages: Sequence[str], end: str) -> list[dict[str, Any]]:
    """Return documents of the one page whose URL ends so: `bees.html` for `file:bees.html`.

    Raises InputError if no URL matches, or several do, naming some of them.
    """
    urls: set[str] = set()
    for batch in read_kinds(folder / stages[0], _KINDS, ["url"]):
        match = pc.fill_null(pc.ends_with(batch["url"], end), False)
        urls.update(batch["url"].filter(match).to_pylist())
    # http and https captures are of the same page.
    if len({url.rpartition("://")[2] for url in urls}) == 1:
        return [row for url in sorted(urls) for row in named(folder, stages, url)]
    none = f"{end}: no document of {folder.shown} has this id or URL"
    if not urls:
        raise InputError(f"{none}, and no URL ends with it")
    some = ", ".join(sorted(urls)[:_URLS_SHOWN])
    raise InputError(f"{none}; {len(urls):,} URLs end with it: {some}")


def _story(folder: Folder, stages: Sequence[str], row: dict[str, Any]) -> dict[str, Any]:
    decisions: list[dict[str, Any]] = []
    if row["id"] is None:
        aside = {"stage": stages[0], "decision": "set aside"}
        decisions.append(aside | {name: row[name] for name in ("reason", "detail")})
    else:
        for stage, kind, found in versions(folder, stages, row["shard"], row):
            decisions.append(decision(folder, stage, kind, found, row["shard"]))
            decisions[-1] |= _further(folder, stage, kind, found, row["shard"])
    return {name: row[name] for name in ("id", "url", "date", "source")} | {"decisions": decisions}


def versions(
    folder: Folder, stages: Sequence[str], shard: str, document: Mapping[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (stage, `documents` or `removed`, row) of every stage that a document reached.

    A stage that writes tokens gives `index` and the document's spans there.
    """
    gone: set[str | None] = set()
    for stage in stages:
        if stage_before(stage, stages) in gone:
            gone.add(stage)
            continue
        for kind in ("removed", "documents"):
            if (row := _row(folder / stage, f"{kind}/{shard}", document)) is not None:
                yield stage, kind, row
                gone |= {stage} if kind == "removed" else set()
                break
        else:
            if find(stage).is_sink and (spans := token_spans(folder / stage, document)):
                yield stage, "index", {"spans": spans}


def decision(
    folder: Folder, stage: str, kind: str, row: dict[str, Any], shard: str
) -> dict[str, Any]:
    """Return what a stage decided about a document, found or repaired, and cut out of it.

    `kind` and `row` are those of `versions`.
    """
    if kind == "index":
        return {"stage": stage, "decision": "written", **row}
    place = folder / stage
    found: dict[str, Any] = {"stage": stage, "decision": "kept"}
    if kind == "removed":
        found["decision"] = kind
        found |= {name: row[name] for name in VERDICT_COLUMNS if row.get(name) is not None}
    found |= {name: row[name] for name in FACTS if row.get(name) is not None}
    found |= _mended(place, shard, row)
    if find(stage).is_source and (rights := told(row)):
        found["rights"] = rights
    found |= _judged(stage, _settings(folder, stage), row)
    cuts = _about(place, f"edits/{shard}", _of_id(row))
    edits = [{name: cut[name] for name in _OF_CUT if cut.get(name) is not None} for cut in cuts]
    return found | ({"cut": edits} if edits else {})


_OF_CUT = ("reason", "position", "text", "kept_id")


@functools.lru_cache(maxsize=64)
def _settings(folder: Folder, stage: str) -> dict[str, Any]:
    """Settings of a stage as it ran; a run that is looked at doesn't change."""
    return run_settings(folder, stage)


def _further(
    folder: Folder, stage: str, kind: str, row: dict[str, Any], shard: str
) -> dict[str, Any]:
    """Return the document's own columns and tables, and the one that was kept in its place."""
    if kind == "index":
        return {}
    described, facts = find(stage), dict[str, Any]()
    if row.get("kept_id"):
        facts |= _kept_instead(folder, stage, row)
    shown = described.shows(_settings(folder, stage))
    if columns := {name: row[name] for name in shown if row.get(name) is not None}:
        facts["columns"] = columns
    name = f"{described.beside}/{shard}"
    if described.beside and (beside := list(_about(folder / stage, name, _of_id(row)))):
        facts["beside"] = beside
    return facts


def _of_id(document: Mapping[str, Any]) -> _Which:
    return lambda batch: pc.equal(batch["id"], pa.scalar(document["id"], batch["id"].type))


def _of_place(document: Mapping[str, Any]) -> _Which:
    """Select by file and offset: a shard may have files that number their rows alike."""

    def same(batch: pa.RecordBatch, name: str) -> pa.Array:
        return pc.equal(pc.struct_field(batch["source"], name), document["source"][name])

    return lambda batch: pc.and_(same(batch, "file"), same(batch, "offset"))


def _of_record(document: Mapping[str, Any]) -> _Which:
    return lambda batch: pc.and_(_of_id(document)(batch), _of_place(document)(batch))


def _about(
    place: Folder, name: str, which: _Which, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that `which` selects; none where there is no such file."""
    for batch in read_batches(place, name, columns) if place.exists(name) else ():
        yield from batch.filter(pc.fill_null(which(batch), False)).to_pylist()


def _row(place: Folder, name: str, document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the document's row in a shard: only ids and places are read of the others."""
    first = 0
    for batch in read_batches(place, name, ("id", "source")) if place.exists(name) else ():
        at = pc.index(_of_record(document)(batch), True).as_py()
        if at >= 0:
            return next(row for _, row in read_rows(place, name, [first + at]))
        first += batch.num_rows
    return None


def _judged(stage: str, settings: Mapping[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the limits that the stage compared, and what the one that removed it measures."""
    described, reason = find(stage), row.get("reason")
    # The limit that removed it is shown already, unless there are several.
    several = reason is None or described.has_signals
    rules = list(described.limits(settings, row)) if several else []
    signals = {rule["rule"]: rule.get("signal") for rule in rules}
    means = meaning(reason, signals.get(reason)) if reason else ""
    return {"rules": rules} | ({"means": means} if means else {})


def _mended(place: Folder, shard: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return what was wrong with the document's record, or failed on it, in this stage."""
    failed = next(_about(place, f"{ERRORS}/{shard}", _of_record(row)), None)
    if failed is None:  # what is set aside may have no ids
        aside = _about(place, f"{_ASIDE}/{shard}", _of_place(row), ("source", "detail"))
        failed = next(aside, None)
    facts = {"detail": failed["detail"]} if failed else {}
    broken = next(_about(place, f"mended/{shard}", _of_record(row)), None)
    return facts | ({"mended": broken["reason"], "detail": broken["detail"]} if broken else {})


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
    files = files_of(read_manifest(place), "documents")
    found = (_about(place, file, _of_id({"id": name}), ("id", "url", "text")) for file in files)
    return next((row for rows in found for row in rows), None)


def _difference(removed: str, kept: str) -> Iterator[str]:
    """Return a line diff: `-` lines only in the removed text, `+` only in the kept one."""
    lines = compared(removed.splitlines(), kept.splitlines())
    changes = [line for line in lines if line[0] != " "]
    for sign, line, *parts in changes[:_CHANGES]:
        shown = "".join(
            text
            if differs or len(text) <= 2 * _CONTEXT
            else f"{text[:_CONTEXT]}…{text[-_CONTEXT:]}"
            for text, differs in (parts[0] if parts else [(line, True)])
        )
        yield f"{sign} {shown[:_CHANGE_CHARACTERS]}{'…' * (len(shown) > _CHANGE_CHARACTERS)}"
    if len(changes) > _CHANGES:
        yield f"… and {len(changes) - _CHANGES} more changes"


def compared(ours: Sequence[str], theirs: Sequence[str]) -> list[list[Any]]:
    """Lines of two texts: `[" ", line]` in both, `["-", line]` or `["+", line]` in one.

    With the parts of lines that are alike.
    """
    matcher = difflib.SequenceMatcher(None, ours, theirs)  # without junk: cubic for equal lines
    lines: list[list[Any]] = []
    words = _WORDS
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            lines += [[" ", line] for line in ours[i:i_end]]
            continue
        gone: list[list[Any]] = [["-", line] for line in ours[i:i_end]]
        come: list[list[Any]] = [["+", line] for line in theirs[j:j_end]]
        for old, new in zip(gone, come, strict=False):
            tokens = [_TOKEN.findall(line[1]) for line in (old, new)]
            words -= len(tokens[0]) * len(tokens[1])
            if words >= 0 and (parts := changed_words(*tokens)):
                old.append(parts[0])
                new.append(parts[1])
        lines += gone + come
    return lines


Parts = list[tuple[str, bool]]


def changed_words(ours: list[str], theirs: list[str]) -> tuple[Parts, Parts] | None:
    """Return (text, whether it differs) of two lines that are alike; None where they are not."""
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    before: Parts = []
    after: Parts = []
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        for parts, text in ((before, ours[i:i_end]), (after, theirs[j:j_end])):
            if text:
                parts.append(("".join(text), kind != "equal"))
    return before, after


def token_spans(place: Folder, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return where a document's tokens are in the token shards of a stage."""
    files = files_of(read_manifest(place), "index")
    return [{"file": n} | row for n in files for row in _about(place, n, _of_record(document))]
