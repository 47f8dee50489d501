"""User functions over documents: how they are called, and how their errors are handled.

A function takes a `pyarrow.RecordBatch` of documents, and returns one of
- true or false for each document: false removes it;
- a `Judged`: new or changed columns, and for documents to be removed a reason each, with the value
  that was measured and the threshold that it failed.

A class is instantiated with the recipe's settings once per process; its instances are called like
functions.
"""

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from curation.config import nearest
from curation.errors import ConfigError, raising, told
from curation.resources import NamedPath, resolve
from curation.schema import DOCUMENTS, Verdicts, with_column
from curation.text.surrogates import everywhere
from curation.user_code import Found, UserCode, forget, is_own, reading, walk

T = TypeVar("T")


@dataclass(frozen=True)
class Judged:
    """The result of a custom stage for a batch; everything has one entry per document."""

    #: New or changed columns by name: Arrow arrays, NumPy arrays or lists.
    columns: Mapping[str, Any] = field(default_factory=dict)
    #: None or null: the document is kept. Reasons without a dot get the stage's name as a prefix.
    reason: Sequence[str | None] | pa.Array | None = None
    value: Any = None
    threshold: Any = None


class MisfitError(ValueError):
    """A function's answer does not fit the documents that it was given."""


class Failure(NamedTuple):
    """A document on which a function raised an exception."""

    row: int  # of the batch
    detail: str  # function and exception


def opened(code: UserCode, settings: Mapping[str, Any], positional: int = 1) -> Callable[..., Any]:
    """Return the function with its settings bound, or an instance of the class.

    Paths among the settings are where the files are on this machine. `positional` arguments are
    passed in each call. Cached per process by code, settings and the contents of files. Raises
    ValueError for a setting that the function does not take, or that its class rejects.
    """
    contents = [path.sha256 for _, path, _ in walk(settings, "", (NamedPath,))]
    given = everywhere(settings, lambda v: _place(v) if isinstance(v, NamedPath) else v)
    found = code.found, tuple(contents)
    return _opened(code, found, json.dumps(given, sort_keys=True), positional)


def check_opens(code: UserCode, settings: Mapping[str, Any], key: str, positional: int = 1) -> None:
    """Raise ConfigError, naming the recipe's key, if code or its settings can't be used.

    So it does if loading it reads a file beside the recipe, or in the working directory, that no
    setting names: the output would depend on what its fingerprint doesn't have.
    """
    try:
        with reading() as files:
            opened(code, settings, positional)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from error
    named = [path.place for _, path, _ in walk(settings, "", (NamedPath,)) if path.place]
    for file in sorted(f for f in files if is_own(f, code.folders)):
        if not any(Path(file).is_relative_to(os.path.realpath(place)) for place in named):
            _opened.cache_clear()
            forget()  # so that the next try reads again
            raise ConfigError(
                f"{key}: {code} reads {file}, which decides its answers: name it in `settings`, or "
                "under `files`, as an argument"
            )


def _place(path: NamedPath) -> str:
    local = resolve(path)
    return local if "://" in local else os.path.abspath(local)


@functools.lru_cache(maxsize=64)
def _opened(
    code: UserCode, _found: tuple[Found, tuple[str, ...]], settings: str, positional: int
) -> Callable[..., Any]:
    loaded, given = code.load(), json.loads(settings)
    is_class = isinstance(loaded, type)
    _check_arguments(code, loaded, given, 0 if is_class else positional)
    if not is_class:
        return functools.partial(loaded, **given)
    with raising(lambda error: ValueError(f"{code}: {told(error)}")):
        function = loaded(**given)
    if not callable(function):
        raise ValueError(f"{code}: its objects can't be called; give the class a `__call__`")
    _check_arguments(code, function, {}, positional)
    return function  # type: ignore[no-any-return]


def _check_arguments(
    code: UserCode, function: Callable[..., Any], given: Mapping[str, Any], positional: int
) -> None:
    parameters = list(inspect.signature(function).parameters.values())
    kinds = {p.kind for p in parameters}
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < positional and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise ValueError(f"{code}: called with {positional} arguments, but takes {len(places)}")
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return
    known = [p.name for p in parameters[positional:] if p.kind is not p.VAR_POSITIONAL]
    for name in given:
        if name not in known:
            takes = f" (it takes: {', '.join(known)})" if known else " (it takes none)"
            raise ValueError(f"{code}: no argument {name!r}{nearest(name, known)}{takes}")
    for p in parameters[positional:]:
        if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and p.name not in given:
            raise ValueError(f"{code}: the argument {p.name!r} has no value")


def judge(
    function: Callable[[pa.RecordBatch], Any], batch: pa.RecordBatch, stage: str, name: str
) -> tuple[pa.RecordBatch, Verdicts]:
    """Return the batch with the function's columns, and its verdicts.

    `name` is the function's, for messages and for the reason of documents it returns false for.
    Besides what the module describes, it may return documents (a RecordBatch of the same rows),
    `Verdicts`, or both. Raises ValueError if the result does not fit the batch; exceptions of the
    function propagate.
    """
    answer = function(batch)
    if isinstance(answer, Judged):
        answer = _of_judged(answer, batch, stage)
    if isinstance(answer, Verdicts):
        answer = batch, answer
    elif isinstance(answer, pa.RecordBatch):
        answer = answer, Verdicts.keep_all(batch.num_rows)
    elif isinstance(answer, str | bytes | Mapping | pa.Table) or answer is None:
        raise MisfitError(f"{name}: returned {type(answer).__name__}, {_EXPECTED}")
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Verdicts)):
        kept = np.asarray(_as_array(answer, batch.num_rows, pa.bool_()).fill_null(False))
        return batch, Verdicts.where(~kept, f"{stage}.{name}")
    for rows in (answer[0].num_rows, len(answer[1].reason)):
        if rows != batch.num_rows:
            raise MisfitError(
                f"{name}: returned {rows} rows for {batch.num_rows} documents; to remove "
                "documents, give them a reason"
            )
    _check_same(batch, answer[0], name)
    return answer


def _check_same(given: pa.RecordBatch, made: pa.RecordBatch, name: str) -> None:
    """Raise MisfitError for documents that can't be followed or read any more."""
    for column in (n for n in DOCUMENTS.names if n in given.schema.names):
        if column not in made.schema.names:
            raise MisfitError(f"{name}: returned documents without the column {column!r}")
        kind = given[column].type
        if column in _IDENTITY and not made[column].cast(kind).equals(given[column]):
            raise MisfitError(f"{name}: changed the column {column!r}, which tells documents apart")
        if column == "text" and made[column].null_count > given[column].null_count:
            raise MisfitError(f"{name}: returned a document without a text")


#: Columns by which decisions about a document are found again.
_IDENTITY = ("id", "source")
_EXPECTED = "not Judged, RecordBatch, Verdicts, or true and false"


def _of_judged(
    judged: Judged, batch: pa.RecordBatch, stage: str
) -> tuple[pa.RecordBatch, Verdicts]:
    rows = batch.num_rows
    for column, values in judged.columns.items():
        kind = batch.schema.field(column).type if column in batch.schema.names else None
        batch = with_column(batch, column, _repeated(values, rows, kind))
    reasons = _repeated(judged.reason, rows, pa.string())
    removed = np.asarray(reasons.is_valid())
    names = [n if n is None or "." in n else f"{stage}.{n}" for n in reasons.to_pylist()]
    value = _only(_repeated(judged.value, rows, pa.float64()), removed)
    threshold = _only(_repeated(judged.threshold, rows, pa.float64()), removed)
    return batch, Verdicts(pa.array(names, pa.string()), value, threshold)


def _only(values: pa.Array, wanted: Any) -> pa.Array:
    return pa.array(values.to_numpy(zero_copy_only=False), from_pandas=True, mask=~wanted)


def _repeated(values: Any, rows: int, kind: pa.DataType | None) -> pa.Array:
    """As `_as_array`, but None gives nulls, and a single value is repeated."""
    if values is None:
        return pa.nulls(rows, kind or pa.null())
    return _as_array([values] * rows if isinstance(values, _SINGLE) else values, rows, kind)


_SINGLE = bool | int | float | str | bytes | np.generic


def _as_array(values: Any, rows: int, kind: pa.DataType | None) -> pa.Array:
    """Return values as an array of the type. Raises ValueError unless there is one for each row."""
    if values is None or isinstance(values, _SINGLE):
        raise MisfitError(f"returned {type(values).__name__}, not a value for each document")
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        values = pa.array(values, from_pandas=True)
    if len(values) != rows:
        raise MisfitError(f"{len(values)} values for {rows} documents")
    return values if kind is None or values.type == kind else values.cast(kind)


def judge_all(
    function: Callable[[pa.RecordBatch], Any], batch: pa.RecordBatch, stage: str, name: str
) -> tuple[pa.RecordBatch, Verdicts, list[Failure]]:
    """As `judge`, but remove documents on which the function raises, for `error.<stage>`."""
    parts: list[pa.RecordBatch] = []
    verdicts = [Verdicts.keep_all(0)]
    failures: list[Failure] = []
    for part, row, answer in attempt(lambda b: judge(function, b, stage, name), batch):
        if isinstance(answer, BaseException):
            failures.append(Failure(row, f"{name}: {told(answer)}"))
            answer = part, Verdicts.where(np.ones(1, bool), f"error.{stage}")
        parts.append(answer[0])
        verdicts.append(answer[1])
    tables = [pa.Table.from_batches([part]) for part in parts or [batch]]
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return (whole.to_batches() or parts or [batch])[0], Verdicts.concatenated(verdicts), failures


def answer_all(
    function: Callable[[Any], Any], texts: pa.Array, name: str, kind: pa.DataType
) -> tuple[pa.Array, list[Failure]]:
    """Return a value of the type for each text; null where the function raises.

    It gets a `pyarrow.Array` of strings if its parameter is annotated so, else a list.
    """
    wants_arrow = _wants_arrow(function)
    batch = pa.RecordBatch.from_arrays([texts], ["text"])
    parts = [pa.nulls(0, kind)]
    failures: list[Failure] = []

    def answered(part: pa.RecordBatch) -> pa.Array:
        given = part.column(0) if wants_arrow else part.column(0).to_pylist()
        return _as_array(function(given), part.num_rows, kind)

    for _, row, answer in attempt(answered, batch):
        if isinstance(answer, BaseException):
            failures.append(Failure(row, f"{name}: {told(answer)}"))
            answer = pa.nulls(1, kind)
        parts.append(answer)
    return pa.concat_arrays(parts), failures


def error_verdicts(failures: Sequence[Failure], rows: int, stage: str) -> Verdicts:
    """Remove the documents that failed, for `error.<stage>`."""
    failed = np.zeros(rows, bool)
    failed[[failure.row for failure in failures]] = True
    return Verdicts.where(failed, f"error.{stage}")


def _wants_arrow(function: Callable[..., Any]) -> bool:
    plain = function.func if isinstance(function, functools.partial) else function
    called = plain if inspect.isroutine(plain) else type(plain).__call__
    kinds = [p.annotation for p in inspect.signature(called).parameters.values()]
    return any(kind is pa.Array or kind in ("pa.Array", "pyarrow.Array") for kind in kinds)


def attempt(
    function: Callable[[pa.RecordBatch], T], batch: pa.RecordBatch
) -> Iterator[tuple[pa.RecordBatch, int, T | BaseException]]:
    """Yield (documents, row of the first, answer), in order, dividing the batch at failures.

    A batch on which the function raises is halved until each failing document is alone: k of them
    in n documents take O(k log n) more calls. The answer for such a document is the exception. It
    is for all documents where an answer did not fit several of them, but fits each alone: a
    function that returns one value whatever it gets would seem right.
    """
    pending = [(batch, 0)]
    misfit: MisfitError | None = None
    found: list[tuple[pa.RecordBatch, int, T | BaseException]] = []
    while pending:
        part, row = pending.pop()
        answer: T | BaseException
        try:
            answer = function(part)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # such as asyncio's CancelledError, which is no Exception
            if not part.num_rows:
                continue  # no document failed
            if part.num_rows > 1:
                misfit = misfit or (error if isinstance(error, MisfitError) else None)
                half = part.num_rows // 2
                pending += [(part.slice(half), row + half), (part.slice(0, half), row)]
                continue
            answer = error
        found.append((part, row, answer))
    if misfit is not None and not any(isinstance(a, BaseException) for *_, a in found):
        found = [(batch.slice(row, 1), row, misfit) for row in range(batch.num_rows)]
    yield from found
