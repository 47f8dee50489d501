"""All measurements of a batch of texts in one pass. Rules (curation.filters.rules) read them later.

Fields are named `<family>_<signal>`; docs/filters.md explains every one. NaN means that a signal
cannot be measured in a text: a ratio per word where there are no words, stop words where the
language has no list.

Documents with tables: their prose is measured without the rows.

Names, numbers and addresses in the cells of a table are strange to the reference of a language,
which says nothing against the text around them.
"""

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, text_buffers
from curation.bytes.hash_tables import Table
from curation.compiled import Bytes, Float64s, Int, Int64s, Records, borrowing, kernel
from curation.filters import (
    c4,
    content,
    dclm,
    fineweb,
    gopher,
    lexicon,
    line_ngrams,
    lists,
    mixed,
    reference,
    repetition,
    scratch,
)
from curation.filters.filter_settings import SignalSettings
from curation.filters.names import CONTENT, QUALITY, TOP
from curation.filters.names import NAMES as NAMES
from curation.filters.phrases import Phrases
from curation.filters.reference import References, measure_references
from curation.filters.scratch import Document
from curation.text import characters as ch
from curation.text.lines import all_lines, characters, feed_lines

#: A row of the table of signals, by name. The shares of n-grams are filled by number, too.
_ROW = np.dtype([(name, np.float64) for name in NAMES])
_FIRST_GRAM = NAMES.index(f"repetition_top_{TOP[0]}gram")
_CONTENT = slice(NAMES.index(CONTENT[0]), NAMES.index(CONTENT[-1]) + 1)
_KL, _QUALITY = NAMES.index("kl_divergence"), NAMES.index(QUALITY)

#: Signals that are of the whole text, listings and formulas included: `_count_whole` finds them.
_OF_WHOLE = ("gopher_word_count", "c4_characters")


class Kit(NamedTuple):
    """Settings, lists and tables in the form the kernel takes."""

    properties: npt.NDArray[np.uint16]
    lower: npt.NDArray[np.uint32]
    gopher: int  # of `gopher.DIALECTS`
    c4_limits: c4.C4Limits
    c4_phrases: Phrases
    fineweb: fineweb.FineWeb
    line_ngrams: line_ngrams.LineNgrams
    stop_words: Table
    dirty_words: Table
    references: reference.References


class _Batch(NamedTuple):
    """What is known of the texts of a batch."""

    offsets: npt.NDArray[np.int64]  # [texts + 1]
    lists: npt.NDArray[np.int64]  # [texts, 3] see Meter.list_numbers


@borrowing
def load_tokens(
    data: Bytes, begin: Int, end: Int, kit: Kit, space: scratch.Scratch
) -> tuple[Int, Int]:
    """Find, describe and number the tokens of one text; return (tokens, distinct tokens)."""
    n = scratch.load_segments(data, begin, end, kit.properties, kit.lower, space.tokens)
    return n, scratch.number_tokens(n, space.tokens, space.distinct, space.interner)


@borrowing
def _document(data: Bytes, d: Int, batch: _Batch, kit: Kit, space: scratch.Scratch) -> Document:
    """Find tokens and lines of one text."""
    begin, end = batch.offsets[d], batch.offsets[d + 1]
    stops, dirty, known = batch.lists[d]
    n, kinds = load_tokens(data, begin, end, kit, space)
    return Document(
        begin,
        end,
        characters(data, begin, end),
        n,
        kinds,
        scratch.classify(kinds, space.tokens, space.distinct, space.classes, space.interner),
        feed_lines(data, begin, end, space.feeds.starts, space.feeds.ends),
        all_lines(data, begin, end, kit.properties, space.breaks.starts, space.breaks.ends),
        stops,
        dirty,
        known,
    )


@kernel
def _count_whole(
    data: Bytes, offsets: Int64s, kit: Kit, space: scratch.Scratch, out: Float64s
) -> None:
    """Fill out[documents, 2] with the signals `_OF_WHOLE`."""
    row = np.zeros(1, _ROW)[0]
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        if kit.gopher != gopher.DATATROVE:
            doc = Document(begin, end, 0, 0, 0, 0, 0, 0, -1, -1, -1)
            dclm.measure(data, doc, kit, space, row)
            out[d, 0] = row.gopher_word_count
        else:
            n = scratch.load_segments(data, begin, end, kit.properties, kit.lower, space.tokens)
            out[d, 0] = gopher.count_words(n, space.tokens)[0]
        out[d, 1] = characters(data, begin, end)


@borrowing
def _measure(
    data: Bytes, batch: _Batch, kit: Kit, space: scratch.Scratch, rows: Records, grams: Float64s
) -> None:
    """Fill `rows`, but for signals of the content, and those of n-grams to `grams`."""
    for d in range(len(batch.offsets) - 1):
        row = rows[d]
        doc = _document(data, d, batch, kit, space)
        c4.measure(data, doc, kit, space, row)
        fineweb.measure(data, doc, kit, space, row)
        row.dirty_word_count, row.dirty_word_ratio = lexicon.dirty_words(doc, kit, space)
        row.kl_divergence, row.outlier_token_ratio = reference.measure(
            data, doc, kit.references, space, np.inf
        )
        row.llama3_line_ngram_coverage = line_ngrams.line_ngram_coverage(doc, kit, space)
        if kit.gopher != gopher.DATATROVE:
            dclm.measure(data, doc, kit, space, row)
        else:
            gopher.measure(data, doc, kit, space, row)
        repetition.measure(data, doc, kit, space, row, grams[d])


class Meter:
    """Signals of texts under given settings, with the lists of all languages loaded once."""

    def __init__(self, settings: SignalSettings) -> None:
        self.settings = settings
        stop_words = lists.by_language(settings.stop_words, ".txt")
        dirty = lists.by_language(settings.dirty_words, ".txt")
        allowed = lists.by_language(settings.allowed_words, ".txt")
        references = lists.by_language(settings.reference, ".npz")
        self._numbers = (
            {language: i for i, language in enumerate(stop_words)},
            {language: i for i, language in enumerate(dirty)},
            {language: i for i, language in enumerate(references)},
        )
        self._kit = Kit(
            ch.properties(),
            ch.lower_case(),
            gopher.DIALECTS.index(settings.gopher.dialect),
            c4.C4Limits(**settings.c4.model_dump()),
            c4.line_phrases(),
            fineweb.FineWeb(fineweb.SHORT_LINE, **settings.fineweb.model_dump()),
            line_ngrams.LineNgrams(),
            lexicon.phrase_table(
                {
                    i: {lexicon.FLAGGED: lists.read_list(path)}
                    for i, path in enumerate(stop_words.values())
                }
            ),
            lexicon.phrase_table(
                {
                    i: lexicon.dirty_phrases(
                        lists.read_list(path),
                        lists.read_list(allowed[language]) if language in allowed else [],
                    )
                    for i, (language, path) in enumerate(dirty.items())
                }
            ),
            reference.read_references(references),
        )

    @property
    def kit(self) -> Kit:
        """Settings and tables for kernels that judge lines the same way."""
        return self._kit

    def list_numbers(self, languages: pa.Array | None, rows: int) -> npt.NDArray[np.int64]:
        """Numbers of stop and dirty word lists and references: [rows, 3], -1 for none."""
        if languages is None:
            languages = pa.array([self.settings.unlabelled_language] * rows, pa.string())
        encoded = pc.dictionary_encode(languages, null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        table = np.array(
            [
                [held.get(lists.closest(label, held) or "", -1) for held in self._numbers]
                for label in encoded.dictionary.to_pylist()
            ],
            np.int64,
        ).reshape(-1, 3)
        return np.ascontiguousarray(table[encoded.indices.to_numpy(zero_copy_only=False)])

    def measure(
        self, texts: Texts, languages: pa.Array | None = None, paths: bool = False
    ) -> pa.StructArray:
        """Signals of every text as a struct of float64 fields (NAMES).

        With `paths`, signals of prose are measured without the lines of code and formulas, but for
        the counts of words and characters, which are of the whole text.
        """
        return self.measured(texts, content.look_at(texts, paths), languages, paths)

    def measured(
        self,
        texts: Texts,
        found: content.Content,
        languages: pa.Array | None = None,
        paths: bool = False,
    ) -> pa.StructArray:
        """Do as `measure`, with the structure of the texts known."""
        blocks = content.has_blocks(found) if paths else np.zeros(len(texts), bool)
        prose = content.prose_of(texts, found, blocks)
        out = self._table(prose, languages)
        self._look_again(prose, languages, out[:, _KL])
        if blocks.any():
            whole = self._whole(pa.array(texts, pa.large_string()).filter(pa.array(blocks)))
            for k, name in enumerate(_OF_WHOLE):
                out[blocks, NAMES.index(name)] = whole[:, k]
        out[:, _CONTENT] = found.signals
        out[:, _QUALITY] = np.nan
        columns = np.ascontiguousarray(out.T)
        return pa.StructArray.from_arrays([pa.array(column) for column in columns], list(NAMES))

    def _look_again(
        self, texts: pa.Array, languages: pa.Array | None, divergences: npt.NDArray[np.float64]
    ) -> None:
        """Replace the divergences of documents with tables by those of their prose, of documents in
        two languages by those of their own parts."""
        strange = np.flatnonzero(divergences > mixed.STRANGE)
        numbers = self.list_numbers(languages, len(texts))[strange, 2]
        if len(strange) < len(texts):  # else a copy of what may be one large document
            texts = texts.take(strange)
        for again in (_of_prose, mixed.divergences):
            own = again(texts, numbers, self._kit.references)
            divergences[strange] = np.fmin(divergences[strange], own)

    def _whole(self, texts: Texts) -> npt.NDArray[np.float64]:
        """Signals `_OF_WHOLE` -> float64 [texts, 2]."""
        offsets, data = text_buffers(texts)
        out = np.empty((len(offsets) - 1, len(_OF_WHOLE)))
        space = scratch.allocate(offsets)
        _count_whole(data, offsets, self._kit, space, out)
        return out

    def _table(self, texts: Texts, languages: pa.Array | None) -> npt.NDArray[np.float64]:
        """Signals but those of content -> float64 [texts, signals]."""
        offsets, data = text_buffers(texts)
        rows = len(offsets) - 1
        # Columns of one row alone would be contiguous: another type, compiled anew.
        out = np.full((max(rows, 2), len(NAMES)), np.nan)
        batch = _Batch(offsets, self.list_numbers(languages, rows))
        table, grams = out.view(_ROW).reshape(-1), out[:, _FIRST_GRAM:]
        _measure(data, batch, self._kit, scratch.allocate(offsets), table, grams)
        return out[:rows]


@functools.lru_cache(maxsize=8)
def _meter(settings: str) -> Meter:
    return Meter(SignalSettings.model_validate_json(settings))


def measure(texts: Texts, languages: pa.Array | None, settings: SignalSettings) -> pa.StructArray:
    """Signals of every text; see Meter.measure. Lists are loaded once per settings."""
    return _meter(settings.model_dump_json(round_trip=True)).measure(texts, languages)


#: Share of the characters that prose must have; a text with less is a table, and measured as one.
PROSE_SHARE = 1 / 3

# A line with the bars that extraction writes between cells, or a short one that a number begins or
# ends: a quantity, a score, a count.
_TABLE_ROW = r"(?m)^(?:(?:.* )?\| .*|[^\pL\n]*\pN.{0,60}|.{0,60}\pN[^\pL\n]*)$\n?"


def _of_prose(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of every text without its tables -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text has no table, or
    little else.
    """
    found = np.full(len(texts), np.nan)
    prose = pc.replace_substring_regex(texts, _TABLE_ROW, "")
    size, of_prose = (pc.utf8_length(t).to_numpy(zero_copy_only=False) for t in (texts, prose))
    measured = (of_prose < size) & (of_prose >= PROSE_SHARE * size)
    for number in np.unique(numbers[measured]):
        rows = np.flatnonzero(measured & (numbers == number))
        found[rows] = measure_references(prose.take(pa.array(rows)), references, int(number))[:, 0]
    return found
