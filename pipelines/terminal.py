"""All output: nothing in a page or file name can send control codes to the terminal."""

import contextlib
import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from curation.credentials import redact

#: Control characters except tab and line feed, bidirectional controls, line ends other than line
#: feed, and surrogates, which can't be printed.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    r"""Escape characters that act on a terminal as `\u001b` and the like.

    JSON keeps its meaning: these characters only occur inside its strings.
    """
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: object = "", end: str = "\n") -> None:
    """Print a result to standard output."""
    print(plain(str(text)), end=end, flush=True)


def say_json(value: Any) -> None:
    """Print a result as JSON."""
    say(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def hand_over(text: str) -> None:
    """Print content: unchanged to a file or pipe, escaped to a terminal."""
    print(plain(text) if sys.stdout.isatty() else text, flush=True)


def tell(text: str) -> None:
    """Print a message to standard error, with secrets in URLs redacted.

    Where nobody can take it, in a closed pipe or on a full disk, the work goes on without.
    """
    with contextlib.suppress(OSError):
        print(plain(redact(text)), file=sys.stderr, flush=True)


class Warnings(logging.Handler):
    """Logging handler that shows each warning of libraries and the toolkit once.

    Nor does it show again what a handler `before` it has shown.
    """

    def __init__(
        self, reader: Callable[[str], None], before: logging.Handler | None = None
    ) -> None:
        super().__init__(logging.WARNING)
        self._reader = reader
        self._told: set[str] = set(before._told) if isinstance(before, Warnings) else set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._told:
            self._told.add(message)
            self._reader(message)


#: Reasons of stage `dedup-urls`, which writes dates as seconds since 1970.
_DATED = "url."


def value_text(reason: str, value: float | None) -> str:
    """Format a date if the reason compares dates, else a six-digit number; empty for None."""
    if value is None:
        return ""
    if reason.startswith(_DATED):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:.6g}"


def snippet(text: str | None, most: int) -> str:
    """Return the beginning of a text on one line."""
    return " ".join((text or "")[: 4 * most].split())[:most]
