"""Tables of mixes: token counts, shortages, and what a budget draws by quality."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from curation.mix.columns import grouped, rows
from curation.mix.draw import draw
from curation.mix.plan import MixPlan, Shortage
from curation.mix.ranks import groups, learn, rank
from curation.mix.repeats import BUCKETS, bucket_of
from curation.mix.schedule import shares

_COUNTS = ("documents", "tokens", "distinct", "drawn")


def align(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def plan_table(mix: MixPlan) -> str:
    """Return one line per domain, below it its inputs if there are several, then what is short."""
    lines = [["", "share", "documents", "available", "wanted", "epochs", "kept", "is"]]
    cells = mix.cell_rows()
    several = len({cell["source"] for cell in cells}) > 1
    for row in mix.rows():
        lines.append(_line(row["domain"], f"{row['share']:.2%}", f"{row['wanted']:,}", row))
        for cell in cells if several else []:
            if cell["domain"] == row["domain"]:
                lines.append(_line(f"  {cell['source']} x{cell['weight']:g}", "", "", cell))
    phases = [align(_phases(mix))] if mix.settings.phases else []
    return "\n".join([align(lines), *phases, f"budget {mix.budget:,} tokens", *advice(mix)])


def _phases(mix: MixPlan) -> list[list[str]]:
    """Return one line per phase: its part of training, and wanted and drawn share of each
    domain."""
    lines = [["phase", "from", "to", "kept", *mix.settings.domains]]
    for row in mix.phase_rows():
        parts = row["domains"].values()
        shares = [f"{part['share']:.2%} {part['kept_share']:.2%}" for part in parts]
        ends = f"{row['start']:.1%}", f"{row['end']:.1%}"
        lines.append([row["phase"], *ends, f"{row['kept']:,}", *shares])
    return lines


def _line(name: str, share: str, wanted: str, row: dict[str, Any]) -> list[str]:
    return [
        name,
        share,
        f"{row['documents']:,}",
        f"{row['available']:,}",
        wanted,
        f"{row['epochs']:.3f}",
        f"{row['kept']:,}",
        f"{row['kept_share']:.2%}",
    ]


def advice(mix: MixPlan) -> list[str]:
    """Return a sentence for each domain that is short or limits the budget, with remedies."""
    if not mix.most:
        return ["nothing to draw: no domain with a share has any tokens"]
    shares = {row["domain"]: row["kept_share"] for row in mix.rows()}
    lines = [_sentence(shortage, mix, shares[shortage.domain]) for shortage in mix.short]
    if any(shortage.epochs_needed is not None for shortage in mix.short):
        lines.append(
            f"a budget of {mix.most:,} tokens would be filled with what there is "
            "(mix.on_shortage: shrink)"
        )
    return [*lines, *_binding(mix), *_unranked(mix)]


def lacking(mix: MixPlan) -> str | None:
    """Return what a mix with other shares than the settings' lacks, and how to draw it once."""
    if not mix.short or not mix.drawn:
        return None
    rows = {row["domain"]: row for row in mix.rows()}
    short = [rows[shortage.domain] for shortage in mix.short]
    lacks = [f"{_is(row)}" if row["available"] else f"{row['domain']} (none)" for row in short]
    most = max(rows.values(), key=lambda row: row["kept"])
    distinct = sum(min(row["kept"], row["available"]) for row in rows.values())
    return (
        f"the documents lack {', '.join(lacks)}; the most is {_is(most)}, and documents are drawn "
        f"{mix.drawn / distinct:.2f} times on average: --set mix.budget=all takes each once"
    )


def _is(row: dict[str, Any]) -> str:
    return f"{row['domain']} ({row['kept_share']:.1%} of the mix instead of {row['share']:.1%})"


def _sentence(short: Shortage, mix: MixPlan, share: float) -> str:
    more = f"{short.tokens_needed:,} more distinct tokens"
    is_and_wanted = (
        f"{share:.2%} of what is drawn instead of {shares(mix.settings)[short.domain]:.2%}"
    )
    if short.epochs_needed is None:
        return (
            f"{short.domain} is short of {short.missing:,} tokens ({is_and_wanted}): "
            f"there are none; add {more}"
        )
    key = f"{_key(mix, short.domain)}.max_epochs"
    epochs = f"{short.epochs_needed:.2f} epochs ({key})"
    if mix.settings.curve_of(short.domain):
        epochs = f"a curve of {short.epochs_needed:.2f} epochs on average (its repeats, {key})"
    return (
        f"{short.domain} is short of {short.missing:,} tokens ({is_and_wanted}): "
        f"{epochs} or {more} would fill it"
    )


def _key(mix: MixPlan, domain: str) -> str:
    """Return the key of a domain's settings, or of a named input's."""
    return f"mix.{'inputs' if mix.settings.inputs else 'domains'}.{domain}"


def _unranked(mix: MixPlan) -> list[str]:
    """Return which domains a budget can't choose from, since no document is better than another."""
    ranks = mix.streams[0].ranks if mix.streams and mix.settings.is_limited else {}
    flat = []
    for domain, labels in ranks.items():
        every = [points[-1] for languages in labels.values() for points in languages.values()]
        values = [v for v in every if len(v) > 1]
        flat += [domain] if values and all(v[0] == v[-1] for v in values) else []
    line = f"{', '.join(flat)}: no quality to choose by, so all are drawn alike; classify adds it"
    return [line] if flat else []


def by_quality(table: pa.Table, mix: MixPlan, times: int = 1) -> dict[str, Any]:
    """Return what a mix draws of documents, rows of `NARROW`: in all, by quality and by domain.

    `buckets` are those of quality rank, each up to its rank `to`, the worst first; those below all
    that is drawn are one. `rank` is the mean of the tokens drawn, `rank_at_random` that of all that
    may be drawn. Counts are multiplied by `times`.
    """
    batch, places = grouped(table, mix.settings), np.zeros(table.num_rows)
    ranks = learn([batch], dict.fromkeys(mix.settings.domains, "domain"))
    for domain in mix.settings.domains:
        ((_, ours),) = groups(batch, domain, "domain")
        places[ours] = rank(batch.filter(pa.array(ours)), ranks[domain].get("", {}))
    allowed = rows(batch, mix.cell_names, mix.settings).eligible
    copies = draw(table, mix).repeats
    tokens = np.where(allowed, batch.column("tokens").to_numpy(), 0)
    buckets = bucket_of(places)
    columns = {
        "domain": batch.column("domain"),
        "to": np.maximum(buckets + 1, buckets[copies > 0].min(initial=BUCKETS)) / BUCKETS,
        "documents": times * allowed,
        "tokens": times * tokens,
        "distinct": times * tokens * (copies > 0),
        "drawn": times * tokens * copies,
    }
    domains = _sums(pa.table(columns), "domain")
    total = {name: sum(row[name] for row in domains) for name in _COUNTS}
    return _shares(total) | {
        "rank": float((places * tokens * copies).sum() / max((tokens * copies).sum(), 1)),
        "rank_at_random": float((places * tokens).sum() / max(tokens.sum(), 1)),
        "domains": domains,
        "buckets": _sums(pa.table(columns), "to"),
    }


def _sums(table: pa.Table, key: str) -> list[dict[str, Any]]:
    sums = table.group_by(key).aggregate([(name, "sum") for name in _COUNTS])
    return [*map(_shares, sums.rename_columns([key, *_COUNTS]).sort_by(key).to_pylist())]


def _shares(row: dict[str, Any]) -> dict[str, Any]:
    tokens = max(row["tokens"], 1)
    return row | {"kept_share": row["distinct"] / tokens, "epochs": row["drawn"] / tokens}


def budget_table(found: Mapping[str, Any]) -> str:
    """Format `by_quality`, the best first, and what follows from it."""
    lines = [["quality rank", "documents", "tokens", "epochs", "tokens drawn"]]
    for row in [*reversed(found["buckets"]), found]:
        name = f"up to {row['to']:.2f}" if "to" in row else "all"
        counts = (f"{row[column]:,}" for column in ("documents", "tokens"))
        lines.append([name, *counts, f"{row['epochs']:.2f}", f"{row['drawn']:,}"])
    facts = {"documents of": f"{found['stage']} ({found['counted']} counted)"}
    facts |= {row["domain"]: _kept(row) for row in found["domains"]}
    facts["quality"] = f"mean rank {found['rank']:.2f}; at random {found['rank_at_random']:.2f}"
    for more in found["more"]:
        facts[f"crawl x {more['times']}"] = f"{_kept(more)}, mean rank {more['rank']:.2f}"
    facts["rules overruled"] = f"by quality for {found['overruled']:,} documents"
    facts["in a recipe"] = found["recipe"]
    width = max(map(len, facts))
    told = (f"{name.ljust(width)}  {text}" for name, text in facts.items())
    return "\n".join([align(lines), "", *told, *found["advice"]])


def _kept(found: Mapping[str, Any]) -> str:
    copies = found["drawn"] / max(found["distinct"], 1)
    return f"{found['kept_share']:.0%} of the tokens, each {copies:.2f} times"


def _binding(mix: MixPlan) -> list[str]:
    """Return which domain keeps `budget: auto` from drawing more, if tokens are left."""
    if mix.settings.budget != "auto" or not mix.unused:
        return []
    domain = next((d for d, limit in mix.limits.items() if limit == mix.budget), None)
    if domain is None:
        return []
    epochs, share = mix.settings.domains[domain].max_epochs, shares(mix.settings)[domain]
    line = (
        f"{domain} sets the budget: all it has, {epochs:g} times, is {share:.2%} of "
        f"{mix.budget:,} tokens; {mix.unused:,} tokens of other domains are not drawn. A smaller "
        f"{_key(mix, domain)}.share or a larger max_epochs draws more"
    )
    if mix.settings.on_shortage == "shrink" and mix.budget == mix.most:
        line += ", as does mix.on_shortage: relax where it is scarce"
    return [line]
