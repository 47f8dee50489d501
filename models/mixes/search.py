"""Search for domain shares: small proxy runs, a law fitted to them, the mixture it likes best.

Runs come in rounds: the first around the recipe's shares, each other around what the law of those
before it proposes. A law errs where it has seen no run, so it is only asked where there are some.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from curation.config import (
    Ascending,
    Positive,
    Settings,
    Share,
    assign,
    nearest,
    read_yaml,
    validate,
)
from curation.errors import ConfigError, InputError
from curation.mix.mix_settings import Weight
from curation.resources import root
from models.mixes.laws import fit_exponential, resampled_laws

F64 = npt.NDArray[np.float64]
Concentration = Annotated[tuple[Weight, Weight], Ascending]
_TRIES = 200  # draws of a round, before the room for mixtures counts as too small


class SearchSettings(Settings):
    """How a mixture is searched for. Defaults: `configs/train/search.yaml`."""

    runs: int = Field(ge=16, description="Proxy runs around the recipe's shares")
    near_rounds: Positive = Field(description="Rounds of runs around what those before propose")
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
    candidates: Positive = Field(description="Mixtures that the law is asked for")
    best: Positive = Field(description="Best candidates whose mean is proposed")
    min_share: float = Field(ge=0, lt=1, description="Share of every domain at least")
    targets: dict[str, Annotated[float, Field(ge=0)]] = Field(
        description="Weight of a domain's loss in what is minimised; others: 1"
    )
    settled: Share = Field(description="A share whose interval is narrower than this is settled")
    seed: int = Field(ge=0, lt=1 << 63, description="Seed of sample, mixtures and candidates")


def search_settings(assignments: Sequence[str], domains: Collection[str]) -> SearchSettings:
    """Return the defaults with `search.key=value` assignments. Raises ConfigError."""
    tree = {"search": read_yaml(root() / "configs/train/search.yaml")}
    for assignment in assignments:
        assign(tree, assignment)
    settings = validate(SearchSettings, tree["search"], "--set search")
    for name in settings.targets:
        if name not in domains:
            raise ConfigError(
                f"--set search.targets: {name!r} is no domain of the mix"
                f"{nearest(name, domains)} (it has: {', '.join(domains)})"
            )
    return settings


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
            f"mix: the epochs that the budget allows leave no room to search (at most: {room}); "
            "lower mix.budget or raise max_epochs"
        )


def first_round(space: Space, settings: SearchSettings) -> F64:
    """The recipe's own mixture, then draws around it: [runs, domains]."""
    rng = np.random.default_rng([settings.seed, 1])
    drawn = space.draw(
        settings.runs - 1, space.shares, settings.concentration, settings.min_share, rng
    )
    return np.concatenate([space.shares[None], drawn])


def near_round(space: Space, centre: F64, number: int, settings: SearchSettings) -> F64:
    """Draws around a proposal: [near_runs, domains]."""
    rng = np.random.default_rng([settings.seed, 2, number])
    near = settings.near_concentration
    return space.draw(settings.near_runs, centre, near, settings.min_share, rng)


@dataclass(frozen=True)
class Proposal:
    """What the search found. Arrays over domains."""

    space: Space
    shares: F64
    predicted: F64  # loss at `shares`
    uncertainty: F64  # from resampled laws and the error on test runs
    before: F64  # loss of the proxy at the recipe's shares
    test_error: F64  # root mean square on runs that the law wasn't fitted to
    rank_correlation: F64  # Spearman's, on the same runs
    runs: int

    def rows(self, measured: Sequence[float]) -> list[dict[str, Any]]:
        """One line per domain; `measured`: the proxy's losses at the proposed shares."""
        return [
            {
                "domain": domain,
                "share": float(self.space.shares[k]),
                "proposed": float(self.shares[k]),
                "at_most": float(self.space.most[k]),
                "loss": float(self.before[k]),
                "predicted": float(self.predicted[k]),
                "uncertainty": float(self.uncertainty[k]),
                "measured": float(measured[k]),
                "test_error": float(self.test_error[k]),
                "rank_correlation": float(self.rank_correlation[k]),
            }
            for k, domain in enumerate(self.space.domains)
        ]


def propose(
    space: Space,
    shares: F64,
    losses: F64,
    near: int,
    centre: F64,
    concentration: tuple[float, float],
    settings: SearchSettings,
) -> Proposal:
    """Fit laws to runs (shares [runs, domains], losses alike) and propose a mixture.

    The first run is the recipe's own. What is minimised is the sum over domains, weighted by
    `targets`, of the predicted loss relative to that run's. The proposal is the mean of the best
    candidates, drawn as the last `near` runs were. The law's error is measured on a part of these
    that a second law is not fitted to.
    """
    rng = np.random.default_rng([settings.seed, 3])
    tests = len(shares) - 1 - rng.permutation(near)[: max(2, round(settings.test_runs * near))]
    fitted = np.setdiff1d(np.arange(len(shares)), tests)
    fit = partial(fit_exponential, ridge=settings.ridge)
    trial = fit(shares[fitted], losses[fitted]).predict(shares[tests])
    error = np.sqrt(((trial - losses[tests]) ** 2).mean(axis=0))
    pairs = zip(trial.T, losses[tests].T, strict=True)
    ranks = np.array([rank_correlation(a, b) for a, b in pairs])

    laws = resampled_laws(shares, losses, fit, settings.resamples, settings.seed)
    targets = np.array([settings.targets.get(d, 1.0) for d in space.domains])
    candidates = space.draw(settings.candidates, centre, concentration, settings.min_share, rng)
    predicted = sum((law.predict(candidates) for law in laws), np.zeros_like(candidates))
    value = (predicted / losses[0]) @ targets
    best = candidates[np.argsort(value, kind="stable")[: settings.best]]
    chosen = best.mean(axis=0)
    at = np.array([law.predict(chosen[None])[0] for law in laws])
    spread = np.sqrt(at.std(axis=0) ** 2 + error**2)
    return Proposal(space, chosen, at.mean(axis=0), spread, losses[0], error, ranks, len(shares))


def rank_correlation(a: F64, b: F64) -> float:
    """Spearman's rank correlation; 0 where either is constant."""
    x, y = (np.argsort(np.argsort(v)).astype(float) for v in (a, b))
    if x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def sample_streams(
    documents: Sequence[npt.NDArray[np.uint32]],
    held_out: Sequence[bool],
    tokens: int,
    held_out_tokens: int,
    boundary: int,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """A domain's stream to train on and to measure with, in the given order, each up to a limit.

    Every document is preceded by the id `boundary`.
    """
    parts: tuple[list[npt.NDArray[np.uint32]], ...] = ([], [])
    left = [tokens, held_out_tokens]
    edge = np.array([boundary], np.uint32)
    for ids, side in zip(documents, map(int, held_out), strict=True):
        if left[side] > 0:
            parts[side].extend((edge, ids[: left[side]]))
            left[side] -= 1 + len(ids)
    streams = [np.concatenate([np.zeros(0, np.uint32), *part]) for part in parts]
    return streams[0][:tokens], streams[1][:held_out_tokens]
