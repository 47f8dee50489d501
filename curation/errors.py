"""Errors that reach a user. Each carries one clear line; the command line prints only that line."""

from __future__ import annotations

from curation.credentials import redact


class CurationError(Exception):
    """A run failed. The command line exits with `exit_code` and prints the message.

    Messages name files and URLs: secrets in them are left out.
    """

    exit_code = 1

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redact(a) if isinstance(a, str) else a for a in arguments))


class ConfigError(CurationError):
    """A recipe, an option or a command line is wrong; nothing has been started."""

    exit_code = 2


class InputError(CurationError):
    """An input can't be used as a whole (absent, unreadable, of an unknown format).

    Damage inside a readable input never raises: it is set aside with its place and reason.
    """


class StoreError(CurationError):
    """A request to a file system away from this machine failed for good, or too often; or a disk
    is full."""


class WorkerError(CurationError):
    """A worker process died or a step failed inside it."""


class AlarmError(CurationError):
    """A stage's outcome looks like a fault, and the user asked to stop at that."""


class DriftError(CurationError):
    """A policy's rules remove other shares of a corpus than those that were approved."""
