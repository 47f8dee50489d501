"""Audit of deduplication of lines and passages: what was frequent, where, and what became of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, summed, text_buffers
from curation.dedup.dedup_settings import GOOD_SHARE, VERDICTS
from curation.dedup.lines import LineRemoval, LineTotals
from curation.dedup.patterns import CUTS
from curation.dedup.urls import hosts

#: One row per frequent line and verdict in a batch. The columns up to `bytes` are of the
#: line in all its bucket: `edge_share` of its documents have it near an edge, it is on `host_share`
#: of the pages of its hosts. The last two columns are of this batch.
AUDIT = pa.schema(
    [
        ("key", pa.uint64()),
        ("line", pa.large_string()),
        ("documents", pa.int64()),
        ("hosts", pa.int64()),
        ("edge_share", pa.float64()),
        ("host_share", pa.float64()),
        ("bytes", pa.int64()),
        ("verdict", pa.string()),
        ("occurrences", pa.int64()),
        ("characters", pa.int64()),
    ]
)

#: Verdicts on lines that are cut.
CUT = [name for name, cuts in zip(VERDICTS, CUTS, strict=True) if cuts]
_SHOWN_LINES = 50
#: Characters of a line, or bytes of a passage, that are shown.
SHOWN = 200
#: Hosts and source files with fewer documents raise no alarm: all of a few may well be copies.
FEWEST_DOCUMENTS = 100
#: Alarms of a kind that are shown, the gravest.
MOST_ALARMS = 20


def audit_lines(texts: Texts, removal: LineRemoval, frequent: LineTotals) -> pa.RecordBatch:
    """Return the frequent lines of a batch with their verdicts: AUDIT.

    Args:
        texts: the texts before lines were cut.
        removal: what `remove_lines` made of them with `frequent`.
    """
    lines = np.flatnonzero(removal.places >= 0)
    pairs = removal.places[lines] * len(VERDICTS) + removal.verdicts[lines]
    unique, first, inverse, counts = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    rows = unique // len(VERDICTS)
    offsets, data = text_buffers(texts)
    documents = np.repeat(np.arange(len(offsets) - 1), np.diff(removal.lines.doc_offsets))
    starts = offsets[documents[lines]] + removal.lines.spans[lines, 0]
    ends = offsets[documents[lines]] + removal.lines.spans[lines, 1]
    raw = data.tobytes() if len(lines) else b""
    sizes = np.array([len(raw[a:b].decode()) for a, b in zip(starts, ends, strict=True)], np.int64)
    shown = [raw[starts[i] : ends[i]].decode().strip()[:SHOWN] for i in first]
    edges = frequent.edges[rows] / np.maximum(frequent.counts[rows], 1)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(frequent.hashes[rows], pa.uint64()),
            pa.array(shown, pa.large_string()),
            pa.array(frequent.counts[rows], pa.int64()),
            pa.array(frequent.hosts[rows], pa.int64()),
            pa.array(edges, pa.float64()),
            pa.array(frequent.counts[rows] / np.maximum(frequent.pages[rows], 1), pa.float64()),
            pa.array(frequent.bytes[rows], pa.int64()),
            pa.array([VERDICTS[v] for v in unique % len(VERDICTS)], pa.string()),
            pa.array(counts, pa.int64()),
            pa.array(np.bincount(inverse, sizes, len(unique)).astype(np.int64), pa.int64()),
        ],
        schema=AUDIT,
    )


def summary(batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """Return what the manifest notes: lines, verdicts, and how much good text was probably lost."""
    of_line = ("line", "documents", "hosts", "edge_share", "host_share", "bytes")
    sums = ("occurrences", "characters")
    held = summed(batches, AUDIT, ("key", "verdict"), sums, least=of_line)
    cut = pc.is_in(held["verdict"], pa.array(CUT))
    verdicts = [
        {
            "verdict": name,
            "lines": part.num_rows,
            "occurrences": pc.sum(part["occurrences"]).as_py(),
            "characters": pc.sum(part["characters"]).as_py(),
        }
        for name in VERDICTS
        if (part := held.filter(pc.equal(held["verdict"], name))).num_rows
    ]
    lost = sum(v["characters"] for v in verdicts if v["verdict"] in CUT)
    return {
        "frequent lines by verdict": verdicts,
        "estimate of good text among what was cut": {
            "characters_cut": lost,
            "good_characters": round(GOOD_SHARE * lost),
        },
        "most frequent lines cut": _top(held.filter(cut)),
        "most frequent lines kept": _top(held.filter(pc.invert(cut))),
    }


def _top(table: pa.Table) -> list[dict[str, Any]]:
    order = [("documents", "descending"), ("key", "ascending"), ("verdict", "ascending")]
    shown = table.sort_by(order).slice(0, _SHOWN_LINES).drop_columns(["key"]).to_pylist()
    return [
        {k: round(v, 2) if k.endswith("_share") else v for k, v in row.items()} for row in shown
    ]


#: What documents of a language, host or source file had and lost: a row for each in a batch.
#: `removed` counts documents, or bytes cut.
SOURCES = pa.schema(
    [
        ("kind", pa.string()),  # language, host or file
        ("name", pa.large_string()),
        ("documents", pa.int64()),
        ("bytes", pa.int64()),
        ("removed", pa.int64()),
    ]
)
_KINDS: dict[str, tuple[str, Callable[[pa.Array], pa.Array]]] = {
    "language": ("language", lambda column: column),
    "host": ("url", hosts),
    "file": ("source", lambda column: pc.struct_field(column, "file")),
}
_BY, _SUMS = SOURCES.names[:2], SOURCES.names[2:]


def losses_by_source(batch: pa.RecordBatch, removed: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Return what the documents of a batch had, and lost of it: SOURCES.

    Args:
        removed: [documents] 1 for one that goes, or the bytes that it loses.
    """
    sizes = np.diff(text_buffers(batch.column("text")).offsets)
    sums = [pa.array(c) for c in (np.ones(len(sizes), np.int64), sizes, removed)]
    rows = [
        pa.RecordBatch.from_arrays(
            [
                pa.array([kind] * len(sizes), pa.string()),
                pc.fill_null(names(batch.column(column)).cast(pa.large_string()), ""),
                *sums,
            ],
            schema=SOURCES,
        )
        for kind, (column, names) in _KINDS.items()
        if column in batch.schema.names
    ]
    table = summed(rows, SOURCES, _BY, _SUMS).combine_chunks()
    return (table.to_batches() or [pa.RecordBatch.from_pylist([], SOURCES)])[0]


def sums_of_losses(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return SOURCES with one row for each that has a name."""
    return summed(batches, SOURCES, _BY, _SUMS).filter(pc.field("name") != "")


def losses_noted(
    batches: Iterable[pa.RecordBatch], share: float, what: Literal["documents", "bytes"]
) -> dict[str, Any]:
    """Return what was removed by language and host, for the manifest, and alarms.

    Args:
        batches: SOURCES.
        share: of a host's or source file's documents or bytes; above there is an alarm.
        what: whether documents or bytes were counted.
    """
    held = sums_of_losses(batches)
    held = held.sort_by([("removed", "descending"), ("kind", "ascending"), ("name", "ascending")])
    few = {kind: held.filter(pc.field("kind") == kind) for kind in ("language", "host")}
    notes: dict[str, Any] = {f"{what} cut by {kind}": _rows(few[kind]) for kind in few}
    least = pc.field(what).cast(pa.float64()) * share
    many = pc.field("documents") >= FEWEST_DOCUMENTS
    losing = held.filter(many & (pc.field("removed") > least) & (pc.field("kind") != "language"))
    alarms = [{"alarm": _alarm(row, what, share), **row} for row in _rows(losing, MOST_ALARMS)]
    return notes | ({"alarms": alarms} if alarms else {})


def losses_joined(parts: Iterable[dict[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Return as one what `losses_noted` says of languages, hosts and files divided by name."""
    notes = defaultdict[str, list[dict[str, Any]]](list)
    for part in parts:
        for name, rows in part.items():
            most = MOST_ALARMS if name == "alarms" else _SHOWN_LINES
            notes[name] = sorted([*notes[name], *rows], key=_by_loss)[:most]
    return dict(notes)


def _by_loss(row: dict[str, Any]) -> tuple[Any, ...]:
    return -row["removed"], *((kind not in row, row.get(kind, "")) for kind in sorted(_KINDS))


def _rows(table: pa.Table, most: int = _SHOWN_LINES) -> list[dict[str, Any]]:
    shown = table.slice(0, most).to_pylist()
    return [{row.pop("kind"): row.pop("name"), **row} for row in shown]


def _alarm(row: dict[str, Any], what: str, share: float) -> str:
    kind = "host" if "host" in row else "file"
    lost = f"{row['removed']:,} of {row[what]:,} {what}, above {share:.0%}"
    return f"{kind} {row[kind]} loses {lost}"


def most_frequent(passages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the passages with most copies, of equal ones the longest first."""
    ordered = sorted(passages, key=itemgetter("passage", "kept_id"))
    return sorted(ordered, key=lambda p: (-p["copies"], -p["bytes"]))[:_SHOWN_LINES]
