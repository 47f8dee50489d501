"""What a recipe's filter does to a batch: block lists, edits, signals, rules, personal data."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.classify.classifier import quality_of
from curation.errors import ConfigError
from curation.filters import blocklists, personal_hosts, pii
from curation.filters.content import look_again, look_at
from curation.filters.dialects import LITERAL
from curation.filters.edits import Edited, edit
from curation.filters.filter_settings import FilterSettings
from curation.filters.hosts import count_hosts
from curation.filters.rules import Judgement, RuleBook
from curation.filters.signals import Meter
from curation.judging import Failure, answer_all, error_verdicts, opened
from curation.paths import PATHS
from curation.schema import EDITS, Verdicts, with_column
from curation.text.plain import plain

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
    languages_without_settings: dict[str, int]  # documents
    paths: pa.Array  # string: prose, code or mathematics
    overruled: pa.Array | None  # string: the rule that quality overruled; None: no rule can be
    failures: list[Failure]  # of code of the user's own

    def added_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the texts and columns found; only kept documents overrule a rule."""
        batch = with_column(batch, "text", self.texts)
        batch = with_column(batch, "signals", self.signals)
        batch = with_column(batch, "path", self.paths)
        if self.overruled is None:
            return batch
        kept = pc.if_else(self.verdicts.kept, self.overruled, None)
        return with_column(batch, "overruled", kept)


class Filter:
    """The filter of a recipe, with its lists loaded once. Safe to share between threads.

    Raises ConfigError when a list is missing or a rule's signal is not measured.
    """

    def __init__(self, settings: FilterSettings) -> None:
        if problem := settings.unmeasured():
            raise ConfigError(f"filter.{problem}")
        self._settings = settings
        self._meter = Meter(settings.signals)
        self._reads_plain = settings.signals.gopher.dialect not in LITERAL
        self._rules = RuleBook(settings)
        self._blocked = blocklists.load(settings.blocklists)
        self._personal_hosts = (
            personal_hosts.load(settings.personal_hosts, settings.blocklists.allow)
            if settings.personal_hosts
            else None
        )

    def apply(self, batch: pa.RecordBatch) -> FilterResult:
        """Filter documents: columns `id`, `url`, `text`, and `language` and `quality` if known."""
        settings = self._settings
        names = batch.schema.names
        languages = batch.column("language") if "language" in names else None
        verdicts = Verdicts(self._blocked.check(batch.column("url")))
        if self._personal_hosts is not None:
            verdicts = verdicts.otherwise(self._personal_hosts.check(batch.column("url")))
        texts = batch.column("text")
        read = plain(texts) if self._reads_plain else texts
        found = look_at(read, settings.paths) if settings.paths else None
        edited = edit(texts, self._meter, settings.edits, found, None if read is texts else read)
        read = plain(edited.texts) if self._reads_plain else edited.texts
        if found is None:
            found = look_at(read, settings.paths)
        elif len(edited.rows):
            found = look_again(read, found, np.unique(edited.rows), settings.paths)
        signals = self._meter.measured(read, found, languages, paths=settings.paths)
        signals, failures = _with_custom(signals, edited.texts, settings)
        verdicts = verdicts.otherwise(error_verdicts(failures, len(signals), "filter"))
        quality = batch.column("quality") if "quality" in names else None
        judged, signals = self._judge(signals, languages, quality, edited.texts)
        overruled = pc.if_else(verdicts.kept, judged.overruled, None)
        verdicts = verdicts.otherwise(judged.verdicts)
        texts, counts = pii.redact(edited.texts, settings.pii)
        verdicts = verdicts.otherwise(pii.decide(counts, settings.pii))
        kept = verdicts.kept.to_numpy(zero_copy_only=False)
        labels = Counter([] if languages is None else languages.to_pylist())
        return FilterResult(
            texts,
            signals,
            verdicts,
            _edits(batch.column("id"), edited),
            {kind: int(items[kept].sum()) for kind, items in counts.items()},
            count_hosts(batch.column("url"), np.sum([*counts.values()], axis=0)),
            {n or NO_LANGUAGE: labels[n] for n in self._rules.without_settings(labels)},
            pa.array(np.array(PATHS, object)[found.paths], pa.string()),
            overruled if settings.overrule is not None else None,
            failures,
        )

    def _judge(
        self,
        signals: pa.StructArray,
        languages: pa.Array | None,
        quality: pa.Array | None,
        texts: pa.Array,
    ) -> tuple[Judgement, pa.StructArray]:
        """Apply the rules; score the documents that fail one where no column has their quality."""
        if quality is not None:
            signals = _with_quality(signals, quality.cast(pa.float64()))
        judged = self._rules.judge(signals, languages)
        if self._settings.overrule is None or quality is not None:
            return judged, signals
        failed = np.flatnonzero(~judged.verdicts.kept.to_numpy(zero_copy_only=False))
        if not len(failed):
            return judged, signals
        scores = np.full(len(texts), np.nan)
        rows = pa.array(failed)
        scores[failed] = quality_of(
            texts.take(rows),
            self._settings.overrule.model,
            None if languages is None else languages.take(rows),
        )
        signals = _with_quality(signals, pa.array(scores))
        return self._rules.judge(signals, languages), signals


def _with_custom(
    signals: pa.StructArray, texts: pa.Array, settings: FilterSettings
) -> tuple[pa.StructArray, list[Failure]]:
    """Add the signals that code of the user's own measures."""
    columns, fields, failures = signals.flatten(), list(signals.type), list[Failure]()
    for name, signal in settings.custom_signals.items():
        function = opened(signal.code, signal.settings)
        values, failed = answer_all(function, texts, signal.code.reference, pa.float64())
        columns.append(pc.fill_null(values, np.nan))
        fields.append(pa.field(name, pa.float64()))
        failures += failed
    if len(fields) == len(signals.type):
        return signals, []
    return pa.StructArray.from_arrays(columns, fields=fields), failures


def _with_quality(signals: pa.StructArray, quality: pa.Array) -> pa.StructArray:
    at = signals.type.get_field_index("quality")
    columns = signals.flatten()
    columns[at] = pc.fill_null(quality, np.nan)
    return pa.StructArray.from_arrays(columns, fields=list(signals.type))


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
    return _load(settings.model_dump_json(round_trip=True))
