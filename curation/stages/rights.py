"""Stage `rights`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curation.rights.rights_settings import COMPARES, COPY, RightsSettings
from curation.stages.base import Columns, Stage


def told(row: Mapping[str, Any]) -> list[str]:
    """Return lines that describe a document's columns `rights` and `response`, if present."""
    rights, response = row.get("rights"), row.get("response")
    lines = []
    if response is not None:
        known = (f"{name.replace('_', ' ')} {v}" for name, v in response.items() if v is not None)
        lines.append(f"response: {', '.join(known)}")
    if rights is not None:
        lines.append(f"licence: {rights['licence'] or 'none found'}")
        lines += map(told_signal, rights["signals"])
    return lines


def told_signal(signal: Mapping[str, str | None]) -> str:
    """Return one line that describes a signal: `directive in header for ccbot: noai`."""
    agent = f" for {signal['agent']}" if signal["agent"] else ""
    return f"{signal['kind']} in {signal['place']}{agent}: {signal['value'] or 'no rule applies'}"


class _Rights(Stage[RightsSettings]):
    name = "rights"
    purpose = "remove documents whose rights a policy honours"
    settings = RightsSettings
    after = "extract"
    optional = True
    cost = 0.05
    beside = "signals"
    command = "what_if"

    def reads(self, settings: RightsSettings) -> Columns:
        return Columns(("rights",))

    def looks_back(self, settings: RightsSettings) -> str:
        return COMPARES if settings.follow else ""

    def check_recipe(self, settings: RightsSettings, recipe: Any) -> None:
        before = self.looks_back(settings)
        if before and self.name in recipe.stages:
            if before not in recipe.stages[: recipe.stages.index(self.name)]:
                raise ValueError(f"rights.follow: put rights after {before}, which finds copies")
        if not {self.name, "extract"} <= {*recipe.stages}:
            return
        asked = [kind for kind in ("robots", "ai_txt") if kind in settings.honour]
        if "robots" in asked and not recipe.extract.rights.files:
            raise ValueError(
                "rights.honour: robots needs robots.txt: name captures in extract.rights.files, "
                "or leave robots out"
            )
        known = {agent.lower() for agent in recipe.extract.rights.agents}
        for agent in settings.agents if asked else ():
            if agent.lower() not in known:
                raise ValueError(f"rights.agents: {agent!r} is not among extract.rights.agents")

    def tell(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        for row in rows:
            said = "no signal says otherwise" if row["kind"] is None else told_signal(row)
            yield f"of the original: {said}" if row["reason"] == COPY else said


STAGE = _Rights()
