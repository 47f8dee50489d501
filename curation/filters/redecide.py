"""Other thresholds on measured documents: who would stay, who would go, without any text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.filters.rules import RuleBook

#: Families of reasons that come before the rules and do not depend on them.
_BEFORE = ("blocklist.", "error.", "crash.", "memory.")
_PRIVATE = "pii."


def redecide(
    rules: RuleBook, signals: pa.StructArray, languages: pa.Array | None, recorded: pa.Array
) -> pa.Array:
    """Reasons (string, null: kept) under `rules` of documents removed for the reasons `recorded`.

    Block lists judge before the rules and personal data after them, both by the text, so their
    verdicts stand where the rules leave them. What was set aside has no signals.
    """
    fresh = rules.decide(signals, languages).reason
    private = pc.fill_null(pc.starts_with(recorded, _PRIVATE), False)
    stands = pc.or_(_blocked(recorded), pc.and_(private, pc.is_null(fresh)))
    return pc.if_else(stands, recorded, fresh)


def removed_under_any_rules(recorded: pa.Array) -> pa.Array:
    """Whether documents stay removed under any rules -> boolean [documents]."""
    private = pc.fill_null(pc.starts_with(recorded, _PRIVATE), False)
    return pc.or_(_blocked(recorded), private)


def _blocked(recorded: pa.Array) -> pa.Array:
    blocked = pa.array(np.zeros(len(recorded), bool))
    for family in _BEFORE:
        blocked = pc.or_(blocked, pc.fill_null(pc.starts_with(recorded, family), False))
    return blocked
