"""Names of hosts."""

from __future__ import annotations

from urllib.parse import urlsplit

import idna


def ascii_host(host: str) -> str:
    """The form of a host name that DNS knows (xn--...), or the name itself if there is none."""
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host


def host_of(url: str) -> str:
    """The host of an address as DNS knows it; empty where it has none."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # brackets that hold no address
        return ""
    return host if host.isascii() else ascii_host(host)
