"""Reservations of text and data mining: the TDM Reservation Protocol of the W3C's community group.

A site reserves its rights (article 4 of the EU's directive 2019/790) with `tdm-reservation: 1` in a
header, in a meta tag or, for paths, in `/.well-known/tdmrep.json`; `tdm-policy` names a policy.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from curation.rights.robots import matches, path_of, pattern_of
from curation.rights.usage import unread

#: Where a site's file lies.
WELL_KNOWN = "/.well-known/tdmrep.json"


class Reservation(NamedTuple):
    """What a site says of mining one of its pages."""

    reserved: bool
    policy: str | None  # URL, only of reserved pages


def reservation(values: Sequence[str], policies: Sequence[str] = ()) -> Reservation | None:
    """Return what values of `tdm-reservation` say; None if none of them is 0 or 1.

    Where several contradict each other, the reservation counts.
    """
    said = {value.strip() for value in values} & {"0", "1"}
    if not said:
        return None
    reserved = "1" in said
    policy = next((p.strip() for p in policies if p.strip()), None)
    return Reservation(reserved, policy if reserved else None)


def unread_of(values: Iterable[str]) -> list[str]:
    """Return values of `tdm-reservation` that are neither 0 nor 1, marked as such."""
    return [unread(value) for value in values if value.strip() not in ("0", "1")]


#: Rules of a `tdmrep.json`, by the pattern of their paths; texts are what can't be read.
Rules = Sequence[tuple[str, Reservation | str]]


def of_path(rules: Rules, url: str) -> Reservation | None:
    """Return what the first rule says that is for a URL; None where none is."""
    path = path_of(url)
    fitting = (said for pattern, said in rules if matches(pattern, path))
    return next((said for said in fitting if isinstance(said, Reservation)), None)


def parse_tdm_file(content: bytes) -> Rules:
    """Return the rules of a file; entries that aren't rules, and invalid JSON, as texts."""
    try:
        entries = json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return [("/", unread("no JSON"))]
    if not isinstance(entries, list):  # one rule without the list around it
        entries = [entries]
    return [*dict.fromkeys(map(_rule, entries))]


def _rule(entry: Any) -> tuple[str, Reservation | str]:
    given = entry if isinstance(entry, dict) else {}
    location, policy = given.get("location"), given.get("tdm-policy")
    value = str(given.get("tdm-reservation", ""))
    said = reservation([value], [policy] if isinstance(policy, str) else [])
    if not isinstance(location, str) or said is None:
        return "/", unread(value)
    return pattern_of(location if location.startswith("/") else f"/{location}"), said
