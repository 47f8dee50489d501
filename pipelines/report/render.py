"""Write report.json and report.html: self-contained, styled as the explorer, without scripts."""

import functools
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from curation.decontaminate.overlap import SHARES
from curation.html_page import head
from curation.schema import VALUE_TEXT
from curation.stages import counted_columns, find
from pipelines.reading.funnel import plural, ranked_reasons, records_text
from pipelines.run_folder import REPORT_DATA, REPORT_PAGE
from pipelines.storage.files import SCRATCH, Folder
from pipelines.terminal import value_text

_HERE = Path(__file__).parent
#: CSS of the explorer, and what the report has in addition.
_STYLES = (_HERE.parent / "view" / "static" / "app.css", _HERE / "report.css")
_VALUE = re.compile(r"\{\{(.*?)\}\}")
_INPUTS = 12
#: Words of a command that are shown.
_WORDS = 24
_CONTAMINATION = "contamination"
#: What a table has: heads, rows, and perhaps a caption.
_Table = tuple[Sequence[str], Sequence[Sequence[Any]]] | tuple[Sequence[str], list[Any], str]


def write_report(folder: Folder, facts: dict[str, Any]) -> str:
    """Write both files into the run folder; return the path of report.html."""
    folder.write_bytes(REPORT_DATA, dumps(facts).encode() + b"\n")
    folder.write_bytes(REPORT_PAGE, render(facts).encode())
    folder.remove(SCRATCH)
    return f"{folder.shown}/{REPORT_PAGE}"


def render(facts: dict[str, Any]) -> str:
    """Render the report as one HTML page."""
    style = "".join(path.read_text(encoding="utf-8") for path in _STYLES)
    parts = [head(f"Curation report: {html.escape(facts['run'])}", style)]
    known = _KNOWN | facts | {"facts": facts, "meanings": facts["documents"]["meanings"]}
    exec(_template(), known | {"put": parts.append})  # a file of this package
    return "".join(parts)


@functools.cache
def _template() -> CodeType:
    """Return `report.html` as a program that puts the parts of a page one after another."""
    path, code, depth = _HERE / "report.html", list[str](), 0
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("%"):
            statement = line[1:].strip()
            depth -= statement == "end" or statement.startswith(("elif ", "else:"))
            code += [] if statement == "end" else [" " * depth + statement]
            depth += statement.endswith(":")
        elif line:
            parts = enumerate(_VALUE.split(line))
            code += [
                " " * depth + (f"put(text({p}))" if i % 2 else f"put({p!r})") for i, p in parts
            ]
    return compile("\n".join(code), path, "exec")


class _Raw(str):
    """HTML that is not escaped: a bar, or a formatted number."""


def _text(value: Any) -> str:
    if isinstance(value, _Raw):
        return value
    return f"{value:,}" if isinstance(value, int | float) else html.escape(str(value))


def _is_number(value: Any) -> bool:
    """Return whether a cell stands to the right, as numbers do."""
    raw = isinstance(value, _Raw) and not value.startswith("<") and bool(value)
    return raw or isinstance(value, int | float)


def track(kept: int, removed: int, of: int) -> str:
    """Draw a bar of two colours: shares of a whole."""
    if not of:
        return ""
    first, second = 100 * kept / of, 100 * removed / of
    return (
        f"<svg class='track meter' aria-hidden=true><rect class=kept width='{first:.2f}%' "
        f"height='100%'/><rect class=removed x='{first:.2f}%' width='{second:.2f}%' "
        "height='100%'/></svg>"
    )


def compact(number: float) -> str:
    """Format a number as `9,999`, `12.3K`, `4.5M`."""
    size = abs(number)
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "K")):
        if size >= unit:
            return f"{number / (unit if name != 'K' else 1e3):.3g}{name}"
    return f"{number:,.0f}"


def _about(facts: Mapping[str, Any]) -> dict[str, Any]:
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
    return {name: value for name, value in rows.items() if value}


def _cut(command: str | None) -> str | None:
    """Return a command without the middle of the file names that a shell wrote into it."""
    words = (command or "").split(" ")
    left = len(words) - _WORDS
    if left <= _WORDS:
        return command
    half = _WORDS // 2
    return " ".join([*words[:half], f"… {left:,} more words, in report.json …", *words[-half:]])


def _steps(funnel: Sequence[dict[str, Any]]) -> _Table:
    widest = max([e["documents_in"] for e in funnel] or [1]) or 1
    rows = [
        [
            e["stage"],
            e["documents_in"],
            e["documents"],
            e["documents_removed"],
            _share(e["documents"], e["documents_in"]),
            e["characters"],
            e.get("distinct_tokens") or "",
            "" if e["tokens"] is None else e["tokens"],
            _Raw(track(e["documents"], e["documents_removed"], widest)),
        ]
        for e in funnel
    ]
    heads = ["stage", "in", "kept", "removed", "share", "characters"]
    return [*heads, "distinct tokens", "tokens written", ""], rows


def _columns(funnel: Sequence[dict[str, Any]]) -> dict[str, list[_Table]]:
    """Return the tables of every counted column, for stages that have it."""
    found = {}
    for column, title in counted_columns().items():
        entries = [e for e in funnel if e[plural(column)]]
        if entries:
            found[title] = _values(entries, column)
    return found


def _values(funnel: Sequence[dict[str, Any]], column: str) -> list[_Table]:
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
        blocks.append(([column, "removed by", "documents"], removed))
    return blocks


def _table_of_values(entries: Sequence[dict[str, Any]], key: str) -> _Table:
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
    return heads, rows, "Documents left, and their share of characters"


def _rank(name: str, entries: Sequence[dict[str, Any]], key: str) -> tuple[int, str]:
    return -max(e[key].get(name, {"characters": 0})["characters"] for e in entries), name


def _rules(rules: Sequence[Mapping[str, Any]], meanings: Mapping[str, str]) -> list[_Table]:
    """Return the thresholds of every rule, those removing most first."""
    rows = [
        [
            rule["reason"],
            rule["removed"],
            ", ".join(
                " ".join(filter(None, (of["language"], of["side"], f"{of['threshold']:.6g}")))
                for of in rule["limits"]
            ),
            meanings.get(rule["reason"], ""),
        ]
        for rule in rules
    ]
    return [(["rule", "removed", "thresholds", "what it measures"], rows)] if rows else []


def _sample(row: Mapping[str, Any], reason: str) -> Iterator[str]:
    """Yield what there is to say of a sampled document."""
    value, threshold = (value_text(reason, row[name]) for name in ("value", "threshold"))
    told = f"value {value}, threshold {threshold}" if value and threshold else value
    instead = f"kept instead: {row['kept_id']}" if row["kept_id"] else ""
    yield from filter(None, (row["language"], told or row[VALUE_TEXT], instead, row["id"]))


def _hosts(hosts: Sequence[Mapping[str, Any]]) -> list[_Table]:
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
    return [(["host", "documents", "kept", "tokens", "removed by", ""], rows)] if rows else []


def _clusters(clusters: Sequence[Mapping[str, Any]]) -> list[_Table]:
    rows = [
        [
            cluster["removed"],
            cluster["url"] or "not in this run",
            ", ".join(f"{reason} {number:,}" for reason, number in cluster["reasons"]),
        ]
        for cluster in clusters
    ]
    heads = ["copies removed", "kept document", "removed by"]
    return [(heads, rows)] if rows else []


def _mix(notes: Mapping[str, Any]) -> Iterator[_Table]:
    """Yield what a mix wanted, had and drew, by domain and by input."""
    for name in ("mix", "inputs"):
        rows = notes.get(name) or []
        columns = [c for c in _MIX if any(c in row for row in rows)]
        cells = [[_mixed(column, row.get(column)) for column in columns] for row in rows]
        if rows:
            yield [_MIX[column] for column in columns], cells


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


def _contamination(entry: Mapping[str, Any]) -> _Table:
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
    return ["set", "input", "items", *(f"{state} {stage}" for state, stage in columns)], rows


def _seconds(funnel: Sequence[dict[str, Any]]) -> _Table:
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
    return heads, rows


def _share(part: int, whole: int) -> _Raw:
    """Return a percentage."""
    if not whole:
        return _Raw("")
    return _Raw("&lt;0.1%" if 0 < part / whole < 0.0005 else f"{part / whole:.1%}")


def dumps(value: Any) -> str:
    """Serialize to readable JSON."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


#: What the template knows besides the facts of a run.
_KNOWN: dict[str, Any] = {
    "OPEN": 15,  # rows of a table that are shown at once
    "ROWS": 60,  # most rows of a table; the JSON has all of them
    "UNFOLDED": ("Funnel", "Alarms"),
    "CONTAMINATION": _CONTAMINATION,
    "ELSEWHERE": {_CONTAMINATION},  # notes with a section of their own
    "text": _text,
    "raw": _Raw,
    "is_number": _is_number,
    "share": _share,
    "figure": lambda value: _Raw(f"{value:,.4g}") if isinstance(value, float) else value,
    "clipped": lambda value: dumps(value)[:2000],
    "is_table": lambda value: isinstance(value, list) and value and isinstance(value[0], dict),
    "compact": compact,
    "records_text": records_text,
    "ranked_reasons": ranked_reasons,
    "steps_of": _steps,
    "columns_of": _columns,
    "rules_of": _rules,
    "sample_facts": _sample,
    "hosts_of": _hosts,
    "clusters_of": _clusters,
    "mix_tables": _mix,
    "contamination_of": _contamination,
    "seconds_of": _seconds,
    "about_of": _about,
}
