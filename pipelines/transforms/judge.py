"""Transforms that judge every document on its own: one function of a batch, no shuffle."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import apache_beam as beam
import pyarrow as pa
from apache_beam import PCollection

from curation import judging
from curation.classify.classify_settings import ClassifySettings
from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.errors import InputError
from curation.filters.filter_settings import FilterSettings
from curation.language.language_settings import LanguageSettings
from curation.recipe import Recipe, load
from curation.schema import split
from pipelines.classify import ClassifyDocuments
from pipelines.decontaminate import Decontaminate as DecontaminateDocuments
from pipelines.decontaminate import evals_key
from pipelines.engine.transform import Outcome
from pipelines.filter import FilterDocuments
from pipelines.identify_language import IdentifyLanguage as LanguageTransform
from pipelines.transforms.files import Keyed, ShardKey

#: What `Apply` takes.
Function = Callable[[pa.RecordBatch], Any]


class Judged(NamedTuple):
    """Kept and removed documents. Both have one batch, possibly empty, per input batch.

    `removed` has the columns of the documents and `stage`, `reason`, `value`, `threshold`,
    `kept_id`, as the `removed` files of a run have them.
    """

    documents: PCollection[Keyed]
    removed: PCollection[Keyed]


class Edited(NamedTuple):
    """As `Judged`; `edits` has what was cut out of texts: columns `curation.schema.EDITS`."""

    documents: PCollection[Keyed]
    removed: PCollection[Keyed]
    edits: PCollection[Keyed]


#: One of these, or another NamedTuple of outputs.
Outputs = TypeVar("Outputs", bound=NamedTuple)


@functools.cache
def default_recipe() -> Recipe:
    """Return the recipe `llama3`."""
    return load("llama3")


def default_settings(stage: str) -> Any:
    """Settings of a stage in the recipe `llama3`.

    Examples:
        >>> default_settings("dedup-documents").minhash.num_perm
        112
    """
    return default_recipe().settings(stage)


def of_recipe(stage: str) -> Callable[[], Any]:
    """Return the factory of a transform's settings: those of a stage in the recipe `llama3`."""
    return functools.partial(default_settings, stage)


def outputs(key: ShardKey, outcome: Outcome, stage: str) -> Iterator[Any]:
    """Yield a transform's outputs for one batch, as in `Judged` and `Edited`."""
    kept, removed = split(outcome.batch, outcome.verdicts, stage)
    yield key, kept
    yield beam.pvalue.TaggedOutput("removed", (key, removed))
    if outcome.edits is not None:
        yield beam.pvalue.TaggedOutput("edits", (key, outcome.edits))


def judge(kind: type[Outputs], documents: PCollection[Any], function: beam.DoFn) -> Outputs:
    """Apply a DoFn that yields what has the names of this kind, all but the first by tag."""
    main, *tagged = kind._fields
    judging = beam.ParDo(function)
    judging = judging.with_output_types(Keyed, **dict.fromkeys(tagged, Keyed))
    found = documents | "Judge" >> judging.with_outputs(*tagged, main=main)
    return kind(*(found[name] for name in kind._fields))


@dataclass
class _Judge(beam.DoFn):
    stage: str
    function: Callable[[pa.RecordBatch, int], Outcome]

    def process(self, element: Keyed) -> Iterator[Any]:
        key, batch = element
        yield from outputs(key, self.function(batch, key.row), self.stage)


@dataclass
class IdentifyLanguage(beam.PTransform):
    """Add `language` (string) and `language_score` (float), remove what the settings don't want.

    Needs the column `text`.

    Examples:
        >>> import apache_beam as beam
        >>> from pipelines.transforms import IdentifyLanguage, ShardKey
        >>> text = "Der Regen kam am Abend, und die Kinder liefen durch die Straßen nach Hause."
        >>> batch = pa.RecordBatch.from_pydict({"id": ["a"], "text": [text]})
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | IdentifyLanguage()
        ...     _ = judged.documents | beam.Map(lambda e: print(e[1]["language"].to_pylist()))
        ['de']
    """

    settings: LanguageSettings = field(default_factory=of_recipe("identify-language"))

    def expand(self, documents: PCollection[Keyed]) -> Judged:
        apply = LanguageTransform(self.settings).apply
        return judge(Judged, documents, _Judge("identify-language", apply))


@dataclass
class Classify(beam.PTransform):
    """Add `quality`, `domain`, `topic` and `format`, remove what scores too low.

    Needs `text`; where `language` is there, documents are scored by the models of their language.

    Examples:
        >>> import apache_beam as beam
        >>> from pipelines.transforms import Classify, ShardKey
        >>> text = "def area(r):\\n    return 3.14 * r * r\\n\\nfor r in range(9):\\n    area(r)\\n"
        >>> batch = pa.RecordBatch.from_pydict({"id": ["a"], "text": [text]})
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | Classify()
        ...     _ = judged.documents | beam.Map(lambda e: print(e[1]["domain"].to_pylist()))
        ['code']
    """

    settings: ClassifySettings = field(default_factory=of_recipe("classify"))

    def expand(self, documents: PCollection[Keyed]) -> Judged:
        return judge(Judged, documents, _Judge("classify", ClassifyDocuments(self.settings).apply))


@dataclass
class Filter(beam.PTransform):
    """Measure `signals`, apply the rules, cut lines, take personal data out of texts.

    Needs `id`, `url`, `text`, and `language` for rules of languages.

    Examples:
        >>> import apache_beam as beam
        >>> from pipelines.transforms import Filter, ShardKey
        >>> row = {"id": "a", "url": "http://a.example/", "text": "Buy now. " * 60,
        ...        "language": "en"}
        >>> batch = pa.RecordBatch.from_pylist([row])
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | Filter()
        ...     _ = judged.removed | beam.Map(lambda e: print(e[1]["reason"].to_pylist()))
        ['repetition.top_2gram']
    """

    settings: FilterSettings = field(default_factory=of_recipe("filter"))

    def expand(self, documents: PCollection[Keyed]) -> Edited:
        return judge(Edited, documents, _Judge("filter", FilterDocuments(self.settings).apply))


@dataclass
class Decontaminate(beam.PTransform):
    """Mark, cut or remove evaluation items found in documents.

    Needs `id` and `text`, and settings that name evaluation sets, which each worker reads.
    `documents` and `removed` have the column `contamination`.

    Examples:
        >>> from curation.recipe import load
        >>> evals = "decontaminate.evals={sums: {files: [sums.jsonl], mapping: gsm8k}}"
        >>> transform = Decontaminate(load("llama3", [evals]).settings("decontaminate"))
    """

    settings: DecontaminationSettings

    def expand(self, documents: PCollection[Keyed]) -> Edited:
        function = DecontaminateDocuments(self.settings, evals_key(self.settings))
        return judge(Edited, documents, _Judge("decontaminate", function.apply))


@dataclass
class Apply(beam.PTransform):
    """A function of your own.

    It gets a batch and returns what a stage of a recipe's own may return (`curation.judging`): true
    or false for each document, `Judged`, documents of the same rows (with other columns or texts),
    `curation.schema.Verdicts`, or the latter two. Raises InputError for another number of rows:
    each document must be accounted for. The function must be one that Beam can pickle.

    Args:
        function: see above.
        stage: what `removed` says in the column `stage`.

    Examples:
        >>> import apache_beam as beam, numpy as np, pyarrow.compute as pc
        >>> from curation.schema import Verdicts
        >>> from pipelines.transforms import Apply, ShardKey
        >>> def no_drafts(batch):
        ...     drafts = pc.starts_with(batch["text"], "DRAFT").to_numpy(zero_copy_only=False)
        ...     return Verdicts.where(drafts, "my.draft")
        >>> batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "text": ["DRAFT 1", "Final"]})
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     judged = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | Apply(no_drafts)
        ...     _ = judged.removed | beam.Map(lambda e: print(e[1].to_pylist()[0]["reason"]))
        my.draft
    """

    function: Function
    stage: str = "apply"

    def expand(self, documents: PCollection[Keyed]) -> Judged:
        apply = functools.partial(_applied, self.function, self.stage)
        return judge(Judged, documents, _Judge(self.stage, apply))


def _applied(function: Function, stage: str, batch: pa.RecordBatch, first_row: int) -> Outcome:
    name = getattr(function, "__name__", repr(function))
    try:
        return Outcome(*judging.judge(function, batch, stage, name))
    except ValueError as error:
        raise InputError(str(error)) from error
