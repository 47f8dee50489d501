"""Reservations of text and data mining: the TDM Reservation Protocol of the W3C's community group.

A site reserves its rights (article 4 of the EU's directive 2019/790) with `tdm-reservation: 1` in a
header, in a meta tag or, for paths, in `/.well-known/tdmrep.json`; `tdm-policy` names a policy.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from curation.rights.robots import matches, path_of, pattern_of

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


#: Rules of a `tdmrep.json`, by the pattern of their paths.
Rules = Sequence[tuple[str, Reservation]]


def of_path(rules: Rules, url: str) -> Reservation | None:
    """Return what the first rule says that is for a URL; None where none is."""
    path = path_of(url)
    return next((said for pattern, said in rules if matches(pattern, path)), None)


def parse_tdm_file(content: bytes) -> Rules:
    """Return the rules of a file; entries that aren't rules are ignored, as is invalid JSON."""
    try:
        entries = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return []
    if not isinstance(entries, list):  # one rule without the list around it
        entries = [entries]
    return [rule for entry in entries if isinstance(entry, dict) and (rule := _rule(entry))]


def _rule(entry: dict[str, Any]) -> tuple[str, Reservation] | None:
    location, policy = entry.get("location"), entry.get("tdm-policy")
    policies = [policy] if isinstance(policy, str) else []
    said = reservation([str(entry.get("tdm-reservation", ""))], policies)
    if not isinstance(location, str) or said is None:
        return None
    return pattern_of(location if location.startswith("/") else f"/{location}"), said
