"""A stage's work as tasks. A task's commit record, written last, marks its outputs complete.

A step is what is done (a dataclass with settings); a task is what it is done to (names and
fingerprints, never data). The record holds the fingerprint of everything that decides the outputs:
run again, a task whose record still matches is not redone, and any other is.
"""

import contextlib
import ctypes
import functools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import xxhash

from curation.errors import CurationError, WorkerError, told
from curation.stages import find
from pipelines.runners.guard import guarding
from pipelines.storage.damage import DamagedError, damaged, note
from pipelines.storage.exchange import kind_of
from pipelines.storage.files import SCRATCH, FileRecord, Folder, fingerprint

#: Of glibc's `mallopt`: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_TOP_PAD, with values.
_MALLOC = {-3: 4 << 20, -1: 32 << 20, -2: 8 << 20}
#: Beginning of the last line of an error that a step raised in a worker.
OURS = "curation.errors."


@dataclass(frozen=True)
class Task:
    """One unit of work: everything that a worker needs besides the step."""

    name: str  # names the outputs; comes from the input, never from the runner
    inputs: tuple[tuple[str, str], ...]  # (path or name, fingerprint of its content)
    size: int = 0  # bytes expected: for balance, and for how rows move (`chain.Moves`)
    payload: Any = None  # where the step finds its input; never decides the output

    def key(self, step_key: str) -> str:
        return fingerprint([step_key, list(self.inputs)])


class Progress(Protocol):
    """Takes what a task has done since it last said so."""

    def __call__(self, read: int, kept: int, part: int = 0) -> None:
        """Add documents read and kept and, of a source, bytes of `Task.size`."""


def no_progress(read: int, kept: int, part: int = 0) -> None:
    """Ignore progress."""


@dataclass
class Result:
    """The result of a task: files by name relative to the stage folder, and report counts.

    `noted` are further entries of the commit record, for the stage's own use.
    """

    files: dict[str, FileRecord] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    noted: dict[str, Any] = field(default_factory=dict)


class Step(Protocol):
    """One kind of task. Implementations are dataclasses made of data (see `description`)."""

    @property
    def name(self) -> str: ...

    @property
    def settings_key(self) -> str:
        """Fingerprint of settings, lists, models and versions that decide the output."""
        ...

    def run(self, task: Task, folder: Folder, progress: Progress) -> Result: ...


def record_place(step: Step) -> str:
    """Return the folder of a step's records: those of earlier steps are scratch."""
    return "shards" if step.name == "shards" else f"{SCRATCH}/records/{step.name}"


def read_record(folder: Folder, name: str) -> dict[str, Any]:
    """Read a record that the run needs. Raises DamagedError if it is missing or damaged."""
    record = folder.read_own_json(name)
    if not record:
        raise damaged(folder, name, "absent or damaged")
    return record


def record_name(step: Step, task: Task) -> str:
    """Return the path of a record, relative to the stage folder."""
    return f"{record_place(step)}/{commit_name(task)}"


def records_of(folder: Folder, step: Step, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Return the commit records of finished tasks, in task order. Raises DamagedError."""
    return folder.each(lambda t: read_record(folder, record_name(step, t)), tasks)


def output_fingerprint(records: Iterable[dict[str, Any]]) -> str:
    """Return one fingerprint for all files of the given commit records."""
    return joint_fingerprint(map(files_fingerprint, records))


def files_fingerprint(record: dict[str, Any]) -> bytes:
    """Return a fingerprint of the files of one commit record: 16 bytes."""
    lines = (f"{name} {f['sha256']}\n" for name, f in sorted(record["files"].items()))
    return xxhash.xxh3_128("".join(lines).encode()).digest()


def joint_fingerprint(fingerprints: Iterable[bytes]) -> str:
    """`output_fingerprint` by the records' `files_fingerprint`."""
    return xxhash.xxh3_128(b"".join(fingerprints)).hexdigest()


def cause(text: str) -> str:
    """Return the line of a runner's error message that a step raised."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if line.startswith(OURS):
            return line.partition(": ")[2]
    return lines[0] if lines else "no reason given"


def commit_name(task: Task) -> str:
    return f"{task.name}.json"


def shown(step: Step, folder: Folder) -> str:
    """Return a step's name for messages: the stage, and which part of its work."""
    *_, parent, stage = ("", *folder.url.rstrip("/").split("/"))
    if find(parent).per_mix:
        stage = f"{parent}/{stage}"
    return stage if step.name == "shards" else f"{stage} ({step.name})"


def committed(
    folder: Folder,
    step: Step,
    tasks: Sequence[Task],
    present: dict[str, int],
    absent: Sequence[str] = (),
) -> set[str]:
    """Return the names of the tasks whose record matches and whose files are intact.

    `present` lists the step's records (name -> size); of `absent` kinds files need
    not be there.
    """
    recorded = [t for t in tasks if commit_name(t) in present]
    if not recorded:
        return set()
    sizes = None if folder.is_local else folder.tree()
    found = folder.each(lambda t: is_committed(folder, step, t, sizes, absent), recorded)
    return {t.name for t, complete in zip(recorded, found, strict=True) if complete}


def is_committed(
    folder: Folder,
    step: Step,
    task: Task,
    sizes: dict[str, int] | None = None,
    absent: Sequence[str] = (),
) -> bool:
    """Return whether one task's record matches and its files, of these `sizes`, are intact."""
    name = record_name(step, task)
    record = folder.read_own_json(name)
    if record.get("key") != task.key(step.settings_key):
        return False
    files = {file: f for file, f in record["files"].items() if kind_of(file) not in absent}
    return folder.holds(files, name, sizes)


def perform(step: Step, task: Task, folder: Folder, guarded: bool = False) -> dict[str, Any] | None:
    """Run and commit one task, returning its record; or note which damaged file it read.

    `guarded` is set after its worker died or ran out of memory.
    """
    _return_large_blocks()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = None
        with contextlib.suppress(MemoryError):
            result = None if guarded else step.run(task, folder, _progress)
        if result is None:
            with guarding(True):
                result = step.run(task, folder, _progress)
    except DamagedError as error:
        note(folder, error)
        return None
    except CurationError as error:
        error.args = (f"{shown(step, folder)}, shard {task.name}: {error}",)
        raise
    except Exception as error:
        place = f"{shown(step, folder)}, shard {task.name}"
        raise WorkerError(f"{place}: {told(error)}") from error
    # They differ from run to run, so they stay in the scratch folder, apart from the records, until
    # they are summed into timings.json. CPU seconds are those of the whole process: exact where it
    # does one task at a time, as the local pool's do. A power failure may lose them.
    seconds = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "bytes": sum(f.bytes for f in result.files.values()),
    }
    name = f"{SCRATCH}/seconds/{step.name}~{task.name}.json"
    replace(folder, sync=False).write_own_json(name, seconds)
    record = {
        "task": task.name,
        "key": task.key(step.settings_key),
        "inputs": [{"name": n, "fingerprint": f} for n, f in task.inputs],
        "files": {name: f._asdict() for name, f in sorted(result.files.items())},
        "counts": result.counts,
        **result.noted,
    }
    folder.write_own_json(record_name(step, task), record)
    return record


@functools.cache
def _return_large_blocks() -> None:
    """Have the C library take blocks of 4 MB and more from the system, and give them back.

    By itself glibc keeps them for later once one of that size was freed, up to 32 MB each, so that
    a process which met large documents stays several times as large as they are. Of the smaller
    ones it keeps 32 MB: to get the memory of each page anew takes 6 % of the time.
    """
    with contextlib.suppress(OSError, AttributeError):  # not every C library has it
        for option, size in _MALLOC.items():
            ctypes.CDLL(None).mallopt(option, size)


#: Where this process reports its progress; the local runner sets it, others watch the records.
_progress: Progress = no_progress


def set_progress(progress: Progress) -> None:
    """Set the receiver of this process's counts of documents read and kept."""
    global _progress
    _progress = progress
