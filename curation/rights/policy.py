"""Decide which rights signal removes a document under a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from curation.errors import InputError
from curation.rights.licences import matches_licence
from curation.rights.preferences import USES, decide
from curation.rights.rights_settings import RightsSettings
from curation.rights.signals import LATEST
from curation.schema import Verdicts

#: The signals that removed documents: one row each.
FOUND = pa.schema(
    [
        ("id", pa.string()),
        ("reason", pa.string()),
        ("kind", pa.string()),
        ("place", pa.string()),
        ("agent", pa.string()),
        ("value", pa.string()),
    ]
)
#: Kinds of signals that files of sites hold, as agents ask them.
_ASKED = ("robots", "ai_txt")
#: What may be denied, and by signals of which kinds: of all without any. Who follows which group
#: of a robots.txt its signals of that kind tell.
_DENIED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{use: (use, ()) for use in USES},
    **{kind: ("train", (kind, "robots")) for kind in ("content_signal", "content_usage", "rsl")},
    "tdm": ("train", ("tdm",)),
}
_NOTHING: dict[str, str | None] = dict.fromkeys(("kind", "place", "agent", "value"))
Signals = Sequence[Mapping[str, str | None]]


class Ruling(NamedTuple):
    """Why a document is removed."""

    reason: str
    signal: Mapping[str, str | None]  # that says so; of nulls where it is the lack of one


class Policy:
    """Settings, ready to judge documents."""

    def __init__(self, settings: RightsSettings) -> None:
        self._settings = settings
        self._agents = [agent.lower() for agent in settings.agents]

    def ruling(self, rights: Mapping[str, Any] | None) -> Ruling | None:
        """Return why a document with these rights is removed; None if it is kept.

        The first signal in the order of `honour` that forbids its use is the reason; then come
        licences, then what is not known.
        """
        signals: Signals = [
            s for s in (rights or {}).get("signals") or () if self._counts(s["place"])
        ]
        for honoured in self._settings.honour:
            for signal in self._forbidding(honoured, signals):
                return Ruling(f"rights.{honoured}", signal)
        licence = (rights or {}).get("licence")
        require = self._settings.licences.require
        if require and not (licence and matches_licence(licence, require)):
            stated = (s for s in signals if s["kind"] == "licence")
            return Ruling("rights.licence", next(stated, _NOTHING))
        if self._settings.unknown == "remove" and self._is_unknown(rights, signals):
            return Ruling("rights.unknown", _NOTHING)
        return None

    def rulings(self, column: pa.Array) -> list[Ruling | None]:
        """Return the rulings on the values of a column `rights`."""
        return [self.ruling(rights) for rights in column.to_pylist()]

    def judge(self, batch: pa.RecordBatch) -> list[Ruling | None]:
        """Return the rulings on documents. Raises InputError without their column `rights`."""
        if batch.schema.get_field_index("rights") < 0:
            raise InputError("rights: the documents have no column 'rights', which extract makes")
        return self.rulings(batch.column("rights"))

    def _counts(self, place: str | None) -> bool:
        return self._settings.retroactive or not (place or "").startswith(LATEST)

    def _forbidding(self, honoured: str, signals: Signals) -> Iterator[Mapping[str, str | None]]:
        if honoured in _ASKED:
            answers = [s for s in signals if s["kind"] == honoured]
            for place in dict.fromkeys(s["place"] for s in answers):
                yield from self._closed([s for s in answers if s["place"] == place])
        elif honoured in _DENIED:
            use, kinds = _DENIED[honoured]
            heard = [s for s in signals if not kinds or s["kind"] in kinds]
            strictest = self._settings.contradictions == "strictest"
            answer, said = decide(heard, self._agents, strictest, self._settings.bought)[use]
            yield from said if answer == "deny" else ()
        else:
            named = (s for s in signals if (s["kind"], s["value"]) == ("directive", honoured))
            yield from (s for s in named if s["agent"] in ("*", *self._agents))

    def _closed(self, answers: Signals) -> Iterator[Mapping[str, str | None]]:
        """The answers of one file to the agents, where they forbid.

        Each agent is told what is for it, else what is for all; without agents, what is for all
        counts.
        """
        own = {(s["agent"] or "").lower(): s for s in answers}
        asked = (own.get(agent, own.get("*")) for agent in self._agents or ["*"])
        yield from (s for s in asked if s is not None and forbids(s["value"] or ""))

    def _is_unknown(self, rights: Mapping[str, Any] | None, signals: Signals) -> bool:
        robots = "robots" in self._settings.honour
        return rights is None or (robots and not any(s["kind"] == "robots" for s in signals))


def forbids(answer: str) -> bool:
    """Return whether a site's answer to an agent forbids a page: by a line or an HTTP status.

    A file that the server failed to deliver forbids everything (RFC 9309, 2.3.1.4); a missing one
    forbids nothing.
    """
    return answer.startswith(("Disallow:", "HTTP 5"))


def verdicts_of(rulings: Sequence[Ruling | None]) -> Verdicts:
    """Return the rulings as verdicts; their values are texts."""
    reasons = pa.array([ruling and ruling.reason for ruling in rulings], pa.string())
    values = pa.array([ruling and ruling.signal["value"] for ruling in rulings], pa.string())
    return Verdicts.of_texts(reasons, values)


def found_table(ids: pa.Array, rulings: Iterable[Ruling | None]) -> pa.RecordBatch:
    """Return the signals that removed documents: FOUND."""
    rows = [
        {"id": one, "reason": ruling.reason, **{n: ruling.signal[n] for n in _NOTHING}}
        for one, ruling in zip(ids.to_pylist(), rulings, strict=True)
        if ruling is not None
    ]
    return pa.RecordBatch.from_pylist(rows, FOUND)
