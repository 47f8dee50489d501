"""Secrets in URLs: any URL that is recorded, logged or shown goes through `redact`."""

import re
from typing import Any

#: Replacement of a secret.
HIDDEN = "***"
#: Schemes are short; without a bound, a page could make the search quadratic.
_USER = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30})://([^\s/?#'\"<>]*)@")
#: Punctuation that a message puts after a URL is not part of its value.
_QUERY = re.compile(r"([?&#])([^=&#?\s]+)=([^&#\s'\"<>]*?)(?=[:;,.)]?(?:[&#\s'\"<>]|$))")
#: Query keys that hold or are part of a secret: signed URLs of S3, Google and Azure, and tokens.
_SECRET = re.compile(
    r"signature|credential|token|secret|passw|api-?_?key|access-?_?key|accessid|key-pair-id"
    r"|^(sig|key|auth|pwd|policy)$",
    re.IGNORECASE,
)
#: Schemes in which the part before `@` names a container.
_CONTAINERS = {"abfs", "abfss", "wasb", "wasbs", "adl"}
#: Schemes in which even a name without a password is a secret: services accept tokens there.
_TOKEN_AS_NAME = {"http", "https"}


def redact(text: str) -> str:
    """Replace the secrets of all URLs in a text, such as a message or a URL, by `***`.

    These are `user:password@` (of http and https any `...@`), and the values of keys in queries and
    fragments such as `X-Amz-Signature`, `sig` and `access_token`. Anything else stays as it is.
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
    """Redact every string, including keys, of a JSON-like value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact_all(k): redact_all(v) for k, v in value.items()}
    return [redact_all(v) for v in value] if isinstance(value, list | tuple) else value


def without_userinfo(url: str) -> str:
    """Return a page's URL without `user:password@`, which is not part of the address."""
    found = _USER.match(url)
    return f"{found[1]}://{url[found.end() :]}" if found else url
