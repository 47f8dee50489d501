"""The contamination table: how much of every evaluation set and item occurs in documents.

An item is *dirty* if a document contains one of the acting parts (by default the question) at or
above the threshold; *touched* if it contains less of one, or another part; *undetectable* if
nothing was found and those parts are too short or too common to be; else *clean*.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: A row for each item, or for each item and input that it occurs in.
OVERLAP = pa.schema(
    [
        ("stage", pa.string()),
        ("input", pa.string()),  # empty: all of them
        ("set", pa.string()),
        ("item", pa.string()),
        ("state", pa.string()),  # of SHARES
        ("exact", pa.float32()),  # greatest share of the tokens in equal n-grams
        ("fuzzy", pa.float32()),  # greatest score of an alignment
        ("documents", pa.int64()),  # that make it touched or dirty
    ]
)
#: Shares of a set's items.
SHARES = ("clean", "touched", "dirty", "undetectable")
_BY_ITEM = ["set", "item"]


def overlap(
    stage: str,
    items: pa.Table,
    detectable: npt.NDArray[np.bool_],
    found: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    parts: Mapping[str, Sequence[str]],
) -> pa.Table:
    """Return the rows (OVERLAP) of one stage's documents.

    `items` has columns `set` and `id`, `detectable` a flag for each; `found` is what the documents
    hold (`judge.FOUND`); `parts` are those that act, by set.
    """
    table = pa.Table.from_batches(list(found), schema)
    pairs = pa.array([f"{part} {name}" for name, some in parts.items() for part in some])
    acting = pc.is_in(pc.binary_join_element_wise(table["part"], table["set"], " "), pairs)
    acts = pc.and_(acting, pc.not_equal(table["action"], "touched"))
    table = table.append_column("acts", pc.cast(acts, pa.int8()))
    every = pa.table(
        {
            "set": pc.cast(items["set"], pa.string()),
            "item": items["id"],
            "order": np.arange(len(items)),
            "detectable": detectable,
        }
    )
    rows = [_rows(stage, "", every, table)]
    for name in sorted(set(table["input"].to_pylist()) - {""}):
        rows.append(_rows(stage, name, every, table.filter(pc.equal(table["input"], name))))
    return pa.concat_tables(rows)


def _rows(stage: str, name: str, every: pa.Table, found: pa.Table) -> pa.Table:
    grouped = found.group_by(_BY_ITEM).aggregate(
        [("acts", "max"), ("exact", "max"), ("score", "max"), ("id", "count_distinct")]
    )
    joined = every.join(grouped, _BY_ITEM).sort_by("order")
    acts = pc.fill_null(joined["acts_max"], -1)
    cases = pc.make_struct(pc.equal(acts, 1), pc.equal(acts, 0), joined["detectable"])
    state = pc.case_when(cases, "dirty", "touched", "clean", "undetectable")
    columns = [
        *(pa.array([value] * len(joined), pa.string()) for value in (stage, name)),
        joined["set"],
        joined["item"],
        state,
        pc.fill_null(joined["exact_max"], 0),
        pc.fill_null(joined["score_max"], 0),
        pc.fill_null(joined["id_count_distinct"], 0),
    ]
    return pa.table(columns, schema=OVERLAP)


def summary(rows: pa.Table) -> list[dict[str, Any]]:
    """Return items and shares by stage, input and set, in the order in which they come.

    `exact` and `fuzzy` are means over all items of the set.
    """
    keys = ["stage", "input", "set"]
    for state in SHARES:
        rows = rows.append_column(state, pc.cast(pc.equal(rows["state"], state), pa.float64()))
    means = [(name, "mean") for name in (*SHARES, "exact", "fuzzy")]
    grouped = rows.group_by(keys, use_threads=False).aggregate(
        [("item", "count"), *means, ("documents", "sum")]
    )
    return [
        {key: row[key] for key in keys}
        | {"items": row["item_count"]}
        | {name: round(row[f"{name}_mean"], 4) for name, _ in means}
        | {"documents": row["documents_sum"]}
        for row in grouped.to_pylist()
    ]
