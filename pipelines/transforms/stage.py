"""Stages of a run as transforms: shards in, shards out, files in a folder that all workers see."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam import PCollection
from apache_beam.pvalue import PBegin

from curation.errors import ConfigError
from curation.readers.discover import InputFile, PassedOver
from curation.recipe import Recipe
from curation.stages import find
from pipelines.engine.stage import Shard, StageRun, in_order, shards_of
from pipelines.named_files import check_named_files, stage_facts
from pipelines.plan import Plan, input_files, stage_of
from pipelines.run import complete_or_run, stage_run
from pipelines.run_folder import own_paths
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.runners.local import do_task
from pipelines.runners.tasklist import TaskList
from pipelines.storage.files import SCRATCH, Folder
from pipelines.transforms.judge import default_recipe


@dataclass
class RunStage(beam.PTransform):
    """Run a stage of a recipe: shards in, the shards of its documents out.

    It is the stage of `curate run`, with the same files in `<folder>/<stage>`, byte by byte:
    documents, removed documents, manifest. So `curate report` and `why` read the folder, and a
    pipeline that failed and runs again does only what is left; a document that killed its worker is
    then found and removed. Each step of the stage is a ParDo over its tasks; between two steps one
    worker plans, and rows move in files.

    A stage that reads raw input (`extract`, `read-tables`) begins a pipeline and needs `paths`. One
    whose files no stage reads, `tokenize`, gives the shards of its document index.

    Args:
        stage: name of a stage.
        folder: of the run, local or a URL of fsspec.
        settings: those of the stage, or a whole recipe; default: the recipe `llama3`.
        paths: files, folders, globs or URLs of raw input.

    Raises ConfigError for settings that are wrong or name files that are missing, InputError where
    `paths` match nothing.

    Examples:
        >>> import apache_beam as beam, tempfile
        >>> from pipelines.transforms import Batches, DeduplicateUrls, RunStage
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with beam.Pipeline(runner="FnApiRunner") as pipeline:
        ...         records = "builtin:data_samples/records-00007.jsonl.gz"
        ...         shards = pipeline | RunStage("extract", folder, paths=[records])
        ...         kept = shards | DeduplicateUrls(folder)
        ...         _ = kept | beam.Map(lambda shard: print(shard.file, shard.rows))
        documents/records-00007.jsonl.gz-577cdcc1.parquet 4
    """

    stage: str
    folder: str
    settings: Any = None
    paths: Sequence[str] = ()

    def default_label(self) -> str:
        return f"RunStage({self.stage})"

    def expand(self, shards: Any) -> PCollection[Shard]:
        described = find(self.stage)
        if isinstance(shards, PBegin) != described.is_source:
            needed = "begins a pipeline" if described.is_source else "needs shards (ReadShards)"
            raise ConfigError(f"RunStage({self.stage!r}): this stage {needed}")
        run = self._run()
        begun = shards | "Input" >> beam.Create(run.files) if described.is_source else shards
        run = replace(run, files=())
        keyed = begun | "Keyed" >> beam.Map(lambda given: (0, given)).with_output_types(_Item)
        found = keyed | "Gather" >> beam.GroupByKey()
        for number in range(described.passes):
            plan = beam.ParDo(_PlanStep(run)).with_output_types(_Item)
            perform = beam.ParDo(_PerformTask()).with_output_types(_Item)
            planned = found | f"Plan {number}" >> plan | f"Divide {number}" >> beam.GroupByKey()
            done = planned | f"Perform {number}" >> perform
            found = done | f"Gather {number}" >> beam.GroupByKey()
        return found | "Finish" >> beam.ParDo(_Finish(run)).with_output_types(Shard)

    def _run(self) -> StageRun:
        """Return the stage's run without its input and executor: what workers get."""
        stage, recipe = find(self.stage), _recipe(self.stage, self.settings)
        folder, settings, over = Folder(self.folder), recipe.section(stage), PassedOver()
        check_named_files(stage, settings)
        facts = stage_facts(stage, settings, stage.also(recipe))
        own = own_paths(folder, recipe)
        files = input_files(recipe, self.paths, own, over) if stage.is_source else []
        work = Plan(recipe, (stage.name,), (), folder, {stage.name: facts}, tuple(files), over)
        return replace(stage_run(stage.name, work, (), Executor(RunnerOptions())), executor=None)  # type: ignore[arg-type]


def _recipe(stage: str, settings: Any) -> Recipe:
    """Return a recipe with these settings of a stage, if they aren't a recipe."""
    if isinstance(settings, Recipe):
        return settings
    update = {} if settings is None else {stage.replace("-", "_"): settings}
    return default_recipe().model_copy(update=update)


#: What a stage reads.
_Given = Shard | InputFile
#: That, or a list of tasks and the number of one. The key spreads tasks.
_Item = tuple[int, Any]


class _Pending(Exception):  # noqa: N818 (nothing is wrong)
    """There are tasks to do before the stage can go on."""

    def __init__(self, work: TaskList) -> None:
        self.work = work


class _NoPool:
    def run(self, work: TaskList) -> Iterator[int]:
        raise _Pending(work)


class _Planner(Executor):
    """Finds the tasks of a stage's next step: those of earlier ones are committed."""

    is_here = False

    @functools.cached_property
    def _pool(self) -> Any:
        return _NoPool()


def _with_input(run: StageRun, given: Iterable[_Given], executor: Executor) -> StageRun:
    ordered = sorted(given, key=lambda each: each.name)
    inputs = in_order([each for each in ordered if isinstance(each, Shard)])
    files = tuple(each for each in ordered if isinstance(each, InputFile))
    folder = Folder(run.folder.url.removesuffix(f"/{run.stage}"))
    urls = sorted({shard.folder.url for shard in inputs})
    follows = stage_of(urls, folder)
    return replace(run, inputs=inputs, files=files, follows=follows, executor=executor)


@dataclass
class _PlanStep(beam.DoFn):
    """Yields the tasks of the next step, and what the stage reads for later plans."""

    run: StageRun

    def process(self, element: tuple[int, Iterable[_Given]]) -> Iterator[_Item]:
        given = list(element[1])
        try:
            with _Planner(RunnerOptions()) as planner:
                complete_or_run(_with_input(self.run, given, planner))
        except _Pending as pending:
            for number in range(len(pending.work.tasks)):
                yield number, (pending.work, number)
        for number, each in enumerate(given):
            yield -1 - number, each


class _PerformTask(beam.DoFn):
    def process(self, element: tuple[int, Iterable[Any]]) -> Iterator[_Item]:
        for item in element[1]:
            if isinstance(item, tuple):
                work, number = item
                do_task(work, number, again=True, guarded=_was_begun(work, number))
            else:
                yield 0, item


def _was_begun(work: TaskList, number: int) -> bool:
    """Return whether the task was begun before, as if its worker died; note that it is now."""
    folder = replace(work.folder, sync=False)
    note = f"{SCRATCH}/begun/{work.step.name}~{work.tasks[number].name}"
    before = folder.exists(note)
    folder.write_bytes(note, b"")
    return before


@dataclass
class _Finish(beam.DoFn):
    """Does what is left, usually nothing but the manifest; yields the shards written."""

    run: StageRun

    def process(self, element: tuple[int, Iterable[_Given]]) -> Iterator[Shard]:
        with Executor(RunnerOptions()) as executor:
            manifest = complete_or_run(_with_input(self.run, element[1], executor))
            executor.settle()
        kind = "index" if find(self.run.stage).is_sink else "documents"
        yield from shards_of(self.run.folder, manifest, kind)


DeduplicateUrls = functools.partial(RunStage, "dedup-urls")
DeduplicateDocuments = functools.partial(RunStage, "dedup-documents")
DeduplicateLines = functools.partial(RunStage, "dedup-lines")
Mix = functools.partial(RunStage, "mix")
Tokenize = functools.partial(RunStage, "tokenize")
