"""Settings of the mix stage."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from curation.config import Ascending, Settings
from curation.rights.rights_settings import Licences

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0)]
Concentration = Annotated[tuple[Weight, Weight], Ascending]


def _check_points(name: str, points: list[tuple[float, float]]) -> None:
    if any(b <= a for (a, _), (b, _) in pairwise(points)):
        raise ValueError(f"{name} must go from lower to higher quality")


class DomainMix(Settings):
    """What a domain gets of the budget."""

    share: Share = Field(description="Part of the token budget; all shares sum to 1")
    max_epochs: float = Field(gt=0, description="How often its documents may repeat at most")
    rank_weights: list[tuple[Share, Weight]] = Field(
        default=[],
        description="Points (rank, weight) that take the place of `quality_weights` for this "
        "domain; a document's rank is the share of the domain's documents of its language that "
        "have lower quality; empty: none",
    )

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        _check_points("rank_weights", self.rank_weights)
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

    budget: Literal["auto"] | Annotated[int, Field(gt=0)] = Field(
        description="Tokens in all, or `auto`: the most that shares and epochs allow"
    )
    on_shortage: Literal["relax", "shrink", "stop"] = Field(
        description="What happens where a domain can't fill its share: it gives what it has, and "
        "the others keep their proportions to each other (relax); the budget is lowered until all "
        "shares hold (shrink); the run ends with an error (stop)"
    )
    domains: dict[str, DomainMix] = Field(min_length=1, description="Share and epochs by domain")
    sources: dict[str, SourceMix] = Field(
        description="Weight and epochs by named input; `weight` and `max_epochs` of the recipe's "
        "`inputs` come to stand here"
    )
    other_sources: Weight = Field(description="Weight of inputs that `sources` doesn't name")
    quality_weights: list[tuple[float, Weight]] = Field(
        description="Points (quality, weight) joined by straight lines: how likely a document is "
        "drawn before another; empty: all alike"
    )
    missing_quality: float = Field(description="Quality taken for a document that has none")
    topics: dict[str, Share] = Field(
        description="Share of a topic's documents that may be drawn at all; others: all"
    )
    formats: dict[str, Share] = Field(
        description="The same by format; where topic and format are both named, the shares multiply"
    )
    licences: Licences = Field(
        description="Documents whose page has none of these licences are left out (`CC-BY-*`, or "
        "`open` for all open ones, docs/rights.md); empty: none is"
    )
    min_tokens: int | None = Field(ge=0, description="Shorter documents are left out")
    max_tokens: int | None = Field(ge=0, description="Longer documents are left out")
    seed: int = Field(ge=0, lt=1 << 63, description="Seed of every draw")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        total = sum(domain.share for domain in self.domains.values())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"shares of the domains sum to {total:g}, not 1")
        _check_points("quality_weights", self.quality_weights)
        return self

    @property
    def ranked(self) -> list[str]:
        """Domains whose documents are weighted by rank."""
        return [name for name, domain in self.domains.items() if domain.rank_weights]

    def weighted(self, domain: str) -> bool:
        """Whether documents of a domain are drawn by weight, not all alike."""
        return bool(self.quality_weights) or domain in self.ranked

    def source(self, name: str) -> SourceMix:
        """Weight and epochs of an input, named or not."""
        return self.sources.get(name) or SourceMix(weight=self.other_sources)


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


class SearchSettings(Settings):
    """How a mixture is searched for. Defaults: `configs/defaults/search.yaml`."""

    runs: int = Field(ge=16, description="Proxy runs around the recipe's shares")
    near_rounds: int = Field(ge=1, description="Rounds of runs around what those before propose")
    near_runs: int = Field(ge=8, description="Proxy runs of each such round")
    tokens: int = Field(ge=1000, description="Tokens of a proxy run")
    held_out: float = Field(gt=0, lt=1, description="Part of the documents kept for measuring")
    held_out_tokens: int = Field(ge=100, description="Tokens measured of a domain at most")
    document_tokens: int = Field(ge=16, description="Tokens used of a document at most")
    discount: float = Field(gt=0, lt=1, description="Absolute discount of the proxy's counts")
    concentration: Concentration = Field(
        description="Least and most of the Dirichlet draws around the recipe's shares"
    )
    near_concentration: Concentration = Field(description="The same around a proposal")
    test_runs: float = Field(gt=0, lt=1, description="Part of a round's runs that measure the law")
    ridge: float = Field(ge=0, description="Pull of the law's slopes to zero")
    resamples: int = Field(ge=2, description="Laws fitted to resampled runs, for the uncertainty")
    candidates: int = Field(ge=1, description="Mixtures that the law is asked for")
    best: int = Field(ge=1, description="Best candidates whose mean is proposed")
    min_share: float = Field(ge=0, lt=1, description="Share of every domain at least")
    targets: dict[str, Annotated[float, Field(ge=0)]] = Field(
        description="Weight of a domain's loss in what is minimised; others: 1"
    )
    seed: int = Field(ge=0, lt=1 << 63, description="Seed of sample, mixtures and candidates")
