"""Run the stages of a recipe on a small table in memory, with the decisions of `curate run`.

The table counts as one file. Indexes of earlier runs are not supported, and tokens are not packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError
from curation.language.verdicts import with_language
from curation.memory_steps import step_of
from curation.recipe import Recipe, check_order, load, stage_names
from curation.schema import CLUSTER_SIZE, VALUE_TEXT, Verdicts
from curation.stages import find
from curation.stages.read_tables import needs_languages
from curation.table_documents import documents_of, written
from curation.tables import Given, as_given, combined


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
    are unchanged, except for texts that a stage edits.

    Args:
        recipe: name or path of a recipe, or a loaded one.
        table: texts, or a table with texts (columns as the recipe's `readers.text_columns` say) or
            pages (`readers.html_columns`). `id`, `url`, `date` and `source` are used where they
            are. A document without `id` gets one from its row.
        stages: some of the recipe's stages, `"a,b"` or a list; all if not given.
        assignments: `key.path=value`, as after `--set`.

    Raises ConfigError for a recipe that is wrong, or that names an index of an earlier run;
    InputError for a table without texts.
    """
    loaded = load(recipe, assignments) if isinstance(recipe, str) else recipe
    chosen = [s for s in (stage_names(stages) or loaded.stages) if not find(s).is_sink]
    check_order(loaded, chosen)
    for stage in chosen:
        _refuse_indexes(stage, loaded)
    given = as_given(table)
    first = documents_of(given, loaded, chosen)
    batch = first
    described = [find(stage) for stage in chosen]
    if described[0].makes is None:  # it is no table of pages
        if needs_languages(loaded, described):
            batch = with_language(first, loaded.identify_language)
        check_order(loaded, chosen, batch.schema.names)
    rows = np.arange(given.table.num_rows)
    removed: list[tuple[npt.NDArray[np.int64], pa.RecordBatch, str, Verdicts]] = []
    for stage in chosen:
        batch, found = step_of(stage, given.table)(batch, loaded)
        kept = found.kept
        stays = kept.to_numpy(zero_copy_only=False)
        lost = pc.invert(kept)
        removed.append((rows[~stays], batch.filter(lost), stage, found.filter(lost)))
        rows, batch = rows[stays], batch.filter(kept)
    documents = given.taken(rows, written(given, loaded, first, rows, batch))
    return Curated(documents, _lost(given, loaded, first, removed))


def _refuse_indexes(stage: str, recipe: Recipe) -> None:
    index = getattr(recipe.settings(stage), "index", None)
    if index is not None and index.against:
        raise ConfigError(f"{stage}.index.against: only `curate run` compares with earlier runs")


def _sizes(found: Verdicts) -> pa.Array:
    none = pa.nulls(len(found.reason), pa.int64())
    return none if found.cluster_size is None else found.cluster_size


def _lost(
    given: Given,
    recipe: Recipe,
    first: pa.RecordBatch,
    removed: Sequence[tuple[npt.NDArray[np.int64], pa.RecordBatch, str, Verdicts]],
) -> Any:
    """Return the removed rows in the order of the table, with their verdicts."""
    parts = [pa.table({"row": pa.array([], pa.int64())})]
    for rows, batch, stage, found in removed:
        columns = {
            "row": pa.array(rows, pa.int64()),
            **dict(zip(batch.schema.names, batch.columns, strict=True)),
            "stage": pa.array([stage] * len(rows), pa.string()),
            "reason": found.reason,
            "value": found.value,
            "threshold": found.threshold,
            "kept_id": found.kept_id,
            CLUSTER_SIZE: _sizes(found),
        }
        if found.value_text is not None:
            columns[VALUE_TEXT] = found.value_text
        parts.append(pa.table(columns))
    table = pa.concat_tables(parts, promote_options="default").sort_by("row").combine_chunks()
    rows = table["row"].to_numpy()
    names = table.column_names[1:]
    batch = pa.RecordBatch.from_arrays([combined(table, name) for name in names], names=names)
    return given.taken(rows, written(given, recipe, first, rows, batch))
