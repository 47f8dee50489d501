"""Read items of evaluation sets from files in common formats.

JSONL, JSON (a list of items), Parquet, CSV and TSV, also as .gz or .zst. A field is a path of keys
and positions, `choices.text` or `spans.0`; several are tried in order. Outputs that
lm-evaluation-harness logs (`doc`, `doc_id`, `target`) are read through: the fields are those of
`doc`. Files of decon have `question`, `answer` and `passage`, and one row for each answer.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from curation.decontaminate.decontaminate_settings import COMMON, EvalSettings, Fields, load_mapping
from curation.errors import ConfigError, InputError
from curation.readers.raw import RawFile
from curation.readers.rows import Content, csv_rows, json_rows, sound_row
from curation.readers.suffixes import without_compression
from curation.readers.tables import SAMPLE
from curation.text.surrogates import everywhere

Row = Mapping[str, Any]
_LETTERS, _DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
#: Most fields that an error names.
_NAMES_SHOWN = 12
#: Longest row, in characters.
_LONGEST = 1 << 24


class Item(NamedTuple):
    """One item. Parts that it lacks are empty."""

    set: str
    id: str
    question: str
    choices: tuple[str, ...] = ()
    answer: str = ""
    passage: str = ""


def read_items(name: str, paths: Iterable[str], fields: Fields | None = None) -> Iterator[Item]:
    """Yield the items of a set. Raises InputError, naming file and row or field.

    Ids that rows share, as rows of several files do, get a number: `7`, `7#2`.
    """
    ids = Counter[str]()
    for path in paths:
        found, names = False, Counter[str]()
        for number, row in enumerate(_rows(path)):
            item = item_of(name, row, fields or COMMON, str(number))
            if item.question:
                found = True
                ids[item.id] += 1
                again = ids[item.id] > 1
                yield item._replace(id=f"{item.id}#{ids[item.id]}") if again else item
            elif not found:
                names.update(map(str, row))
        if not found:
            wanted = ", ".join((fields or COMMON).question)
            there = ", ".join(name for name, _ in names.most_common(_NAMES_SHOWN))
            has = f"; rows have: {there}" if there else ""
            raise InputError(f"{path}: no row has a question in any of: {wanted}{has}")


def check_fields(name: str, settings: EvalSettings) -> None:
    """Read each file of a set up to its first question. Raises ConfigError if it has none."""
    fields = fields_of(settings)
    for i, path in enumerate(settings.files):
        try:
            next(read_items(name, [path], fields), None)
        except InputError as error:
            raise ConfigError(f"decontaminate.evals.{name}.files[{i}]: {error}") from None


def fields_of(settings: EvalSettings) -> Fields | None:
    """Return the fields that a set's mapping or its own settings name. Raises ConfigError."""
    return load_mapping(settings.mapping).fields if settings.mapping else settings.fields


def item_of(name: str, row: Row, fields: Fields, number: str) -> Item:
    """Return the item in a row; its question is empty if the row has none."""
    target = None
    if isinstance(row.get("doc"), Mapping) and "doc_id" in row:  # lm-evaluation-harness
        number, target, row = str(row["doc_id"]), row.get("target"), row["doc"]
    choices = _choices(row, fields.choices)
    answer = _answer(row, fields, choices)
    also = (_at(row, name) for name in fields.also)
    return Item(
        name,
        _text(_first(row, fields.id)) or number,
        "\n".join(filter(None, map(_text, [_first(row, fields.question), *also]))),
        choices,
        answer or _text(target),
        _text(_first(row, fields.passage)),
    )


def _at(value: Any, path: str) -> Any:
    if isinstance(value, Mapping) and path in value:  # names may have dots and blanks
        return value[path]
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, Sequence) and not isinstance(value, str) and key.isdigit():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            return None
    return value


def _first(row: Row, names: Sequence[str]) -> Any:
    found = (_at(row, name) for name in names)
    return next((value for value in found if value not in (None, "", [], {})), None)


def _text(value: Any) -> str:
    """Return a value as text; the parts of a list on separate lines."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "\n".join(filter(None, map(_text, value)))
    return str(value)


def _choices(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    values = [_at(row, name) for name in names]
    lists = (_list(value) for value in values if not isinstance(value, str))
    texts = tuple(value for value in values if isinstance(value, str) and value)
    return next(filter(None, lists), texts)


def _list(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        value = value.get("text") or [v for _, v in sorted(value.items())]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(_text(v.get("text") if isinstance(v, Mapping) else v) for v in value)


def _answer(row: Row, fields: Fields, choices: Sequence[str]) -> str:
    value = _first(row, fields.answer)
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        value = value[0]  # several wordings of one answer
    if value not in choices:
        labels = _list(_first(row, fields.labels))
        place = labels.index(value) if value in labels else _place(value, fields.first)
        if place is not None and 0 <= place < len(choices):
            return choices[place]
    return _text(value)


def _place(value: Any, first: int) -> int | None:
    """Return the position of the choice that a letter, or a number from `first`, denotes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value - first
    text = value.strip(" ().").upper() if isinstance(value, str) else ""
    if len(text) == 1 and text in _LETTERS:
        return _LETTERS.index(text)
    return int(text) - first if len(text) == 1 and text in _DIGITS else None


def _rows(path: str) -> Iterator[Row]:
    with RawFile.open(path) as raw:
        plain = without_compression(path.partition("?")[0])
        reader = next((r for s, r in _READERS.items() if plain.endswith(s)), json_rows(_LONGEST))
        number = 0
        try:
            for found in reader(io.BufferedReader(Content(raw, plain), SAMPLE)):
                row = found[0] if isinstance(found, tuple) else found
                if not isinstance(row, Mapping):
                    raise ValueError(getattr(row, "detail", "not an object"))
                yield sound_row(row, "json")[0]
                number += 1
        except (ValueError, OSError, EOFError) as error:
            raise InputError(f"{path}: row {number + 1}: {error}") from error


def _read_json(file: IO[bytes]) -> Iterator[Any]:
    content = json.loads(file.read())
    if isinstance(content, Mapping):  # {"data": [...]}, {"examples": [...]}
        lists = [v for v in content.values() if isinstance(v, list)]
        content = lists[0] if len(lists) == 1 else [content]
    yield from content


def _read_parquet(file: IO[bytes]) -> Iterator[Any]:
    try:
        table = pq.ParquetFile(pa.BufferReader(file.read()))
        for batch in table.iter_batches(1024, use_threads=False):
            yield from everywhere(batch.to_pylist(), _as_text)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


_READERS: dict[str, Callable[[IO[bytes]], Iterator[Any]]] = {
    ".parquet": _read_parquet,
    ".csv": csv_rows(",;\t|", _LONGEST),
    ".tsv": csv_rows("\t", _LONGEST),
    ".json": _read_json,
}
