"""Settings of the mix stage."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0)]


class DomainMix(BaseModel):
    """What a domain gets of the budget."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: Share = Field(description="Part of the token budget; all shares sum to 1")
    max_epochs: float = Field(gt=0, description="How often its documents may repeat at most")


class SourceMix(BaseModel):
    """What an input gets of its domains' tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: Weight = Field(
        default=1.0,
        description="Of two inputs with equally many tokens of a domain, one of weight 2 gives "
        "twice as many as one of weight 1",
    )
    max_epochs: float | None = Field(
        default=None,
        gt=0,
        description="How often its documents may repeat; the domain's limit holds too",
    )


class Mixture(BaseModel):
    """How many tokens of which documents are drawn. Defaults: `configs/defaults/mix.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    budget: Literal["auto"] | Annotated[int, Field(gt=0)] = Field(
        description="Tokens in all, or `auto`: the most that shares and epochs allow"
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
    min_tokens: int | None = Field(ge=0, description="Shorter documents are left out")
    max_tokens: int | None = Field(ge=0, description="Longer documents are left out")
    seed: int = Field(ge=0, lt=1 << 63, description="Seed of every draw")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        total = sum(domain.share for domain in self.domains.values())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"shares of the domains sum to {total:g}, not 1")
        places = [quality for quality, _ in self.quality_weights]
        if any(b <= a for a, b in pairwise(places)):
            raise ValueError("quality_weights must go from lower to higher quality")
        return self

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
