"""Settings of the mix stage."""

import re
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from curation.config import Settings, Share, nearest
from curation.inputs import UNNAMED
from curation.rights.rights_settings import Licences

#: A document that no classifier graded counts as the lowest grade.
MISSING_QUALITY = 0.0
Weight = Annotated[float, Field(gt=0)]
#: Powers of ten in a number of tokens, as `20B`.
_POWERS = {"K": 3, "M": 6, "B": 9, "T": 12}


def tokens_of(value: Any) -> Any:
    """Return the number that `500M`, `20B` or `1.5T` means; any other value as it is."""
    found = isinstance(value, str) and re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMBT])", value.upper())
    return int(Decimal(found[1]).scaleb(_POWERS[found[2]])) if found else value


Copies = Annotated[float, Field(ge=0)]
#: A rank (0 to 1), a number of tokens, or a date.
Place = float | date
Points = list[tuple[Place, Copies]]


class Repeats(Settings):
    """How often documents repeat, by their quality, date, length or duplicates.

    One of `curve`, `steps` and `half_life` gives the copies expected of a document; the copies
    themselves are whole numbers, drawn by the document's key. By quality none is needed: the best
    go first, and the tokens wanted say how often.
    """

    by: Literal["quality", "budget", "date", "length", "duplicates"] = Field(
        description="`quality`: by rank, 0 to 1, among the group's documents of the same language, "
        "without a curve the best first; `budget`: the same where `mix.budget` is a number, else "
        "all alike; `date`; `length` in tokens; or `duplicates`: the documents of its cluster, "
        "itself included"
    )
    within: Literal["domain", "topic", "format"] = Field(
        default="domain",
        description="The group in which ranks are taken: all documents of a domain, or those of "
        "them that have the same topic or format",
    )
    curve: Points = Field(default=[], description="Points (place, copies) joined by straight lines")
    steps: Points = Field(
        default=[], description="Buckets (from this place on, copies); before the first: none"
    )
    half_life: Weight | None = Field(
        default=None, description="Days in which copies halve, from one at `as_of`; by date only"
    )
    as_of: date | None = Field(
        default=None, description="The date from which `half_life` counts back"
    )
    undated: Copies = Field(
        default=1.0, description="Copies of a document without a date, where `by` is date"
    )

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        given = [name for name in ("curve", "steps", "half_life") if getattr(self, name)]
        if self.by == "budget" and given:
            raise ValueError("repeats by budget take no curve: set by: quality")
        if not given and self.by in ("quality", "budget"):
            return self
        if len(given) != 1:
            named = " and ".join(given) or "none"
            hint = "; null or [] takes away what another recipe or mix gave" if given else ""
            raise ValueError(f"repeats need one of curve, steps and half_life, not {named}{hint}")
        if (self.half_life is None) != (self.as_of is None):
            raise ValueError("give both half_life and as_of, the date from which it counts back")
        if self.half_life is not None and self.by != "date":
            raise ValueError(f"half_life is for repeats by date, not by {self.by}")
        return self

    @model_validator(mode="after")
    def _points_fit(self) -> Self:
        for place, _ in self.points:
            if isinstance(place, date) != (self.by == "date"):
                raise ValueError(f"{place} is not a place on a curve by {self.by}")
            if not isinstance(place, date) and place < 0:
                raise ValueError(f"{place:g} is below 0, where a curve by {self.by} begins")
            if self.by == "quality" and float(place) > 1:  # type: ignore[arg-type]
                raise ValueError(f"{place} is not a rank: ranks go from 0 to 1")
        if any(b <= a for (a, _), (b, _) in pairwise(self.points)):  # type: ignore[operator]
            raise ValueError("the points of repeats must go from lower to higher places")
        if self.by == "quality" and any(b < a for (_, a), (_, b) in pairwise(self.points)):
            raise ValueError("better documents must not repeat less often than worse ones")
        if self.points and not any(copies for _, copies in self.points):
            raise ValueError("no document would be drawn: all copies are 0")
        return self

    @property
    def points(self) -> Points:
        """The points of `curve` or `steps`, whichever is given."""
        return self.curve or self.steps

    @property
    def fitted(self) -> bool:
        """Whether the copies follow from the tokens wanted, not from a curve."""
        return not self.points and self.half_life is None


class DomainMix(Settings):
    """What a domain gets of the budget."""

    share: Share = Field(description="Part of the token budget; all shares sum to 1")
    max_epochs: float = Field(gt=0, description="How often its documents may repeat at most")
    repeats: Repeats | None = Field(
        default=None, description="In place of `mix.repeats` for this domain"
    )


class Phase(Settings):
    """A part of training with shares of its own."""

    name: str = Field(default="", description="For people, in tables")
    end: float = Field(
        gt=0,
        description="Where it ends, in steps, tokens or parts of training: what counts is its "
        "proportion to the end of the last phase",
    )
    shares: dict[str, Share] = Field(
        default={}, description="Shares by domain, which sum to 1; empty: those of `domains`"
    )
    change: Literal["step", "linear"] = Field(
        default="step",
        description="`step`: these shares all along; `linear`: from the shares at the end of the "
        "phase before it (of the first one: those of `domains`) to these at its end",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        lt=1 << 63,
        description="Draw from all documents afresh, by this seed; null: go on with those that "
        "phases of the mix's own seed left",
    )
    repeats: Repeats | None = Field(
        default=None, description="In this phase, in place of all other `repeats`"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.shares and abs(sum(self.shares.values()) - 1) > 1e-9:
            raise ValueError(f"shares sum to {sum(self.shares.values()):g}, not 1")
        return self


class SourceMix(Settings):
    """What an input gets of its domains' tokens."""

    weight: Weight = Field(
        default=1.0,
        description="Of two inputs with equally many tokens of a domain, one of weight 2 gives "
        "twice as many as one of weight 1",
    )
    max_epochs: float | None = Field(
        default=None,
        gt=0,
        description="How often its documents may repeat; the domain's limit applies too",
    )


class Mixture(Settings):
    """How many tokens of which documents are drawn. Defaults: `configs/defaults/mix.yaml`."""

    budget: Annotated[
        Literal["auto", "all"] | Annotated[int, Field(gt=0)], BeforeValidator(tokens_of)
    ] = Field(
        description="Tokens in all (`20B`), filled by the best documents first; or `auto`: the "
        "most that shares and epochs allow; or `all`: each document once, or as often as its "
        "curve expects, whatever the shares"
    )
    on_shortage: Literal["relax", "shrink", "stop"] = Field(
        description="What happens where a domain can't fill its share: it gives what it has, and "
        "the others keep their proportions to each other (relax); the budget is lowered until all "
        "shares hold (shrink); the run ends with an error (stop)"
    )
    domains: dict[str, DomainMix] = Field(min_length=1, description="Share and epochs by domain")
    inputs: dict[str, DomainMix] = Field(
        description="Share and epochs by named input, in place of `domains`: then the inputs are "
        "the mix's domains, whatever the documents' own; empty: by domain"
    )
    sources: dict[str, SourceMix] = Field(
        description="Weight and epochs by named input; `weight` and `max_epochs` of the recipe's "
        "`inputs` are stored here"
    )
    repeats: Repeats | None = Field(
        description="How often documents repeat by quality, date or length; null: every document "
        "of a domain as often as the next"
    )
    views: tuple[str, ...] = Field(
        description="columns of `classify.classifiers` with scores by which documents are ranked "
        "beside `quality`: the best of a document's ranks within its language counts"
    )
    topics: dict[str, Share] = Field(
        description="Share of a topic's documents that may be drawn at all; others: all"
    )
    formats: dict[str, Share] = Field(
        description="The same by format; where topic and format are both named, the shares multiply"
    )
    min_variety: Share | None = Field(
        description="Documents in which a smaller part of all runs of 13 tokens is distinct are "
        "left out: lists, tables and repetition; null: none"
    )
    licences: Licences = Field(
        description="Documents whose page has none of these licences are left out (`CC-BY-*`, or "
        "`open` for all open ones, docs/rights.md); empty: none is"
    )
    min_tokens: int | None = Field(ge=0, description="Shorter documents are left out")
    seed: int = Field(ge=0, lt=1 << 63, description="Seed of every draw")
    phases: list[Phase] = Field(
        description="Shares that change while a model is trained; empty: those of `domains` all "
        "along, in a random order"
    )

    @model_validator(mode="before")
    @classmethod
    def _inputs_are_domains(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("inputs"):
            return values | {"domains": values["inputs"]}
        return values

    @model_validator(mode="after")
    def _phases_follow_each_other(self) -> Self:
        last = 0.0
        for k, phase in enumerate(self.phases):
            if phase.end <= last:
                raise ValueError(f"phases[{k}] ends at {phase.end:g}, where it begins or before")
            for name in phase.shares:
                if name not in self.domains:
                    hint = nearest(name, self.domains)
                    raise ValueError(f"phases[{k}].shares: no domain {name!r} in the mix{hint}")
            last = phase.end
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        total = sum(domain.share for domain in self.domains.values())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"shares of the domains sum to {total:g}, not 1")
        return self

    @property
    def ranked(self) -> dict[str, str]:
        """Domains whose documents are ranked by quality, and the column within which they are."""
        curves = {name: self.repeats_of(name) for name in self.domains}
        return {n: r.within for n, r in curves.items() if r and r.by == "quality"}

    @property
    def all_repeats(self) -> list[tuple[str, Repeats]]:
        """Every curve with its key."""
        found = {"repeats": self.repeats}
        found |= {f"domains.{name}.repeats": mix.repeats for name, mix in self.domains.items()}
        found |= {f"phases[{k}].repeats": phase.repeats for k, phase in enumerate(self.phases)}
        return [(key, repeats) for key, repeats in found.items() if repeats]

    def repeats_of(self, domain: str) -> Repeats | None:
        """How often documents of a domain repeat; None: all alike."""
        found = self.domains[domain].repeats or self.repeats
        if found is None or found.by != "budget":
            return found
        return found.model_copy(update={"by": "quality"}) if self.is_limited else None

    def curve_of(self, domain: str) -> Repeats | None:
        """The curve that the recipe gives a domain; None: it gives none."""
        found = self.repeats_of(domain)
        return None if found is None or found.fitted else found

    @property
    def is_limited(self) -> bool:
        """Whether the budget is a number, which the best documents are to fill."""
        return isinstance(self.budget, int)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Named inputs that the settings know."""
        return tuple(sorted({*self.sources, *self.inputs} - {UNNAMED}))

    def source(self, name: str) -> SourceMix:
        """Weight and epochs of an input, named or not."""
        return self.sources.get(name) or SourceMix()


class MixSettings(Mixture):
    """The mixture, and further named ones of the same documents (annealing, long context, ...)."""

    mixes: dict[str, Mixture] = Field(
        description="Further mixtures by name, each in a folder of its own; a recipe names only "
        "what differs from the mixture above"
    )

    def mixture(self, name: str = "") -> Mixture:
        """A mixture by name; the empty name is the settings' own."""
        if name:
            return self.mixes[name]
        return Mixture.model_validate(self.model_dump(exclude={"mixes"}))
