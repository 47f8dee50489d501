"""Task lists: what a cluster's workers need to know about a step, in a file.

A job carries the file's name and plain numbers, so that it stays small for any number of shards:
Dataflow refuses a job of more than 10 MB, and the description of 90,000 tasks is more.

The output folder may be open to more people than the workers are. So the file is data and no code,
and counts only with the hash and for the classes that the job names.

Serialize steps and tasks as JSON, so that reading one can't run code.

Dataclasses are described by their fields, settings as in a recipe. Types that JSON lacks are
objects with the key `is`: a tuple, a dictionary, an Arrow schema, or the name of a class. Only
classes that the reader expects are created: their names come from the job, never from the file.
"""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from curation.errors import InputError, first_line
from pipelines.named_files import send
from pipelines.runners.tasks import Step, Task
from pipelines.storage.files import SCRATCH, Folder

_TUPLE, _DICT, _SCHEMA = "tuple", "dict", "schema"


def name_of(kind: type) -> str:
    """Return the name of a class in descriptions."""
    return f"{kind.__module__}.{kind.__qualname__}"


def describe(value: Any, classes: dict[str, type]) -> Any:
    """Return the value as JSON; add the classes it consists of to `classes`, by name.

    Raises TypeError for values that are not data, such as functions and arrays.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [describe(v, classes) for v in value]
    if type(value) is tuple:
        return {"is": _TUPLE, "of": [describe(v, classes) for v in value]}
    if type(value) is dict:
        pairs = [[describe(k, classes), describe(v, classes)] for k, v in value.items()]
        return {"is": _DICT, "of": pairs}
    if isinstance(value, pa.Schema):
        return {"is": _SCHEMA, "of": base64.b64encode(value.serialize()).decode()}
    kind = type(value)
    if isinstance(value, BaseModel):
        content = {"of": value.model_dump(mode="json", by_alias=True, round_trip=True)}
    elif dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        content = {f.name: describe(getattr(value, f.name), classes) for f in fields}
    else:
        raise TypeError(f"{name_of(kind)}: steps and tasks must consist of data, and this is not")
    classes[name_of(kind)] = kind
    return {"is": name_of(kind), **content}


def restore(described: Any, classes: Iterable[type]) -> Any:
    """Restore a described value, using only these classes. Raises InputError."""
    return _restored(described, {name_of(kind): kind for kind in classes})


def _restored(described: Any, classes: dict[str, type]) -> Any:
    if isinstance(described, list):
        return [_restored(v, classes) for v in described]
    if not isinstance(described, dict):
        return described
    content = dict(described)
    name = content.pop("is", None)
    try:
        if name == _TUPLE:
            return tuple(_restored(v, classes) for v in content["of"])
        if name == _DICT:
            return {_restored(k, classes): _restored(v, classes) for k, v in content["of"]}
        if name == _SCHEMA:
            return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["of"])))
        kind = classes.get(name) if isinstance(name, str) else None
        if kind is None:
            raise InputError(f"{name}: not a class of this step")
        if issubclass(kind, BaseModel):
            return kind.model_validate(content["of"])
        return kind(**{field: _restored(v, classes) for field, v in content.items()})
    except (KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
        raise InputError(f"{name}: {first_line(error)}") from error


@dataclass(frozen=True)
class TaskList:
    """A step and its tasks, by the file that holds them."""

    folder: Folder
    file: str
    sha256: str
    classes: tuple[type, ...]  # of which step and tasks are made

    @property
    def step(self) -> Step:
        return _load(self)[0]

    @property
    def tasks(self) -> list[Task]:
        return _load(self)[1]


def write_task_list(
    folder: Folder, step: Step, tasks: Sequence[Task], local: bool = False
) -> TaskList:
    """Write what the workers will read. The name follows from the content.

    It is not synced: after a power failure the next run writes its own. Unless all workers are on
    this machine, they get copies of the files that the settings name.
    """
    if not local:
        send(step, folder)
    classes: dict[str, type] = {}
    described = describe([step, list(tasks)], classes)
    data = json.dumps(described, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    file = f"{SCRATCH}/tasks/{step.name}-{digest[:24]}.json"
    dataclasses.replace(folder, sync=False).write_bytes(file, data)
    return TaskList(folder, file, digest, tuple(classes[name] for name in sorted(classes)))


@lru_cache(maxsize=8)  # once per process and step of a job, however many tasks it gets
def _load(tasks: TaskList) -> tuple[Step, list[Task]]:
    """Raises InputError where the file is not the one that the driver wrote."""
    data = tasks.folder.read_bytes(tasks.file)
    if hashlib.sha256(data).hexdigest() != tasks.sha256:
        raise InputError(
            f"{tasks.folder.url_of(tasks.file)}: changed since the run wrote it; "
            "run the same command again to rewrite it"
        )
    step, found = restore(json.loads(data), tasks.classes)
    return step, found
