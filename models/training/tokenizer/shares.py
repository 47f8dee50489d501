"""Weights of languages and sources in the training of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import Field

from curation.config import Settings, Share, parse_yaml
from curation.errors import ConfigError
from curation.resources import resolve
from models.training.tokenizer.corpus import Group

_LARGE = 3_000_000  # beyond this size a source counts no more
_SMALL = 50_000  # below this size the sources of a kind count less, by the square root


class WebShares(Settings):
    """How much each language weighs: its share of the web to a power, at least a floor."""

    source: str = Field(description="Where the shares are published")
    power: Share = Field(description="Weight is the share to this power")
    floor: float = Field(gt=0, description="Least share in percent, of languages not listed too")
    factors: dict[str, float] = Field(description="Further factors of weights, by language")
    kinds: dict[str, float] = Field(
        description="Weights of kinds of sources: what their names have before the first slash"
    )
    like: str | None = Field(
        None, description="File of this kind whose `percent` holds for what this one does not list"
    )
    percent: dict[str, float] = Field(description="Shares of pages in percent, by language")

    def weight(self, language: str) -> float:
        """Return the weight of a language, relative to others."""
        share = max(self.percent.get(language, 0.0), self.floor)
        return float(share**self.power * self.factors.get(language, 1.0))


def read_shares(path: str) -> WebShares:
    """Return the shares that a YAML file states. Raises ConfigError naming the file."""
    shares = _parsed(path)
    if shares.like is None:
        return shares
    return shares.model_copy(update={"percent": _parsed(shares.like).percent | shares.percent})


def _parsed(path: str) -> WebShares:
    try:
        content = parse_yaml(Path(resolve(path)).read_text(encoding="utf-8"))
        return WebShares.model_validate(content)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not shares of languages: {error}") from None


def kind_of(source: str) -> str:
    """Return the kind of a source: `words` of `words/opensubtitles`."""
    return source.split("/")[0]


def group_weights(
    sizes: Mapping[Group, int], balance: float, shares: WebShares | None = None
) -> dict[Group, float]:
    """Return the weight of one unit of size of each group, such that everything weighs 1 together.

    Without shares, a language's share is proportional to its size to the power `balance`, as in
    multilingual language models (Conneau et al. 2020, arXiv 1911.02116); so is a source's within
    its language. With shares they decide about languages and kinds of sources, `balance` about
    sources of a kind.
    """
    sizes = {group: size for group, size in sizes.items() if size}
    languages = sorted({language for language, _ in sizes})
    within = {
        language: _sources(
            {s: n for (name, s), n in sizes.items() if name == language}, balance, shares
        )
        for language in languages
    }
    of = {
        language: shares.weight(language)
        if shares
        else sum(n for (name, _), n in sizes.items() if name == language) ** balance
        for language in languages
    }
    total = sum(of.values())
    return {
        (language, source): of[language] / total * within[language][source] / size
        for (language, source), size in sizes.items()
    }


def _sources(
    sizes: Mapping[str, int], balance: float, shares: WebShares | None
) -> dict[str, float]:
    """Return the share of each source of a language."""
    if shares is None:
        return _normalized({source: size**balance for source, size in sizes.items()})
    weights: dict[str, float] = {}
    for kind in sorted({kind_of(source) for source in sizes}):
        of = {s: min(n, _LARGE) for s, n in sizes.items() if kind_of(s) == kind}
        trust = min(1.0, sum(of.values()) / _SMALL) ** 0.5 * shares.kinds.get(kind, 1.0)
        inner = _normalized({s: n**balance for s, n in of.items()})
        weights |= {source: trust * share for source, share in inner.items()}
    return _normalized(weights)


def _normalized(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
