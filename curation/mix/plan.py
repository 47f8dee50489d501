"""Divide a token budget among domains and inputs, and report shortages."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from curation.config import nearest
from curation.errors import ConfigError
from curation.mix.mix_settings import Mixture
from curation.mix.ranks import Ranks
from curation.mix.schedule import shares, spans
from curation.schema import DOMAINS

#: With `budget: auto`, a domain that would hold the budget below this part of what the domains with
#: half of the shares can fill is short, and the others are drawn without regard to it.
SCARCE = 0.25
#: Whatever its share, so is a domain that would hold the budget below this part of what another can
#: fill: one misjudged page among source files must not decide how much of these is drawn.
NEXT_TO_NOTHING = 0.02


class Supply(NamedTuple):
    """Documents of one domain in one input that may be drawn."""

    source: str
    domain: str
    documents: int
    available: int  # their tokens
    expected: int  # tokens of the copies that a curve expects; without one: available


@dataclass(frozen=True)
class Cell:
    """Documents of one domain in one input, and what is drawn of them."""

    source: str
    domain: str
    documents: int  # that may be drawn: of a wanted length, after downsampling
    available: int  # their tokens
    at_most: int  # tokens that it can give, every document as often as it may be drawn
    targets: tuple[int, ...]  # tokens to draw in each phase
    #: Of each phase: copies are counted (`Rows`) beyond the first level and up to the second.
    levels: tuple[tuple[float, float], ...] | None = None  # None until they are known
    kept: tuple[int, ...] | None = None  # tokens drawn in each phase

    @property
    def target(self) -> int:
        """Tokens to draw in all."""
        return sum(self.targets)

    @property
    def drawn(self) -> int:
        """Tokens that are drawn; those to draw until the levels are known."""
        return sum(self.by_phase)

    @property
    def by_phase(self) -> tuple[int, ...]:
        """The same for each phase."""
        return self.targets if self.kept is None else self.kept


class Learned(NamedTuple):
    """What a stream of draws takes from the corpus."""

    ranks: Ranks  # of domains whose documents are ranked
    #: By cell: copies of each bucket of quality, the worst first; empty where no budget gives them.
    copies: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Shortage:
    """A domain that can't fill its share, and what would fill it."""

    domain: str
    missing: int  # tokens
    epochs_needed: float | None  # that would fill it with what there is; None: there is nothing
    tokens_needed: int  # more distinct tokens that would fill it at the same epochs


@dataclass(frozen=True)
class MixPlan:
    """What is drawn: token targets by (source, domain), and levels once they are known."""

    settings: Mixture
    budget: int
    limits: dict[str, int]  # by domain that has tokens: the largest budget whose share it fills
    wanted: dict[str, int]  # tokens by domain, whether or not there are so many
    cells: tuple[Cell, ...]
    short: tuple[Shortage, ...]
    streams: tuple[Learned, ...] = ()  # one for each of `curation.mix.schedule.streams`

    @property
    def cell_names(self) -> list[tuple[str, str]]:
        return [(cell.source, cell.domain) for cell in self.cells]

    @property
    def possible(self) -> dict[str, int]:
        """Tokens that each domain can give, every document as often as it may be drawn."""
        return {
            domain: sum(cell.at_most for cell in self.cells if cell.domain == domain)
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
        """Return one line per domain: available, wanted, drawn (kept once levels are known),
        epochs."""
        lines, total = [], self.drawn
        for domain, share in shares(self.settings).items():
            about = {"domain": domain, "share": share, "wanted": self.wanted[domain]}
            cells = [cell for cell in self.cells if cell.domain == domain]
            lines.append(about | {"at_most": self.possible[domain]} | _drawn(cells, total))
        return lines

    def cell_rows(self) -> list[dict[str, Any]]:
        """Return one line per domain and input, in the order of `rows`."""
        lines, total = [], self.drawn
        for domain in self.settings.domains:
            for cell in self.cells:
                if cell.domain == domain:
                    weight = self.settings.source(cell.source).weight
                    about = {"domain": domain, "source": cell.source, "weight": weight}
                    lines.append(about | _drawn([cell], total))
        return lines

    def phase_rows(self) -> list[dict[str, Any]]:
        """Return one line per phase, of a mix that has any: its part of training, shares and
        tokens.

        `domains` has, for each, the share at the start and at the end, the share wanted of the
        whole phase, the tokens drawn and their share.
        """
        lines = []
        for k, span in enumerate(spans(self.settings) if self.settings.phases else ()):
            drawn = dict.fromkeys(self.settings.domains, 0)
            for cell in self.cells:
                drawn[cell.domain] += cell.by_phase[k]
            total = sum(drawn.values())
            domains = {
                domain: {
                    "first": span.first[domain],
                    "last": span.last[domain],
                    "share": span.share(domain),
                    "kept": kept,
                    "kept_share": kept / total if total else 0.0,
                }
                for domain, kept in drawn.items()
            }
            about = {"phase": span.name, "start": span.start, "end": span.end, "kept": total}
            lines.append(about | {"domains": domains})
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values; `from_dict` reads it."""
        return _plain().dump_python(self, mode="json")  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MixPlan:
        return _plain().validate_python(values)


@functools.cache
def _plain() -> TypeAdapter[MixPlan]:
    return TypeAdapter(MixPlan)


def _drawn(cells: Sequence[Cell], total: int) -> dict[str, Any]:
    """Return what cells have, and what is drawn of them, of so many tokens in all."""
    available, kept = sum(c.available for c in cells), sum(c.drawn for c in cells)
    return {
        "documents": sum(c.documents for c in cells),
        "available": available,
        "epochs": kept / available if available else 0.0,
        "kept": kept,
        "kept_share": kept / total if total else 0.0,
    }


def plan(supplies: Sequence[Supply], settings: Mixture) -> MixPlan:
    """Targets from what all shards have; levels are still open (see `settle`).

    A domain's share of the budget is divided among inputs in proportion to expected tokens times
    weight, none beyond `max_epochs` of the domain and of the input, nor beyond what a curve
    expects. With `budget: auto` the budget is the most that no domain falls short of, aside from
    those without tokens and, unless `on_shortage` is `shrink`, scarce ones (`SCARCE`,
    `NEXT_TO_NOTHING`). With `budget: all` each input gives what is expected of it, whatever the
    shares. Raises ConfigError on documents of a domain without a share, on an unknown domain that
    no document is of, and with `on_shortage: stop` on a domain that falls short. Where there is
    nothing to draw, nothing is drawn: with `budget: auto` the budget is 0.
    """
    check_shares({s.domain for s in supplies}, settings)
    caps = {s: _cap(s, settings) for s in supplies}
    possible = {
        domain: sum(cap for s, cap in caps.items() if s.domain == domain)
        for domain in settings.domains
    }
    wanted_shares = shares(settings)
    limits = {
        domain: math.floor(possible[domain] / share)
        for domain, share in wanted_shares.items()
        if share > 0 and possible[domain] > 0
    }
    everything = settings.budget == "all"
    once = {s: min(caps[s], s.expected) if wanted_shares[s.domain] else 0 for s in supplies}
    budget = sum(once.values()) if everything else _budget(limits, settings)
    wanted = _apportion(budget, wanted_shares)
    cells = []
    for domain in settings.domains:
        ours = sorted(s for s in supplies if s.domain == domain)
        weights = [s.expected * settings.source(s.source).weight for s in ours]
        targets = _fill(wanted[domain], weights, [caps[s] for s in ours])
        for s, share in zip(ours, targets, strict=True):
            target = once[s] if everything else share
            phases = _by_phase(target, domain, settings)
            cells.append(Cell(s.source, domain, s.documents, s.available, caps[s], phases))
    short = [
        _shortage(
            *(domain, wanted[domain], possible[domain], cells),
            _repeats_at_most(domain, cells, settings),
        )
        for domain in settings.domains
        if wanted[domain] > possible[domain] and not everything
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


def _by_phase(target: int, domain: str, settings: Mixture) -> tuple[int, ...]:
    """Return a cell's tokens divided among the phases, as the domain's shares and their lengths
    ask."""
    parts = [(s.end - s.start) * s.share(domain) for s in spans(settings)]
    total = sum(parts)
    if not total:
        return (0,) * len(parts)
    given = _apportion(target, {f"{k:09d}": part / total for k, part in enumerate(parts)})
    return tuple(given.values())


def check_shares(domains: Collection[str], settings: Mixture) -> None:
    """Raise ConfigError for documents of a domain without a share, or an unknown name."""
    unknown = sorted(set(domains) - set(settings.domains))
    if unknown:
        what = "inputs" if settings.inputs else "domains"
        out = f"mix.{what}.{unknown[0]}={{share: 0, max_epochs: 1}} leaves one out"
        raise ConfigError(f"mix: no share for the {what} {unknown} ({out})")
    if domains:
        known = {*DOMAINS, *domains, *settings.inputs}
        check_domains(settings.domains, known, "mix.domains")


def _budget(limits: dict[str, int], settings: Mixture) -> int:
    """Return tokens in all, from the largest budget of which each domain fills its share."""
    most = min(limits.values(), default=0)
    shrink = settings.on_shortage == "shrink"
    if isinstance(settings.budget, int):
        return min(settings.budget, most) if shrink else settings.budget
    if shrink or not limits:
        return most
    least = NEXT_TO_NOTHING * max(limits.values())
    present = {domain: limit for domain, limit in limits.items() if limit >= least}
    wanted = {domain: share for domain, share in shares(settings).items() if domain in present}
    filled = 0.0
    for domain in sorted(present, key=lambda d: (-present[d], d)):
        filled += wanted[domain]
        if 2 * filled >= sum(wanted.values()):
            break
    return min(limit for limit in present.values() if limit >= SCARCE * present[domain])


def check_domains(named: Iterable[str], known: Collection[str], key: str) -> None:
    """Raise ConfigError, naming the recipe's key, for a domain that no document can have."""
    for name in named:
        if name not in known:
            raise ConfigError(
                f"{key}: no document is of the domain {name!r}{nearest(name, known)} "
                f"(there are: {', '.join(sorted(known))})"
            )


def most_epochs(domain: str, source: str, settings: Mixture) -> float:
    """Return how often documents of a domain and an input may be drawn at most."""
    of_domain, of_source = settings.domains[domain].max_epochs, settings.source(source).max_epochs
    return of_domain if of_source is None else min(of_domain, of_source)


def _cap(supply: Supply, settings: Mixture) -> int:
    """Return tokens that one input can give of a domain at most."""
    epochs = math.floor(supply.available * most_epochs(supply.domain, supply.source, settings))
    curved = settings.curve_of(supply.domain) is not None
    return min(epochs, supply.expected) if curved else epochs


def _shortage(
    domain: str, wanted: int, possible: int, cells: list[Cell], epochs: float
) -> Shortage:
    """Return what a domain lacks; `epochs`: how often an additional token could be drawn."""
    available = sum(cell.available for cell in cells if cell.domain == domain)
    needed = wanted / available if available else None
    return Shortage(domain, wanted - possible, needed, math.ceil((wanted - possible) / epochs))


def _repeats_at_most(domain: str, cells: list[Cell], settings: Mixture) -> float:
    """Return how often tokens of a domain can be drawn on average."""
    ours = [cell for cell in cells if cell.domain == domain and cell.at_most]
    if settings.curve_of(domain) is None or not ours:
        return settings.domains[domain].max_epochs
    return sum(cell.at_most for cell in ours) / sum(cell.available for cell in ours)


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
