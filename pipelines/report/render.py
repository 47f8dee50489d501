"""Write report.json and report.html: self-contained, styled as the explorer, without scripts."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.decontaminate.overlap import SHARES
from curation.html_page import head
from curation.schema import VALUE_TEXT
from curation.stages import counted_columns, find
from pipelines.reading.values import ranked_reasons, records_text, value_text
from pipelines.report.collect import plural
from pipelines.report.pictures import chart, compact, river, track
from pipelines.run_folder import REPORT_DATA, REPORT_PAGE
from pipelines.storage.files import SCRATCH, Folder

_HERE = Path(__file__).parent
#: CSS of the explorer, and what the report has in addition.
_STYLES = (_HERE.parent / "view" / "static" / "app.css", _HERE / "report.css")
#: Most rows of a table of values or notes, the JSON has all of them; and those shown at once.
_ROWS, _OPEN = 60, 15
_INPUTS = 12
_CONTAMINATION = "contamination"
_UNFOLDED = ("Funnel", "Alarms")
#: Notes that have a section of their own.
_ELSEWHERE = {_CONTAMINATION}
#: Words of a command that are shown.
_WORDS = 24


def write_report(folder: Folder, facts: dict[str, Any]) -> str:
    """Write both files into the run folder; return the path of report.html."""
    folder.write_bytes(REPORT_DATA, dumps(facts).encode() + b"\n")
    folder.write_bytes(REPORT_PAGE, render(facts).encode())
    folder.remove(SCRATCH)
    return f"{folder.shown}/{REPORT_PAGE}"


def render(facts: dict[str, Any]) -> str:
    """Render the report as one HTML page."""
    funnel, meanings = facts["funnel"], facts["documents"]["meanings"]
    sections = {
        "Funnel": [river(funnel), _steps(funnel), *_records(funnel)],
        "Alarms": _alarms(facts["alarms"]),
        **_columns(funnel),
        "Signals": _signals(facts["documents"]["signals"], meanings),
        "Removed, by rule": _samples(facts, removed=True),
        "Kept": _samples(facts, removed=False),
        "Hosts": _hosts(facts["documents"]["hosts"]),
        "Duplicates": _clusters(facts["documents"]["clusters"]),
        "Mix": [block for e in funnel if "mix" in e["notes"] for block in _mix(e)],
        "Contamination": [_contamination(e) for e in funnel if e["notes"].get(_CONTAMINATION)],
        "Notes": [
            _notes(e) for e in funnel if e["notes"].keys() - _ELSEWHERE and "mix" not in e["notes"]
        ],
        "Other counts": [_counters(e) for e in funnel if e["counters"]],
        "Seconds": [_seconds(funnel)],
        "Run": [_about(facts)],
    }
    shown = {title: parts for title, parts in sections.items() if parts}
    return "\n".join(
        [
            head(f"Curation report: {_e(facts['run'])}", _style()),
            f"<main><h1>Curation report: {_e(facts['run'])} "
            f"<small>recipe {_e(facts['recipe']['name'])}</small></h1>",
            _totals(funnel),
            *(_card(title, parts) for title, parts in shown.items()),
            "</main>\n",
        ]
    )


@functools.cache
def _style() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in _STYLES)


def _card(title: str, parts: Iterable[str]) -> str:
    """Render a section, all but the first two folded; a link to what is in it unfolds it."""
    head, body = f"<h2>{_e(title)}</h2>", "\n".join(parts)
    if title in _UNFOLDED:
        return f"<section class=card id={_anchor(title)}>{head}{body}</section>"
    inside = f"<div id={_anchor(title)}>{body}</div>"
    return f"<details class=card><summary>{head}</summary>{inside}</details>"


def _anchor(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title.lower())


def _about(facts: Mapping[str, Any]) -> str:
    recipe, inputs = facts["recipe"], facts["inputs"]
    of, read = facts["funnel"][0]["documents_in"], facts["documents"]["read"]
    more = f" and {len(inputs) - _INPUTS:,} more" if len(inputs) > _INPUTS else ""
    rows = {
        "Recipe": f"{recipe['name']}, SHA-256 {recipe['sha256']}",
        "Command": _cut(facts["command"]),
        "Inputs": f"{len(inputs):,}: {', '.join(inputs[:_INPUTS])}{more}" if inputs else None,
        "Software": ", ".join(f"{k} {v}" for k, v in sorted(facts["software"].items())),
        "Written": facts["written"],
        "Root hash": facts["root"],
        "Documents read": None
        if read >= of
        else f"{read:,} of {of:,}: signals, samples, hosts and duplicates are of a sample of files",
    }
    told = "".join(
        f"<tr><th>{k}</th><td><code>{_e(v)}</code></td></tr>" for k, v in rows.items() if v
    )
    return f"<table class='rules about'>{told}</table>"


def _cut(command: str | None) -> str | None:
    """Return a command without the middle of the file names that a shell wrote into it."""
    words = (command or "").split(" ")
    left = len(words) - _WORDS
    if left <= _WORDS:
        return command
    half = _WORDS // 2
    return " ".join([*words[:half], f"… {left:,} more words, in report.json …", *words[-half:]])


def _alarms(lines: Sequence[str]) -> list[str]:
    if not lines:
        return ["<p class=note>None.</p>"]
    return [f"<ul class='alarms problem'>{''.join(f'<li>{_e(line)}</li>' for line in lines)}</ul>"]


def _totals(funnel: Sequence[Mapping[str, Any]]) -> str:
    """Render the three numbers of a run: documents, the kept ones, and tokens."""
    into, kept = funnel[0]["documents_in"], funnel[-1]["documents"]
    tokens = funnel[-1]["tokens"]
    mixed = next((e for e in reversed(funnel) if e.get("epochs")), None)
    drawn = mixed and f"{compact(mixed['distinct_tokens'])} distinct, {mixed['epochs']:.2f} epochs"
    figures = [
        ("", "Documents", f"{into:,}"),
        (" kept", "Kept", f"{kept:,} <small>{_share(kept, into)}</small>"),
        ("", "Tokens written", tokens and f"{compact(tokens)} <small>{drawn or ''}</small>"),
    ]
    shown = (
        f"<div class='figure{kind}'><dt>{name}</dt><dd>{value}</dd></div>"
        for kind, name, value in figures
        if value
    )
    return f"<dl class=figures>{''.join(shown)}</dl>"


def _records(funnel: Sequence[Mapping[str, Any]]) -> list[str]:
    counters = funnel[0]["counters"]
    return [f"<p>{_e(records_text(counters))}</p>"] if counters.get("records") else []


def _steps(funnel: Sequence[dict[str, Any]]) -> str:
    widest = max([e["documents_in"] for e in funnel] or [1]) or 1
    rows = [
        [
            e["stage"],
            e["documents_in"],
            e["documents"],
            e["documents_removed"],
            _Raw(_share(e["documents"], e["documents_in"])),
            e["characters"],
            e.get("distinct_tokens") or "",
            "" if e["tokens"] is None else e["tokens"],
            _Raw(track(e["documents"], e["documents_removed"], widest)),
        ]
        for e in funnel
    ]
    heads = ["stage", "in", "kept", "removed", "share", "characters"]
    return _table([*heads, "distinct tokens", "tokens written", ""], rows)


def _columns(funnel: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the tables of every counted column, for stages that have it."""
    found = {}
    for column, title in counted_columns().items():
        entries = [e for e in funnel if e[plural(column)]]
        if entries:
            found[title] = _values(entries, column)
    return found


def _values(funnel: Sequence[dict[str, Any]], column: str) -> list[str]:
    """Return the values of a column at its source and, if the mix changes them, after it.

    Followed by what rules removed of each value.
    """
    ends = [funnel[0], *(e for e in funnel[-1:] if e is not funnel[0])]
    drawn = [i for i, e in enumerate(funnel) if find(e["stage"]).per_mix]
    if drawn and drawn[0] > 1:
        ends.insert(1, funnel[drawn[0] - 1])
    blocks = [_table_of_values(ends, plural(column))]
    removed = []
    for name, documents in sorted(funnel[0]["counters"].items()):
        kind, _, rest = name.partition(".")
        value, told, rule = rest.partition(".removed.")
        if kind == column and told:
            removed.append([value, rule, documents])
    if removed:
        blocks.append(_table([column, "removed by", "documents"], removed))
    return blocks


def _table_of_values(entries: Sequence[dict[str, Any]], key: str) -> str:
    """Return kept documents and their share of characters, per value, after these stages."""
    totals = [sum(g["characters"] for g in e[key].values()) for e in entries]
    rows: list[list[Any]] = []
    for name in sorted({n for e in entries for n in e[key]}, key=lambda n: _rank(n, entries, key)):
        row: list[Any] = [name or "not known"]
        for entry, total in zip(entries, totals, strict=True):
            group = entry[key].get(name, {"documents": 0, "characters": 0})
            of_all = _share(group["characters"], total) or "0"
            row.append(_Raw(f"{group['documents']:,} <small>{of_all}</small>"))
        last = entries[-1][key].get(name, {"characters": 0})["characters"]
        rows.append([*row, _Raw(track(last, 0, totals[-1]))])
    heads = ["", *(f"after {entry['stage']}" for entry in entries), ""]
    return _table(heads, rows, "Documents left, and their share of characters")


def _rank(name: str, entries: Sequence[dict[str, Any]], key: str) -> tuple[int, str]:
    return -max(e[key].get(name, {"characters": 0})["characters"] for e in entries), name


def _signals(rules: Sequence[Mapping[str, Any]], meanings: Mapping[str, str]) -> list[str]:
    """Return the histograms of all rules; those that removed nothing are collapsed."""
    if not rules:
        return []
    active = [_rule(rule, meanings) for rule in rules if rule["removed"]]
    idle = [_rule(rule, meanings) for rule in rules if not rule["removed"]]
    note = (
        "<p class=legend><span><i class=kept></i> kept</span>"
        "<span><i class=removed></i> removed by the rule</span>"
        "<span><i class=other></i> by others</span><span class=note>Dashed lines are thresholds. "
        "Kept and removed have separate scales.</span></p>"
    )
    blocks = [note, f"<div class=charts>{''.join(active)}</div>"]
    if idle:
        blocks.append(
            f"<details><summary>{len(idle)} rules that removed nothing</summary>"
            f"<div class=charts>{''.join(idle)}</div></details>"
        )
    return blocks


def _rule(rule: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    general = [limit for limit in rule["limits"] if limit["language"] is None]
    shown = general or rule["limits"]
    found = rule["histogram"]
    picture = (
        chart(found, [limit["threshold"] for limit in shown])
        if found["range"]
        else "<p class=note>No document has this signal.</p>"
    )
    ends = ", ".join(f"{limit['side']} {limit['threshold']:.6g}" for limit in shown)
    others = [
        f"{limit['language']} {limit['side']} {limit['threshold']:.6g}"
        for limit in sorted(rule["limits"], key=lambda limit: str(limit["language"]))
        if limit["language"]
    ]
    own = f"; not shown, with thresholds of their own: {', '.join(others)}" if general else ""
    own = own if others else ""
    scale = ". Logarithmic" if found["scale"] == "log" else ""
    return (
        f"<div><h3>{_e(rule['reason'])} <small>{rule['removed']:,} removed</small></h3>{picture}"
        f"<p class=note>{_e(meanings.get(rule['reason'], ''))} <code>{_e(rule['signal'])}</code> "
        f"{_e(ends + own + scale)}</p></div>"
    )


def _samples(facts: Mapping[str, Any], removed: bool) -> list[str]:
    """Return the sampled documents of every rule, with its totals; or of the kept documents."""
    samples, meanings = facts["documents"]["samples"], facts["documents"]["meanings"]
    if not removed:
        return [_listed(rows, reason) for reason, rows in samples.get("kept", {}).items()]
    blocks = []
    for entry in facts["funnel"]:
        ranked = ranked_reasons(entry["removed"])
        if ranked:
            blocks.append(f"<h3>{_e(entry['stage'])}</h3>")
        for reason, counts in ranked:
            share = _share(counts["documents"], entry["documents_in"])
            size = (
                f"{counts['documents']:,} documents ({share}), {counts['characters']:,} characters"
            )
            rows = samples.get(entry["stage"], {}).get(reason, [])
            blocks.append(
                f"<details><summary><b>{_e(reason)}</b>: {size}</summary><p class=note>"
                f"{_e(meanings.get(reason, ''))}</p>{_listed(rows, reason)}</details>"
            )
    return blocks


def _listed(rows: Sequence[Mapping[str, Any]], reason: str) -> str:
    return f"<ol class=samples>{''.join(_sample(row, reason) for row in rows)}</ol>"


def _sample(row: Mapping[str, Any], reason: str) -> str:
    value, threshold = (value_text(reason, row[name]) for name in ("value", "threshold"))
    told = f"value {value}, threshold {threshold}" if value and threshold else value
    told = told or row[VALUE_TEXT]
    instead = f"kept instead: {row['kept_id']}" if row["kept_id"] else ""
    facts = " · ".join(_e(part) for part in (row["language"], told, instead, row["id"]) if part)
    more = f" <small>… {row['more_characters']:,} more</small>" if row["more_characters"] else ""
    return (
        f"<li><p class=doclink><span class=title>{_e(row['title'])}</span></p>"
        f"<p class=url>{_e(row['url'])}</p><p class=note>{facts}</p>"
        f"<p class=prose dir=auto>{_e(row['text'])}{more}</p></li>"
    )


def _hosts(hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            host["value"] or "not known",
            host["documents"],
            host["kept"],
            host["tokens"],
            ", ".join(f"{reason} {number:,}" for reason, number in host["reasons"]),
            _Raw(track(host["kept"], host["removed"], host["documents"])),
        ]
        for host in hosts
    ]
    return [_table(["host", "documents", "kept", "tokens", "removed by", ""], rows)] if rows else []


def _clusters(clusters: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        [
            cluster["removed"],
            cluster["url"] or "not in this run",
            ", ".join(f"{reason} {number:,}" for reason, number in cluster["reasons"]),
        ]
        for cluster in clusters
    ]
    heads = ["copies removed", "kept document", "removed by"]
    return [_table(heads, rows)] if rows else []


def _mix(entry: Mapping[str, Any]) -> list[str]:
    """Return what a mix wanted, had and drew, by domain and by input."""
    notes = entry["notes"]
    budget = f", of a budget of {notes['budget']:,}" if "budget" in notes else ""
    blocks = [f"<p class=note>{_e(entry['stage'])}: in tokens{budget}</p>"]
    for name in ("mix", "inputs"):
        rows = notes.get(name) or []
        columns = [c for c in _MIX if any(c in row for row in rows)]
        cells = [[_mixed(column, row.get(column)) for column in columns] for row in rows]
        if rows:
            blocks.append(_table([_MIX[column] for column in columns], cells))
    told = [notes.get("lacking", ""), *notes.get("advice", [])]
    blocks += [f"<p>{_e(line)}</p>" for line in told if line]
    return blocks


_MIX = {
    "domain": "domain",
    "source": "input",
    "available": "distinct tokens",
    "epochs": "epochs",
    "kept": "tokens written",
    "wanted": "wanted",
    "kept_share": "share written",
    "share": "share wanted",
    "documents": "documents",
}


def _mixed(column: str, value: Any) -> Any:
    if value is None:
        return ""
    if column.endswith("share"):
        return _Raw(f"{value:.1%}")
    return _Raw(f"{value:.2f}") if column == "epochs" else value


def _contamination(entry: Mapping[str, Any]) -> str:
    """Return the shares of each evaluation set's items by state, before and after the stage."""
    sets: dict[tuple[str, str], dict[str, Any]] = {}
    for row in entry["notes"][_CONTAMINATION]:
        sets.setdefault((row["set"], row["input"]), {})[row["stage"]] = row
    columns = [(state, at) for state in SHARES for at in ("before", "after")]
    rows = [
        [name, origin or "all", next(iter(at.values()))["items"]]
        + [_Raw(f"{at[stage][state]:.2%}") if stage in at else "" for state, stage in columns]
        for (name, origin), at in sets.items()
    ]
    heads = ["set", "input", "items", *(f"{state} {stage}" for state, stage in columns)]
    return f"<h3>{_e(entry['stage'])}</h3>" + _table(heads, rows)


def _counters(entry: dict[str, Any]) -> str:
    rows = [[name, value] for name, value in sorted(entry["counters"].items())]
    return f"<h3>{_e(entry['stage'])}</h3>" + _table(["count", "number"], rows)


def _notes(entry: dict[str, Any]) -> str:
    blocks = [f"<h3>{_e(entry['stage'])}</h3>"]
    for name, value in entry["notes"].items():
        if name in _ELSEWHERE:
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict):
            heads = list(value[0])
            rows = [[_number(row.get(h, "")) for h in heads] for row in value]
            blocks.append(_table(heads, rows, name))
        else:
            blocks.append(f"<p>{_e(name)}: <code>{_e(dumps(value))[:2000]}</code></p>")
    return "\n".join(blocks)


def _number(value: Any) -> Any:
    return _Raw(f"{value:,.4g}") if isinstance(value, float) else value


def _seconds(funnel: Sequence[dict[str, Any]]) -> str:
    rows = []
    for e in funnel:
        for step, s in sorted(e["steps"].items()):
            rate = f"{e['documents_in'] / s['cpu']:,.0f}" if s["cpu"] else ""
            seconds = [_Raw(f"{s['wall']:,.2f}"), _Raw(f"{s['cpu']:,.2f}"), _Raw(rate)]
            rows.append([e["stage"], step, int(s["tasks"]), *seconds, int(s.get("bytes", 0))])
    heads = [
        *("stage", "step", "tasks", "wall seconds, summed", "CPU seconds"),
        *("documents per CPU second", "bytes written"),
    ]
    return _table(heads, rows)


class _Raw(str):
    """HTML that is not escaped: a picture, or a formatted number."""


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Render a table with right-aligned columns of numbers; of many rows, the last are folded."""
    numeric = [
        any(isinstance(row[i], int | float) or _is_number(row[i]) for row in rows)
        for i in range(len(heads))
    ]
    if len(rows) <= _OPEN + 5:
        return _rows(heads, rows, numeric, caption)
    beyond = f"<p class=note>and {len(rows) - _ROWS:,} more</p>" if len(rows) > _ROWS else ""
    return (
        f"{_rows(heads, rows[:_OPEN], numeric, caption)}"
        f"<details><summary>{len(rows) - _OPEN:,} more</summary>"
        f"{_rows(heads, rows[_OPEN:_ROWS], numeric, caption)}{beyond}</details>"
    )


def _rows(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[bool], caption: str
) -> str:
    kinds = [" class=n" if is_number else "" for is_number in numeric]
    labels = [f" data-label='{_e(h)}'" if h and i else "" for i, h in enumerate(heads)]  # on phones
    cells = ([_td(*cell) for cell in zip(kinds, labels, row, strict=True)] for row in rows)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    top = "".join(f"<th{k}>{_e(h)}</th>" for k, h in zip(kinds, heads, strict=True))
    label = f"<caption>{_e(caption)}</caption>" if caption else ""
    return (
        f"<div class=scroll tabindex=0 role=region aria-label='{_e(caption or ', '.join(heads))}'>"
        f"<table>{label}<thead><tr>{top}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def _td(kind: str, label: str, value: Any) -> str:
    return f"<td{kind}{'' if value == '' else label}>{_cell(value)}</td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, _Raw) and not value.startswith("<") and bool(value)


def _cell(value: Any) -> str:
    if isinstance(value, _Raw):
        return value
    return f"{value:,}" if isinstance(value, int | float) else _e(value)


def _share(part: int, whole: int) -> str:
    """Return a percentage as HTML."""
    if not whole:
        return ""
    return "&lt;0.1%" if 0 < part / whole < 0.0005 else f"{part / whole:.1%}"


def _e(text: Any) -> str:
    return html.escape(str(text))


def dumps(value: Any) -> str:
    """Serialize to readable JSON."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
