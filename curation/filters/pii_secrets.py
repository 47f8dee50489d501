"""Secrets in code and configuration, recognised by the prefixes their issuers give them."""

import re
from typing import NamedTuple

from curation.config import read_values
from curation.filters.filter_settings import PersonalKind


class Secret(NamedTuple):
    """A kind of secret: how it begins, and what all of it looks like (matched at the prefix)."""

    kind: PersonalKind
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str]


class _Secrets(NamedTuple):
    secrets: tuple[Secret, ...]


SECRETS = read_values("builtin:configs/lists/secrets.yaml", _Secrets).secrets
LONGEST = 16384  # bytes of a secret that are looked at


def match_secret(text: str) -> tuple[PersonalKind, int, int] | None:
    """(kind, start, end) of the secret at the very beginning of `text`, a prefix being there."""
    for secret in SECRETS:
        if text.startswith(secret.prefixes):
            if found := secret.pattern.match(text):
                group = "secret" if "secret" in secret.pattern.groupindex else 0
                return secret.kind, found.start(group), found.end(group)
    return None
