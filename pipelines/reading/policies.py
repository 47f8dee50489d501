"""Policies: the thresholds of a run, and what each of its rules removed, by language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from curation.errors import ConfigError
from curation.policy import ALL, Approval, Corpus, Counts, Policy
from curation.schema import column_of
from curation.stages import find
from pipelines.run_folder import load_run, root_hash, run_recipe, run_settings
from pipelines.storage.files import Folder
from pipelines.storage.shards import read_kinds

if TYPE_CHECKING:
    from curation.filters.rules import RuleBook

#: The stage whose rules can be applied again, from its stored signals.
FILTER = "filter"
#: Default margin of a share, and the fewest documents for which a language is compared.
_MARGIN, _LEAST_DOCUMENTS = 0.02, 100
_HEAD = """\
# Thresholds for approval, and the share of the documents that each rule removes: {documents:,}
# documents in {run}. A document counts for the first reason of the first stage that removes it.
# To change a threshold of the filter, write the policy again with --set KEY=VALUE; for other
# settings, measure again first (curate measure ... --set KEY=VALUE). `curate apply` refuses
# documents of which these rules remove other shares than these, by more than `margin` (or
# `margins.REASON`).
"""
#: How the file of a policy begins.
POLICY_HEAD = _HEAD.partition(",")[0].encode()

#: Stage, reason, language; null where a document passed.
_Row = tuple[str | None, str | None, str | None]


def policy_text(policy: Policy, run: str) -> str:
    """Format a policy as YAML with an explaining comment."""
    values = yaml.safe_dump(policy.model_dump(), sort_keys=False, allow_unicode=True, width=100)
    return _HEAD.format(documents=policy.corpus.documents, run=run) + values


def made(run: str, assignments: Sequence[str], approval: Approval) -> Policy:
    """Build the policy of a measured run, with assigned thresholds in place of its filter's.

    Raises ConfigError for a run that measured nothing and for a key that is not a threshold.
    """
    folder, stages = load_run(run)
    recipe = run_recipe(folder)
    judges = judging(stages)
    if not recipe.get("measure") or not judges:
        raise ConfigError(f"{run}: not a measured run: run `curate measure` first")
    settings = {stage: run_settings(folder, stage) for stage in judges}
    rules = None
    if assignments:
        settings[FILTER], rules = _changed(run, settings, assignments)
    found = counts(folder, stages, measured=True, rules=rules)
    return Policy(
        recipe=recipe["name"],
        corpus=Corpus(documents=found.documents[ALL], root=root_hash(folder, stages)),
        approved=approval,
        margin=_MARGIN,
        margins={},
        least_documents=_LEAST_DOCUMENTS,
        settings={stage: _deciding(settings[stage], stage) for stage in judges},
        removes=found.shares(_LEAST_DOCUMENTS),
    )


def _changed(
    run: str, settings: dict[str, dict[str, Any]], assignments: Sequence[str]
) -> tuple[dict[str, Any], Any]:
    """Return the filter's settings after the assignments, and its rules."""
    from curation.filters.rules import RuleBook  # compiled kernels
    from pipelines.reading.thresholds import changed_settings

    if FILTER not in settings:
        raise ConfigError(f"{run}: no complete stage {FILTER!r}")
    changed = changed_settings(settings[FILTER], assignments)
    return changed.model_dump(mode="json"), RuleBook(changed)


def _deciding(settings: dict[str, Any], stage: str) -> dict[str, Any]:
    return {key: settings[key] for key in find(stage).decides_by if key in settings}


def judging(stages: Sequence[str]) -> list[str]:
    """Return the stages that remove documents by measured values."""
    return [stage for stage in stages if "/" not in stage and find(stage).decides_by]


def measured_stages(stages: Sequence[str]) -> list[str]:
    """Return the stages before the mix."""
    main = (stage for stage in stages if "/" not in stage)
    return [stage for stage in main if not find(stage).per_mix and not find(stage).is_sink]


def counts(
    folder: Folder, stages: Sequence[str], measured: bool, rules: RuleBook | None = None
) -> Counts:
    """Count documents that reached the first judging stage, and what each such stage removed.

    For a run that only measured, each document's first recorded reason counts. With `rules`, the
    filter's reasons are those of these rules, applied to the stored signals.
    """
    judges = judging(stages)
    documents: Counter[str] = Counter()
    for batch in read_kinds(folder / judges[0], ["documents", "removed"], ["language"]):
        documents.update(_languages(batch))
    removed: dict[str, dict[str, Counter[str]]] = {stage: {} for stage in judges}
    last = folder / judges[-1]
    if not measured:
        rows = _removed(folder, judges)
    else:
        rows = _recorded(last) if rules is None else _redecided(last, judges, rules)
    for stage, reason, language in rows:
        if stage in removed and reason is not None:
            held = removed[stage].setdefault(reason, Counter())
            held.update((ALL, language) if language else (ALL,))
    return Counts(
        {**documents, ALL: documents.total()},
        {stage: {r: dict(c) for r, c in reasons.items()} for stage, reasons in removed.items()},
    )


def _languages(batch: pa.RecordBatch) -> list[str]:
    return [language or "" for language in column_of(batch, "language").to_pylist()]


def _recorded(place: Folder) -> Iterator[_Row]:
    for batch in read_kinds(place, ["documents"], ["language", "verdicts"]):
        first = pc.list_element(_padded(batch.column("verdicts")), 0)
        stages, reasons = (pc.struct_field(first, name) for name in ("stage", "reason"))
        yield from zip(stages.to_pylist(), reasons.to_pylist(), _languages(batch), strict=True)


def _redecided(place: Folder, judges: Sequence[str], rules: RuleBook) -> Iterator[_Row]:
    """Yield each document's first stage and reason under other rules of the filter."""
    from curation.filters.margins import redecide  # compiled kernels

    at = judges.index(FILTER)
    for batch in read_kinds(place, ["documents"], ["language", "verdicts", "signals"]):
        own: list[str | None] = []
        others: list[tuple[int, str] | None] = []
        for verdicts in batch.column("verdicts").to_pylist():
            reasons = {verdict["stage"]: verdict["reason"] for verdict in reversed(verdicts)}
            own.append(reasons.pop(FILTER, None))
            others.append(min(((judges.index(s), r) for s, r in reasons.items()), default=None))
        named = batch.column("language") if "language" in batch.schema.names else None
        fresh = redecide(rules, batch.column("signals"), named, pa.array(own, pa.string()))
        for reason, other, language in zip(
            fresh.to_pylist(), others, _languages(batch), strict=True
        ):
            first = min(filter(None, ((at, reason) if reason else None, other)), default=None)
            yield (
                (None, None, language) if first is None else (judges[first[0]], first[1], language)
            )


def _padded(lists: pa.ListArray) -> pa.Array:
    """Return lists with null added to empty ones, which have no first element."""
    one = pa.scalar([None], lists.type)
    return pc.if_else(pc.greater(pc.list_value_length(lists), 0), lists, one)


def _removed(folder: Folder, judges: Sequence[str]) -> Iterator[_Row]:
    for stage in judges:
        for batch in read_kinds(folder / stage, ["removed"], ["language", "reason"]):
            reasons = batch.column("reason").to_pylist()
            for reason, language in zip(reasons, _languages(batch), strict=True):
                yield stage, reason, language
