"""Beam transforms for your own pipelines: stages of a run over shards, and what reads and writes.

    with beam.Pipeline() as pipeline:
        pages = pipeline | ReadPages("crawl/*.warc.gz")
        documents = (pages.pages | Extract()).documents
        wanted = (documents | IdentifyLanguage()).documents
        shards = wanted | WriteShards("corpus/wanted")
        shards | DeduplicateDocuments("corpus")

A stage that compares documents is `RunStage`, from shards to shards: the stage of `curate run`,
with its files. One that judges each document alone also has a form over batches, `(ShardKey,
RecordBatch)`. docs/beam-transforms.md says what each takes and gives.
"""

from pipelines.transforms.extract import PAGES as PAGES
from pipelines.transforms.extract import Extract as Extract
from pipelines.transforms.extract import Extracted as Extracted
from pipelines.transforms.extract import Pages as Pages
from pipelines.transforms.extract import ReadPages as ReadPages
from pipelines.transforms.files import Batches as Batches
from pipelines.transforms.files import ReadDocuments as ReadDocuments
from pipelines.transforms.files import ReadShards as ReadShards
from pipelines.transforms.files import RecordBatchCoder as RecordBatchCoder
from pipelines.transforms.files import ShardKey as ShardKey
from pipelines.transforms.files import ShardKeyCoder as ShardKeyCoder
from pipelines.transforms.files import WriteDocuments as WriteDocuments
from pipelines.transforms.files import WriteShards as WriteShards
from pipelines.transforms.judge import Apply as Apply
from pipelines.transforms.judge import Classify as Classify
from pipelines.transforms.judge import Decontaminate as Decontaminate
from pipelines.transforms.judge import Edited as Edited
from pipelines.transforms.judge import Filter as Filter
from pipelines.transforms.judge import IdentifyLanguage as IdentifyLanguage
from pipelines.transforms.judge import Judged as Judged
from pipelines.transforms.stage import DeduplicateDocuments as DeduplicateDocuments
from pipelines.transforms.stage import DeduplicateLines as DeduplicateLines
from pipelines.transforms.stage import DeduplicateUrls as DeduplicateUrls
from pipelines.transforms.stage import Mix as Mix
from pipelines.transforms.stage import RunStage as RunStage
from pipelines.transforms.stage import Tokenize as Tokenize
