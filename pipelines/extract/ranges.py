"""Large files read by several tasks, each a range: choose them, and check that ranges fit."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from curation import stores
from curation.readers.discover import InputFile
from curation.readers.ranges import Checkpoint, Reading, misread, why_whole
from curation.readers.settings import ReaderSettings
from pipelines.engine.stage import StageRun
from pipelines.extract.sources import SourceShard
from pipelines.runners.tasks import Step, Task, read_record, record_name
from pipelines.storage.files import Folder

_RANGE = "range"  # entry of a commit record


def noted(reading: Reading) -> dict[str, Any]:
    """Return the entry of a range's commit record."""
    return {_RANGE: dataclasses.asdict(reading)}


def split_files(run: StageRun, readers: ReaderSettings) -> set[str]:
    """Return the names of files to read by ranges; report large ones that can't be, and why."""
    large = [file for file in run.files if file.size > readers.split_bytes and not file.records]
    reasons = stores.each(lambda f: why_whole(f.path, f.name, readers), large)
    whole: defaultdict[str, list[InputFile]] = defaultdict(list)
    for file, reason in zip(large, reasons, strict=True):
        whole[reason].append(file)
    split = {file.name for file in whole.pop("", [])}
    for reason, files in sorted(whole.items()):
        run.executor.display.message(_one_worker(reason, files))
    return split


def _one_worker(reason: str, files: Sequence[InputFile]) -> str:
    more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
    size = max(file.size for file in files) / 1e9
    each = "each, up to " if more else ""
    return f"{files[0].name}{more}: {reason}: {each}{size:,.1f} GB are read by one worker"


def run_until_ranges_fit(run: StageRun, step: Step, tasks: Sequence[Task]) -> None:
    """Run tasks; rerun those whose range did not begin where the previous one ended."""
    run.run(step, tasks)
    while again := _misread(run.folder, step, tasks):
        records = [record_name(step, task) for task in again.values()]
        run.folder.each(run.folder.remove, records)
        tasks = [again.get(task.name, task) for task in tasks]
        run.run(step, tasks)


def _misread(folder: Folder, step: Step, tasks: Iterable[Task]) -> dict[str, Task]:
    """Return the tasks to rerun by name, with the true begin of their ranges."""
    parts = [task for task in tasks if task.payload.part]
    records = folder.each(lambda t: read_record(folder, record_name(step, t)), parts)
    files: defaultdict[str, list[tuple[Task, Reading]]] = defaultdict(list)
    for task, record in zip(parts, records, strict=True):
        files[task.inputs[0][0]].append((task, _reading(record[_RANGE])))
    again: dict[str, Task] = {}
    for found in files.values():
        spans = [task.payload.part.span for task, _ in found]
        wrong = misread(spans, [reading for _, reading in found])
        again |= {found[k][0].name: _from(found[k][0], begin) for k, begin in wrong.items()}
    return again


def _reading(noted: dict[str, Any]) -> Reading:
    begin = noted["begin"]
    return Reading(**noted | {"begin": begin and Checkpoint(**begin)})


def _from(task: Task, begin: Checkpoint) -> Task:
    shard: SourceShard = task.payload
    assert shard.part is not None
    part = dataclasses.replace(shard.part, begin=begin)
    return dataclasses.replace(task, payload=dataclasses.replace(shard, part=part))
