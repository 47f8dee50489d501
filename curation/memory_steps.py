"""The steps of a recipe's stages on documents that are all in memory.

A step takes documents and the recipe; it returns the documents with the added columns, and a
verdict on each.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from curation.classify.verdicts import classify_documents
from curation.columns import PAGE_COLUMNS
from curation.decontaminate.catalog import catalog_of
from curation.decontaminate.judge import Decontaminator
from curation.dedup.buckets import Buckets, languages, lines_of
from curation.dedup.captures import capture_keys, capture_verdicts, choose_captures
from curation.dedup.in_memory import document_verdicts
from curation.dedup.lines import (
    frequent_lines,
    remove_lines,
    total_lines,
    verdicts,
    with_pages,
)
from curation.extract.extraction import Extraction
from curation.extract.page_columns import page_columns
from curation.extract.safe import Failed, Refused, extract_page, wrong_length
from curation.extract.texts import text_of
from curation.filters.apply import load_filter
from curation.judging import judge_all, opened
from curation.language.verdicts import identify_documents
from curation.mix.count import counted
from curation.mix.draw import draw
from curation.mix.levels import plan_tables
from curation.readers.records import Page
from curation.recipe import Recipe
from curation.rights.policy import Policy, verdicts_of
from curation.schema import EXTRACTED, Verdicts, conformed, with_column
from curation.stages import find
from curation.tables import combined, first_column

#: Batch size for stages that decide each document alone.
BATCH_ROWS = 512
Step = Callable[[pa.RecordBatch, Recipe], tuple[pa.RecordBatch, Verdicts]]


def _extract(
    batch: pa.RecordBatch, recipe: Recipe, table: pa.Table
) -> tuple[pa.RecordBatch, Verdicts]:
    """Extract pages in rows that have one and no text; check lengths."""
    readers, settings = recipe.readers, recipe.extract
    texts, titles = batch.column("text").to_pylist(), batch.column("title").to_pylist()
    name = first_column(table, readers.html_columns)
    pages = combined(table, name).to_pylist() if name is not None else [None] * len(texts)
    text_name = first_column(table, readers.text_columns)
    absent = np.ones(len(texts), bool)
    if text_name is not None:
        absent = table.column(text_name).is_null().to_numpy()
    reasons: list[Refused | Failed | None] = []
    of_pages = []
    normalize = readers.normalize_text or "none"
    for row, html in enumerate(pages):
        if not absent[row] or html is None:
            page = _page(texts[row], "", "text", normalize)
            texts[row] = text_of(page)
            of_pages.append(page_columns(page, Extraction(texts[row])))
            reasons.append(wrong_length(len(texts[row]), settings))
            continue
        page = _page(html, batch.column("url")[row].as_py())
        answer = extract_page(settings, page)
        if isinstance(answer, Refused | Failed):
            of_pages.append(page_columns(page, None))
            reasons.append(answer)
            continue
        of_pages.append(page_columns(page, answer))
        texts[row], titles[row] = answer.text, titles[row] or answer.title
        reasons.append(wrong_length(len(answer.text), settings))
    batch = with_column(batch, "text", pa.array(texts, pa.large_string()))
    batch = with_column(batch, "title", pa.array(titles, pa.string()))
    for name in PAGE_COLUMNS:
        values = [columns[name] for columns in of_pages]
        batch = with_column(batch, name, pa.array(values, EXTRACTED.field(name).type))
    return batch, _refusals(reasons)


def _page(given: str | bytes, url: str, kind: str = "html", normalize: str = "none") -> Page:
    content = given.encode() if isinstance(given, str) else given
    charset = "utf-8" if isinstance(given, str) else None
    mime = "text/html" if kind == "html" else "text/plain"
    return Page(url, None, "", 0, content, kind, charset, mime, None, None, normalize=normalize)


def _refusals(found: Sequence[Refused | Failed | None]) -> Verdicts:
    refused = [f if isinstance(f, Refused) else None for f in found]
    return Verdicts(
        pa.array(
            [f.reason if isinstance(f, Refused) else f and "extract.error" for f in found],
            pa.string(),
        ),
        pa.array([f and f.value for f in refused], pa.float64()),
        pa.array([f and f.threshold for f in refused], pa.float64()),
    )


def _dedup_urls(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.dedup_urls
    keys = capture_keys(batch, np.arange(batch.num_rows, dtype=np.uint64), settings)
    alike = np.zeros(keys.num_rows, np.int64)
    removed, kept = choose_captures(keys, alike, settings.survivor.policy)
    gone, stays = keys.take(pa.array(removed)), keys.take(pa.array(kept))
    lost = capture_verdicts(gone.column("date").to_numpy(), stays.column("date").to_numpy())
    found = Verdicts(
        pa.array(lost.reason, pa.string()),
        pa.array(lost.value, pa.float64(), from_pandas=True),
        pa.array(lost.threshold, pa.float64(), from_pandas=True),
        stays.column("id"),
    )
    return batch, found.placed(gone.column("number").to_numpy().astype(np.int64), batch.num_rows)


def _dedup_lines(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.dedup_lines
    documents = Counter(languages(batch, settings).to_pylist())
    buckets = Buckets(settings, tuple(sorted(documents.items())))
    numbers = np.arange(batch.num_rows, dtype=np.uint64)
    counts, places, hosts = lines_of(batch, numbers, buckets)
    frequent = frequent_lines(total_lines(with_pages(counts, hosts)), settings)
    removal = remove_lines(
        batch.column("text"), numbers, frequent, settings, buckets.scopes(batch), places
    )
    return with_column(batch, "text", removal.texts), verdicts(removal, settings)


def _filter(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    found = load_filter(recipe.filter).apply(batch)
    return found.added_to(batch), found.verdicts


def _decontaminate(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.section(find("decontaminate"))
    decontaminator = Decontaminator(settings, catalog_of(settings))

    def judged(part: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
        done = decontaminator.apply(part)
        return done.batch, done.verdicts

    return _in_batches(judged)(batch, recipe)


def _rights(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    rulings = Policy(recipe.section(find("rights"))).judge(batch)
    return batch, verdicts_of(rulings)


def _mix(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.mix.mixture("")
    table, _ = counted(batch, recipe.tokenize.encoding, settings.input_names)
    drawn = draw(table, plan_tables([table], settings))
    return drawn.added_to(batch, table.column("tokens")), drawn.verdicts


def _in_batches(step: Step) -> Step:
    """Apply a step that decides each document alone to batches of bounded length."""

    def stepped(batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
        starts = range(0, max(1, batch.num_rows), BATCH_ROWS)
        done = [step(batch.slice(start, BATCH_ROWS), recipe) for start in starts]
        joined = pa.Table.from_batches([part for part, _ in done])
        columns = [combined(joined, name) for name in joined.column_names]
        whole = pa.RecordBatch.from_arrays(columns, schema=joined.schema)
        return whole, Verdicts.concatenated([found for _, found in done])

    return stepped


_STEPS: dict[str, Step] = {
    "read-tables": lambda batch, _: (batch, Verdicts.keep_all(batch.num_rows)),
    "dedup-urls": _dedup_urls,
    "identify-language": _in_batches(lambda b, r: identify_documents(b, r.identify_language)),
    "dedup-documents": lambda batch, r: (batch, document_verdicts(batch, r.dedup_documents)),
    "classify": _in_batches(lambda b, r: classify_documents(b, r.classify)[:2]),
    "dedup-lines": _dedup_lines,
    "filter": _in_batches(_filter),
    "decontaminate": _decontaminate,
    "rights": _rights,
    "mix": _mix,
}


def step_of(stage: str, table: pa.Table) -> Step:
    """Return the step of a stage: of `extract` for the table, of a custom stage its function."""
    if stage == "extract":
        return functools.partial(_extract, table=table)
    return _STEPS.get(stage) or _in_batches(functools.partial(_custom, stage))


def _custom(stage: str, batch: pa.RecordBatch, recipe: Recipe) -> tuple[pa.RecordBatch, Verdicts]:
    settings = recipe.section(find(stage))
    function = opened(settings.python, settings.settings)
    batch, found, _ = judge_all(function, batch, stage, settings.python.found.name)
    return conformed(batch), found
