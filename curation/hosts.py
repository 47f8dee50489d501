"""Host names."""

import re
from urllib.parse import urlsplit

import idna

_USUAL = re.compile(r"https?://([a-zA-Z0-9.-]+)(?:[/?#]|\Z)")


def ascii_host(host: str) -> str:
    """Return the ASCII form of a host name (xn--...), or the name itself if it has none."""
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host


def site_name(url: str) -> str:
    """Return the host of a URL without `www.`; empty if it has none."""
    return host_of(url).removeprefix("www.")


def host_of(url: str) -> str:
    """Return the host of a URL in lower case and ASCII form; empty if it has none."""
    if found := _USUAL.match(url):  # of which `urlsplit` says the same, slowly
        return found[1].lower()
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # brackets without an IP address
        return ""
    return host if host.isascii() else ascii_host(host)
