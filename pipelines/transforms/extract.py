"""From archives, pages and tables to documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam import PCollection

from curation.columns import PAGE_COLUMNS
from curation.extract.extract_settings import ExtractSettings
from curation.readers.discover import discover
from curation.readers.documents import Others, Row, document_row, joined, own_columns, with_own
from curation.readers.index import with_archives
from curation.readers.records import Damage, Page
from curation.readers.settings import ReaderSettings
from curation.schema import EXTRACTED, HEADERS, SET_ASIDE, SOURCE
from pipelines.engine.transform import Outcome
from pipelines.extract import JudgePages, PageBatch, PagesBeside, damaged_row
from pipelines.extract.reading import FileReader
from pipelines.extract.sites import sites_key
from pipelines.extract.sources import SourceShard, source_shards
from pipelines.transforms.files import Keyed, ShardKey
from pipelines.transforms.judge import default_settings, judge, of_recipe, outputs

#: A batch of pages has at most so many pages, and about so many bytes where it has several.
_BATCH_PAGES = 256
_BATCH_BYTES = 8 << 20

#: Columns of pages, those of `curation.readers.Page`; `id` and `title` where the input has them.
#: Pages of tables also have a struct `own` of the tables' other columns.
PAGES = pa.schema(
    [
        ("url", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
        ("record_id", pa.string()),
        ("source", SOURCE),
        ("content", pa.large_binary()),
        ("kind", pa.string()),  # html or text
        ("charset", pa.string()),
        ("mime", pa.string()),
        ("status", pa.int32()),  # of HTTP
        ("id", pa.string()),
        ("title", pa.string()),
        ("mended", pa.string()),
        ("detail", pa.string()),
        ("normalize", pa.string()),  # what extraction does to text: none, nfc, repair (or null)
        ("headers", HEADERS),  # of HTTP, those that extraction looks at
    ]
)


class Pages(NamedTuple):
    """Pages read: batches of columns `PAGES`, and of `curation.schema.SET_ASIDE`."""

    pages: PCollection[Keyed]
    set_aside: PCollection[Keyed]


class Extracted(NamedTuple):
    """As `Judged`; `set_aside` has the pages on which the extractor failed, whole."""

    documents: PCollection[Keyed]
    removed: PCollection[Keyed]
    set_aside: PCollection[Keyed]


@dataclass
class ReadPages(beam.PTransform):
    """Read WARC, ARC, WET, WACZ, JSONL, Parquet, HTML and text files: at the root of a pipeline.

    Files are listed when the pipeline is built. Small ones share a shard, as in `curate extract`:
    shards have the same names. A shard is read by one worker. What can't be read is set aside.

    Args:
        paths: a path, folder, glob or URL, or several.
        settings: of readers.

    Raises InputError where nothing is found.

    Examples:
        >>> import apache_beam as beam
        >>> from pipelines.transforms import ReadPages
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     read = pipeline | ReadPages("builtin:data_samples/records-00007.jsonl.gz")
        ...     _ = read.pages | beam.Map(lambda e: print(e[0].row, e[1].num_rows, e[1]["kind"][0]))
        0 4 text
    """

    paths: str | Sequence[str]
    settings: ReaderSettings = field(default_factory=of_recipe("readers"))

    def expand(self, begin: Any) -> Pages:
        paths = [self.paths] if isinstance(self.paths, str) else list(self.paths)
        found = with_archives(discover(paths), self.settings)
        shards = source_shards(found, (), self.settings.split_bytes)
        reading = beam.ParDo(_Read(self.settings)).with_output_types(Keyed, set_aside=Keyed)
        files = begin | "Files" >> beam.Create(shards)
        read = files | "Read" >> reading.with_outputs("set_aside", main="pages")
        return Pages(read.pages, read.set_aside)


@dataclass
class _Read(beam.DoFn):
    settings: ReaderSettings

    def process(self, element: SourceShard) -> Iterator[Any]:
        shard = element.name
        readers = [
            (name, FileReader(path, name, self.settings, element.records.get(name)))
            for path, name in element.files
        ]
        others = joined([reader.others() for _, reader in readers], taken=PAGE_COLUMNS)
        rows: list[tuple[Row, Row]] = []
        aside: list[dict[str, Any]] = []
        first = size = 0
        for name, record in ((name, each) for name, reader in readers for each in reader):
            if isinstance(record, Damage):
                aside.append(damaged_row(name, record))
            elif isinstance(record, Page):
                rows.append((_row(name, record), document_row(name, record)[1]))
                size += len(record.content)
                if len(rows) >= _BATCH_PAGES or size >= _BATCH_BYTES:
                    yield ShardKey(shard, first), _batch(rows, others)
                    first, size, rows = first + len(rows), 0, []
        yield ShardKey(shard, first), _batch(rows, others)
        damage = pa.RecordBatch.from_pylist(aside, SET_ASIDE)
        yield beam.pvalue.TaggedOutput("set_aside", (ShardKey(shard, 0), damage))


def _batch(rows: Sequence[tuple[Row, Row]], others: Others) -> pa.RecordBatch:
    pages = pa.RecordBatch.from_pylist([page for page, _ in rows], PAGES)
    own = own_columns([own for _, own in rows], others)
    return pages.append_column("own", own) if others else pages


def _row(name: str, page: Page) -> dict[str, Any]:
    own = page.fields or {}
    columns = {n: getattr(page, n) for n in PAGES.names if n not in ("source", "id", "title")}
    fields = {n: own[n] for n in ("id", "title") if isinstance(own.get(n), str)}
    return {**columns, **fields, "source": {"file": name, "offset": page.offset}}


def _page(row: dict[str, Any]) -> tuple[str, Page]:
    """Name of the file, and the page."""
    fields = {n: row.pop(n) for n in ("id", "title")}
    source = row.pop("source")
    known = {n: value for n, value in fields.items() if value is not None} or None
    row["headers"] = tuple(row.get("headers") or ())
    return source["file"], Page(**row, offset=source["offset"], fields=known)


@dataclass
class Extract(beam.PTransform):
    """Turn batches of `PAGES` into documents: columns `curation.schema.EXTRACTED`, and tables' own.

    Third-party engines run in a guarded process of each worker.

    Examples:
        >>> import apache_beam as beam
        >>> from pipelines.transforms import PAGES, Extract, ShardKey
        >>> html = b"<title>T</title><main><p>" + b"One sentence of a page on rivers. " * 20
        >>> page = {"url": "http://a.example/", "content": html, "kind": "html", "record_id": "",
        ...         "mime": "text/html", "mended": "", "detail": "",
        ...         "source": {"file": "f", "offset": 0}}
        >>> batch = pa.RecordBatch.from_pylist([page], PAGES)
        >>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...     extracted = pipeline | beam.Create([(ShardKey("s", 0), batch)]) | Extract()
        ...     _ = extracted.documents | beam.Map(lambda e: print(e[1]["text"][0].as_py()[:33]))
        One sentence of a page on rivers.
    """

    settings: ExtractSettings = field(default_factory=of_recipe("extract"))

    def expand(self, pages: PCollection[Keyed]) -> Extracted:
        readers, key = default_settings("readers"), sites_key(self.settings)
        return judge(Extracted, pages, _Extract(JudgePages(self.settings, readers, key)))


@dataclass
class _Extract(beam.DoFn):
    judge: JudgePages

    def process(self, element: Keyed) -> Iterator[Any]:
        key, batch = element
        documents, beside = PageBatch(), PagesBeside()
        known = [n for n in batch.schema.names if n != "own"]
        pages = [_page(row) for row in batch.select(known).to_pylist()]
        answers = self.judge.answers([page for _, page in pages])
        for (name, page), answer in zip(pages, answers, strict=True):
            self.judge.add(name, page, answer, documents, beside)
        made = pa.RecordBatch.from_pylist(documents.rows, EXTRACTED)
        if len(known) < batch.num_columns:
            made = with_own(made, batch.column("own"))
        yield from outputs(key, Outcome(made, documents.verdicts()), "extract")
        failed = pa.RecordBatch.from_pylist(beside.set_aside, SET_ASIDE)
        yield beam.pvalue.TaggedOutput("set_aside", (key, failed))
