"""Directives for robots that come with a page: the header `X-Robots-Tag`, `<meta name=robots>`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

#: Directives whose value follows a colon; any other name before one is a crawler's.
_VALUED = frozenset(
    ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview", "expires")
)
_NAME = re.compile(r"[a-z][a-z_-]*")
_AGENT = re.compile(r"\s*([\w.*-]+)\s*:\s*")


class Directive(NamedTuple):
    """One directive, such as `noindex`, in lower case."""

    name: str
    agent: str  # the crawler it is for, in lower case; "" for all


@functools.lru_cache(maxsize=1024)  # most pages have one of a few
def parse_directives(value: str, agent: str = "") -> tuple[Directive, ...]:
    """Return the directives of a header's or a meta tag's value.

    A crawler's name (`otherbot: noindex, nofollow`) applies to all that follows it, up to the next
    name. `none` is `noindex` and `nofollow` (Google's documentation of robots meta tags).
    Values of directives, such as a date, are dropped.

    Args:
        value: of one header field or of one tag's `content`.
        agent: the crawler that a meta tag names in place of `robots`.
    """
    out: list[Directive] = []
    agent = agent.lower()
    for part in value.split(","):
        found = _AGENT.match(part)
        while found:
            name = found.group(1).lower()
            if name in _VALUED:
                out.append(Directive(name, agent))
                part = ""
                break
            agent = "" if name in ("*", "robots") else name
            part = part[found.end() :]
            found = _AGENT.match(part)
        name = part.strip().lower()
        names = ("noindex", "nofollow") if name == "none" else (name,)
        out += [Directive(one, agent) for one in names if _NAME.fullmatch(one)]
    return tuple(out)


def for_agents(directives: Iterable[Directive], agents: Iterable[str]) -> set[str]:
    """Return the names of the directives that are for all crawlers or for one of these."""
    wanted = {"", *(agent.lower() for agent in agents)}
    return {name for name, agent in directives if agent in wanted}
