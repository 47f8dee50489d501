"""Draw documents so that domains have their shares of a token budget."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam import PCollection

from curation.errors import ConfigError
from curation.mix import MixPlan, MixSettings, Mixture, plan_tables
from curation.mix.columns import narrow
from curation.schema import with_column
from curation.tokenize.shard import count_tokens
from curation.tokenize.tokenize_settings import EncodeSettings
from pipelines.mix import drawn
from pipelines.transforms.compare import passes
from pipelines.transforms.judge import Judged, default_settings, judge, outputs
from pipelines.transforms.keys import Keyed


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

    >>> import apache_beam as beam
    >>> from curation.schema import DOCUMENTS
    >>> from pipelines.transforms import Mix, ShardKey
    >>> row = {"id": "a", "text": "A few words.", "source": {"file": "f"}, "domain": "general"}
    >>> batch = pa.RecordBatch.from_pylist([row], DOCUMENTS.append(pa.field("domain", pa.string())))
    >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
    ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | Mix()
    ...     columns = ["tokens", "repeats"]
    ...     _ = judged.documents | beam.Map(lambda e: print(e[1].select(columns).to_pylist()))
    [{'tokens': 6, 'repeats': 4}]
    """

    settings: Mixture = field(default_factory=functools.partial(default_settings, "mix"))
    tokenize: EncodeSettings = field(
        default_factory=functools.partial(default_settings, "tokenize")
    )
    source: beam.PTransform | None = None

    def expand(self, documents: Any) -> Judged:
        settings = self.settings
        if isinstance(settings, MixSettings):  # of which the mixes with a name are no part
            settings = settings.mixture()
        if settings.min_variety is not None:
            raise ConfigError("mix.min_variety: variety is measured by the stage, not by Mix")
        sources = settings.input_names
        reads = passes(documents, self.source)
        first, second = self._counted(next(reads), 1), None
        second = first if self.source is None else self._counted(next(reads), 2)
        rows = first | "Narrow" >> beam.ParDo(_Narrow(sources)).with_output_types(_OfMix)
        plan = rows | "Together" >> beam.GroupByKey() | "Plan" >> beam.ParDo(_Plan(settings))
        return judge(Judged, second, _Draw(sources), beam.pvalue.AsSingleton(plan))

    def _counted(self, documents: PCollection[Keyed], number: int) -> PCollection[Keyed]:
        count = beam.ParDo(_CountTokens(self.tokenize)).with_output_types(Keyed)
        return documents | f"CountTokens {number}" >> count


_OfMix = tuple[int, Keyed]


@dataclass
class _CountTokens(beam.DoFn):
    settings: EncodeSettings

    def process(self, element: Keyed) -> Iterator[Keyed]:
        key, batch = element
        tokens = count_tokens(batch.column("text"), self.settings)
        yield key, with_column(batch, "tokens", pa.array(tokens, pa.int64()))


@dataclass
class _Narrow(beam.DoFn):
    sources: tuple[str, ...]

    def process(self, element: Keyed) -> Iterator[Any]:
        key, batch = element
        yield 0, (key, narrow(batch, batch.column("tokens"), self.sources))


@dataclass
class _Plan(beam.DoFn):
    settings: Mixture

    def process(self, element: tuple[int, Iterable[Keyed]]) -> Iterator[dict[str, Any]]:
        narrow = sorted(element[1], key=lambda keyed: keyed[0])
        yield plan_tables([batch for _, batch in narrow], self.settings).as_dict()


@dataclass
class _Draw(beam.DoFn):
    sources: tuple[str, ...]

    def process(self, element: Keyed, plan: dict[str, Any]) -> Iterator[Any]:
        key, batch = element
        rows = narrow(batch, batch.column("tokens"), self.sources)
        yield from outputs(key, drawn(batch, rows, MixPlan.from_dict(plan)), "mix")
