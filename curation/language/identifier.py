"""Identify languages with a fastText model and, where there is one, its corrector."""

import functools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts, large_strings
from curation.config import nearest
from curation.errors import ConfigError
from curation.kernels import kept
from curation.language.corrector import Corrector, load_corrector
from curation.language.evidence import DECIMALS
from curation.language.fasttext import FastText, load_fasttext
from curation.language.fasttext_file import read_labels
from curation.language.language_settings import UNKNOWN, LanguageSettings, default_settings
from curation.language.windows import Windows, cut, letters_only, split_lines
from curation.models import ModelFile, locate
from curation.schema import column_of, with_column

#: Probability of languages without a label from which a text is `und`.
NONE = 0.5

#: Share of a page's letters with which its own label stays, though another language has more:
#: lines tell close languages, such as Bosnian and Croatian, less well than the page does.
OWN = 0.1

#: Windows of a document, at its beginning, middle and end, since pages often begin in another
#: language, and characters of each; three keep long documents above 3,000 per CPU second.
_WINDOWS, _CHARACTERS = 3, 400
#: Letters of a line below which it counts for the line before it: names, dates and menus.
_LINE_LETTERS = 20
#: Lines that are identified together: what is known of more, for each label, leaves the cache.
_TOGETHER = 256

#: Languages that a page's words may be in: so many, each of at least this probability.
_LIKELY, _POSSIBLE = 3, 0.02


class _Lines(NamedTuple):
    """Lines of texts; those of text i are `firsts[i]:firsts[i + 1]`."""

    long: npt.NDArray[np.bool_]  # [lines] those that are judged
    letters: npt.NDArray[np.int64]  # [lines]
    firsts: npt.NDArray[np.int64]  # [texts + 1]
    labels: pa.Array  # of the long lines
    scores: npt.NDArray[np.float32]  # of the long lines

    @property
    def texts(self) -> npt.NDArray[np.int64]:
        """Number of the text that each long line is of."""
        return np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))[self.long]


@dataclass(frozen=True)
class LanguageIdentifier:
    """Identifies languages; cheap to make, as the model is loaded once per process."""

    settings: LanguageSettings

    def apply(self, texts: Texts) -> tuple[pa.Array, pa.Array]:
        """Language (string, the model's code or `und`) and score (float32, 0 to 1) of every text.

        The score is the label's probability averaged over the windows, weighted by their letters;
        that of a text without letters is 0, that of `und` the best label's. Of a text in several
        languages no label is probable: one that scores below `lines_below` is looked at line by
        line. If that gives a higher score, for `und` one above `NONE`, the score is the mean of the
        lines', weighted by letters, and the language that of most letters, unless `OWN` of them are
        in the one that was found. Letters that were read in another encoding lower the score, down
        to 0 and `und`.
        """
        windows = self._cut(texts)
        lines = letters_only(windows.texts)
        evidence = self._evidence(windows, lines)
        labels, scores = self._by_line(texts, *self._decide(evidence))
        return self._as_read(windows, lines, evidence, labels, scores)

    def _by_line(self, texts: Texts, labels: pa.Array, scores: pa.Array) -> tuple[pa.Array, ...]:
        unsure = pc.less(scores, self.settings.lines_below)
        if not pc.any(unsure).as_py():
            return labels, scores
        rows = np.flatnonzero(unsure.to_numpy(zero_copy_only=False))
        names, values = np.array(labels.to_pylist(), object), scores.to_numpy().copy()
        lines = self._lines(large_strings(texts).filter(unsure))
        found, means = _of_most(lines, names[rows])
        better = means > np.maximum(values[rows], np.where(names[rows] == UNKNOWN, NONE, 0))
        names[rows[better]], values[rows[better]] = found[better], means[better]
        return pa.array(names, pa.string()), pa.array(values, pa.float32())

    def _as_read(
        self,
        windows: Windows,
        lines: pa.Array,
        evidence: npt.NDArray[np.float64],
        labels: pa.Array,
        scores: pa.Array,
    ) -> tuple[pa.Array, pa.Array]:
        """Lower the scores of texts whose letters were read in another encoding."""
        if self.settings.corrector is None:
            return labels, scores
        corrector = _load_corrector(self.settings.corrector, self.settings.model)
        own = pc.index_in(labels, pa.array(corrector.labels)).fill_null(-1).to_numpy()
        known = evidence[:, : len(self._every)]
        first = np.where(own < 0, known.argmax(1), own)[:, None]
        left, likely = known.copy(), np.empty((len(known), _LIKELY), np.int64)
        for place in range(_LIKELY):
            likely[:, place] = left.argmax(1)
            np.put_along_axis(left, likely[:, place, None], -1, 1)
        likely = np.where(np.take_along_axis(known, likely, 1) < _POSSIBLE, first, likely)
        candidates = np.hstack([first, likely])
        misread = corrector.familiar.misread(lines, windows.firsts, candidates)
        sound = (scores.to_numpy() * (1 - misread)).round(DECIMALS)
        labels = pc.if_else(pa.array(misread > NONE), UNKNOWN, labels)
        return labels, pa.array(sound, pa.float32())

    def load(self) -> None:
        """Check the models now. Raises ConfigError when one is absent, wrong, or does not fit.

        So it does for a language of the settings that is no label of the model, unless it is in the
        default thresholds: other models may lack it. The default models are loaded when they are
        needed: their checksums say that they fit.
        """
        known = self.languages
        key = "identify-language"
        check_known(f"{key}.languages", self.settings.languages or (), known)
        own, default = self.settings, default_settings()
        check_known(f"{key}.thresholds", set(own.thresholds) - set(default.thresholds), known)
        further = set(own.labels if isinstance(own.labels, tuple) else ())
        further -= {*(default.labels if isinstance(default.labels, tuple) else ())}
        if not further and (own.model, own.corrector) == (default.model, default.corrector):
            for model in filter(None, (own.model, own.corrector)):
                locate(model)
            return
        _load(own.model)
        if own.corrector is not None:
            every = _load_corrector(own.corrector, own.model).labels
            check_known(f"{key}.labels", further, every)

    @property
    def languages(self) -> set[str]:
        """Every label that a document can get."""
        own = self.settings
        if own.labels == "all" and own.corrector is not None:
            return {*_load_corrector(own.corrector, own.model).labels, UNKNOWN}
        named = own.labels if isinstance(own.labels, tuple) and own.corrector is not None else ()
        return {*_labels(own.model), *named, UNKNOWN}

    def _lines(self, texts: Texts) -> _Lines:
        """Identify the lines of every text."""
        lines, firsts = split_lines(texts)
        longest = pc.max(pc.utf8_length(lines)).as_py() or 1
        windows = cut(lines, 1, longest)  # whole lines: letters beyond what is judged count, too
        letters = np.zeros(len(lines), np.int64)
        letters[np.flatnonzero(np.diff(windows.firsts))] = windows.letters
        long = letters >= _LINE_LETTERS
        judged = lines.filter(pa.array(long))
        begins = range(0, max(1, len(judged)), _TOGETHER)
        parts = (self._cut(judged.slice(begin, _TOGETHER)) for begin in begins)
        found = [self._decide(self._evidence(part)) for part in parts]
        labels, scores = map(pa.concat_arrays, zip(*found, strict=True))
        return _Lines(long, letters, firsts, labels, scores.to_numpy())

    def _cut(self, texts: Texts) -> Windows:
        return cut(texts, _WINDOWS, _CHARACTERS)

    @property
    def _every(self) -> tuple[str, ...]:
        """Labels of the models together, those of the first model first."""
        own = self.settings
        if own.corrector is None:
            return _load(own.model).labels
        return _load_corrector(own.corrector, own.model).labels

    def _evidence(self, windows: Windows, lines: pa.Array | None = None) -> npt.NDArray[np.float64]:
        """Probability of every label of the models, and of none where there is a corrector.

        `lines` are the windows' `letters_only`, where they are known.
        """
        model = _load(self.settings.model)
        first = average(model.probabilities(windows.texts), windows)
        if self.settings.corrector is None:
            return first
        corrector = _load_corrector(self.settings.corrector, self.settings.model)
        lines = letters_only(windows.texts) if lines is None else lines
        second = average(corrector.model.probabilities(lines), windows)
        return corrector.combine(first, second, lines, windows.firsts)

    def _decide(self, probabilities: npt.NDArray[np.float64]) -> tuple[pa.Array, pa.Array]:
        """Best label of every document; of equal scores the one that the model lists first."""
        given = _columns(self._every, len(_load(self.settings.model).labels), self.settings.labels)
        # none, or a language without a label here
        rest = np.delete(probabilities, given, 1).sum(1)
        known = np.minimum(probabilities[:, given].round(DECIMALS), 1.0)
        best = known.argmax(1)
        scores = known[np.arange(len(known)), best]
        sure = (scores > 0) & (scores >= self.settings.unknown_below)
        sure &= rest.round(DECIMALS) <= NONE
        names = np.array([*self._every, UNKNOWN], object)
        found = names[np.where(sure, given[best], -1)]
        return pa.array(found, pa.string()), pa.array(scores, pa.float32())


def identify(
    texts: Texts, settings: LanguageSettings | None = None
) -> tuple[list[str], list[float]]:
    """Language and score (0 to 1) of every text; `und` where none is found.

    Texts are strings or an Arrow array (null counts as empty). Labels are the model's codes, with
    the default model ISO 639-1 where there is one, else 639-3. Raises ConfigError when the model
    is absent or another one than its checksum says.
    """
    labels, scores = LanguageIdentifier(settings or default_settings()).apply(large_strings(texts))
    return labels.to_pylist(), scores.cast(pa.float64()).to_numpy().round(DECIMALS).tolist()


def check_known(key: str, languages: Iterable[str], known: Collection[str]) -> None:
    """Raise ConfigError, naming the recipe's key, for a language that is none of those known."""
    for language in sorted(languages):
        if language not in known:
            raise ConfigError(
                f"{key}: the model has no language {language!r}"
                f"{nearest(language, known)} (it has: {', '.join(sorted(known))})"
            )


def _of_most(
    lines: _Lines, own: npt.NDArray[np.object_]
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.float32]]:
    """Language of most letters of every text, or its own where that has `OWN`; mean score of lines.

    Unknown lines score 0, as does a text without two long lines.
    """
    encoded = lines.labels.dictionary_encode()
    names = np.array([*encoded.dictionary.to_pylist(), UNKNOWN], object)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    texts, letters, known = lines.texts, lines.letters[lines.long], names[codes] != UNKNOWN
    rows = len(own)
    spoken = np.bincount(texts * len(names) + codes, letters * known, rows * len(names))
    spoken, total = spoken.reshape(rows, -1), np.maximum(np.bincount(texts, letters, rows), 1)
    enough = (spoken * (names == own[:, None])).sum(1) >= OWN * total
    several = np.bincount(texts, minlength=rows) >= 2
    means = several * np.bincount(texts, letters * known * lines.scores, rows) / total
    best = np.where(enough, own, names[spoken.argmax(1)])
    return best, means.round(DECIMALS).astype(np.float32)


@functools.cache
def _columns(
    every: tuple[str, ...], ours: int, named: int | str | tuple[str, ...]
) -> npt.NDArray[np.int64]:
    """Numbers of the labels that a document can get: the first `ours`, and those of `named`."""
    given = every if named == "all" else named if isinstance(named, tuple) else ()
    return np.array([i for i, n in enumerate(every) if i < ours or n in given], np.int64)


@functools.cache
def _labels(model: ModelFile) -> tuple[str, ...]:
    path, _ = locate(model)
    return read_labels(path, model.path)


@functools.cache
def _load(model: ModelFile) -> FastText:
    path, _ = locate(model)
    return load_fasttext(path, model.path)


@functools.cache
def _load_corrector(file: ModelFile, model: ModelFile) -> Corrector:
    path, _ = locate(file)
    return kept(load_corrector)(path, file.path, _load(model).labels)


def average(windows: npt.NDArray[np.floating[Any]], of: Windows) -> npt.NDArray[np.float64]:
    """Probabilities [documents, labels] from those of their windows, weighted by letters.

    All are 0 for a document without windows.
    """
    out, counts = np.zeros((len(of.firsts) - 1, windows.shape[1])), np.diff(of.firsts)
    for nth in range(counts.max(initial=0)):
        some = np.flatnonzero(counts > nth)
        of_some = of.firsts[some] + nth
        out[some] += windows[of_some] * of.letters[of_some, None].astype(np.float64)
    letters = np.diff(np.append(0, np.cumsum(of.letters))[of.firsts])
    return out / np.maximum(letters, 1)[:, None]


def with_language(batch: pa.RecordBatch, settings: LanguageSettings) -> pa.RecordBatch:
    """Add the language of documents that have none."""
    known = column_of(batch, "language")
    absent = pc.is_null(known)
    if pc.any(absent).as_py():
        labels, _ = LanguageIdentifier(settings).apply(batch.column("text").filter(absent))
        known = pc.replace_with_mask(known, absent, labels)
    return with_column(batch, "language", known)
