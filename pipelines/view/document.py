"""One document: its text with what stages cut, its decisions, its copies, its page."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.marks import Cut, Edit, mark
from curation.readers.documents import as_json, plain
from curation.rights.telling import told
from curation.schema import MADE, VERDICT_COLUMNS
from curation.stages import find
from pipelines.commands.why import FACTS, cuts_of, judged, mended, token_spans
from pipelines.report.values import snippet
from pipelines.run_folder import run_settings
from pipelines.storage.files import Folder
from pipelines.storage.shards import open_parquet
from pipelines.view.ledger import Ledger, key_of
from pipelines.view.search import described

#: Members of a cluster, lines of a difference, and characters of a text that are shown.
_MEMBERS, _DIFF_LINES, _TEXT = 60, 2000, 400_000
#: Lines that are compared; of longer texts only the beginning is.
_COMPARED = 5000
_IDENTITY = ("id", "url", "title", "date", "source")
#: Facts of a token span that are shown; the index has rights and own columns, too.
_SPAN = ("file", "sequence", "start", "length", "document_offset", "repeat")
#: Characters that are shown of a column of the document's own.
_OWN = 2000
#: Words, and single characters of scripts without spaces, that differences within lines are told
#: by; how similar two lines must be; and comparisons of words in all.
_TOKEN = re.compile(r"[^\W\u2e80-\U0003ffff]+|.", re.DOTALL)
_ALIKE, _WORDS = 0.4, 4_000_000


def page_of(folder: Folder, ledger: Ledger, row: int) -> dict[str, Any]:
    """All that a run knows of a document, but its token spans."""
    base = ledger.read(folder, [row], _IDENTITY)[0]
    shard = ledger.sources[ledger.numbers["file"][row]].name.split("/", 1)[1]
    versions = list(_versions(folder, ledger.stages, shard, base))
    decisions = [
        _decision(folder, stage, kind, shard, version) for stage, kind, version in versions
    ]
    texts = [version["text"] for _, _, version in versions]
    edits = [
        Edit(decision["stage"], _cuts(decision), after)
        for decision, after in zip(decisions[1:], texts[1:], strict=True)
        if decision["decision"] == "kept"
    ]
    whole = texts[0] if texts else ""
    segments = mark(whole, edits) if len(whole) <= _TEXT else mark(whole[:_TEXT], [])
    return {
        **described(folder, ledger, [row], ["id", "source"])[0],
        "decisions": decisions,
        "own": _own(versions[-1][2]) if versions else {},
        "segments": segments,
        "cut_short": len(whole) > _TEXT,
        "cluster": cluster_of(folder, ledger, row),
    }


def _own(row: dict[str, Any]) -> dict[str, str]:
    """Return the columns that came with the document's table, as text."""
    own = {name: value for name, value in row.items() if name not in MADE and name not in FACTS}
    texts = {
        name: value if isinstance(value, str) else as_json(plain(value))
        for name, value in own.items()
        if value is not None
    }
    return {name: text[:_OWN] for name, text in texts.items()}


def _versions(
    folder: Folder, stages: Sequence[str], shard: str, base: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(stage, "documents" or "removed", row) of every stage that the document reached."""
    for stage in stages:
        for kind in ("documents", "removed"):
            row = _row(folder / stage, f"{kind}/{shard}", base)
            if row is not None:
                yield stage, kind, row
                if kind == "removed":
                    return
                break


def _row(place: Folder, name: str, base: dict[str, Any]) -> dict[str, Any] | None:
    """The document's row in a shard: only ids and places are read of the others."""
    if not place.exists(name):
        return None
    with open_parquet(place, name) as parquet:
        for group in range(parquet.num_row_groups):
            ids = parquet.read_row_group(group, columns=["id", "source"])
            same = pc.and_(
                pc.equal(ids["id"], pa.scalar(base["id"], ids["id"].type)),
                pc.equal(pc.struct_field(ids["source"], "offset"), base["source"]["offset"]),
            )
            at = pc.index(same, True).as_py()
            if at >= 0:
                found = parquet.read_row_group(group).slice(at, 1).to_pylist()
                return found[0]  # type: ignore[no-any-return]
    return None


def _decision(
    folder: Folder, stage: str, kind: str, shard: str, row: dict[str, Any]
) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "stage": stage,
        "decision": "kept" if kind == "documents" else "removed",
    }
    if kind == "removed":
        decision |= {k: row[k] for k in VERDICT_COLUMNS if row.get(k) is not None}
    source = {"id": row["id"], "source": row["source"], "shard": shard}
    decision |= {name: row[name] for name in FACTS if row.get(name) is not None}
    decision |= mended(folder / stage, source)
    described = find(stage)
    if described.is_source and (rights := told(row)):
        decision["rights"] = rights
    decision |= judged(stage, _settings(folder, stage), row)
    return decision | cuts_of(folder / stage, source)


@functools.lru_cache(maxsize=64)
def _settings(folder: Folder, stage: str) -> dict[str, Any]:
    """Settings of a stage as it ran; a run that is looked at doesn't change."""
    return run_settings(folder, stage)


def _cuts(decision: dict[str, Any]) -> list[Cut]:
    return [Cut(c["reason"], c["position"], c["text"]) for c in decision.get("cut", [])]


def cluster_of(folder: Folder, ledger: Ledger, row: int) -> dict[str, Any] | None:
    """The kept document and those that went for it; None where it has no copies."""
    base = ledger.read(folder, [row], ["id", "kept_id"])[0]
    key = key_of(base["kept_id"] or base["id"])
    removed = ledger.copies.of_key(key)
    if not len(removed):
        return None
    kept = ledger.by_key.of_key(key)
    return {
        "kept": described(folder, ledger, kept[:1].tolist()),
        "removed": described(folder, ledger, removed[:_MEMBERS].tolist()),
        "all": len(removed),
    }


def difference(folder: Folder, ledger: Ledger, before: int, after: int) -> dict[str, Any]:
    """Lines of two documents: `[" ", line]` in both, `["-", line]` or `["+", line]` in one."""
    texts = [row["text"].splitlines() for row in ledger.read(folder, [before, after], ["text"])]
    ours, theirs = (lines[:_COMPARED] for lines in texts)
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
    cut = len(lines) > _DIFF_LINES or any(len(held) > _COMPARED for held in texts)
    return {
        "lines": lines[:_DIFF_LINES],
        "cut_short": cut,
        "documents": described(folder, ledger, [before, after]),
    }


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


def spans_of(
    folder: Folder, stages: Sequence[str], ledger: Ledger, row: int
) -> list[dict[str, Any]]:
    """Where the document's tokens are, in every complete stage that writes tokens."""
    base = ledger.read(folder, [row], ["id"])[0]
    found = []
    for stage in stages:
        if find(stage).is_sink and (held := token_spans(folder / stage, base, stage)):
            found += [
                {name: span[name] for name in _SPAN if name in span} | {"stage": stage}
                for span in held["spans"]
            ]
    return found


def snippets(
    folder: Folder, ledger: Ledger, rows: Sequence[int], most: int
) -> list[dict[str, Any]]:
    """Documents with the beginnings of their texts."""
    found = described(folder, ledger, rows, ["text"])
    for row in found:
        row["text"] = snippet(row["text"], most)
    return found
