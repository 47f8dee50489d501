"""Draw documents so that domains have their shares of a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam import PCollection

from curation.mix import MixPlan, MixSettings, Mixture, plan_tables
from curation.mix.count import counted
from curation.tokenize.tokenize_settings import EncodeSettings
from pipelines.mix import drawn
from pipelines.transforms.compare import passes
from pipelines.transforms.judge import Judged, judge, of_recipe, outputs
from pipelines.transforms.keys import Keyed, ShardKey


@dataclass
class Mix(beam.PTransform):
    """Add `tokens` and `repeats` (how often a document is used), remove what is not drawn.

    Needs `id`, `text`, `source`, and of `domain`, `topic`, `format`, `language`, `quality` and
    `date` what the settings weigh by.

    One worker has a row of each document, of about 100 bytes, and plans. Nothing else is moved.

    Args:
        tokenize: the tokenizer by whose tokens shares are measured.
        source: a transform that reads the documents, such as `ReadDocuments`: then it is applied
            for each pass (2), and this transform to the pipeline instead of to documents. Tokens
            are counted in each.

    Examples:
        >>> import apache_beam as beam
        >>> from curation.schema import DOCUMENTS
        >>> from pipelines.transforms import Mix, ShardKey
        >>> row = {"id": "a", "text": "A few words.", "source": {"file": "f"}, "domain": "general"}
        >>> schema = DOCUMENTS.append(pa.field("domain", pa.string()))
        >>> batch = pa.RecordBatch.from_pylist([row], schema)
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | Mix()
        ...     columns = ["tokens", "repeats"]
        ...     _ = judged.documents | beam.Map(lambda e: print(e[1].select(columns).to_pylist()))
        [{'tokens': 6, 'repeats': 4}]
    """

    settings: Mixture = field(default_factory=of_recipe("mix"))
    tokenize: EncodeSettings = field(default_factory=of_recipe("tokenize"))
    source: beam.PTransform | None = None

    def expand(self, documents: Any) -> Judged:
        settings = self.settings
        if isinstance(settings, MixSettings):  # of which the mixes with a name are no part
            settings = settings.mixture()
        reads = passes(documents, self.source)
        first, second = self._counted(next(reads), settings, 1), None
        second = first if self.source is None else self._counted(next(reads), settings, 2)
        rows = first | "Rows" >> beam.Map(_rows).with_output_types(_OfMix)
        plan = rows | "Together" >> beam.GroupByKey() | "Plan" >> beam.ParDo(_Plan(settings))
        return judge(Judged, second, _Draw(), beam.pvalue.AsSingleton(plan))

    def _counted(
        self, documents: PCollection[Keyed], settings: Mixture, number: int
    ) -> PCollection[_Counted]:
        count = beam.ParDo(_CountTokens(self.tokenize, settings.input_names))
        return documents | f"CountTokens {number}" >> count.with_output_types(_Counted)


#: Documents with what draws look at, NARROW.
_Counted = tuple[ShardKey, tuple[pa.RecordBatch, pa.RecordBatch]]
_OfMix = tuple[int, Keyed]


@dataclass
class _CountTokens(beam.DoFn):
    settings: EncodeSettings
    sources: tuple[str, ...]

    def process(self, element: Keyed) -> Iterator[_Counted]:
        key, batch = element
        rows, _ = counted(batch, self.settings, self.sources)
        yield key, (batch, rows)


def _rows(element: _Counted) -> _OfMix:
    key, (_, rows) = element
    return 0, (key, rows)


@dataclass
class _Plan(beam.DoFn):
    settings: Mixture

    def process(self, element: tuple[int, Iterable[Keyed]]) -> Iterator[dict[str, Any]]:
        rows = sorted(element[1], key=lambda keyed: keyed[0])
        yield plan_tables([batch for _, batch in rows], self.settings).as_dict()


class _Draw(beam.DoFn):
    def process(self, element: _Counted, plan: dict[str, Any]) -> Iterator[Any]:
        key, (batch, rows) = element
        yield from outputs(key, drawn(batch, rows, MixPlan.from_dict(plan)), "mix")
