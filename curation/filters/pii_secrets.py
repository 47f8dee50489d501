"""Secrets in code and configuration, recognised by the prefixes their issuers give them."""

import re
from typing import NamedTuple

from curation.filters.filter_settings import PersonalKind


class Secret(NamedTuple):
    """A kind of secret: how it begins, and what all of it looks like (matched at the prefix)."""

    kind: PersonalKind
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str]


#: Formats as their issuers document them (GitHub, Slack, AWS, Stripe, Google, GitLab, npm, ...).
SECRETS = (
    Secret(
        "private_key",
        ("-----BEGIN ",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^-]{1,16000}-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r"|[A-Za-z0-9+/=\s\\]{64,16000})"
        ),
    ),
    Secret(
        "access_token",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        re.compile(r"A[KSBC][IC]A[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ),
    Secret(
        "access_token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ),
    Secret("access_token", ("glpat-",), re.compile(r"glpat-[A-Za-z0-9_-]{20,}")),
    Secret(
        "access_token",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        re.compile(r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{20,}"),
    ),
    Secret(
        "access_token",
        ("https://hooks.slack.com/services/",),
        re.compile(r"https://hooks\.slack\.com/services/T\w{7,}/B\w{7,}/\w{20,}"),
    ),
    Secret(
        "access_token",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"),
        re.compile(r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{20,}"),
    ),
    Secret("access_token", ("AIza",), re.compile(r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    Secret("access_token", ("GOCSPX-",), re.compile(r"GOCSPX-[A-Za-z0-9_-]{28}")),
    Secret("access_token", ("ya29.",), re.compile(r"ya29\.[A-Za-z0-9_-]{40,}")),
    Secret("access_token", ("npm_",), re.compile(r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])")),
    Secret("access_token", ("pypi-",), re.compile(r"pypi-AgE[A-Za-z0-9_-]{50,}")),
    Secret("access_token", ("hf_",), re.compile(r"hf_[A-Za-z]{34}(?![A-Za-z0-9])")),
    Secret("access_token", ("SG.",), re.compile(r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}")),
    Secret(
        "access_token",
        ("sk-",),
        re.compile(r"sk-(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{32,}"),
    ),
    Secret("access_token", ("dop_v1_",), re.compile(r"dop_v1_[a-f0-9]{64}")),
    Secret("access_token", ("shpat_", "shpss_"), re.compile(r"shp(?:at|ss)_[a-fA-F0-9]{32}")),
    Secret(
        "access_token",
        ("eyJ",),  # {" in base64: header and payload of a JSON web token (RFC 7519)
        re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
    ),
    Secret(
        "access_token",
        ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"),
        re.compile(
            r"(?i:aws_secret_access_key|secretaccesskey)[\"']?\s{0,4}[:=]>?\s{0,4}[\"']?"
            r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
    ),
    Secret(
        "access_token", ("AccountKey=",), re.compile(r"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)")
    ),
)

LONGEST = 16384  # bytes of a secret that are looked at


def match_secret(text: str) -> tuple[PersonalKind, int, int] | None:
    """(kind, start, end) of the secret at the very beginning of `text`, a prefix being there."""
    for secret in SECRETS:
        if text.startswith(secret.prefixes):
            if found := secret.pattern.match(text):
                group = "secret" if "secret" in secret.pattern.groupindex else 0
                return secret.kind, found.start(group), found.end(group)
    return None
