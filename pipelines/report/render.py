"""Write report.json and report.html: one file, no network, no script."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from curation.html_page import head
from curation.stages import counted_columns, find
from pipelines.report.collect import plural
from pipelines.report.values import records_text, value_text
from pipelines.run_folder import REPORT_DATA, REPORT_PAGE
from pipelines.storage.files import SCRATCH, Folder

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #2a7f62; --lost: #b5533c; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; opacity: .7; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: block; height: .7rem; background: var(--bar); min-width: 1px; }
.bar.lost { background: var(--lost); }
details { margin: .4rem 0; } summary { cursor: pointer; }
code, .id { font-family: ui-monospace, monospace; font-size: .85em; overflow-wrap: anywhere; }
.snippet { opacity: .8; overflow-wrap: anywhere; } .problem { color: var(--lost); }
"""


def write_report(folder: Folder, facts: dict[str, Any]) -> str:
    """Write both files into the run folder; return the path of report.html."""
    folder.write_bytes(REPORT_DATA, dumps(facts).encode() + b"\n")
    folder.write_bytes(REPORT_PAGE, render(facts).encode())
    folder.remove(SCRATCH)
    return f"{folder.shown}/{REPORT_PAGE}"


def render(facts: dict[str, Any]) -> str:
    """The report as one HTML page."""
    recipe = facts["recipe"]
    parts = [
        head(f"Curation report: {_e(facts['run'])}", _STYLE),
        f"<h1>Curation report: {_e(facts['run'])}</h1>",
        f"<p>Recipe <b>{_e(recipe['name'])}</b> <span class=id>{_e(recipe['sha256'])}</span></p>",
        *(f"<p class=problem>Counts do not add up: {_e(p)}</p>" for p in facts["problems"]),
        *(
            f"<p>Of an earlier run with another recipe or other documents, and not shown: "
            f"<code>{_e(s)}</code></p>"
            for s in facts["stale"]
        ),
        "<h2>Funnel</h2>",
        *_records(facts["funnel"][0]["counters"]),
        _funnel(facts["funnel"]),
    ]
    for column, title in counted_columns().items():
        found = [e for e in facts["funnel"] if e[plural(column)]]
        if found:
            parts += [f"<h2>{_e(title)}</h2>", *_values(found, column)]
    parts += ["<h2>Removed, by rule</h2>", *(_removed(e) for e in facts["funnel"] if e["removed"])]
    parts += _overruled(facts["funnel"])
    parts += ["<h2>Other counts</h2>", *(_counters(e) for e in facts["funnel"] if e["counters"])]
    notes = [e for e in facts["funnel"] if e["notes"]]
    if notes:
        parts += ["<h2>Notes</h2>", *(_notes(e) for e in notes)]
    parts += ["<h2>Seconds</h2>", _seconds(facts["funnel"])]
    return "\n".join(parts) + "\n"


def _records(counters: dict[str, int]) -> list[str]:
    return [f"<p>{_e(records_text(counters))}</p>"] if counters.get("records") else []


def _funnel(funnel: Sequence[dict[str, Any]]) -> str:
    widest = max([e["documents_in"] for e in funnel] or [1]) or 1
    rows = []
    for e in funnel:
        kept, lost = e["documents"], e["documents_removed"]
        bar = _bar(kept / widest) + _bar(lost / widest, " lost")
        tokens = "" if e["tokens"] is None else f"{e['tokens']:,}"
        rows.append(
            [
                e["stage"],
                e["documents_in"],
                kept,
                lost,
                _share(kept, e["documents_in"]),
                e["characters"],
                tokens,
                bar,
            ]
        )
    heads = ["stage", "in", "kept", "removed", "share", "characters", "tokens", ""]
    return _table(heads, rows, raw_last=True)


def _values(funnel: Sequence[dict[str, Any]], column: str) -> list[str]:
    """Values of a column where it comes from and, where the mix changes them, after it.

    Then what rules removed of each value, and which rules quality overruled.
    """
    ends = [funnel[0], *(e for e in funnel[-1:] if e is not funnel[0])]
    drawn = [i for i, e in enumerate(funnel) if find(e["stage"]).per_mix]
    if drawn and drawn[0] > 1:
        ends.insert(1, funnel[drawn[0] - 1])
    blocks = [_table_of_values(ends, plural(column))]
    counters = funnel[0]["counters"].items()
    removed = []
    for name, documents in sorted(counters):
        kind, _, rest = name.partition(".")
        value, told, rule = rest.partition(".removed.")
        if kind == column and told:
            removed.append([value, rule, documents])
    if removed:
        blocks.append(_table([column, "removed by", "documents"], removed))
    return blocks


def _table_of_values(entries: Sequence[dict[str, Any]], key: str) -> str:
    """Documents and share of the characters of every value that is kept after these stages."""
    totals = [sum(g["characters"] for g in e[key].values()) for e in entries]
    rows = []
    for name in sorted({n for e in entries for n in e[key]}, key=lambda n: _rank(n, entries, key)):
        row: list[Any] = [name]
        for entry, total in zip(entries, totals, strict=True):
            group = entry[key].get(name, {"documents": 0, "characters": 0})
            row += [group["documents"], group["characters"], _share(group["characters"], total)]
        last = entries[-1][key].get(name, {"characters": 0})["characters"]
        rows.append([*row, _bar(last / (totals[-1] or 1))])
    heads = [""]
    for entry in entries:
        heads += [f"documents after {entry['stage']}", "characters", "share"]
    return _table([*heads, ""], rows, raw_last=True)


def _rank(name: str, entries: Sequence[dict[str, Any]], key: str) -> tuple[int, str]:
    return -max(e[key].get(name, {"characters": 0})["characters"] for e in entries), name


def _overruled(funnel: Sequence[dict[str, Any]]) -> list[str]:
    """Rules that quality overruled."""
    rows = [
        [entry["stage"], name.removeprefix("overruled."), documents]
        for entry in funnel
        for name, documents in sorted(entry["counters"].items())
        if name.startswith("overruled.")
    ]
    return [_table(["stage", "rule overruled by quality", "documents kept"], rows)] if rows else []


def _removed(entry: dict[str, Any]) -> str:
    ranked = sorted(entry["removed"].items(), key=lambda kv: (-kv[1]["documents"], kv[0]))
    blocks = [f"<h3>{_e(entry['stage'])}</h3>"]
    for reason, counts in ranked:
        share = _share(counts["documents"], entry["documents_in"])
        size = f"{counts['documents']:,} documents ({share}), {counts['characters']:,} characters"
        head = f"<b>{_e(reason)}</b>: {size}"
        rows = [
            [
                r["url"],
                value_text(reason, r["value"]),
                value_text(reason, r["threshold"]),
                r["kept_id"] or "",
                r["text"],
            ]
            for r in entry["examples"].get(reason, [])
        ]
        table = _table(["url", "value", "threshold", "kept instead", "text"], rows) if rows else ""
        blocks.append(f"<details><summary>{head}</summary>{table}</details>")
    return "\n".join(blocks)


def _counters(entry: dict[str, Any]) -> str:
    rows = [[name, value] for name, value in sorted(entry["counters"].items())]
    return f"<h3>{_e(entry['stage'])}</h3>" + _table(["count", "number"], rows)


def _notes(entry: dict[str, Any]) -> str:
    blocks = [f"<h3>{_e(entry['stage'])}</h3>"]
    for name, value in entry["notes"].items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            heads = list(value[0])
            blocks.append(_table(heads, [[row.get(h, "") for h in heads] for row in value], name))
        else:
            blocks.append(f"<p>{_e(name)}: <code>{_e(dumps(value))}</code></p>")
    return "\n".join(blocks)


def _seconds(funnel: Sequence[dict[str, Any]]) -> str:
    rows = []
    for e in funnel:
        for step, s in sorted(e["steps"].items()):
            rate = f"{e['documents_in'] / s['cpu']:,.0f}" if s["cpu"] else ""
            seconds = [f"{s['wall']:,.2f}", f"{s['cpu']:,.2f}"]
            written = f"{s.get('bytes', 0):,}"
            rows.append([e["stage"], step, int(s["tasks"]), *seconds, rate, written])
    heads = [
        "stage",
        "step",
        "tasks",
        "wall seconds, summed",
        "CPU seconds",
        "documents per CPU second",
        "bytes written",
    ]
    return _table(heads, rows)


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", raw_last: bool = False
) -> str:
    body = []
    for row in rows:
        cells = []
        for i, value in enumerate(row):
            number = isinstance(value, int | float)
            text = f"{value:,}" if number else str(value)
            shown = text if raw_last and i == len(row) - 1 else _e(text)
            cells.append(f"<td{' class=n' if number else ''}>{shown}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{_e(h)}</th>" for h in heads)
    label = f"<caption>{_e(caption)}</caption>" if caption else ""
    return f"<table>{label}<tr>{head}</tr>{''.join(body)}</table>"


def _bar(share: float, kind: str = "") -> str:
    """Drawn by an attribute that is no style: the page's policy allows none but the one above."""
    return f"<svg class='bar{kind}' width='{100 * share:.2f}%'></svg>"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _e(text: Any) -> str:
    return html.escape(str(text))


def dumps(value: Any) -> str:
    """JSON for people and machines."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
