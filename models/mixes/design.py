"""Design mixtures for experiments: drawn around a prior, within the available tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.config import nearest
from curation.errors import ConfigError, InputError
from models.mixes.search import SearchSettings, Space

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Mixtures to train on, by run; what results are read against."""

    space: Space
    tokens: int  # budget of a run
    available: dict[str, int]  # tokens by domain
    runs: dict[str, F64]  # shares [domains] by name

    def as_dict(self) -> dict[str, Any]:
        """Return the design as plain values; `from_dict` reads it.

        `weights` of a run are how often each token of a domain is seen: by them a loader samples.
        """
        domains = self.space.domains
        return {
            "domains": list(domains),
            "prior": self.space.shares.tolist(),
            "at_most": self.space.most.tolist(),
            "tokens": self.tokens,
            "available": self.available,
            "runs": [
                {
                    "run": name,
                    "shares": _rounded(domains, shares),
                    "weights": {
                        d: float(s * self.tokens / self.available[d])
                        for d, s in zip(domains, shares, strict=True)
                    },
                }
                for name, shares in self.runs.items()
            ],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Design:
        domains = tuple(values["domains"])
        space = Space(domains, np.array(values["prior"]), np.array(values["at_most"]))
        runs = {run["run"]: np.array([run["shares"][d] for d in domains]) for run in values["runs"]}
        return cls(space, values["tokens"], dict(values["available"]), runs)

    def recipe(self, extends: str, key: str) -> dict[str, Any]:
        """Return a recipe with a named mix for each run, which writes the runs' shards.

        `key` of a mix has the shares: domains or inputs.
        """
        mixes = {
            name: {
                "budget": self.tokens,
                "phases": [],
                key: {d: {"share": s} for d, s in _rounded(self.space.domains, shares).items()},
            }
            for name, shares in self.runs.items()
        }
        return {
            "name": "mix-design",
            "description": f"{len(mixes)} mixtures for experiments, around those of {extends}",
            "extends": extends,
            "mix": {"mixes": mixes},
        }


def draw_design(
    space: Space,
    count: int,
    tokens: int,
    available: dict[str, int],
    settings: SearchSettings,
    frozen: Sequence[str] = (),
) -> Design:
    """Return the prior, as far as there is enough for it, then draws around it.

    Raises InputError where availability leaves no room.

    Shares of `frozen` domains keep their proportions to each other, as of one virtual domain
    (conditional mixing, Olmo 3, arXiv 2512.13961, 3.4.4): fewer runs tell the rest.
    """
    if count < 2:
        raise ConfigError(f"--design {count}: a design has at least 2 mixtures")
    rng = np.random.default_rng([settings.seed, 4])
    centre = space.nearest()
    drawn = draw_around(space, centre, count - 1, settings.concentration, settings, frozen, rng)
    every = np.concatenate([centre[None], drawn])
    width = max(3, len(str(count - 1)))
    return Design(
        space, tokens, available, {f"run-{k:0{width}d}": row for k, row in enumerate(every)}
    )


def draw_around(
    space: Space,
    centre: F64,
    count: int,
    concentration: tuple[float, float],
    settings: SearchSettings,
    frozen: Sequence[str],
    rng: np.random.Generator,
) -> F64:
    """Mixtures [count, domains] around a centre, in which frozen domains move together."""
    for name in frozen:
        if name not in space.domains:
            raise ConfigError(
                f"--freeze: no domain {name!r}{nearest(name, space.domains)} "
                f"(there are: {', '.join(space.domains)})"
            )
    held = np.array([d in frozen for d in space.domains])
    if held.sum() < 2:
        return space.draw(count, centre, concentration, settings.min_share, rng)
    if held.all():
        raise InputError("--freeze: all domains are frozen: there is nothing to vary")
    whole = centre[held].sum()
    inside = centre[held] / whole
    virtual = Space(
        ("frozen", *(d for d, h in zip(space.domains, held, strict=True) if not h)),
        np.concatenate([[whole], centre[~held]]),
        np.concatenate([[(space.most[held] / np.maximum(inside, 1e-12)).min()], space.most[~held]]),
    )
    drawn = virtual.draw(count, virtual.shares, concentration, settings.min_share, rng)
    out = np.empty((count, len(centre)))
    out[:, held] = drawn[:, :1] * inside
    out[:, ~held] = drawn[:, 1:]
    return out


def _rounded(domains: Sequence[str], shares: F64) -> dict[str, float]:
    """Shares in millionths that sum to 1."""
    parts = [round(float(share) * 10**6) for share in shares]
    parts[parts.index(max(parts))] += 10**6 - sum(parts)
    return {domain: part / 10**6 for domain, part in zip(domains, parts, strict=True)}
