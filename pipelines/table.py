"""Run a recipe on a table in memory: as `curate run` on a file with its rows, in this process.

Files lie in a temporary folder. Named `curation.run`.
"""

import functools
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from curation.arrow import storable, stored
from curation.columns import PAGE_COLUMNS
from curation.errors import ConfigError, CurationError
from curation.recipe import STAGES, Recipe, check_order, load, stage_names
from curation.schema import CLUSTER_SIZE, DOCUMENTS, REMOVED_FIELDS, VERDICT_COLUMNS
from curation.stages import find
from curation.stages.read_tables import needs_languages
from curation.tables import Given, as_given, combined, first_column, known, texts_of
from pipelines.plan import Plan, plan
from pipelines.run import run_stages
from pipelines.runners.execute import Executor, RunnerOptions
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest

#: Column of the documents with the number of their row in the caller's table.
_ROW = "curation_row"


@dataclass(frozen=True)
class Curated:
    """The result for a table: every row is either kept or removed, in the order of the table.

    Both have the columns of the table and those that stages added, as in a run folder. `removed`
    also has `stage`, `reason`, `value`, `threshold`, `kept_id` and `cluster_size`, and `value_text`
    after a stage whose values are texts. Both are of the same library as the input: Arrow, pandas
    or polars.
    """

    documents: Any
    removed: Any


def run(
    recipe: str | Recipe,
    table: Any,
    *,
    stages: str | Sequence[str] = (),
    assignments: Sequence[str] = (),
) -> Curated:
    """Run the stages of a recipe, except `tokenize`, on a table in memory.

    The decisions are those of `curate run` on one file with these rows. The table's own columns
    are unchanged, except for what a stage edits or makes anew.

    Args:
        recipe: name or path of a recipe, or a loaded one.
        table: texts, or a table with texts (columns as the recipe's `readers.text_columns` say) or
            pages (`readers.html_columns`). `id`, `url`, `date` and the labels that stages read are
            used where they are. A document without `id` gets one from its row.
        stages: some of the recipe's stages, `"a,b"` or a list; all if not given.
        assignments: `key.path=value`, as after `--set`.

    Raises ConfigError for a recipe that is wrong; InputError for a table without texts, WorkerError
    where code of the user's own fails on all documents.
    """
    loaded = load(recipe, assignments) if isinstance(recipe, str) else recipe
    chosen = _chosen(stages, loaded)
    check_order(loaded, chosen)
    given = as_given(table)
    handed = _handed(given.table, loaded)
    has_languages = needs_languages(loaded, [find(stage) for stage in chosen])
    present = {*handed.column_names, *DOCUMENTS.names, *(["language"] if has_languages else [])}
    check_order(loaded, chosen, present)
    if not handed.num_rows:
        none = {field.name: pa.array([], field.type) for field in REMOVED_FIELDS}
        rows = np.zeros(0, np.int64)
        return Curated(given.taken(rows, {}), given.taken(rows, none))
    every = loaded.read_tables.model_copy(update={"columns": None})
    loaded = loaded.model_copy(update={"read_tables": every})
    with tempfile.TemporaryDirectory(prefix="curation-table-") as folder:
        file = f"{folder}/table.parquet"
        pq.write_table(handed, file, compression="none")
        try:
            work = plan(loaded, f"{folder}/run", [file], chosen, sync=False)
            with Executor(RunnerOptions()) as executor:
                run_stages(work, executor, strict=False)
        except CurationError as error:
            error.args = (str(error).replace(f"{folder}/", ""), *error.args[1:])
            raise
        return _result(given, work)


def _chosen(stages: str | Sequence[str], recipe: Recipe) -> list[str]:
    """Return the stages that a call names, or else the recipe's, without `tokenize`."""
    named = stage_names(stages)
    if not named and (stages or isinstance(stages, str)):
        raise ConfigError("stages: names no stage")
    chosen = [s for s in named or recipe.stages if not find(s).is_sink]
    if not chosen:
        raise ConfigError("stages: nothing to do here: these stages only write files for training")
    return chosen


def _handed(table: pa.Table, recipe: Recipe) -> pa.Table:
    """Return the table as stages read it, with the numbers of its rows.

    Rows without a text have an empty one. Raises InputError if the table has no texts.
    """
    columns: dict[str, pa.Array] = {_ROW: pa.array(np.arange(table.num_rows))}
    for i, name in enumerate(table.column_names):
        column = combined(table.select([i]), name)
        columns.setdefault(name, stored(column, storable(column.type)))
    places = (f"table\0{row}\0".encode() for row in range(table.num_rows))
    ids = pa.array([xxhash.xxh3_128_hexdigest(place) for place in places], pa.string())
    own = known(table, "id")
    columns["id"] = ids if own is None else pc.coalesce(own.cast(pa.string()), ids)
    readers = recipe.readers
    name, html = (first_column(table, n) for n in (readers.text_columns, readers.html_columns))
    if name is not None or html is None:
        texts = texts_of(table, readers.text_columns)
        columns[name or ""] = texts  # there is a name, or `texts_of` raises
    sources = [c for c in readers.contents if c in columns]
    absent = functools.reduce(pc.and_, (pc.is_null(columns[c]) for c in sources))
    if pc.any(absent).as_py():
        column = columns[sources[0]]
        kind = pa.string() if pa.types.is_null(column.type) else column.type
        columns[sources[0]] = pc.if_else(absent, pa.scalar("", kind), column.cast(kind))
    return pa.table(columns)


def _result(given: Given, work: Plan) -> Curated:
    described = [find(stage) for stage in work.stages]
    made = {name for s in described for name in s.adds_of(work.recipe.section(s))}
    made |= {*VERDICT_COLUMNS, *(PAGE_COLUMNS if "extract" in work.stages else ())}
    has_code = any(stage not in STAGES for stage in work.stages)
    kept = _read(work.output / work.stages[-1], "documents")
    parts = [_read(work.output / stage, "removed") for stage in work.stages]
    parts.append(_unreadable(work, [kept, *parts]))
    removed = pa.concat_tables(parts, promote_options="permissive")
    if CLUSTER_SIZE not in removed.column_names:
        removed = removed.append_column(CLUSTER_SIZE, pa.nulls(removed.num_rows, pa.int64()))
    tables = (_taken(given, work.recipe, table, made, has_code) for table in (kept, removed))
    return Curated(*tables)


def _read(place: Folder, kind: str) -> pa.Table:
    files = files_of(read_manifest(place), kind)
    tables = [pq.ParquetFile(place.path(name)).read() for name in files]
    return pa.concat_tables(tables or [pa.table({_ROW: pa.array([], pa.int64())})])


def _unreadable(work: Plan, accounted: Sequence[pa.Table]) -> pa.Table:
    """Return rows that the first stage could not read as removed ones."""
    aside = _read(work.output / work.stages[0], "set_aside")
    if not aside.num_rows:
        return aside.select([])
    rows = pc.struct_field(aside["source"].combine_chunks(), "offset")
    others = pa.concat_tables([table.select([_ROW]) for table in accounted])[_ROW]
    table = pa.table({_ROW: rows, "reason": aside["reason"]})
    table = table.append_column("stage", pa.array([work.stages[0]] * table.num_rows, pa.string()))
    return table.filter(pc.invert(pc.is_in(rows, others)))


def _taken(
    given: Given, recipe: Recipe, table: pa.Table, made: Collection[str], has_code: bool
) -> Any:
    """Return rows of the caller's table with what stages made or changed in them.

    Args:
        table: the documents.
        made: names of columns that stages made.
        has_code: whether a stage was the user's own, which may change any column.
    """
    table = table.sort_by(_ROW)
    rows = combined(table, _ROW)
    own = given.table.take(rows)
    columns = dict(_changed_text(own, table, first_column(own, recipe.readers.text_columns)))
    renamed = {f"own_{name}" for name in own.column_names}
    for name in table.column_names:
        column = combined(table, name)
        if name in (_ROW, "text", "url", "date", "source") or name in renamed:
            continue
        if name not in own.column_names:
            wanted = name != "title" or pc.any(pc.not_equal(column, "")).as_py()
        elif name in DOCUMENTS.names or name == "language":
            wanted = name in made or own[name].null_count > 0
        else:
            wanted = name in made or f"own_{name}" in table.column_names
            wanted = wanted or (has_code and not _is_as_given(column, combined(own, name)))
        if wanted:
            columns[name] = column
    return given.taken(rows.to_numpy(), columns)


def _changed_text(own: pa.Table, table: pa.Table, name: str | None) -> Mapping[str, pa.Array]:
    """Return the texts, by the column that they belong in, unless they are as they were given."""
    if "text" not in table.column_names:
        return {}
    texts = combined(table, "text")
    if name is None:
        return {"text": texts}
    before = combined(own, name)
    if stored(before, texts.type).fill_null("").equals(texts):
        return {}
    found = texts if pa.types.is_dictionary(before.type) else texts.cast(before.type)
    nothing = pc.and_(pc.is_null(before), pc.equal(pc.binary_length(texts), 0))
    return {name: pc.if_else(nothing, None, found)}


def _is_as_given(column: pa.Array, own: pa.Array) -> bool:
    kind = storable(own.type)
    return bool(column.type == kind and column.equals(stored(own, kind)))
