"""Statements on the use of content: Content Signals and AIPREF's Content-Usage.

Content Signals (contentsignals.org) are `search=yes, ai-train=no` in a group of a robots.txt or in
a header. Content-Usage (draft-ietf-aipref-vocab-08 and -attach-05) is a dictionary of Structured
Fields (RFC 9651) in the same places; in robots.txt a path may come before it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import unquote_to_bytes

Answer = Literal["allow", "deny"]
#: What a crawler may ask for, with the keys of the two vocabularies.
SIGNAL_KEYS = {"ai-train": "train", "search": "search", "ai-input": "ai-input"}
USAGE_KEYS = {"train-ai": "train", "search": "search", "ai-use": "ai-input"}
#: Values of Content Signals: the policy text's own, and what sites write in their place.
_VALUES: Mapping[str, Answer] = {
    **dict.fromkeys(("yes", "y", "true", "allow"), "allow"),
    **dict.fromkeys(("no", "n", "false", "disallow"), "deny"),
}
_TOKENS: Mapping[str, Answer] = {"y": "allow", "n": "deny"}
#: Begins what a signal has in place of terms that can't be read.
_UNREAD = "unread="

# Structured Fields: RFC 9651, 3.1.1, 3.1.2, 3.2 and 3.3. No part begins as another one goes on, so
# that there is one way at most to read a text.
_KEY = r"[a-z*][a-z0-9_.*-]*"
_BARE = (
    r"(?:-?[0-9]{1,12}\.[0-9]{1,3}|@?-?[0-9]{1,15}|\?[01]|:[A-Za-z0-9+/]*=*:|"
    r'"(?:[ !#-\[\]-~]|\\["\\])*"|%"(?:[ !#-$&-~]|%[0-9a-f]{2})*"|'
    r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*)"
)
_PARAMETERS = rf"(?:; *{_KEY}(?:={_BARE})?)*"
_ITEM = _BARE + _PARAMETERS
_LIST = rf"\( *(?:{_ITEM}(?: +{_ITEM})* *)?\)"
_MEMBER = re.compile(rf"({_KEY})(?:=({_BARE}|{_LIST}))?{_PARAMETERS}")
_DISPLAYED = re.compile(rf'%"([^"]*)"|{_BARE}')
_COMMA = re.compile(r"[ \t]*,[ \t]*")


def unread(why: str) -> str:
    """Return what a signal has in place of terms that can't be read: why, or the terms."""
    return _UNREAD + ("_".join(why.split())[:160] or "nothing")


def is_unread(value: str) -> bool:
    """Return whether a signal has terms that can't be read, behind an address or alone."""
    return value.startswith(_UNREAD) or f" {_UNREAD}" in value


def signals_in(value: str) -> Iterator[tuple[str, Answer]]:
    """Yield the uses of which a value of Content Signals speaks, with its answers.

    Pairs that aren't understood signal nothing, and don't spoil the others.
    """
    for key, said in _pairs(value):
        if key in SIGNAL_KEYS and said in _VALUES:
            yield SIGNAL_KEYS[key], _VALUES[said]


def _pairs(value: str) -> Iterator[tuple[str, str]]:
    for pair in re.split("[,;]", value):
        key, _, said = pair.partition("=")
        yield key.strip().lower(), said.strip().strip("\"'").lower()


def are_broken(value: str) -> bool:
    """Return whether a value of Content Signals has pairs that aren't understood.

    Unknown keys with a value are no errors.
    """
    return any(not said or (k in SIGNAL_KEYS and said not in _VALUES) for k, said in _pairs(value))


def usage_in(value: str) -> Iterator[tuple[str, Answer]]:
    """Yield the uses of which a Content-Usage speaks, with its answers; none if it is malformed.

    A path before it is passed over.
    """
    said = _usage(value) or {}
    for key, use in USAGE_KEYS.items():
        if answer := _TOKENS.get(said.get(key, "")):
            yield use, answer


def is_broken(value: str) -> bool:
    """Return whether a Content-Usage is malformed, so that it says nothing."""
    return _usage(value) is None


def _usage(value: str) -> dict[str, str] | None:
    try:
        return dictionary(value[len(usage_path(value)) :].strip(" \t"))
    except ValueError:
        return None


def usage_path(value: str) -> str:
    """Return the path before the statement in a line of robots.txt, "" where it has none."""
    return re.split("[ \t]", value, maxsplit=1)[0] if value.startswith("/") else ""


def dictionary(text: str) -> dict[str, str]:
    """Return the items of a dictionary of RFC 9651 by key, as they are written, less parameters.

    A key alone has the item `?1`. Raises ValueError if it is malformed.
    """
    found: dict[str, str] = {}
    text = text.strip(" ")
    at = 0
    while at < len(text):
        if found:
            at = _next(_COMMA, text, at).end()
        member = _next(_MEMBER, text, at)
        for octets in _DISPLAYED.findall(member[0]):  # of UTF-8, or a ValueError
            unquote_to_bytes(octets).decode("utf-8")
        at, found[member[1]] = member.end(), member[2] or "?1"
    return found


def _next(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    found = pattern.match(text, at)
    if not found:
        raise ValueError(f"not a dictionary of RFC 9651 at character {at}: {text[at : at + 20]!r}")
    return found
