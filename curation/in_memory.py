"""The stages of a recipe on a small table in memory, with the decisions of `curate run`.

The table counts as one file. What depends on other data has no place here: indexes of earlier runs
are refused, and tokens are not packed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from curation.classify.classifier import Classifier
from curation.classify.decide import decide as decide_quality
from curation.dedup.buckets import Buckets, languages, lines_of
from curation.dedup.captures import capture_keys, capture_verdicts, choose_captures
from curation.dedup.documents import document_verdicts
from curation.dedup.lines import (
    frequent_lines,
    remove_lines,
    total_lines,
    verdicts,
    with_pages,
)
from curation.errors import ConfigError, InputError
from curation.extract.attempt import Failed, Refused, extract_page, wrong_length
from curation.filters.apply import load_filter
from curation.language.decide import decide as decide_language
from curation.language.identifier import LanguageIdentifier
from curation.mix.columns import narrow
from curation.mix.draw import draw
from curation.mix.thresholds import plan_tables
from curation.readers.headers import parse_date
from curation.readers.records import Page
from curation.recipe import Recipe, check_order, load
from curation.schema import DOCUMENTS, SOURCE, Verdicts, conformed, fits, with_column
from curation.tables import Given, as_given, combined, first_column, known, texts_of
from curation.tokenize.tokenizer import load_tokenizer

#: Documents that are looked at together by stages that decide each alone.
BATCH_ROWS = 512
#: Columns that a user may give and a later stage reads, with the stage that makes them.
_MADE_BY = {
    "language": "identify-language",
    "quality": "classify",
    "domain": "classify",
    "topic": "classify",
    "format": "classify",
}
_SOURCE_NAME = "table"


@dataclass(frozen=True)
class Curated:
    """What became of a table: every row is in one of the two, in the order of the table.

    Both have the columns of the table and those that stages added, as in a run folder. `removed`
    also has `stage`, `reason`, `value`, `threshold`, `kept_id` and `cluster_size`. Both are of the
    kind that was given: Arrow, pandas or polars.
    """

    documents: Any
    removed: Any


def run(
    recipe: str | Recipe,
    table: Any,
    *,
    stages: Sequence[str] = (),
    assignments: Sequence[str] = (),
) -> Curated:
    """Run the stages of a recipe on a table in memory, but for `tokenize`.

    The decisions are those of `curate run` on one file with these rows. The table's own columns
    stay as they are, but for texts that a stage edits.

    Args:
        recipe: name or path of a recipe, or one that was loaded.
        table: texts, or a table with texts (columns as the recipe's `readers.text_columns` say) or
            pages (`readers.html_columns`). `id`, `url`, `date` and `source` are used where they
            are. A document without `id` gets one from its row.
        stages: some of the recipe's stages; all if not given.
        assignments: `key.path=value`, as after `--set`.

    Raises ConfigError for a recipe that is wrong, or that names an index of an earlier run;
    InputError for a table without texts.
    """
    loaded = load(recipe, assignments) if isinstance(recipe, str) else recipe
    chosen = [s for s in (tuple(stages) or loaded.stages) if s != "tokenize"]
    check_order(chosen)
    for stage in chosen:
        _refuse_indexes(stage, loaded)
    given = as_given(table)
    first = _documents(given, loaded, chosen)
    rows, batch = np.arange(given.table.num_rows), first
    removed: list[tuple[npt.NDArray[np.int64], pa.RecordBatch, str, Verdicts]] = []
    for stage in chosen:
        batch, found = _STEPS[stage](batch, loaded, given.table)
        kept = found.kept
        stays = kept.to_numpy(zero_copy_only=False)
        lost = pc.invert(kept)
        removed.append((rows[~stays], batch.filter(lost), stage, _only(found, lost)))
        rows, batch = rows[stays], batch.filter(kept)
    documents = given.taken(rows, _written(given, loaded, first, rows, batch))
    return Curated(documents, _lost(given, loaded, first, removed))


def _refuse_indexes(stage: str, recipe: Recipe) -> None:
    index = getattr(recipe.settings(stage), "index", None)
    if index is not None and index.against:
        raise ConfigError(f"{stage}.index.against: only `curate run` compares with earlier runs")


def _documents(given: Given, recipe: Recipe, stages: Sequence[str]) -> pa.RecordBatch:
    """The columns of documents, and what a user gave that no stage will make."""
    table, readers, rows = given.table, recipe.readers, given.table.num_rows
    texts = pa.nulls(rows, pa.large_string())
    has_texts = first_column(table, readers.text_columns) is not None
    if has_texts or first_column(table, readers.html_columns) is None:
        texts = texts_of(table, readers.text_columns)
    if "extract" not in stages and texts.null_count:
        place = pc.index(pc.is_null(texts), True).as_py()
        raise InputError(f"row {place}: no text")
    columns: dict[str, pa.Array] = {
        "id": _ids(table),
        "url": _strings(table, readers.url_columns),
        "date": _dates(table, readers.date_columns),
        "text": texts.fill_null(""),
        "title": _strings(table, ("title",)),
        "source": _sources(table),
    }
    for name, stage in _MADE_BY.items():
        if stage not in stages and (column := known(table, name)) is not None:
            columns[name] = column
    return conformed(pa.RecordBatch.from_pydict(columns))


def _ids(table: pa.Table) -> pa.Array:
    """Ids as given, or of the place in the table."""
    own = known(table, "id")
    if own is not None:
        if own.null_count:
            raise InputError(f"row {pc.index(pc.is_null(own), True).as_py()}: no 'id'")
        return own.cast(pa.string())
    names = (f"{_SOURCE_NAME}\0{row}\0" for row in range(table.num_rows))
    return pa.array([xxhash.xxh3_128_hexdigest(n.encode()) for n in names], pa.string())


def _strings(table: pa.Table, names: Sequence[str]) -> pa.Array:
    name = first_column(table, names)
    column = (
        known(table, name)
        if name is not None and fits("url", table.schema.field(name).type)
        else None
    )
    if column is None:
        return pa.array([""] * table.num_rows, pa.string())
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()).fill_null("")


def _dates(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """Dates, or strings that say them; null where there are none."""
    kind = DOCUMENTS.field("date").type
    name = first_column(table, names)
    if name is None:
        return pa.nulls(table.num_rows, kind)
    column = combined(table, name)
    if fits("date", column.type):
        return column
    if fits("url", column.type):
        return pa.array([v and parse_date(v) for v in column.to_pylist()], kind)
    raise InputError(f"column {name!r} is {column.type}, not dates")


def _sources(table: pa.Table) -> pa.Array:
    own = known(table, "source")
    if own is not None and own.type == SOURCE:
        return own
    rows = table.num_rows
    files = pa.array([_SOURCE_NAME] * rows, pa.string())
    places = pa.array(np.arange(rows), pa.int64())
    return pa.StructArray.from_arrays([files, places], fields=list(SOURCE))


def _extract(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    """Extract pages where a row has one and no text; look at lengths."""
    readers, settings = recipe.readers, recipe.extract
    texts, titles = batch.column("text").to_pylist(), batch.column("title").to_pylist()
    name = first_column(table, readers.html_columns)
    pages = combined(table, name).to_pylist() if name is not None else [None] * len(texts)
    text_name = first_column(table, readers.text_columns)
    absent = np.ones(len(texts), bool)
    if text_name is not None:
        absent = table.column(text_name).is_null().to_numpy()
    reasons: list[Refused | Failed | None] = []
    for row, html in enumerate(pages):
        if not absent[row] or html is None:
            reasons.append(wrong_length(len(texts[row]), settings))
            continue
        answer = extract_page(settings, _page(html, batch.column("url")[row].as_py()))
        if isinstance(answer, Refused | Failed):
            reasons.append(answer)
            continue
        texts[row], titles[row] = answer.text, titles[row] or answer.title
        reasons.append(wrong_length(len(answer.text), settings))
    batch = with_column(batch, "text", pa.array(texts, pa.large_string()))
    batch = with_column(batch, "title", pa.array(titles, pa.string()))
    return batch, _refusals(reasons)


def _page(html: str | bytes, url: str) -> Page:
    content = html.encode() if isinstance(html, str) else html
    charset = "utf-8" if isinstance(html, str) else None
    return Page(url, None, "", 0, content, "html", charset, "text/html", None, None)


def _refusals(found: Sequence[Refused | Failed | None]) -> Verdicts:
    refused = [f if isinstance(f, Refused) else None for f in found]
    return Verdicts(
        pa.array(
            [f.reason if isinstance(f, Refused) else f and "extract.error" for f in found],
            pa.string(),
        ),
        pa.array([f and f.value for f in refused], pa.float64()),
        pa.array([f and f.threshold for f in refused], pa.float64()),
        pa.nulls(len(found), pa.string()),
    )


def _dedup_urls(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.dedup_urls
    keys = capture_keys(batch, np.arange(batch.num_rows, dtype=np.uint64), settings)
    alike = np.zeros(keys.num_rows, np.int64)
    removed, kept = choose_captures(keys, alike, settings.survivor.policy)
    gone, stays = keys.take(pa.array(removed)), keys.take(pa.array(kept))
    lost = capture_verdicts(gone.column("date").to_numpy(), stays.column("date").to_numpy())
    place = np.full(batch.num_rows, -1, np.int64)
    place[gone.column("number").to_numpy().astype(np.int64)] = np.arange(len(removed))
    take = pa.array(place, mask=place < 0)
    return batch, Verdicts(
        pa.array(lost.reason, pa.string()).take(take),
        pa.array(lost.value, pa.float64(), from_pandas=True).take(take),
        pa.array(lost.threshold, pa.float64(), from_pandas=True).take(take),
        stays.column("id").take(take),
    )


def _identify_language(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    identifier, texts = LanguageIdentifier(recipe.identify_language), batch.column("text")
    labels, scores = identifier.apply(texts)
    batch = with_column(batch, "language", labels)
    batch = with_column(batch, "language_score", scores)
    if recipe.identify_language.by_line:
        batch = with_column(batch, "languages", identifier.by_line(texts))
    return batch, decide_language(labels, scores, recipe.identify_language, texts)


def _dedup_documents(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.dedup_documents
    if settings.per_language:
        _check_languages(batch, "dedup-documents")
    return batch, document_verdicts(batch, settings)


def _check_languages(batch: pa.RecordBatch, stage: str) -> None:
    if "language" not in batch.schema.names:
        raise InputError(
            "no column 'language'; run identify-language first, or compare all languages "
            f"together with {stage}.per_language=false"
        )


def _classify(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    own = batch.column("language") if "language" in batch.schema.names else None
    found = Classifier(recipe.classify).apply(batch.column("text"), own)
    batch = with_column(batch, "quality", found.quality)
    if found.rank is not None:
        batch = with_column(batch, "quality_rank", found.rank)
    for name in ("domain", "topic", "format"):
        batch = with_column(batch, name, getattr(found, name))
    return batch, decide_quality(found, recipe.classify)


def _dedup_lines(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.dedup_lines
    if settings.per_language:
        _check_languages(batch, "dedup-lines")
    documents = Counter(languages(batch, settings).to_pylist())
    buckets = Buckets(settings, tuple(sorted(documents.items())))
    numbers = np.arange(batch.num_rows, dtype=np.uint64)
    counts, places, hosts = lines_of(batch, numbers, buckets)
    frequent = frequent_lines(total_lines(with_pages(counts, hosts)), settings)
    removal = remove_lines(
        batch.column("text"), numbers, frequent, settings, buckets.scopes(batch), places
    )
    return with_column(batch, "text", removal.texts), verdicts(removal, settings)


def _filter(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    found = load_filter(recipe.filter).apply(batch)
    batch = with_column(batch, "text", found.texts)
    batch = with_column(batch, "signals", found.signals)
    batch = with_column(batch, "path", found.paths)
    if found.overruled is not None:
        overruled = pc.if_else(found.verdicts.kept, found.overruled, None)
        batch = with_column(batch, "overruled", overruled)
    return batch, found.verdicts


def _mix(batch: pa.RecordBatch, recipe: Recipe, table: pa.Table) -> tuple[pa.RecordBatch, Verdicts]:
    if "domain" not in batch.schema.names:
        raise InputError("no column 'domain'; run classify before mix")
    settings, encoding = recipe.mix.mixture(""), recipe.tokenize.encoding
    _, offsets = load_tokenizer(encoding.tokenizer).encode_batch(batch.column("text"))
    sources = tuple(sorted(settings.sources))
    table = narrow(batch, np.diff(offsets) + encoding.marks, sources)
    drawn = draw(table, plan_tables([table], settings))
    batch = with_column(batch, "tokens", table.column("tokens"))
    return with_column(batch, "repeats", pa.array(drawn.repeats, pa.int32())), drawn.verdicts


_Step = Callable[[pa.RecordBatch, Recipe, pa.Table], tuple[pa.RecordBatch, Verdicts]]


def _in_batches(step: _Step) -> _Step:
    """A step that decides each document alone, on batches of bounded length."""

    def stepped(
        batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
    ) -> tuple[pa.RecordBatch, Verdicts]:
        starts = range(0, max(1, batch.num_rows), BATCH_ROWS)
        done = [step(batch.slice(start, BATCH_ROWS), recipe, table) for start in starts]
        joined = pa.Table.from_batches([part for part, _ in done])
        columns = [combined(joined, name) for name in joined.column_names]
        return pa.RecordBatch.from_arrays(columns, schema=joined.schema), Verdicts(
            *(
                pa.concat_arrays([getattr(found, name) for _, found in done])
                for name in ("reason", "value", "threshold", "kept_id")
            )
        )

    return stepped


_STEPS: dict[str, _Step] = {
    "extract": _extract,
    "dedup-urls": _dedup_urls,
    "identify-language": _in_batches(_identify_language),
    "dedup-documents": _dedup_documents,
    "classify": _in_batches(_classify),
    "dedup-lines": _dedup_lines,
    "filter": _in_batches(_filter),
    "mix": _mix,
}


def _only(found: Verdicts, rows: pa.Array) -> Verdicts:
    sizes = found.cluster_size
    return Verdicts(
        found.reason.filter(rows),
        found.value.filter(rows),
        found.threshold.filter(rows),
        found.kept_id.filter(rows),
        None if sizes is None else sizes.filter(rows),
    )


def _written(
    given: Given,
    recipe: Recipe,
    first: pa.RecordBatch,
    rows: npt.NDArray[np.int64],
    batch: pa.RecordBatch,
) -> dict[str, pa.Array]:
    """Columns of these rows that a stage made or changed, by the names they have in the table."""
    own, columns = given.table, {}
    name = first_column(own, recipe.readers.text_columns)
    texts = batch.column("text")
    if name is None:
        columns["text"] = texts
    elif not texts.equals(first.column("text").take(pa.array(rows))):
        columns[name] = _as_given(texts, combined(own, name).take(pa.array(rows)))
    if "title" not in own.column_names and pc.any(pc.not_equal(batch.column("title"), "")).as_py():
        columns["title"] = batch.column("title")
    if "id" not in own.column_names:
        columns["id"] = batch.column("id")
    made = [n for n in batch.schema.names if n not in first.schema.names]
    return columns | {n: batch.column(n) for n in made}


def _as_given(texts: pa.Array, own: pa.Array) -> pa.Array:
    """Texts in the type of the table's column; null where there was none and is none."""
    if not pa.types.is_dictionary(own.type):
        texts = texts.cast(own.type)
    nothing = pc.and_(pc.is_null(own), pc.equal(pc.binary_length(texts), 0))
    return pc.if_else(nothing, None, texts)


def _sizes(found: Verdicts) -> pa.Array:
    none = pa.nulls(len(found.reason), pa.int64())
    return none if found.cluster_size is None else found.cluster_size


def _lost(
    given: Given,
    recipe: Recipe,
    first: pa.RecordBatch,
    removed: Sequence[tuple[npt.NDArray[np.int64], pa.RecordBatch, str, Verdicts]],
) -> Any:
    """The removed rows in the order of the table, with what removed them."""
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
            "cluster_size": _sizes(found),
        }
        parts.append(pa.table(columns))
    table = pa.concat_tables(parts, promote_options="default").sort_by("row").combine_chunks()
    rows = table["row"].to_numpy()
    names = table.column_names[1:]
    batch = pa.RecordBatch.from_arrays([combined(table, name) for name in names], names=names)
    return given.taken(rows, _written(given, recipe, first, rows, batch))
