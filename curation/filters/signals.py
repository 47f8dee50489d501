"""All measurements of a batch of texts in one pass. Rules (curation.filters.rules) read them later.

Fields are named `<family>_<signal>`; docs/filters.md explains every one. NaN means that a signal
cannot be measured in a text: a ratio per word where there are no words, stop words where the
language has no list.

Documents with tables: their prose is measured without the rows.

Names, numbers and addresses in the cells of a table are strange to the reference of a language,
which says nothing against the text around them.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import TextBuffers, Texts, cut_out, from_buffers, line_spans, text_buffers
from curation.compiled import (
    Bool,
    Bytes,
    Float,
    Float64s,
    Int,
    Int64s,
    Record,
    Records,
    borrowing,
    kernel,
)
from curation.filters import (
    c4,
    content,
    dclm,
    edits,
    fineweb,
    gopher,
    lexicon,
    line_ngrams,
    lists,
    mixed,
    reference,
    repeated,
    repetition,
    scratch,
)
from curation.filters.filter_settings import SignalSettings
from curation.filters.names import CONTENT, TOP
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
_KL = NAMES.index("kl_divergence")

#: Signals that are of the whole text, listings and formulas included.
_OF_WHOLE = np.array([NAMES.index("gopher_word_count"), NAMES.index("c4_characters")])


class Kit(NamedTuple):
    """Settings, lists and tables in the form the kernel takes."""

    properties: npt.NDArray[np.uint16]
    lower: npt.NDArray[np.uint32]
    gopher: int  # of `gopher.DIALECTS`
    c4_limits: c4.C4Limits
    c4_phrases: Phrases
    fineweb: fineweb.FineWeb
    line_ngrams: line_ngrams.LineNgrams
    stop_words: lexicon.Lists
    dirty_words: lexicon.Lists
    references: reference.References


class _Batch(NamedTuple):
    """What is known of the texts of a batch."""

    offsets: npt.NDArray[np.int64]  # [texts + 1]
    lists: npt.NDArray[np.int64]  # [texts, 3] see Meter.list_numbers
    unmeasured: npt.NDArray[np.bool_]  # [texts] what is measured another time


@borrowing
def _load_tokens(
    data: Bytes, begin: Int, end: Int, any_copied: Bool, kit: Kit, space: scratch.Scratch
) -> tuple[Int, Int, Int]:
    """Find, describe and number the tokens of one text, but those of copied lines; return (tokens,
    distinct tokens, their classes)."""
    n = scratch.load_segments(data, begin, end, kit.properties, kit.lower, space.tokens)
    kinds = scratch.number_tokens(n, space.tokens, space.distinct, space.interner)
    if any_copied:
        n, kinds = repeated.drop_tokens(n, space)
    classes = scratch.classify(kinds, space.tokens, space.distinct, space.classes, space.interner)
    return n, kinds, classes


@borrowing
def _measure(
    data: Bytes,
    doc: Document,
    covered: Float,
    kit: Kit,
    space: scratch.Scratch,
    row: Record,
    shares: Float64s,
    all_of_them: Bool,
) -> None:
    """Fill `row`, all NaN, but for signals of the content, and those of n-grams to `shares`.

    Not `all_of_them` are those of Gopher and the number of characters.
    """
    if kit.gopher != gopher.DATATROVE:
        dclm.measure(data, doc, kit, space, row)
    else:
        gopher.measure(data, doc, kit, space, row)
    row.c4_characters = doc.characters
    if not all_of_them:
        return
    row.c4_long_lines = c4.long_lines(data, doc, kit, space)
    repetition.measure(data, doc, kit, space, row, shares)
    fineweb.measure(data, doc, kit, space, row)
    row.dirty_word_count, row.dirty_word_ratio = lexicon.dirty_words(doc, kit, space)
    row.kl_divergence, row.outlier_token_ratio = reference.measure(data, doc, kit.references, space)
    row.llama3_line_ngram_coverage = covered


@kernel
def _look(
    data: Bytes,
    batch: _Batch,
    kit: Kit,
    space: scratch.Scratch,
    rules: edits.Rules,
    rows: Records,
    grams: Float64s,
) -> Int64s:
    """Return all cuts (`edits.find_cuts`), and measure texts without cuts or copies (`_measure`);
    mark others as `unmeasured`."""
    begins, room = batch.offsets, len(batch.offsets)
    for i in range(np.uint64(begins[0]), np.uint64(begins[-1])):
        room += edits.CUTTABLE[data[i]]
    cuts = np.empty((room, 4), np.int64)
    cut: Int = 0
    for d in range(len(begins) - 1):
        begin, end, properties = begins[d], begins[d + 1], kit.properties
        # all breaks of Unicode, as the signals of C4 read them
        lines = all_lines(data, begin, end, properties, space.breaks.starts, space.breaks.ends)
        n: Int = -1
        kinds: Int = 0
        classes: Int = 0
        covered: Float = np.nan
        c4.judge_lines(data, end, lines, kit, space, rows[d])
        if not rules.documents[d] and begin < end:
            copied = repeated.find_copies(data, lines, properties, rules.copies, space)
            if rules.wanted[1]:
                n, kinds, classes = _load_tokens(data, begin, end, copied, kit, space)
                covered = line_ngrams.line_ngram_coverage(n, lines, kit.line_ngrams, space)
                line_ngrams.drop_short_runs(lines, kit.line_ngrams, space)
            before = cut
            cut = edits.find_cuts(data, d, (begin, end, lines), rules, kit, space, cuts, cut)
            if cut > before:
                batch.unmeasured[d] = True
                continue
            n = -1 if copied else n  # copies that stay have their tokens, too
        if n < 0:
            n, kinds, classes = _load_tokens(data, begin, end, False, kit, space)
            covered = line_ngrams.line_ngram_coverage(n, lines, kit.line_ngrams, space)
        size = characters(data, begin, end)
        feeds = feed_lines(data, begin, end, space.feeds.starts, space.feeds.ends)
        a, b, c = batch.lists[d]
        doc = Document(begin, end, size, n, kinds, classes, feeds, lines, a, b, c)
        _measure(data, doc, covered, kit, space, rows[d], grams[d], not batch.unmeasured[d])
    return cuts[:cut]


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
            lexicon.stop_words(*stop_words.values()),
            lexicon.obscene_words(tuple(dirty), tuple(allowed), *dirty.values(), *allowed.values()),
            reference.read_references(references),
        )

    def list_numbers(self, languages: pa.Array | None, rows: int) -> npt.NDArray[np.int64]:
        """Numbers of stop and dirty word lists and references: [rows, 3], -1 for none."""
        if languages is None:
            languages = pa.array([self.settings.unlabelled_language] * rows, pa.string())
        encoded = pc.dictionary_encode(languages, null_encoding="encode")
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
        return as_struct(self.measured(texts, content.look_at(texts, paths), languages, paths))

    def measured(
        self,
        texts: Texts,
        found: content.Content,
        languages: pa.Array | None = None,
        paths: bool = False,
        edited: edits.Edited | None = None,
    ) -> npt.NDArray[np.float64]:
        """Return signals with the structure of the texts known -> float64 [texts, signals].

        With their edits, texts that have any get none.
        """
        known = found if paths else None
        if edited is None:
            edited = edits.edit(texts, self, edits.NO_EDITS, known, None, languages)
        out, left = edited.signals, edited.unmeasured.copy()
        left[edited.rows] = False
        blocks = np.zeros(len(left), bool) if known is None else content.has_blocks(known) & left
        prose = content.prose_of(texts, found, blocks)
        if left.any():
            rows = pa.array(np.flatnonzero(left))
            own = None if languages is None else languages.take(rows)
            of_whole = np.ix_(np.flatnonzero(blocks), _OF_WHOLE)
            whole = out[of_whole]
            out[left] = edits.edit(prose.take(rows), self, edits.NO_EDITS, languages=own).signals
            out[of_whole] = whole
        self._look_again(prose, languages, out[:, _KL])
        out[:, _CONTENT] = found.signals
        return out

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

    def look(
        self,
        buffers: TextBuffers,
        languages: pa.Array | None,
        rules: edits.Rules,
        unmeasured: npt.NDArray[np.bool_],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the cuts by the rules, and signals but those of content -> int64 [cuts, 4]
        (`edits.find_cuts`), float64 [texts, signals].

        `unmeasured` [texts] get no others than `_OF_WHOLE`; those with cuts, added to them, none.
        """
        offsets, data = buffers
        rows = len(offsets) - 1
        # Columns of one row alone would be contiguous: another type, compiled anew.
        out = np.full((max(rows, 2), len(NAMES)), np.nan)
        batch = _Batch(offsets, self.list_numbers(languages, rows), unmeasured)
        table, grams = out.view(_ROW).reshape(-1), out[:, _FIRST_GRAM:]
        cuts = _look(data, batch, self._kit, scratch.allocate(offsets), rules, table, grams)
        return cuts, out[:rows]


def as_struct(signals: npt.NDArray[np.float64]) -> pa.StructArray:
    """Signals [texts, signals] as a struct of float64 fields (NAMES)."""
    columns = np.ascontiguousarray(signals.T)
    return pa.StructArray.from_arrays([pa.array(column) for column in columns], list(NAMES))


#: Share of the characters that prose must have; a text with less is a table, and measured as one.
PROSE_SHARE = 1 / 3

_ROW_CHARACTERS = 60  # behind a number that begins a row of a table, or before one that ends it


def _of_prose(
    texts: pa.Array, numbers: npt.NDArray[np.int64], references: References
) -> npt.NDArray[np.float64]:
    """Return the divergence of every text without its tables -> float64 [texts].

    `numbers` [texts] are the references of the texts' languages. NaN where a text has no table, or
    little else.
    """
    found = np.full(len(texts), np.nan)
    prose = _without_rows(texts)
    size, of_prose = (pc.utf8_length(t).to_numpy(zero_copy_only=False) for t in (texts, prose))
    measured = (of_prose < size) & (of_prose >= PROSE_SHARE * size)
    for number in np.unique(numbers[measured]):
        rows = np.flatnonzero(measured & (numbers == number))
        found[rows] = measure_references(prose.take(pa.array(rows)), references, int(number))[:, 0]
    return found


def _without_rows(texts: pa.Array) -> pa.Array:
    """Return texts without rows of tables.

    They are lines with the bars that extraction writes between cells, and short ones that a number
    begins or ends: a quantity, a score, a count.
    """
    buffers = text_buffers(texts)
    starts, ends, firsts = line_spans(buffers)
    edges = np.append(np.stack([starts, ends], axis=1), buffers.offsets[-1:])
    lines = from_buffers(edges, buffers.data)[::2]
    row = pc.or_(pc.starts_with(lines, "| "), pc.match_substring(lines, " | "))
    for number in (r"^[^\pL]*\pN", r"\pN[^\pL]*$"):
        rest = pc.replace_substring_regex(lines, number, "")
        short = pc.less_equal(pc.utf8_length(rest), _ROW_CHARACTERS)
        row = pc.or_(row, pc.and_(short, pc.not_equal(rest, lines)))
    rows = np.flatnonzero(row)
    owners = np.repeat(np.arange(len(texts)), np.diff(firsts))[rows]
    behind = np.minimum(ends[rows] + 1, buffers.offsets[owners + 1])
    return cut_out(buffers, owners, np.stack([starts[rows], behind], axis=1))[0]
