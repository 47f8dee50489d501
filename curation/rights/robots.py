"""robots.txt: which URLs a crawler may fetch, as RFC 9309 defines it.

Where the RFC gives a line no meaning, it means what its author evidently meant, as for Google's
parser (github.com/google/robotstxt): a group for `Googlebot/2.1` is one for `Googlebot`, the colon
may be missing, and `Dissallow` disallows. A byte order mark isn't part of the first line.

Also directives for robots that come with a page: the header `X-Robots-Tag`, `<meta name=robots>`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

#: RFC 9309, 2.5: a parser reads at least this much; what follows is not read.
MOST_BYTES = 500 * 1024

#: Lines `Content-Signal`, `Content-Usage` and `License` of a file that are read.
_MOST_TERMS = 256

_LINE = re.compile(
    r"[ \t]*(user[ -]?agent|allow|dis+al+ow|dis+al+aw|diasllow)(?:[ \t]*:|[ \t])([^#]*)", re.I
)
SIGNAL, USAGE, LICENCE = "content-signal", "content-usage", "license"
#: Lines of a group that are no rules of access.
_TERMS = re.compile(r"[ \t]*(content-signal|content-usage|license)[ \t]*:([^#]*)", re.I)
_PRODUCT = re.compile(r"[\w-]+")
_AUTHORITY = re.compile(r"^[^/?#]*//[^/?#]*/*")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
#: What a URL can hold unescaped (RFC 3986), but `$` and `*`, which mean something in patterns.
_PLAIN = frozenset(b"!&'()+,;=:@/?#[]%")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


_Line = TypeVar("_Line")


class Rule(NamedTuple):
    """A line `Allow` or `Disallow`."""

    allows: bool
    path: str  # as it is written
    pattern: str  # normalised: escapes as in a normalised URL

    @classmethod
    def of(cls, allows: bool, path: str) -> Rule:
        """Return the rule of a line."""
        return cls(allows, path, pattern_of(path))

    @property
    def line(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.path}"


class Access(NamedTuple):
    """Whether a URL may be fetched, and by which line."""

    allowed: bool
    rule: Rule | None  # None: no rule applies


class Term(NamedTuple):
    """A line `Content-Signal`, `Content-Usage` or `License`: what else is said of a page's use."""

    name: str  # in lower case
    value: str  # as it is written


class Groups(Mapping[str, list[_Line]]):
    """Lines by product name. Agents of one group share its lines: a file may name thousands."""

    def __init__(self, groups: Mapping[str, Sequence[Sequence[_Line]]]) -> None:
        self._groups = groups

    def __getitem__(self, name: str) -> list[_Line]:
        return [line for group in self._groups[name] for line in group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


@dataclass(frozen=True)
class RobotsFile:
    """The groups of a robots.txt: rules by product name in lower case, `*` for all others."""

    groups: Mapping[str, list[Rule]] = field(default_factory=dict)
    #: Of the same groups, and "" for what stands before them.
    terms: Mapping[str, list[Term]] = field(default_factory=dict)

    def access(self, agent: str, url: str) -> Access:
        """Return whether a crawler may fetch a URL.

        The longest pattern that matches decides, of equally long ones `Allow`.

        Args:
            agent: the crawler's product name, such as `CCBot`; case doesn't matter.
            url: an absolute URL, or a path with its query.
        """
        path = path_of(url)
        if path == "/robots.txt":
            return Access(True, None)
        name = product(agent)
        best = best_rule(self.groups.get(name if name in self.groups else "*", []), path)
        return Access(best is None or best.allows, best)

    def asked_by(self, agents: Iterable[str]) -> RobotsFile:
        """Return what is for all, and for those of these crawlers that have their own group."""
        names = {"*": "*", **{a: product(a) for a in agents if product(a) in self.groups}}
        return RobotsFile(
            {agent: self.groups.get(name, []) for agent, name in names.items()},
            {agent: self.terms.get(name, []) for agent, name in {"": "", **names}.items()},
        )


def best_rule(rules: Iterable[Rule], path: str) -> Rule | None:
    """Return the rule that decides on a normalised path: the longest, `Allow` before `Disallow`."""
    best: Rule | None = None
    for rule in rules:
        known = (len(best.pattern), best.allows) if best is not None else (-1, False)
        if (len(rule.pattern), rule.allows) > known and matches(rule.pattern, path):
            best = rule
    return best


def parse_robots(content: bytes) -> RobotsFile:
    """Return the groups of a file. Lines that mean nothing are passed over; nothing is an error."""
    if len(content) > MOST_BYTES:  # less the line that is cut, which may say something else
        content = content[: content.rfind(b"\n", 0, MOST_BYTES) + 1]
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    groups: dict[str, list[list[Rule]]] = {}
    said: dict[str, list[list[Term]]] = {"": [[]]}
    rules: list[Rule] = []  # of the group at hand
    terms = said[""][0]
    names_follow = said_names_follow = False  # whether the lines at hand are names of a group
    cut = -_MOST_TERMS
    for line in re.split(r"\r\n|\r|\n", text):
        if found := _TERMS.match(line):
            term, cut = Term(found[1].lower(), found[2].strip()), cut + 1
            terms += [term] if cut <= 0 else []
            # AIPREF's is a rule; the others don't change who may fetch what (RFC 9309, 2.2.4).
            names_follow &= term.name != USAGE
            said_names_follow = False
        elif not (found := _LINE.match(line)):
            continue
        elif found[1].lower().startswith("user"):
            if not names_follow:
                rules = []
            if not said_names_follow:
                terms = []
            names_follow = said_names_follow = True
            name = product(found[2]) or " "  # nobody's: "" has what is before the groups
            _add(rules, groups.setdefault(name, []))
            _add(terms, said.setdefault(name, []))
        else:
            names_follow = said_names_follow = False
            if value := found[2].strip():
                rules.append(Rule.of(found[1].lower() == "allow", value))
    if cut > 0:
        said[""][0].append(Term(SIGNAL, f"{cut} further lines"))  # which is malformed, and counted
    return RobotsFile(Groups(groups), Groups(said))


def _add(lines: list[_Line], groups: list[list[_Line]]) -> None:
    if not (groups and groups[-1] is lines):  # an agent may be named twice
        groups.append(lines)


@functools.lru_cache(maxsize=1024)  # the same few are asked for
def product(agent: str) -> str:
    """Return the name at the beginning of a `User-agent`, in lower case; `*` is itself."""
    agent = agent.strip()
    if agent.startswith("*"):
        return "*"
    found = _PRODUCT.match(agent)
    return found.group().lower() if found else agent.lower()


def path_of(url: str) -> str:
    """Return path, parameters and query of a URL, normalised, beginning with `/`."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address; breaks are no part of a URL
        parts = urlsplit(_AUTHORITY.sub("/", re.sub("[\t\r\n]", "", url)))
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query or f"{parts.path}?" in url else ""
    return normalised((path if path.startswith("/") else f"/{path}") + query)


def normalised(path: str) -> str:
    """Return a path in which every octet has one spelling (RFC 9309, 2.2.2).

    Letters, digits and `-._~` are never escaped; `$`, `*` and what a URL can't hold always are, in
    capital letters.

    Example: `/%7ejoe/caf\u00e9%2f*` gives `/~joe/caf%C3%A9%2F%2A`.
    """
    octets = path.encode("utf-8", "surrogatepass")
    escaped = "".join(chr(b) if b in _UNRESERVED or b in _PLAIN else f"%{b:02X}" for b in octets)
    return _ESCAPED.sub(_one_spelling, escaped) if "%" in escaped else escaped


def _one_spelling(found: re.Match[str]) -> str:
    octet = int(found.group()[1:], 16)
    return chr(octet) if octet in _UNRESERVED else found.group().upper()


def pattern_of(value: str) -> str:
    """Return a rule's path, normalised but for its asterisks and a `$` at its end."""
    end = "$" if value.endswith("$") else ""
    return "*".join(map(normalised, value.removesuffix("$").split("*"))) + end


def matches(pattern: str, path: str) -> bool:
    """Return whether a normalised path begins as a pattern says: `*` is anything, `$` its end.

    Linear: every part between asterisks is looked for once, from left to right.
    """
    to_end = pattern.endswith("$")
    first, *parts = pattern[: -1 if to_end else None].split("*")
    if not path.startswith(first):
        return False
    place = len(first)
    if not parts:
        return not to_end or place == len(path)
    *between, last = parts
    for part in between:
        place = path.find(part, place)
        if place < 0:
            return False
        place += len(part)
    if to_end:
        return len(path) - len(last) >= place and path.endswith(last)
    return path.find(last, place) >= 0


#: Directives whose value follows a colon; any other name before one is a crawler's.
_VALUED = frozenset(
    ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview", "expires")
)
#: Directives that close something, and those that say what is so anyway.
CLOSING = frozenset(("noindex", "nofollow", "noarchive", "nosnippet", "noai", "noimageai"))
_ALONE = CLOSING.union("all none index follow archive noodp noydir nocache".split())
_NAME = re.compile(r"[a-z][a-z_-]*")
_AGENT = re.compile(r"\s*([\w.*-]+)\s*:\s*")
#: The second part of a date that has a comma.
_DATE = re.compile(r"\s*\d{1,2}[ -]")


class Directive(NamedTuple):
    """One directive: `noindex` or, with a value, `max-snippet:20`. Its name is in lower case."""

    name: str
    agent: str  # the crawler it is for, in lower case; "" for all


@functools.lru_cache(maxsize=1024)  # most pages have one of a few
def parse_directives(value: str, agent: str = "") -> tuple[Directive, ...]:
    """Return the directives of a header's or a meta tag's value.

    A crawler's name (`otherbot: noindex, nofollow`) applies to all that follows it, up to the next
    name. `none` is `noindex` and `nofollow` (Google's documentation of robots meta tags).
    Directives may be separated by commas, as they should, semicolons or blanks.

    Args:
        value: of one header field or of one tag's `content`.
        agent: the crawler that a meta tag names in place of `robots`.
    """
    out: list[Directive] = []
    agent = agent.lower()
    valued = False  # whether the last directive has a value, which a date's second part goes on
    for part in re.split("[,;]", value):
        if valued and _DATE.match(part):
            out[-1] = out[-1]._replace(name=f"{out[-1].name}, {part.strip()}")
            valued = False  # a date has one comma
            continue
        valued = False
        begin = 0  # of what is behind the names
        while found := _AGENT.match(part, begin):
            name, begin = found.group(1).lower(), found.end()
            if name in _VALUED:
                out.append(Directive(f"{name}:{part[begin:].strip()}", agent))
                valued, begin = True, len(part)
            else:
                agent = "" if name in ("*", "robots") else name
        names = part[begin:].lower().split()
        if len(names) > 1 and not _ALONE.issuperset(names):
            continue  # a sentence
        for name in names:
            said = ("noindex", "nofollow") if name == "none" else (name,)
            out += [Directive(one, agent) for one in said if _NAME.fullmatch(one)]
    return tuple(out)


def for_agents(directives: Iterable[Directive], agents: Iterable[str]) -> set[str]:
    """Return the names of the directives that are for all crawlers or for one of these."""
    wanted = {"", *(agent.lower() for agent in agents)}
    return {name for name, agent in directives if agent in wanted}
