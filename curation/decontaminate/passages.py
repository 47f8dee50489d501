"""Find the spans of a text that quote a passage, verbatim or nearly so.

`decontaminate.matching` finds the runs of at least four words that text and passage share; runs
that follow each other in both, with few words between them, are one span.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.arrow import Texts
from curation.decontaminate.index import LEAST_BITS, Background, build_index
from curation.decontaminate.matching import RUN, Matcher
from curation.decontaminate.normalize import WORD, folding, ngrams, sums, tokenize
from curation.errors import ConfigError

#: Words of the shortest span that is looked for: 40 Han or kana letters, 80 Thai letters.
LEAST_WORDS = 20
#: Words in a row that a text shares with the passage, or it isn't compared: 12 Han or kana letters,
#: 24 Thai letters.
GRAM = 6
#: Bytes of the longest passage.
MOST_BYTES = 1 << 18
#: Words between two runs of a span, in either text.
_GAP = 8 * WORD
#: Share of the words of a span that both texts have, in the longer of the two.
_LEAST_SIMILARITY = 0.75
#: Open spans that a run may continue.
_LOOK_BACK = 64
_NONE = np.zeros(1, np.uint32)
#: Counts under which no token or n-gram is common: a quotation of a licence counts, too.
_NOTHING_KNOWN = Background(_NONE, np.full(1, LEAST_BITS, np.uint8), _NONE)


class Span(NamedTuple):
    """A part of a text that is a part of the passage."""

    start: int  # bytes of the text
    end: int
    passage_start: int  # bytes of the passage
    passage_end: int
    words: int  # of the passage, whole ones
    similarity: float  # share of words in both, of the longer of the two parts; 1: verbatim

    @property
    def verbatim(self) -> bool:
        """Whether both have the same words in the same order."""
        return self.similarity == 1


@dataclass
class _Chain:
    """Runs in the same order in both texts; numbers of tokens."""

    position: int  # of the passage
    place: int  # of the text
    position_end: int
    place_end: int
    matched: int  # size of what both have


class Grams(NamedTuple):
    """N-grams of texts, one at each token."""

    hashes: pa.Array
    offsets: npt.NDArray[np.int64]  # [texts + 1]


def grams_of(texts: Texts) -> Grams:
    """Return the n-grams of texts, by which passages find their candidates."""
    tokens = tokenize(texts)
    return Grams(pa.array(ngrams(tokens, GRAM * WORD)[0]), tokens.offsets)


class Passage:
    """A passage to look for. Raises ConfigError where it is too short or too long."""

    def __init__(self, text: str) -> None:
        size = len(text.encode())
        if size > MOST_BYTES:
            raise ConfigError(f"the passage has {size:,} bytes: give at most {MOST_BYTES:,}")
        self._tokens = tokenize([text])
        self._sums = sums(self._tokens.sizes)
        if self._sums[-1] < LEAST_WORDS * WORD:
            raise ConfigError(f"the passage is too short: give at least {LEAST_WORDS} words")
        self._matcher = Matcher(build_index([text], _NOTHING_KNOWN), folding(), 1)
        grams, ends = ngrams(self._tokens, GRAM * WORD)
        self._grams = pa.array(grams[ends >= 0])

    def candidates(self, grams: Grams) -> npt.NDArray[np.int64]:
        """Return the numbers of texts that share words in a row with the passage, ascending."""
        shared = pc.is_in(grams.hashes, self._grams).to_numpy(zero_copy_only=False)
        return np.unique(np.searchsorted(grams.offsets, np.flatnonzero(shared), "right") - 1)

    def spans(self, text: str) -> list[Span]:
        """Return the spans of a text, by place."""
        data = np.frombuffer(text.encode(), np.uint8)
        tokens = self._matcher.tokens(data, 0, len(data))
        places = sums(tokens.sizes)
        spans = []
        for chain in self._chains(places, self._matcher.runs(tokens)):
            own = int(self._sums[chain.position_end] - self._sums[chain.position])
            longer = max(own, int(places[chain.place_end] - places[chain.place]))
            span = Span(
                int(tokens.starts[chain.place]),
                int(tokens.ends[chain.place_end - 1]),
                int(self._tokens.starts[chain.position]),
                int(self._tokens.ends[chain.position_end - 1]),
                own // WORD,
                chain.matched / longer,
            )
            if span.words >= LEAST_WORDS and span.similarity >= _LEAST_SIMILARITY:
                spans.append(span)
        return sorted(spans)

    def _chains(self, places: npt.NDArray[np.int64], runs: npt.NDArray[np.int32]) -> list[_Chain]:
        chains: list[_Chain] = []
        for run in runs.tolist():
            position, place, length = run[RUN.position], run[RUN.place], run[RUN.length]
            following = (
                c
                for c in chains[: -_LOOK_BACK - 1 : -1]
                if self._follows(c, position, place, places)
            )
            chain = next(following, None)
            if chain is None:
                chain = _Chain(position, place, position, place, 0)
                chains.append(chain)
            # What the run before has of this one counts once.
            known = max(0, chain.position_end - position, chain.place_end - place)
            if known < length:
                chain.position_end, chain.place_end = position + length, place + length
                chain.matched += int(self._sums[position + length] - self._sums[position + known])
        return chains

    def _follows(
        self, chain: _Chain, position: int, place: int, places: npt.NDArray[np.int64]
    ) -> bool:
        """Return whether a run continues a chain, a few words later in both texts."""
        if position <= chain.position or place <= chain.place:
            return False
        in_passage = self._sums[position] - self._sums[chain.position_end]
        in_text = places[place] - places[chain.place_end]
        return bool(-_GAP <= in_passage <= _GAP and -_GAP <= in_text <= _GAP)
