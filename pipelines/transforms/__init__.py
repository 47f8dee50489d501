"""Beam transforms for your own pipelines: each stage of a run, over `(ShardKey, RecordBatch)`.

    with beam.Pipeline() as pipeline:
        pages = pipeline | ReadPages("crawl/*.warc.gz")
        documents = (pages.pages | Extract()).documents
        wanted = (documents | IdentifyLanguage()).documents
        kept = (wanted | DeduplicateDocuments()).documents
        kept | WriteDocuments("corpus")

Each decides what the stage of the same name decides, by the same functions; docs/beam-transforms.md
says what each takes, gives and shuffles.
"""

from pipelines.transforms.duplicates import DeduplicateDocuments as DeduplicateDocuments
from pipelines.transforms.extract import PAGES as PAGES
from pipelines.transforms.extract import Extract as Extract
from pipelines.transforms.extract import Extracted as Extracted
from pipelines.transforms.extract import Pages as Pages
from pipelines.transforms.extract import ReadPages as ReadPages
from pipelines.transforms.files import ReadDocuments as ReadDocuments
from pipelines.transforms.files import WriteDocuments as WriteDocuments
from pipelines.transforms.files import WrittenShard as WrittenShard
from pipelines.transforms.judge import Apply as Apply
from pipelines.transforms.judge import Classify as Classify
from pipelines.transforms.judge import Decontaminate as Decontaminate
from pipelines.transforms.judge import Edited as Edited
from pipelines.transforms.judge import Filter as Filter
from pipelines.transforms.judge import IdentifyLanguage as IdentifyLanguage
from pipelines.transforms.judge import Judged as Judged
from pipelines.transforms.keys import RecordBatchCoder as RecordBatchCoder
from pipelines.transforms.keys import ShardKey as ShardKey
from pipelines.transforms.keys import ShardKeyCoder as ShardKeyCoder
from pipelines.transforms.lines import DeduplicateLines as DeduplicateLines
from pipelines.transforms.mix import Mix as Mix
from pipelines.transforms.tokenize import Tokenize as Tokenize
from pipelines.transforms.tokenize import TokenShard as TokenShard
from pipelines.transforms.urls import DeduplicateUrls as DeduplicateUrls
