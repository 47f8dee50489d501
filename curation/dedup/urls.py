"""Canonical URLs: equal for the spellings of a URL that lead to the same page.

Rules are those of RFC 3986, section 6.2, and habits of the web: the scheme, a leading `www.`,
slashes at the end (all three as in C4, TFDS c4_utils.py `normalize_url`), session ids, tracking
parameters (`UrlSettings`), the order of parameters and fragments, which never reach a server, make
no other page. `#!...` was Google's form of addresses inside of scripts, and stays.
"""

import functools
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, large_strings
from curation.dedup.dedup_settings import UrlSettings
from curation.filters.lists import read_list
from curation.hosts import ascii_host

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]+)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
#: Session ids in the path, of Java servlets and others: `;jsessionid=...`.
_SESSION = re.compile(r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*", re.IGNORECASE)
#: `scheme://user@www.` of a URL, and its host. For RE2, which both Arrow and DuckDB use.
HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?:[Ww]{3}\.)?(?P<host>[^/?#:\n\r]*)"
_DEFAULT_PORTS = {"http": "80", "https": "443"}

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# What may not be bare in a path, a query or a fragment, and '%' itself.
_ENCODABLE = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?\[\]]")

_SUSPECT = re.compile(_ENCODABLE.pattern.replace("[^", "[^#"))

# URLs that few rules touch, for RE2: a lower-case host alone, segments that are not empty and do
# not start with a dot, nothing after the path.
_PLAIN = r"^https?://[a-z0-9][a-z0-9.-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*/?$"
_PLAIN_START = r"^https?://(?:www\.([^/]*\.))?"


def canonical_url(url: str, settings: UrlSettings) -> str:
    """Canonical form of one URL. Other text with a dot or colon, or that begins with a slash, comes
    back stripped only, any other (`n/a`, `none`) empty: it is no address."""
    return _canonicalizer(settings)(url)


def canonical_urls(urls: Texts, settings: UrlSettings) -> pa.Array:
    """Canonical form of each URL -> large_string array; null for null and for what is no address.

    Plain URLs take a vectorised route with the same result as `canonical_url`.
    """
    array = large_strings(urls)
    plain = pc.fill_null(pc.match_substring_regex(array, _PLAIN), False)
    rest = pc.invert(plain)
    canonical = _canonicalizer(settings)
    others = [(canonical(url) or None) if url else None for url in array.filter(rest).to_pylist()]
    quick = pc.replace_substring_regex(array, _PLAIN_START, r"\1", max_replacements=1)
    quick = pc.ascii_rtrim(quick, "/")
    return pc.replace_with_mask(quick, rest, pa.array(others, pa.large_string()))


def hosts(urls: Texts) -> pa.Array:
    """Host of each URL, lower case, without `www.`, user and port -> large_string, "" for none."""
    found = pc.struct_field(pc.extract_regex(large_strings(urls), HOST), "host")
    return pc.utf8_lower(pc.fill_null(found, ""))


@functools.lru_cache(maxsize=8)
def _canonicalizer(settings: UrlSettings) -> Callable[[str], str]:
    """Return one function with the rules of `settings` looked up beforehand."""
    names = read_list(settings.tracking_parameters) if settings.tracking_parameters else []
    exact = frozenset(name.lower() for name in names if not name.endswith("*"))
    prefixes = tuple(name[:-1].lower() for name in names if name.endswith("*"))

    def canonical(url: str) -> str:
        url = url.strip()
        match = _URL.fullmatch(url)
        if match is None:
            return url if "." in url or ":" in url or url.startswith("/") else ""
        scheme, host, path, query, fragment = match.groups("")
        scheme = scheme.lower()
        if _SUSPECT.search(url, match.end(2)) or url.count("#") > 1:  # as few URLs have
            path, query = _normal_percent(path), query and "?" + _normal_percent(query[1:])
            fragment = fragment and "#" + _normal_percent(fragment[1:])
        if ";" in path:
            path = _SESSION.sub("", path)
        if "/." in path:
            path = _without_dot_segments(path)
        if query:
            query = _canonical_query(query[1:], exact, prefixes)
        if not fragment.startswith("#!"):
            fragment = ""
        return f"{_canonical_authority(scheme, host)}{path.rstrip('/')}{query}{fragment}"

    return canonical


@functools.lru_cache(maxsize=1 << 16)
def _canonical_authority(scheme: str, authority: str) -> str:
    rest = authority.rpartition("@")[2]
    colon = rest.rfind(":")
    host, port = rest, ""
    if colon > rest.rfind("]"):  # not a colon inside the brackets of an IPv6 address
        host, port = rest[:colon], rest[colon + 1 :]
    host = host.lower()
    if not host.isascii():
        host = ascii_host(host)
    if host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    return f"{host}:{port}" if port and port != _DEFAULT_PORTS.get(scheme) else host


def _normal_percent(text: str) -> str:
    return _ENCODABLE.sub(_normal_character, text)


def _normal_character(match: re.Match[str]) -> str:
    found = match.group()
    if found == "%":
        return "%25"
    if found[0] != "%":
        return "".join(f"%{byte:02X}" for byte in found.encode())
    char = chr(int(found[1:], 16))
    return char if char in _UNRESERVED else found.upper()


def _without_dot_segments(path: str) -> str:
    segments: list[str] = []
    parts = path.split("/")
    for position, segment in enumerate(parts):
        last = position == len(parts) - 1
        if segment == "..":
            if len(segments) > 1:  # the first is the empty one before the leading slash
                segments.pop()
        elif segment != ".":
            segments.append(segment)
            continue
        if last:
            segments.append("")
    return "/".join(segments)


def _canonical_query(query: str, exact: frozenset[str], prefixes: tuple[str, ...]) -> str:
    kept = []
    for part in query.split("&"):
        name = part.partition("=")[0].lower()
        if part and name not in exact and not name.startswith(prefixes):
            kept.append(part)
    kept.sort(key=lambda part: part.partition("=")[0])
    joined = "&".join(kept)
    return f"?{joined}" if joined else ""
