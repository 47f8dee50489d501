"""Policies: approved thresholds, with the shares they removed from the measured corpus.

Unlike a recipe, a policy records which share of the documents, overall and by language, each rule
removed when it was approved. So a corpus on which the same thresholds act differently is noticed
before it is used.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from curation.config import Natural, Positive, Settings, Share

#: The language under which all documents are counted.
ALL = "all"


class Corpus(Settings):
    """The measured corpus."""

    documents: Natural
    root: str = Field(description="root hash of the measuring run")


class Approval(Settings):
    """Who approved the policy, and why."""

    by: str | None
    date: str | None
    notes: str | None


class Policy(Settings):
    """An approved set of thresholds. `removes`: by stage, reason and language, shares of documents.

    A document counts for the first reason for which a stage removes it.
    """

    recipe: str
    corpus: Corpus
    approved: Approval
    margin: Share = Field(description="by how much a share may differ")
    margins: dict[str, float] = Field(description="other margins by reason")
    least_documents: Positive = Field(description="languages with fewer are not compared")
    settings: dict[str, dict[str, Any]] = Field(description="of the stages that judge")
    removes: dict[str, dict[str, dict[str, float]]]

    def assignments(self) -> dict[str, Any]:
        """Settings by their keys in a recipe."""
        return {
            f"{stage}.{key}": value
            for stage, settings in self.settings.items()
            for key, value in settings.items()
        }


class Counts(NamedTuple):
    """Documents that stages judged and removed, by language; `all` counts every document."""

    documents: dict[str, int]
    removed: dict[str, dict[str, dict[str, int]]]  # by stage and reason

    def shares(self, least: int) -> dict[str, dict[str, dict[str, float]]]:
        """Return removed shares, of all documents and of languages with at least `least`."""
        return {
            stage: {
                reason: {
                    language: round(count / self.documents[language], 6)
                    for language, count in sorted(languages.items())
                    if language == ALL or self.documents[language] >= least
                }
                for reason, languages in sorted(reasons.items())
            }
            for stage, reasons in self.removed.items()
        }


class Drift(NamedTuple):
    """A share that differs from the approved one by more than its margin."""

    stage: str
    reason: str
    language: str
    approved: float
    found: float
    margin: float


def drift(policy: Policy, counts: Counts) -> list[Drift]:
    """Return the shares outside their margins, the furthest first.

    A language is compared if it had enough documents when the policy was made, and has now.
    """
    found = counts.shares(policy.least_documents)
    drifted = [
        entry
        for stage, reason in _rules(policy.removes, found)
        for entry in _of_rule(policy, counts, stage, reason, found)
        if abs(entry.found - entry.approved) > entry.margin
    ]
    return sorted(drifted, key=lambda d: (-abs(d.found - d.approved), d[:3]))


def _rules(*tables: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    rules = {(stage, reason) for t in tables for stage, reasons in t.items() for reason in reasons}
    return sorted(rules)


def _of_rule(
    policy: Policy, counts: Counts, stage: str, reason: str, found: Mapping[str, Any]
) -> Iterator[Drift]:
    margin = policy.margins.get(reason, policy.margin)
    approved = policy.removes.get(stage, {}).get(reason, {})
    now = found.get(stage, {}).get(reason, {})
    for language in sorted({ALL, *approved, *now}):
        if counts.documents.get(language, 0) >= policy.least_documents or language == ALL:
            before, after = approved.get(language, 0.0), now.get(language, 0.0)
            yield Drift(stage, reason, language, before, after, margin)
