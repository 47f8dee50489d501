"""Heuristic filters: measurements of texts, and rules as thresholds over them.

`Filter` does what a recipe says to a batch of documents: block lists, line edits, signals, rules,
personal data. `measure` and `RuleBook` are its parts for those who need one alone.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.errors import ConfigError
from curation.filters import blocklists, pii
from curation.filters.content import content_signals
from curation.filters.edits import Edited, edit
from curation.filters.hosts import count_hosts
from curation.filters.rules import RuleBook
from curation.filters.settings import FilterSettings as FilterSettings
from curation.filters.signals import Meter
from curation.filters.signals import measure as measure
from curation.schema import EDITS, Verdicts

#: What documents without a language are counted as.
NO_LANGUAGE = "unlabelled"


@dataclass(frozen=True)
class FilterResult:
    """What the filter made of a batch; everything in the order of its documents."""

    texts: pa.Array  # large_string, after edits and redaction
    signals: pa.StructArray  # float64 fields, of the text after edits and before redaction
    verdicts: Verdicts
    edits: pa.RecordBatch  # schema.EDITS
    pii_counts: dict[str, int]  # personal data found in kept documents, by kind
    pii_hosts: pa.RecordBatch  # hosts.HOSTS: of all documents, kept or not
    languages_without_settings: dict[str, int] = field(default_factory=dict)  # documents


class Filter:
    """The filter of a recipe, with its lists loaded once. Safe to share between threads.

    Raises ConfigError when a list is missing or a rule's signal is not measured.
    """

    def __init__(self, settings: FilterSettings) -> None:
        if problem := settings.unmeasured():
            raise ConfigError(f"filter.{problem}")
        self._settings = settings
        self._meter = Meter(settings.signals)
        self._rules = RuleBook(settings)
        self._blocked = blocklists.load(settings.blocklists)

    def apply(self, batch: pa.RecordBatch) -> FilterResult:
        """Filter documents with columns `id`, `url`, `text` and, if known, `language`."""
        languages = batch.column("language") if "language" in batch.schema.names else None
        verdicts = _blocked_verdicts(self._blocked.check(batch.column("url")))
        edited = self._edit(batch.column("text"))
        signals = self._meter.measure(edited.texts, languages)
        verdicts = verdicts.otherwise(self._rules.decide(signals, languages))
        texts, counts = pii.redact(edited.texts, self._settings.pii)
        verdicts = verdicts.otherwise(pii.decide(counts, self._settings.pii))
        kept = verdicts.kept.to_numpy(zero_copy_only=False)
        labels = Counter([] if languages is None else languages.to_pylist())
        return FilterResult(
            texts,
            signals,
            verdicts,
            _edits(batch.column("id"), edited),
            {kind: int(found[kept].sum()) for kind, found in counts.items()},
            count_hosts(batch.column("url"), np.sum([*counts.values()], axis=0)),
            {n or NO_LANGUAGE: labels[n] for n in self._rules.without_settings(labels)},
        )

    def _edit(self, texts: pa.Array) -> Edited:
        """Cut lines, but not out of documents that look like an exempt kind."""
        skip: npt.NDArray[np.bool_] | None = None
        if self._settings.exemptions:
            found = content_signals(texts)
            skip = np.zeros(len(texts), bool)
            for kind in self._settings.exemptions.values():
                skip |= found[kind.signal] >= kind.min
        return edit(texts, self._meter, self._settings.edits, skip)


def _blocked_verdicts(reasons: pa.Array) -> Verdicts:
    nothing = pa.nulls(len(reasons), pa.float64())
    return Verdicts(reasons, nothing, nothing, pa.nulls(len(reasons), pa.string()))


def _edits(ids: pa.Array, edited: Edited) -> pa.RecordBatch:
    columns = [
        ids.take(pa.array(edited.rows)),
        edited.reasons,
        pa.array(edited.positions, pa.int64()),
        edited.cut,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EDITS)


@functools.lru_cache(maxsize=4)
def _load(settings: str) -> Filter:
    return Filter(FilterSettings.model_validate_json(settings))


def load_filter(settings: FilterSettings) -> Filter:
    """The filter of these settings, loaded once per process."""
    return _load(settings.model_dump_json())
