"""Search for domain shares by trainings of your own: settings, and the mixtures to draw from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from curation.config import (
    Ascending,
    Positive,
    Settings,
    Share,
    assign,
    read_yaml,
    validate,
)
from curation.errors import InputError
from curation.mix.mix_settings import Weight
from curation.mix.plan import MixPlan
from curation.resources import root

F64 = npt.NDArray[np.float64]
Concentration = Annotated[tuple[Weight, Weight], Ascending]
_TRIES = 200  # draws of a round, before the room for mixtures counts as too small


class SearchSettings(Settings):
    """How a mixture is searched for. Defaults: `configs/train/search.yaml`."""

    concentration: Concentration = Field(
        description="Least and most of the Dirichlet draws around the recipe's shares"
    )
    near_concentration: Concentration = Field(description="The same around a proposal")
    ridge: float = Field(ge=0, description="Pull of the law's slopes to zero")
    resamples: int = Field(ge=2, description="Laws fitted to resampled runs, for the uncertainty")
    candidates: Positive = Field(description="Mixtures that the law is asked for")
    best: Positive = Field(description="Best candidates whose mean is proposed")
    min_share: float = Field(ge=0, lt=1, description="Share of every domain at least")
    settled: Share = Field(description="A share whose interval is narrower than this is settled")
    seed: int = Field(ge=0, lt=1 << 63, description="Seed of sample, mixtures and candidates")


def search_settings(assignments: Sequence[str]) -> SearchSettings:
    """Return the defaults with `search.key=value` assignments. Raises ConfigError."""
    tree = {"search": read_yaml(root() / "configs/train/search.yaml")}
    for assignment in assignments:
        assign(tree, assignment)
    return validate(SearchSettings, tree["search"], "--set search")


@dataclass(frozen=True)
class Space:
    """The mixtures that may be drawn: domains, the recipe's shares, and the most each can have."""

    domains: tuple[str, ...]
    shares: F64  # [domains], sum 1
    most: F64  # [domains]: what `max_epochs` allows of the budget

    def nearest(self) -> F64:
        """Return the recipe's shares, of which a domain that has less gives all it has.

        The others fill up what it leaves, in their proportions. Without enough of anything the
        sum stays below 1.
        """
        short = np.zeros(len(self.shares), bool)
        while True:
            rest = max(0.0, 1 - self.most[short].sum())
            whole = self.shares[~short].sum()
            found = np.where(short, self.most, self.shares * (rest / whole if whole else 0.0))
            over = ~short & (found > self.most)
            if not over.any():
                return found
            short |= over

    def draw(
        self,
        count: int,
        centre: F64,
        concentration: tuple[float, float],
        least: float,
        rng: np.random.Generator,
    ) -> F64:
        """Mixtures [count, domains]: Dirichlet draws around a centre, from far away to close by.

        Raises InputError when the limits leave (almost) no room.
        """
        low, high = np.log(concentration)
        found = np.zeros((0, len(centre)))
        for _ in range(_TRIES):
            scale = np.exp(rng.uniform(low, high, (count, 1)))
            gammas = rng.gamma(np.maximum(scale * centre, 1e-3))
            drawn = gammas / np.maximum(gammas.sum(axis=1, keepdims=True), 1e-300)
            drawn = least + (1 - least * len(centre)) * drawn
            found = np.concatenate([found, drawn[(drawn <= self.most).all(axis=1)]])
            if len(found) >= count:
                return found[:count]
        room = ", ".join(f"{d} {m:.0%}" for d, m in zip(self.domains, self.most, strict=True))
        raise InputError(
            f"mix: the epochs that the budget allows leave no room for mixtures (at most: {room}); "
            "lower mix.budget or raise max_epochs"
        )


def space_of(mix: MixPlan) -> Space:
    """Return the domains with a share and tokens, and the most each can fill of the budget.

    Raises InputError where there are fewer than two.
    """
    rows = [row for row in mix.rows() if row["share"] > 0 and row["available"] > 0]
    if len(rows) < 2:
        raise InputError("mix: a design needs documents of at least two domains with a share")
    shares = np.array([row["share"] for row in rows])
    most = np.array([row["at_most"] / mix.budget for row in rows])
    return Space(tuple(row["domain"] for row in rows), shares / shares.sum(), np.minimum(most, 1.0))
