"""Divide a token budget among domains and inputs, and say what is short."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from curation.config import nearest
from curation.errors import ConfigError
from curation.mix.columns import cell_names, rows
from curation.mix.mix_settings import Mixture
from curation.mix.ranks import Ranks
from curation.schema import DOMAINS

STATS = pa.schema(
    [
        ("source", pa.string()),
        ("domain", pa.string()),
        ("documents", pa.int64()),
        ("tokens", pa.int64()),
        ("eligible_documents", pa.int64()),  # of a wanted length, after downsampling
        ("eligible_tokens", pa.int64()),
    ]
)


#: With `budget: auto`, a domain that would hold the budget below this part of what the domains with
#: half of the shares can fill is short, and the others are drawn without regard to it.
SCARCE = 0.25


@dataclass(frozen=True)
class Cell:
    """Documents of one domain in one input, and what is drawn of them."""

    source: str
    domain: str
    documents: int  # that may be drawn: of a wanted length, after downsampling
    available: int  # their tokens
    target: int  # tokens to draw
    cut: int | None = None  # highest key of the partial epoch; None: no partial epoch
    kept: int | None = None  # tokens drawn; None until the cut is known

    @property
    def whole_epochs(self) -> int:
        """Times that every document is drawn."""
        return self.target // self.available if self.available else 0

    @property
    def drawn(self) -> int:
        """Tokens that are drawn; those to draw until the cut is known."""
        return self.target if self.kept is None else self.kept

    @property
    def remainder(self) -> int:
        """Tokens to draw beyond the whole epochs."""
        return self.target - self.whole_epochs * self.available


@dataclass(frozen=True)
class Shortage:
    """A domain that can't fill its share, and what would."""

    domain: str
    missing: int  # tokens
    epochs_needed: float | None  # that would fill it with what there is; None: there is nothing
    tokens_needed: int  # more distinct tokens that would fill it at the same epochs


@dataclass(frozen=True)
class MixPlan:
    """What is drawn: token targets by (source, domain), and key cuts once they are known."""

    settings: Mixture
    budget: int
    limits: dict[str, int]  # by domain that has tokens: the largest budget whose share it fills
    wanted: dict[str, int]  # tokens by domain, whether or not there are so many
    cells: tuple[Cell, ...]
    short: tuple[Shortage, ...]
    ranks: Ranks = field(default_factory=dict)  # of domains that are weighted by rank

    @property
    def cell_names(self) -> list[tuple[str, str]]:
        return [(cell.source, cell.domain) for cell in self.cells]

    @property
    def possible(self) -> dict[str, int]:
        """Tokens that each domain can give, every document as often as it may be drawn."""
        return {
            domain: sum(
                math.floor(cell.available * _epochs(domain, cell.source, self.settings))
                for cell in self.cells
                if cell.domain == domain
            )
            for domain in self.settings.domains
        }

    @property
    def most(self) -> int:
        """The largest budget of which no domain that has tokens falls short."""
        return min(self.limits.values(), default=0)

    @property
    def drawn(self) -> int:
        """Tokens drawn of all domains."""
        return sum(cell.drawn for cell in self.cells)

    @property
    def unused(self) -> int:
        """Tokens of documents that may be drawn and aren't drawn once."""
        return sum(max(cell.available - cell.drawn, 0) for cell in self.cells)

    def rows(self) -> list[dict[str, Any]]:
        """One line per domain: available, wanted, drawn (kept once cuts are known), epochs."""
        lines, total = [], self.drawn
        for domain, mix in self.settings.domains.items():
            cells = [cell for cell in self.cells if cell.domain == domain]
            available = sum(cell.available for cell in cells)
            drawn = sum(cell.drawn for cell in cells)
            lines.append(
                {
                    "domain": domain,
                    "share": mix.share,
                    "documents": sum(cell.documents for cell in cells),
                    "available": available,
                    "at_most": self.possible[domain],
                    "wanted": self.wanted[domain],
                    "epochs": drawn / available if available else 0.0,
                    "kept": drawn,
                    "kept_share": drawn / total if total else 0.0,
                }
            )
        return lines

    def cell_rows(self) -> list[dict[str, Any]]:
        """One line per domain and input, in the order of `rows`."""
        lines, total = [], self.drawn
        for domain in self.settings.domains:
            for cell in self.cells:
                if cell.domain == domain:
                    drawn = cell.drawn
                    lines.append(
                        {
                            "domain": domain,
                            "source": cell.source,
                            "weight": self.settings.source(cell.source).weight,
                            "documents": cell.documents,
                            "available": cell.available,
                            "epochs": drawn / cell.available if cell.available else 0.0,
                            "kept": drawn,
                            "kept_share": drawn / total if total else 0.0,
                        }
                    )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain values; `from_dict` reads it."""
        return {
            "settings": self.settings.model_dump(),
            "budget": self.budget,
            "limits": dict(self.limits),
            "wanted": dict(self.wanted),
            "cells": [asdict(cell) for cell in self.cells],
            "short": [asdict(shortage) for shortage in self.short],
            "ranks": {domain: dict(ranks) for domain, ranks in self.ranks.items()},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MixPlan:
        return cls(
            Mixture.model_validate(values["settings"]),
            values["budget"],
            dict(values["limits"]),
            dict(values["wanted"]),
            tuple(Cell(**cell) for cell in values["cells"]),
            tuple(Shortage(**shortage) for shortage in values["short"]),
            values["ranks"],
        )

    def with_cells(self, cells: Iterable[Cell]) -> MixPlan:
        return replace(self, cells=tuple(cells))


def stats(batch: pa.RecordBatch | pa.Table, settings: Mixture) -> pa.Table:
    """Documents and tokens of every (source, domain) in rows of `NARROW`: columns `STATS`."""
    cells = cell_names(batch)
    r = rows(batch, cells, settings)
    n = len(cells)
    allowed = r.eligible
    return pa.table(
        {
            "source": [source for source, _ in cells],
            "domain": [domain for _, domain in cells],
            "documents": np.bincount(r.cells, minlength=n),
            "tokens": _sum(r.cells, r.tokens, n),
            "eligible_documents": np.bincount(r.cells[allowed], minlength=n),
            "eligible_tokens": _sum(r.cells[allowed], r.tokens[allowed], n),
        },
        schema=STATS,
    )


def _sum(cells: Any, tokens: Any, n: int) -> Any:
    """Tokens by cell, exact in int64."""
    out = np.zeros(n, np.int64)
    np.add.at(out, cells, tokens)
    return out


def merge_stats(parts: Iterable[pa.Table]) -> pa.Table:
    """Add up the stats of several shards."""
    table = pa.concat_tables([STATS.empty_table(), *parts])
    sums = table.group_by(["source", "domain"]).aggregate([(n, "sum") for n in STATS.names[2:]])
    sums = sums.rename_columns(
        [n if n in ("source", "domain") else n.removesuffix("_sum") for n in sums.column_names]
    )
    return sums.select(STATS.names).sort_by([("source", "ascending"), ("domain", "ascending")])


def plan(totals: pa.Table, settings: Mixture) -> MixPlan:
    """Targets from the merged stats of all shards; cuts are still open (see `thresholds`).

    A domain's share of the budget is divided among inputs in proportion to tokens times weight,
    none beyond `max_epochs` of the domain and of the input. With `budget: auto` the budget is the
    most that no domain falls short of, aside from those without tokens and, unless `on_shortage` is
    `shrink`, scarce ones (`SCARCE`). Raises ConfigError on documents of a domain without a share,
    on an unknown domain that no document is of, and with `on_shortage: stop` on a domain that falls
    short. Where there is nothing to draw, nothing is drawn: with `budget: auto` the budget is 0.
    """
    table = totals.to_pylist()
    unknown = sorted({r["domain"] for r in table} - set(settings.domains))
    if unknown:
        raise ConfigError(f"mix: no share for the domains {unknown} (0 leaves one out)")
    if table:
        check_domains(settings.domains, {*DOMAINS, *(r["domain"] for r in table)}, "mix.domains")
    caps = [_cap(r, settings) for r in table]
    possible = {
        domain: sum(cap for r, cap in zip(table, caps, strict=True) if r["domain"] == domain)
        for domain in settings.domains
    }
    limits = {
        domain: math.floor(possible[domain] / mix.share)
        for domain, mix in settings.domains.items()
        if mix.share > 0 and possible[domain] > 0
    }
    budget = _budget(limits, settings)
    wanted = _apportion(budget, {d: mix.share for d, mix in settings.domains.items()})
    cells = []
    for domain in settings.domains:
        lines = sorted((r for r in table if r["domain"] == domain), key=lambda r: r["source"])
        weights = [r["eligible_tokens"] * settings.source(r["source"]).weight for r in lines]
        targets = _fill(wanted[domain], weights, [_cap(r, settings) for r in lines])
        for r, target in zip(lines, targets, strict=True):
            cells.append(
                Cell(r["source"], domain, r["eligible_documents"], r["eligible_tokens"], target)
            )
    short = [
        _shortage(domain, wanted[domain], possible[domain], cells, mix.max_epochs)
        for domain, mix in settings.domains.items()
        if wanted[domain] > possible[domain]
    ]
    if short and settings.on_shortage == "stop":
        raise ConfigError(
            "mix: "
            + "; ".join(f"{s.domain} is short of {s.missing:,} tokens" for s in short)
            + f" of its share of {budget:,}; set mix.on_shortage to relax or shrink, "
            "or change mix.domains"
        )
    ordered = tuple(sorted(cells, key=lambda c: (c.source, c.domain)))
    return MixPlan(settings, budget, limits, wanted, ordered, tuple(short))


def _budget(limits: dict[str, int], settings: Mixture) -> int:
    """Tokens in all, from the largest budget of which each domain fills its share."""
    most = min(limits.values(), default=0)
    shrink = settings.on_shortage == "shrink"
    if settings.budget != "auto":
        return min(settings.budget, most) if shrink else settings.budget
    if shrink or not limits:
        return most
    shares = {domain: settings.domains[domain].share for domain in limits}
    filled = 0.0
    for domain in sorted(limits, key=lambda d: (-limits[d], d)):
        filled += shares[domain]
        if 2 * filled >= sum(shares.values()):
            break
    return min(limit for limit in limits.values() if limit >= SCARCE * limits[domain])


def check_domains(named: Iterable[str], known: Collection[str], key: str) -> None:
    """Raise ConfigError, naming the recipe's key, for a domain that no document can have."""
    for name in named:
        if name not in known:
            raise ConfigError(
                f"{key}: no document is of the domain {name!r}{nearest(name, known)} "
                f"(there are: {', '.join(sorted(known))})"
            )


def _epochs(domain: str, source: str, settings: Mixture) -> float:
    """How often documents of a domain and an input may be drawn at most."""
    of_domain, of_source = settings.domains[domain].max_epochs, settings.source(source).max_epochs
    return of_domain if of_source is None else min(of_domain, of_source)


def _cap(row: dict[str, Any], settings: Mixture) -> int:
    """Tokens that one input can give of a domain at most."""
    return math.floor(row["eligible_tokens"] * _epochs(row["domain"], row["source"], settings))


def _shortage(
    domain: str, wanted: int, possible: int, cells: list[Cell], max_epochs: float
) -> Shortage:
    available = sum(cell.available for cell in cells if cell.domain == domain)
    return Shortage(
        domain,
        wanted - possible,
        wanted / available if available else None,
        math.ceil((wanted - possible) / max_epochs),
    )


def _apportion(total: int, shares: dict[str, float]) -> dict[str, int]:
    """Whole parts of total by share; what rounding leaves goes to the largest fractions."""
    exact = {name: total * share for name, share in shares.items()}
    parts = {name: math.floor(value) for name, value in exact.items()}
    by_fraction = sorted(exact, key=lambda name: (parts[name] - exact[name], name))
    for name in by_fraction[: total - sum(parts.values())]:
        parts[name] += 1
    return parts


def _fill(total: int, weights: list[float], caps: list[int]) -> list[int]:
    """Divide total in proportion to weights, none beyond its cap: less where caps allow less."""
    parts = [0] * len(weights)
    while total > 0:
        free = [k for k in range(len(parts)) if parts[k] < caps[k] and weights[k] > 0]
        if not free:
            break
        scale = sum(weights[k] for k in free)
        if scale <= 0:
            break
        offers = _apportion(total, {f"{k:09d}": weights[k] / scale for k in free})
        full = False
        for k in free:
            given = min(offers[f"{k:09d}"], caps[k] - parts[k])
            full = full or given < offers[f"{k:09d}"]
            parts[k] += given
            total -= given
        if not full:
            break
    return parts
