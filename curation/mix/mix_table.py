"""Tables of mixes: token counts, shortages, and what a budget draws by quality."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.mix.columns import grouped, rows
from curation.mix.draw import draw
from curation.mix.mix_settings import MISSING_QUALITY
from curation.mix.plan import MixPlan, Shortage
from curation.mix.ranks import groups, learn, rank
from curation.mix.repeats import BUCKETS, bucket_of
from curation.mix.schedule import shares


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
    """One line per domain, below it its inputs if there are several, then what is short."""
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
    """One line per phase: its part of training, and wanted and drawn share of each domain."""
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
        epochs = f"an average of {short.epochs_needed:.2f} epochs (`mean` of its repeats, {key})"
    return (
        f"{short.domain} is short of {short.missing:,} tokens ({is_and_wanted}): "
        f"{epochs} or {more} would fill it"
    )


def _key(mix: MixPlan, domain: str) -> str:
    """Return the key of a domain's settings, or of a named input's."""
    return f"mix.{'inputs' if mix.settings.inputs else 'domains'}.{domain}"


def _unranked(mix: MixPlan) -> list[str]:
    """Return which domains a budget can't choose from, since no document is better than another."""
    flat = [
        domain
        for domain, labels in (mix.streams[0].ranks if mix.streams else {}).items()
        if mix.settings.is_limited and mix.settings.curve_of(domain) is None
        for values in [[v for languages in labels.values() for v in languages.values()]]
        if any(len(v) > 1 for v in values) and all(v[0] == v[-1] for v in values)
    ]
    line = f"{', '.join(flat)}: no quality to choose by, so all are drawn alike; classify adds it"
    return [line] if flat else []


def by_quality(table: pa.Table, mix: MixPlan, times: int = 1) -> dict[str, Any]:
    """Return what a mix draws of documents, rows of `NARROW`, by buckets of quality and by domain.

    The rank and score of what is drawn are compared with those of documents drawn at random in the
    same shares of the domains. Counts are multiplied by `times`.
    """
    batch = grouped(table, mix.settings)
    place, at_random = np.zeros((2, table.num_rows))
    domains = [*mix.settings.domains]
    domain_of = np.zeros(table.num_rows, np.int64)
    allowed = rows(batch, mix.cell_names, mix.settings).eligible
    tokens = np.where(allowed, batch.column("tokens").to_numpy(), 0)
    repeats = draw(table, mix).repeats
    drawn = tokens * repeats
    ranks = learn([batch], dict.fromkeys(domains, "domain"))
    for k, domain in enumerate(domains):
        ((_, ours),) = groups(batch, domain, "domain")
        if ours.any():
            domain_of[ours] = k
            place[ours] = rank(batch.filter(pa.array(ours)), ranks[domain][""])
            at_random[ours] = tokens[ours] * (drawn[ours].sum() / max(tokens[ours].sum(), 1))
    quality = pc.fill_null(batch.column("quality"), MISSING_QUALITY).to_numpy()
    columns = {
        "documents": allowed,
        "tokens": tokens,
        "kept": allowed & (repeats > 0),
        "distinct": np.where(repeats > 0, tokens, 0),
        "drawn": drawn,
    }
    cells = domain_of * BUCKETS + bucket_of(place)
    sums = np.array([np.bincount(cells, c, len(domains) * BUCKETS) for c in columns.values()])
    sums = sums.astype(np.int64).reshape(-1, len(domains), BUCKETS) * times

    def counted(values: npt.NDArray[np.int64]) -> dict[str, Any]:
        found = dict(zip(columns, values.tolist(), strict=True))
        return found | {
            "kept_share": found["distinct"] / max(found["tokens"], 1),
            "epochs": found["drawn"] / max(found["tokens"], 1),
            "copies": found["drawn"] / max(found["distinct"], 1),
        }

    means = {
        f"{name}{kind}": float(np.average(values, weights=weights)) if weights.any() else 0.0
        for name, values in {"rank": place, "score": quality}.items()
        for kind, weights in {"": drawn, "_at_random": at_random}.items()
    }
    ends = [{"from": k / BUCKETS, "to": (k + 1) / BUCKETS} for k in range(BUCKETS)]
    first = [next(iter(np.flatnonzero(sums[-1, k])), BUCKETS) for k in range(len(domains))]
    return {
        **counted(sums.sum(axis=(1, 2))),
        **means,
        "buckets": [ends[k] | counted(sums[:, :, k].sum(axis=1)) for k in range(BUCKETS)],
        "domains": [
            {"domain": domain, "from": first[k] / BUCKETS} | counted(sums[:, k].sum(axis=1))
            for k, domain in enumerate(domains)
        ],
    }


def budget_table(found: Mapping[str, Any]) -> str:
    """Format `by_quality`, the best first and what is not drawn as one line, and what follows."""
    merged: list[dict[str, Any]] = []
    for row in reversed(found["buckets"]):
        if merged and not row["drawn"] and not merged[-1]["drawn"]:
            sums = {name: merged[-1][name] + row[name] for name in ("documents", "tokens")}
            merged[-1] |= sums | {"from": row["from"]}
        else:
            merged.append(dict(row))
    names = [f"{row['from']:.2f} to {row['to']:.2f}" for row in merged]
    lines = [["quality rank", "documents", "tokens", "epochs", "tokens drawn"]]
    for name, row in zip([*names, "all"], [*merged, found], strict=True):
        counts = (f"{row[column]:,}" for column in ("documents", "tokens"))
        lines.append([name, *counts, f"{row['epochs']:.2f}", f"{row['drawn']:,}"])
    counted = found["counted"]
    sampled = counted["documents"] < counted["of"]
    facts = [
        ["documents of", found["documents_of"]],
        *([["counted", f"{counted['documents']:,} of {counted['of']:,} documents"]] * sampled),
        *(
            [row["domain"], f"{_kept(row)}, from rank {row['from']:.2f} on"]
            for row in found["domains"]
            if row["drawn"]
        ),
        ["in all", _kept(found)],
        ["quality", f"{_quality(found)}; at random {_quality(found, '_at_random')}"],
        *(
            [f"crawl x {more['times']}", f"{_kept(more)}, {_quality(more)}"]
            for more in found["more"]
        ),
        ["rules overruled", f"by quality for {sum(found['overruled'].values()):,} documents"],
        ["in a recipe", found["recipe"]],
    ]
    width = max(len(name) for name, _ in facts)
    told = (f"{name.ljust(width)}  {text}" for name, text in facts)
    return "\n".join([align(lines), "", *told, *found["advice"]])


def _kept(found: Mapping[str, Any]) -> str:
    return f"{found['kept_share']:.0%} of the tokens kept, each {found['copies']:.2f} times"


def _quality(found: Mapping[str, Any], kind: str = "") -> str:
    return f"mean rank {found['rank' + kind]:.2f}, score {found['score' + kind]:.2f}"


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
