"""Secrets in URLs: what is recorded, logged or shown of a URL goes through `redact`."""

from __future__ import annotations

import re
from typing import Any

#: What is in a secret's place.
HIDDEN = "***"
#: Schemes are short; without a bound a page could make the search take quadratic time.
_USER = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30})://([^\s/?#'\"<>]*)@")
#: A colon or the like that a message puts after a URL is none of its value.
_QUERY = re.compile(r"([?&])([^=&#?\s]+)=([^&#\s'\"<>]*?)(?=[:;,.)]?(?:[&#\s'\"<>]|$))")
#: Query keys that hold or are part of a secret: signed URLs of S3, Google and Azure, and tokens.
_SECRET = re.compile(
    r"signature|credential|token|secret|passw|api-?_?key|access-?_?key|accessid|key-pair-id"
    r"|^(sig|key|auth|pwd|policy)$",
    re.IGNORECASE,
)
#: Here the part before `@` names a container.
_CONTAINERS = {"abfs", "abfss", "wasb", "wasbs", "adl"}
#: Here even a name without a password is one: services take tokens in its place.
_TOKEN_AS_NAME = {"http", "https"}


def redact(text: str) -> str:
    """A text, such as a message or a URL, with `***` for the secrets of all URLs in it.

    These are `user:password@` (of http and https any `...@`), and the values of query keys such as
    `X-Amz-Signature`, `sig` and `token`. Anything else stays as it is.
    """
    if "@" in text:
        text = _USER.sub(_without_user, text)
    return _QUERY.sub(_without_value, text) if "=" in text else text


def _without_user(found: re.Match[str]) -> str:
    scheme, user = found[1].lower(), found[2]
    secret = ":" in user or scheme in _TOKEN_AS_NAME
    return f"{found[1]}://{HIDDEN}@" if secret and scheme not in _CONTAINERS else found[0]


def _without_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={HIDDEN}" if _SECRET.search(found[2]) else found[0]


def redact_all(value: Any) -> Any:
    """The same for every string, keys included, in what JSON can hold."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact_all(k): redact_all(v) for k, v in value.items()}
    return [redact_all(v) for v in value] if isinstance(value, list | tuple) else value


def without_userinfo(url: str) -> str:
    """A page's URL without `user:password@`, which is no part of the page's address."""
    found = _USER.match(url)
    return f"{found[1]}://{url[found.end() :]}" if found else url
