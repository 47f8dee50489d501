"""All measurements of a batch of texts in one pass. Rules (curation.filters.rules) read them later.

Fields are named `<family>_<signal>`; docs/filters.md explains every one. NaN means that a signal
cannot be measured in a text: a ratio per word where there are no words, stop words where the
language has no list.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts
from curation.compiled import borrowing, kernel
from curation.filters import (
    c4,
    content,
    dclm,
    dialects,
    fineweb,
    gopher,
    lexicon,
    line_ngrams,
    lists,
    mixed,
    names,
    perplexity,
    reference,
    refinedweb,
    repetition,
    scratch,
)
from curation.filters.filter_settings import SignalSettings
from curation.filters.hash_tables import Table
from curation.filters.names import NAMES as NAMES
from curation.filters.phrases import Phrases
from curation.paths import PathSettings
from curation.text import characters as ch
from curation.text.buffers import read_only
from curation.text.lines import all_lines, characters, feed_lines
from curation.text.words import Spans

_GOPHER = 0
_REPETITION = _GOPHER + len(names.GOPHER)
_NGRAMS = _REPETITION + 4
_C4 = _REPETITION + len(names.REPETITION)
_FINEWEB = _C4 + len(names.C4)
_REFINEDWEB = _FINEWEB + len(names.FINEWEB)
_LLAMA3 = _REFINEDWEB + len(names.REFINEDWEB)
_DIRTY = _LLAMA3 + len(names.LLAMA3)
_REFERENCE = _DIRTY + len(names.DIRTY)
_PERPLEXITY = _REFERENCE + len(names.REFERENCE)
_CONTENT = _PERPLEXITY + len(names.PERPLEXITY)

_QUALITY = _CONTENT + len(names.CONTENT)

_DATATROVE = dialects.DATATROVE
_DOLMA = dialects.DOLMA
_DCLM = dialects.DCLM
_NEMO = dialects.NEMO


#: Signals that are of the whole text, listings and formulas included: `_count_whole` finds them.
_OF_WHOLE = ("gopher_word_count", "c4_characters")


class Kit(NamedTuple):
    """Settings, lists and tables in the form the kernel takes."""

    properties: npt.NDArray[np.uint16]
    lower: npt.NDArray[np.uint32]
    gopher_dialect: int
    repetition_dialect: int
    c4_limits: c4.C4Limits
    c4_phrases: Phrases
    short_line: int
    line_ends: fineweb.LineEnds
    refinedweb_limits: refinedweb.LineLimits
    counters: Phrases
    line_ngrams: line_ngrams.LineNgrams
    stop_words: Table
    dirty_words: Table
    references: reference.References
    models: perplexity.ModelTable


@borrowing
def _find_tokens(data, begin, end, kit, tokens, dialect):  # type: ignore[no-untyped-def]
    """Find and describe the tokens of one text; return how many."""
    if dialect == _DOLMA or dialect == _NEMO:
        n = dialects.split_spaces(data, begin, end, kit.properties, tokens.starts, tokens.ends)
        scratch.fill_tokens(data, n, kit.properties, kit.lower, tokens)
    else:
        n = scratch.load_segments(data, begin, end, kit.properties, kit.lower, tokens)
    return dialects.keep_words(n, tokens, dialect)


@borrowing
def load_tokens(data, begin, end, kit, space, dialect, given, given_starts, given_ends):  # type: ignore[no-untyped-def]
    """Find, describe and number the tokens of one text; return (tokens, distinct tokens)."""
    if given >= 0:
        tokens = space.tokens
        for i in range(given):
            tokens.starts[i], tokens.ends[i] = given_starts[i], given_ends[i]
        scratch.fill_tokens(data, given, kit.properties, kit.lower, tokens)
        n = dialects.keep_words(given, tokens, dialect)
    else:
        n = _find_tokens(data, begin, end, kit, space.tokens, dialect)
    return n, scratch.number_tokens(n, space.tokens, space.distinct, space.interner)


@kernel
def _count_whole(data, offsets, kit, space, out):  # type: ignore[no-untyped-def]
    """Fill out[documents, 2] with the signals `_OF_WHOLE`."""
    dialect = kit.gopher_dialect
    row = np.empty(_REPETITION - _GOPHER)
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        if dialect == _DCLM:
            dclm.measure_gopher_dclm(
                data, begin, end, kit.properties, kit.lower, 0, space.feeds, -1,
                kit.stop_words.keys, kit.stop_words.values, row,
            )  # fmt: skip
            out[d, 0] = row[0]
        else:
            loaded = _DOLMA if dialect == _DOLMA else _DATATROVE
            n = _find_tokens(data, begin, end, kit, space.tokens, loaded)
            out[d, 0] = gopher.count_words(n, space.tokens, dialect)[0]
        out[d, 1] = characters(data, begin, end)


@borrowing
def _measure(  # type: ignore[no-untyped-def]
    data, offsets, kit, numbers, given, given_starts, given_ends, space, buffer, coverage, counts,
    symbols, room, out,
):  # fmt: skip
    """Fill out[documents, signals].

    `numbers[documents, 4]` are the stop and dirty word lists, references and models, negative for
    none; `given` are the offsets of supplied tokens, empty where there are none.
    """
    tokens = space.tokens
    for d in range(len(offsets) - 1):
        begin = offsets[d]
        end = offsets[d + 1]
        row = out[d]
        chars = characters(data, begin, end)
        supplied = -1
        a = 0
        b = 0
        if len(given):
            a = given[d]
            b = given[d + 1]
            supplied = b - a
        starts = given_starts[a:b]
        ends = given_ends[a:b]
        n, kinds = load_tokens(data, begin, end, kit, space, _DATATROVE, supplied, starts, ends)
        classes = scratch.classify(kinds, tokens, space.distinct, space.classes, space.interner)
        feeds = feed_lines(data, begin, end, space.feeds.starts, space.feeds.ends)
        breaks = all_lines(data, begin, end, kit.properties, space.breaks.starts, space.breaks.ends)

        c4.measure_c4(
            data, kit.properties, chars, breaks, space.breaks, feeds, space.feeds, kit.c4_limits,
            kit.c4_phrases, buffer, row[_C4:_FINEWEB],
        )  # fmt: skip
        fineweb.measure_fineweb(
            data, kit.properties, feeds, chars, n, space, kit.short_line, kit.line_ends,
            row[_FINEWEB:_REFINEDWEB],
        )  # fmt: skip
        refinedweb.measure_refinedweb(
            data, kit.properties, breaks, space.breaks, kit.refinedweb_limits, kit.counters,
            row[_REFINEDWEB:_LLAMA3],
        )  # fmt: skip
        row[_DIRTY] = np.nan
        row[_DIRTY + 1] = np.nan
        if numbers[d, 1] >= 0:
            found, covered, total = lexicon.flagged(
                n, classes, space, numbers[d, 1], kit.dirty_words.keys, kit.dirty_words.values
            )
            row[_DIRTY] = found
            if total:
                row[_DIRTY + 1] = covered / total
        reference.measure_reference(
            data, classes, n, space, numbers[d, 2], kit.lower, kit.references, room,
            row[_REFERENCE:_PERPLEXITY],
        )  # fmt: skip
        perplexity.measure_perplexity(
            data, begin, end, kit.properties, kit.lower, numbers[d, 3], kit.models, symbols,
            row[_PERPLEXITY:_CONTENT],
        )  # fmt: skip
        line_ngrams.measure_line_ngrams(
            n, breaks, space, kit.line_ngrams, coverage, counts, row[_LLAMA3:_DIRTY]
        )

        loaded = _DATATROVE
        dolma = kit.gopher_dialect == _DOLMA
        if dolma:
            loaded = kit.gopher_dialect
            n, kinds = load_tokens(data, begin, end, kit, space, loaded, supplied, starts, ends)
        if kit.gopher_dialect == _DCLM:
            dclm.measure_gopher_dclm(
                data, begin, end, kit.properties, kit.lower, feeds, space.feeds, numbers[d, 0],
                kit.stop_words.keys, kit.stop_words.values, row[_GOPHER:_REPETITION],
            )  # fmt: skip
        else:
            gopher.measure_gopher(
                data, begin, end, kit.properties, n, kinds, feeds if dolma else breaks,
                space.feeds if dolma else space.breaks, space, numbers[d, 0], kit.stop_words.keys,
                kit.stop_words.values, kit.gopher_dialect, row[_GOPHER:_REPETITION],
            )  # fmt: skip
        if kit.repetition_dialect != loaded:
            loaded = kit.repetition_dialect
            n, kinds = load_tokens(data, begin, end, kit, space, loaded, supplied, starts, ends)
        word_chars = tokens.before[n]
        repetition.measure_pieces(
            data, begin, end, kit.properties, feeds, chars, word_chars, space, loaded,
            row[_REPETITION:_NGRAMS],
        )  # fmt: skip
        repetition.measure_ngrams(
            data, begin, end, n, chars, space, loaded, supplied >= 0, row[_NGRAMS:_C4]
        )


class Meter:
    """Signals of texts under given settings, with the lists of all languages loaded once."""

    def __init__(self, settings: SignalSettings) -> None:
        self.settings = settings
        stop_words = lists.by_language(settings.stop_words, ".txt")
        dirty = lists.by_language(settings.dirty_words, ".txt")
        allowed = lists.by_language(settings.allowed_words, ".txt")
        references = [
            reference.load_reference(path, language)
            for language, path in lists.by_language(settings.reference, ".npz").items()
        ]
        models = [
            perplexity.load_model(path, language)
            for language, path in lists.by_language(settings.perplexity, ".npz").items()
        ]
        self._numbers = (
            {language: i for i, language in enumerate(stop_words)},
            {language: i for i, language in enumerate(dirty)},
            {held.language: i for i, held in enumerate(references)},
            {held.language: i for i, held in enumerate(models)},
        )
        rule = settings.line_ngrams
        limits = settings.c4
        self._kit = Kit(
            ch.properties(),
            ch.lower_case(),
            dialects.CODES[settings.gopher.dialect],
            dialects.CODES[settings.repetition.dialect],
            c4_limits(settings),
            c4.line_phrases(limits.javascript, limits.policy, limits.lorem_ipsum),
            settings.fineweb.short_line,
            fineweb.LineEnds(
                settings.fineweb.quotes_end_lines,
                settings.fineweb.closers_end_lines,
                settings.fineweb.colons_end_lines,
            ),
            refinedweb.LineLimits(
                settings.refinedweb.max_uppercase, settings.refinedweb.max_numeric
            ),
            refinedweb.counter_words(settings.refinedweb.counters),
            line_ngrams.line_ngrams(rule),
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
            reference.reference_tables(references),
            perplexity.model_table(models),
        )

    @property
    def kit(self) -> Kit:
        """Settings and tables for kernels that judge lines the same way."""
        return self._kit

    def list_numbers(self, languages: pa.Array | None, rows: int) -> npt.NDArray[np.int64]:
        """Numbers of stop and dirty word lists, references, models: [rows, 4], -1 for none."""
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
        ).reshape(-1, 4)
        return np.ascontiguousarray(table[encoded.indices.to_numpy(zero_copy_only=False)])

    def measure(
        self,
        texts: Texts,
        languages: pa.Array | None = None,
        tokens: Spans | None = None,
        paths: PathSettings | None = None,
    ) -> pa.StructArray:
        """Signals of every text as a struct of float64 fields (NAMES).

        With `paths`, signals of prose are measured without the lines of code and formulas, but for
        the counts of words and characters, which are of the whole text. `tokens` replaces our
        segmentation, with byte spans into the batch's data buffer (see
        `curation.arrow.text_buffers`): for comparison with tools that split words differently, and
        without `paths`.
        """
        return self.measured(texts, content.look_at(texts, paths), languages, tokens, paths)

    def measured(
        self,
        texts: Texts,
        found: content.Content,
        languages: pa.Array | None = None,
        tokens: Spans | None = None,
        paths: PathSettings | None = None,
    ) -> pa.StructArray:
        """Do as `measure`, with the structure of the texts known."""
        blocks = content.has_blocks(found) if paths is not None else np.zeros(len(texts), bool)
        prose = content.prose_of(texts, found, blocks)
        out = self._table(prose, languages, tokens)
        self._look_for_languages(prose, languages, out[:, _REFERENCE])
        if blocks.any():
            whole = self._whole(pa.array(texts, pa.large_string()).filter(pa.array(blocks)))
            for k, name in enumerate(_OF_WHOLE):
                out[blocks, NAMES.index(name)] = whole[:, k]
        out[:, _CONTENT:_QUALITY] = found.signals
        out[:, _QUALITY] = np.nan
        columns = np.ascontiguousarray(out.T)
        return pa.StructArray.from_arrays([pa.array(column) for column in columns], list(NAMES))

    def _look_for_languages(
        self, texts: pa.Array, languages: pa.Array | None, divergences: npt.NDArray[np.float64]
    ) -> None:
        """Replace the divergences of documents in two languages by those of their own parts."""
        strange = np.flatnonzero(divergences > mixed.STRANGE)
        numbers = self.list_numbers(languages, len(texts))[strange, 2]
        own = mixed.own_divergences(texts.take(strange), numbers, self._kit.references)
        divergences[strange] = np.fmin(divergences[strange], own)

    def _whole(self, texts: Texts) -> npt.NDArray[np.float64]:
        """Signals `_OF_WHOLE` -> float64 [texts, 2]."""
        offsets, data = read_only(texts)
        out = np.empty((len(offsets) - 1, len(_OF_WHOLE)))
        space = scratch.allocate(offsets)
        _count_whole(data, offsets, self._kit, space, out)
        return out

    def _table(
        self, texts: Texts, languages: pa.Array | None, tokens: Spans | None
    ) -> npt.NDArray[np.float64]:
        """Signals but those of content -> float64 [texts, signals]."""
        offsets, data = read_only(texts)
        rows = len(offsets) - 1
        out = np.empty((rows, len(NAMES)), np.float64)
        most = int(np.diff(offsets).max(initial=0))
        if tokens is None:
            none = np.zeros(0, np.int64)
            tokens = Spans(none, none, none)
        else:
            most = max(most, int(np.diff(tokens.doc_offsets).max(initial=0)))
        space = scratch.allocate(offsets, most)
        _measure(
            data,
            offsets,
            self._kit,
            self.list_numbers(languages, rows),
            np.ascontiguousarray(tokens.doc_offsets, np.int64),
            np.ascontiguousarray(tokens.starts, np.int64),
            np.ascontiguousarray(tokens.ends, np.int64),
            space,
            c4.scratch_line(most),
            np.empty(most + 2, np.float64),
            np.empty(most + 2, np.int64),
            space.grams.at.view(np.uint32),  # of which no other measurement has need meanwhile
            reference.room(),
            out,
        )
        return out


def c4_limits(settings: SignalSettings) -> c4.C4Limits:
    """The C4 settings as kernels take them."""
    held = settings.c4
    return c4.C4Limits(
        held.terminal_punctuation,
        held.any_script,
        held.min_words,
        held.max_word_length,
        held.citations,
        held.long_line,
    )


@functools.lru_cache(maxsize=8)
def _meter(settings: str) -> Meter:
    return Meter(SignalSettings.model_validate_json(settings))


def measure(
    texts: Texts,
    languages: pa.Array | None,
    settings: SignalSettings,
    tokens: Spans | None = None,
) -> pa.StructArray:
    """Signals of every text; see Meter.measure. Lists are loaded once per settings."""
    return _meter(settings.model_dump_json()).measure(texts, languages, tokens)
