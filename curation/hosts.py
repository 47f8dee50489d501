"""Names of hosts."""

from __future__ import annotations

import idna


def ascii_host(host: str) -> str:
    """The form of a host name that DNS knows (xn--...), or the name itself if there is none."""
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host
