"""Apply a recipe's filter to a batch: block lists, edits, signals, rules, personal data.

`judge` returns signals and verdicts of a table."""

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.classify.classifier import quality_of
from curation.columns import PATHS
from curation.errors import ConfigError
from curation.filters import blocklists, pii
from curation.filters.content import look_at
from curation.filters.edits import edit
from curation.filters.filter_settings import FilterSettings
from curation.filters.personal_hosts import count_hosts
from curation.filters.rules import Judgement, RuleBook
from curation.filters.signals import Meter, as_struct
from curation.judging import Failure, answer_all, error_verdicts, opened
from curation.language.identifier import with_language
from curation.recipe import Recipe, load
from curation.schema import Verdicts, conformed, edits_of, with_column
from curation.tables import Given, as_given, known, texts_of
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
        """Return the batch with the texts and columns found; only kept documents overrule a
        rule."""
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
        self._reads_plain = settings.signals.gopher.dialect != "dclm"
        self._rules = RuleBook(settings)
        self._blocked = blocklists.load(settings.blocklists)

    def apply(self, batch: pa.RecordBatch) -> FilterResult:
        """Filter documents: columns `id`, `url`, `text`, and `language` and `quality` if known."""
        settings = self._settings
        names = batch.schema.names
        languages = batch.column("language") if "language" in names else None
        verdicts = Verdicts(self._blocked.check(batch.column("url")))
        texts = batch.column("text")
        read = plain(texts) if self._reads_plain else texts
        found = look_at(read, True) if settings.paths else None
        given = None if read is texts else read
        edited = edit(texts, self._meter, settings.edits, found, given, languages)
        changed = np.unique(edited.rows)
        if found is None:  # what was cut is looked at below
            whole = pa.array(~np.isin(np.arange(len(texts)), changed))
            found = look_at(pc.if_else(whole, read, ""), False)
        measured = self._meter.measured(read, found, languages, settings.paths, edited)
        if len(changed):
            rows = pa.array(changed)
            left = edited.texts.take(rows)
            read = plain(left) if self._reads_plain else left
            own = None if languages is None else languages.take(rows)
            again = look_at(read, settings.paths)
            measured[changed] = self._meter.measured(read, again, own, settings.paths)
            found.paths[changed] = again.paths
        signals = as_struct(measured)
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
            edits_of(batch.column("id"), edited.rows, edited.reasons, edited.positions, edited.cut),
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


@functools.lru_cache(maxsize=4)
def _load(settings: str) -> Filter:
    return Filter(FilterSettings.model_validate_json(settings))


def load_filter(settings: FilterSettings) -> Filter:
    """Return the filter of these settings, loaded once per process."""
    return _load(settings.model_dump_json(round_trip=True))


#: Documents that are judged at a time.
BATCH_ROWS = 512


def judge(table_or_texts: Any, recipe: str | Recipe = "llama3") -> Any:
    """Return a table with one row per document: why it is removed, and all its signals.

    Columns: `reason` (null: kept), `value`, `threshold`, `path` (prose, code or mathematics),
    `overruled` (the rule that quality overruled, where the recipe lets it), then one float64
    column per signal. Signals are of the text after the recipe's edits; the texts themselves stay
    as they are. Arrow comes back, or pandas or polars where that went in.

    Args:
        table_or_texts: texts, or a table with a text column (`text`, `content`, or as the recipe's
            `readers.text_columns` say). Columns `language`, `quality` and `url` are used where
            they are. The language of texts that have none is identified.
        recipe: name or path of a recipe.

    Raises ConfigError for a recipe that does not exist, InputError for a table without texts.
    """
    given = as_given(table_or_texts)
    loaded = load(recipe) if isinstance(recipe, str) else recipe
    documents, held = _documents(given, loaded), load_filter(loaded.filter)
    parts = [_judged(held.apply(batch)) for batch in documents.to_batches(BATCH_ROWS)]
    if not parts:
        parts = [_judged(held.apply(pa.RecordBatch.from_pylist([], schema=documents.schema)))]
    joined = pa.concat_tables(parts)
    return given.result({name: joined[name] for name in joined.column_names})


def _documents(given: Given, recipe: Recipe) -> pa.Table:
    table, texts = given.table, texts_of(given.table, recipe.readers.text_columns).fill_null("")
    nothing = pa.array([""] * len(texts), pa.string())
    columns = {"id": nothing, "url": nothing, "text": texts}
    for name in ("url", "language", "quality"):
        if (column := known(table, name)) is not None:
            columns[name] = column
    (batch,) = pa.table(columns).combine_chunks().to_batches() or [None]
    if not batch:
        return pa.table(columns)
    return pa.Table.from_batches([with_language(conformed(batch), recipe.identify_language)])


def _judged(result: Any) -> pa.Table:
    verdicts = result.verdicts
    columns = {"reason": verdicts.reason, "value": verdicts.value, "threshold": verdicts.threshold}
    columns["path"] = result.paths
    if result.overruled is not None:
        columns["overruled"] = result.overruled
    signals = zip(result.signals.type, result.signals.flatten(), strict=True)
    return pa.table(columns | {field.name: values for field, values in signals})
