"""Strings that UTF-8 can't hold."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")


def well_formed(text: T) -> T:
    """Return a text with U+FFFD in place of lone surrogates; anything else as it is.

    JSON may state them (`"\\ud83d"`, half a pair), but neither UTF-8 nor Arrow has bytes for them.
    """
    if not isinstance(text, str) or text.isascii():
        return text
    return cast(T, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def everywhere(value: Any, change: Callable[[Any], Any], keys: bool = True) -> Any:
    """Return a JSON-like value with `change` applied to all that it consists of."""
    if isinstance(value, Mapping):
        return {change(k) if keys else k: everywhere(v, change, keys) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(everywhere(part, change, keys) for part in value)
    return change(value)
