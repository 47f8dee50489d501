"""Licences by the addresses and names under which pages state them."""

import functools
import itertools
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from curation.config import read_yaml
from curation.resources import root
from curation.rights.usage import SIGNAL_KEYS


class Licence(NamedTuple):
    """A licence, and the country that it was written for."""

    name: str  # SPDX identifier without the country, such as CC-BY-SA-3.0
    jurisdiction: str | None  # ISO 3166 country in lower case, of ported Creative Commons licences


#: Addresses of Creative Commons' licences and of the badges for them.
_CREATIVE_COMMONS = re.compile(
    r"(?:creativecommons\.org|licensebuttons\.net)"
    r"/(licenses|licences|l|p|publicdomain|presskit/buttons/\w+/\w+)/([a-z0-9+-]{1,20})"
    r"(?:/(\d\.\d))?(?:/([a-z]{2,8})(?=[/\"'?#\s<>)]|$))?",
    re.I,
)
#: "CC BY-SA 4.0" where a name is in place of an address.
_NAMED = re.compile(
    r"\bCC[ -]?(0|(?<=[ -])(?:BY(?:[ -](?:NC|SA|ND)){0,2}|ZERO))"
    r"(?:[ -](?:INT[A-Z.]*[ -])?v?(\d\.\d))?(?!\w|\.\w)",
    re.I,
)
#: "Creative Commons Attribution-ShareAlike 4.0 International": its elements follow the first word.
_WRITTEN = re.compile(r"creative\s*commons(?:\s+licen[cs]e)?\W{0,3}(.{1,120})", re.I | re.S)
_AFTER = re.compile(r"\blicen[cs]e\b|(?<!\d)\.|\.(?!\d)|;", re.I)
_WRITTEN_VERSION = re.compile(r"(?<![\d.])[1-4]\.\d(?![\d.])")
#: Words and addresses by which licences are known.
KNOWN = read_yaml(root() / "configs" / "lists" / "licences.yaml")
#: The list of open ones.
_OPEN = root() / "configs" / "lists" / "open_licences.yaml"
#: Elements as the licences' names have them.
_ELEMENTS = {element: re.compile(names, re.I) for element, names in KNOWN["elements"].items()}
#: Hosts, and patterns of their addresses, of other licences.
_OTHERS = tuple(
    (pattern.partition("/")[0].replace("\\", ""), re.compile(pattern, re.I), name)
    for pattern, name in KNOWN["addresses"].items()
)
_SPDX_LINE = re.compile(r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9(][\w.+() -]{0,100}[\w)+])")
#: Characters in which a statement names its licence.
_MOST_CHARACTERS = 4000
_DEEDS = ("deed", "legalcode", "rdf")


@functools.lru_cache(maxsize=1024)  # most pages name one of a few
def licence_of(statement: str) -> Licence | None:
    """Return the licence that an address or a name stands for, None for an unknown one.

    Example: `https://creativecommons.org/licenses/by-nc/3.0/de/` gives `CC-BY-NC-3.0` for `de`.
    """
    statement = statement[:_MOST_CHARACTERS]
    lowered = statement.lower()  # nearly all name none, which is found out sooner without patterns
    if "creativecommons.org" in lowered or "licensebuttons.net" in lowered:
        if found := _CREATIVE_COMMONS.search(statement):
            return _creative_commons(*found.groups())
    for host, pattern, name in _OTHERS:
        if host in lowered and pattern.search(statement):
            return Licence(name, None)
    named = _NAMED.search(statement) if "cc" in lowered else None
    if named:
        kind, version = named.group(1).upper().replace(" ", "-"), named.group(2)
        if kind in ("0", "ZERO"):
            return Licence("CC0-1.0", None)
        return Licence(f"CC-{kind}" + (f"-{version}" if version else ""), None)
    return _written(statement) if "commons" in lowered else None


def _written(statement: str) -> Licence | None:
    """The licence of Creative Commons whose name is written out."""
    named = _WRITTEN.search(statement)
    if not named:
        return None
    words = _AFTER.split(named.group(1))[0]
    if re.match(r"(?i)zero|cc0", words):
        return Licence("CC0-1.0", None)
    elements = [element for element, names in _ELEMENTS.items() if names.search(words)]
    if "BY" not in elements:
        return None
    version = _WRITTEN_VERSION.search(words)
    return Licence("-".join(["CC", *elements, *([version[0]] if version else [])]), None)


def _creative_commons(
    folder: str, kind: str, version: str | None, country: str | None
) -> Licence | None:
    kind = kind.lower()
    if folder.lower() in ("publicdomain", "p") or kind in ("zero", "mark", "publicdomain"):
        names = {"zero": f"CC0-{version or '1.0'}", "mark": f"CC-PDM-{version or '1.0'}"}
        return Licence(names.get(kind, "CC-PDDC"), None)
    name = f"CC-{kind.upper()}" + (f"-{version}" if version else "")
    here = country.lower() if country and country.lower() not in _DEEDS else None
    return Licence(name, here if (here and len(here) in (2, 3)) or here == "scotland" else None)


def spdx_identifiers(text: str) -> list[str]:
    """Return the expressions of `SPDX-License-Identifier` lines, in order, without repeats."""
    return list(dict.fromkeys(found.strip() for found in _SPDX_LINE.findall(text)))


#: Begins a use that a licence in RSL must permit, in place of an identifier.
RSL_USE = "rsl:"


def known_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return patterns of licences, with those of all open ones in place of `open`.

    Raises ValueError for a use that licences in RSL aren't asked for.
    """
    uses = [one for one in patterns if one.startswith(RSL_USE)]
    if wrong := [use for use in uses if use.removeprefix(RSL_USE) not in SIGNAL_KEYS.values()]:
        raise ValueError(f"{wrong[0]}: no use; there are: {', '.join(SIGNAL_KEYS.values())}")
    return tuple(
        one for name in patterns for one in (read_yaml(_OPEN)["open"] if name == "open" else [name])
    )


#: What joins the licences of an SPDX expression.
_JOINT = re.compile(r"([()]|(?<![^\s()])(?:AND|OR|WITH)(?![^\s()]))")


def matches_licence(licence: str, patterns: Sequence[str]) -> bool:
    """Return whether a licence is one of these, of which `*` is anything.

    Of licences in an SPDX expression, one of those joined by OR is enough, and of those joined by
    AND, which binds tighter, each must be one; exceptions (WITH) grant more and don't matter.
    """
    # Of each bracket that is open: its choices so far, and whether all of the last one match.
    choices, all_match, exception = [False], [True], False
    parts = _JOINT.split(licence)
    for part in [*parts, *itertools.repeat(")", parts.count("("))]:  # some may never be closed
        name = part.strip()
        if name == "(":
            choices.append(False)
            all_match.append(True)
        elif name == ")" and len(choices) > 1:
            inner = choices.pop() | all_match.pop()
            all_match[-1] &= inner
        elif name == "OR":
            choices[-1] |= all_match[-1]
            all_match[-1] = True
        elif name == "WITH":
            exception = True
        elif exception and name:
            exception = False
        elif name not in ("", "AND", ")"):
            all_match[-1] &= any(fnmatchcase(name.lower(), p.lower()) for p in patterns)
    return choices[-1] or all_match[-1]
