"""Arrow's columns: strings as flat buffers for kernels, types of documents, sums by key."""

import contextlib
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.text.surrogates import everywhere, well_formed

Texts: TypeAlias = Sequence[str] | pa.Array | pa.ChunkedArray


class TextBuffers(NamedTuple):
    """UTF-8 texts end to end: text i is `data[offsets[i]:offsets[i + 1]]`.

    A null text is empty.
    """

    offsets: npt.NDArray[np.int64]  # [n + 1]
    data: npt.NDArray[np.uint8]  # [bytes]

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.offsets) - 1


def large_strings(texts: Texts) -> pa.Array:
    """Return one contiguous large_string array of Python strings or any Arrow string array.

    NaN, as pandas has it, is null. Lone surrogates, invalid in UTF-8, become U+FFFD. Raises
    TypeError for a single string.
    """
    if isinstance(texts, str | bytes):
        raise TypeError(
            "texts: expected a sequence of strings or an Arrow array, "
            f"not {type(texts).__name__} (put a single text into a list)"
        )
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.cast(pa.large_string()).combine_chunks()
    if isinstance(texts, pa.Array):
        return texts if texts.type == pa.large_string() else texts.cast(pa.large_string())
    strings = list(texts)
    try:
        return pa.array(strings, pa.large_string(), from_pandas=True)
    except UnicodeEncodeError:
        whole = [well_formed(text) if isinstance(text, str) else text for text in strings]
        return pa.array(whole, pa.large_string(), from_pandas=True)


def text_buffers(texts: Texts) -> TextBuffers:
    """View texts as offsets and bytes without copying (nulls and slices are handled).

    Both are read-only, whatever they are views of: a kernel is compiled for each kind of array.
    """
    array = large_strings(texts)
    if array.null_count:
        array = array.fill_null("")
    _, offsets_buffer, data_buffer = array.buffers()
    if offsets_buffer is None:
        offsets_buffer = pa.py_buffer(np.zeros(1, np.int64))
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.zeros(0, np.uint8)
    return TextBuffers(read_only(offsets), read_only(data))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of an array that can't be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def repeated(counts: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return i `counts[i]` times, for each i, and 0, 1, ... within each: int64 [sum] each."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return owners, np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)


def stable_order(keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the order of 64-bit integers [n] that `argsort(kind="stable")` gives, much sooner.

    Values are sorted that have a row's number in their low bits. If that leaves no room for whole
    keys, those that agree in what there is are sorted again.
    """
    bits, least = len(keys).bit_length(), keys.min(initial=np.iinfo(keys.dtype).max)
    packed = (keys - least).view(np.uint64)
    lost = max(0, int(packed.max(initial=0)).bit_length() + bits - 64)
    packed = packed >> lost << bits | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64((1 << bits) - 1)).view(np.int64)
    if lost:
        same = np.diff(packed >> bits) == 0
        tied = np.append(same, False) | np.insert(same, 0, False)
        order[tied] = order[tied][np.argsort(keys[order[tied]], kind="stable")]
    return order


def divided(offsets: npt.NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Divide texts into runs [first, last) of about `size` bytes, at least one text each."""
    ranges = []
    first, texts = 0, len(offsets) - 1
    while first < texts:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), texts)
        ranges.append((first, last))
        first = last
    return ranges


def from_buffers(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.Array:
    """Return a large_string array over buffers; `data` must be valid UTF-8 at every offset."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    data = np.ascontiguousarray(data, np.uint8)
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
    )


def cut_out(
    texts: TextBuffers, rows: npt.NDArray[np.int64], spans: npt.NDArray[np.int64]
) -> tuple[pa.Array, pa.Array]:
    """Return texts without some spans, and the text of each span: large_string each.

    Args:
        rows: [spans] the text of each.
        spans: [spans, 2] bytes of `texts.data` that begin and end a character; ascending, disjoint.

    Raises ValueError, naming the text, for spans that are not within theirs, or not disjoint.
    """
    offsets, data = texts
    if not len(spans):  # what is known of places in the texts stays true
        return from_buffers(*texts), pa.array([], pa.large_string())
    apart = np.stack([offsets[rows], *spans.T, offsets[rows + 1]])
    apart[0, 1:] = np.maximum(apart[0, 1:], spans[:-1, 1])
    if len(wrong := np.flatnonzero((np.diff(apart, axis=0) < 0).any(0))):
        raise ValueError(f"text {rows[wrong[0]]}: a cut outside it, or within one before")
    edges = np.concatenate([offsets[:1], spans.reshape(-1), offsets[-1:]])
    sizes, view = np.diff(edges), memoryview(data)  # type: ignore[arg-type]
    pieces = [view[a:b] for a, b in itertools.pairwise(edges.tolist())]
    here, gone = (np.frombuffer(b"".join(pieces[k::2]), np.uint8) for k in (0, 1))
    lost = np.bincount(rows, sizes[1::2], len(texts)).astype(np.int64)
    new_offsets = np.concatenate([[0], np.cumsum(np.diff(offsets) - lost)])
    cut_offsets = np.concatenate([[0], np.cumsum(sizes[1::2])])
    return from_buffers(new_offsets, here), from_buffers(cut_offsets, gone)


def line_spans(
    texts: TextBuffers,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where lines begin and end in `texts.data`, feeds excluded, and the first of each text.

    Lines are what line feeds separate; an empty text has none. int64 [lines], [lines], [texts + 1].
    """
    offsets, data = texts
    feeds = np.flatnonzero(data[offsets[0] : offsets[-1]] == ord("\n")) + offsets[0]
    filled = np.diff(offsets) > 0
    before = np.searchsorted(feeds, offsets)
    firsts = np.concatenate([[0], np.cumsum(np.diff(before) + filled)])
    ends = np.insert(feeds, before[1:][filled], offsets[1:][filled])
    starts = np.append(offsets[:1], ends + 1)[:-1]
    starts[firsts[:-1][filled]] = offsets[:-1][filled]
    return starts, ends, firsts


#: Most levels of nesting in a column; Arrow's streams have 64 at most.
_DEEPEST = 32
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_LARGE = (pa.types.is_large_list, pa.types.is_large_list_view)
_LISTS = (pa.types.is_list, pa.types.is_list_view, pa.types.is_fixed_size_list, *_LARGE)
_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def _is_one(kind: pa.DataType, tests: Sequence[Any]) -> bool:
    return any(test(kind) for test in tests)


def storable(kind: pa.DataType, settled: bool = True, level: int = 0) -> pa.DataType | None:
    """Return the type that a column has in documents; None if it must be JSON.

    That is so of unions, intervals and structs without fields, which Parquet lacks, of structs with
    two fields of one name, and of what is nested very deep. pyarrow can't read fixed-size lists
    with nulls that it wrote, has no kernels for views and runs, and wrong ones for nulls in lists:
    these are strings, unless other values of the column may still say what they are (`settled`).
    """
    if level > _DEEPEST or pa.types.is_union(kind) or pa.types.is_interval(kind):
        return None
    if pa.types.is_null(kind):
        return pa.string() if settled and level else kind
    if pa.types.is_run_end_encoded(kind) or pa.types.is_dictionary(kind):
        return storable(kind.value_type, settled, level)
    if isinstance(kind, pa.BaseExtensionType):
        given = storable(kind.storage_type, settled, level)
        return kind if given == kind.storage_type else given
    fields = [kind.key_field, kind.item_field] if pa.types.is_map(kind) else []
    fields += [kind.value_field] if _is_one(kind, _LISTS) else []
    fields += list(kind) if pa.types.is_struct(kind) else []
    inner = [storable(field.type, settled, level + 1) for field in fields]
    if None in inner or (pa.types.is_struct(kind) and len({*kind.names}) < max(1, len(fields))):
        return None
    found = [field.with_type(k) for field, k in zip(fields, inner, strict=True)]
    if pa.types.is_struct(kind):
        return pa.struct(found)
    if pa.types.is_map(kind):
        return pa.map_(*found)
    if fields:
        return pa.large_list(*found) if _is_one(kind, _LARGE) else pa.list_(*found)
    return _VIEWS.get(kind, kind)


def is_sound(column: pa.Array) -> bool:
    """Return whether all strings in a column are UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def stored(column: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """Return a column in the type that `storable` gave, with U+FFFD for what is not UTF-8."""
    if kind is None:
        return pa.array([as_text(value) for value in column], pa.string())
    if pa.types.is_dictionary(column.type):
        return stored(column.dictionary, kind).take(column.indices)
    if not is_sound(column):
        data = column.view(as_bytes(column.type)).to_pylist()
        return pa.array([everywhere(value, _decoded) for value in data], kind)
    with contextlib.suppress(pa.ArrowNotImplementedError):
        found = column if column.type == kind else column.cast(kind)
        if found is column or is_sound(found):  # of views and nulls in lists it may not be
            return found
    return pa.array(column.to_pylist(), kind)


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def as_bytes(kind: pa.DataType) -> pa.DataType:
    """Return a type with bytes in place of strings."""
    if kind in _BYTES:
        return _BYTES[kind]
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(as_bytes(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(as_bytes(kind.key_type), as_bytes(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.large_list if pa.types.is_large_list(kind) else pa.list_
        return make(kind.value_field.with_type(as_bytes(kind.value_type)))
    return kind


def as_json(value: Any) -> str:
    """Return one line of JSON, keys sorted."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def plain(value: Any, finite: bool = True) -> Any:
    """Return a value, maybe a scalar of Arrow, as what JSON has: dates as text.

    NaN and infinities, which Python's JSON has and others lack, are None if `finite`.
    """
    if isinstance(value, pa.Scalar):
        if pa.types.is_temporal(value.type) and not pa.types.is_interval(value.type):
            value = pc.cast(value, pa.string())
        try:
            value = value.as_py()
        except ValueError:  # fields of one name
            value = str(value)
    if isinstance(value, dict):
        return {str(k): plain(v, finite) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v, finite) for v in value]
    return None if finite and isinstance(value, float) and not math.isfinite(value) else value


def as_text(value: Any) -> str | None:
    """Return a value as text: a string as it is, others as JSON, also NaN and infinities."""
    value = plain(value, finite=False)
    return value if value is None or isinstance(value, str) else as_json(value)


_WAITING = 1 << 18  # rows


def summed(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    keys: Sequence[str],
    sums: Sequence[str],
    least: Sequence[str] = (),
) -> pa.Table:
    """Return a row of `schema` for each key, in the order in which keys come.

    It has the sums of the columns `sums` and the least values of the columns `least`.
    """
    wanted = [*((name, "min") for name in least), *((name, "sum") for name in sums)]

    def added(held: pa.Table, more: list[pa.RecordBatch]) -> pa.Table:
        table = pa.concat_tables([held, pa.Table.from_batches(more, schema)])
        found = table.group_by([*keys], use_threads=False).aggregate(wanted)
        names = [name.removesuffix("_min").removesuffix("_sum") for name in found.column_names]
        return found.rename_columns(names).select(schema.names).cast(schema)

    held, waiting, rows = schema.empty_table(), list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows > max(_WAITING, held.num_rows):  # sums of doubling size: linear in all
            held, waiting, rows = added(held, waiting), [], 0
    return added(held, waiting)
