"""Directives for robots that come with a page: the header `X-Robots-Tag`, `<meta name=robots>`."""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

#: Directives whose value follows a colon; any other name before one is a crawler's.
_VALUED = frozenset(
    ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview", "expires")
)
#: Directives that close something, and those that say what is so anyway.
CLOSING = frozenset(("noindex", "nofollow", "noarchive", "nosnippet", "noai", "noimageai"))
_PLAIN = CLOSING | {"all", "none", "index", "follow", "archive", "noodp", "noydir", "nocache"}
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
        if len(names) > 1 and not _PLAIN.issuperset(names):
            continue  # a sentence
        for name in names:
            said = ("noindex", "nofollow") if name == "none" else (name,)
            out += [Directive(one, agent) for one in said if _NAME.fullmatch(one)]
    return tuple(out)


def for_agents(directives: Iterable[Directive], agents: Iterable[str]) -> set[str]:
    """Return the names of the directives that are for all crawlers or for one of these."""
    wanted = {"", *(agent.lower() for agent in agents)}
    return {name for name, agent in directives if agent in wanted}
