"""Close languages, told from each other by their words.

Indonesian and Malay share nearly all runs of letters, so that models of these guess, and take a
text for the language of more pages. Their words differ: `kerana` is Malay, `karena` Indonesian. A
group of close languages has the log odds of its words: how much more frequent each is in a language
than in the group on the average. Only the probability of the group is shared out anew; other
languages, and the group as a whole, keep theirs. Han characters, which no space separates, count
one by one and in pairs.
"""

import functools
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.bytes.code_points import code_point
from curation.compiled import (
    Bytes,
    Float64s,
    Int,
    Int8s,
    Int64s,
    Uint32s,
    borrowing,
    inlined,
    merged,
)
from curation.language.evidence import Floats, Ints, Mask, hats

#: What is weighed for every language of a group: the log probability that it has so far, whether it
#: is a language of most pages, and the log odds of the words.
WEIGHED = ("before", "large", "words")

#: Log odds are kept in so many parts of 1: a few values take little room.
PARTS = 8

FLOOR = 1e-9  # share of a group that a language has at least before
_HAN = (0x2E80, 0xA000)  # radicals, kana, ideographs
_RARE_HAN = 0x20000
_SPACE = 32
# multipliers of splitmix64 (Steele et al. 2014)
_START, _FIRST = np.uint64(7), np.uint64(0x9E3779B97F4A7C15)
_LAST, _FOLD = np.uint64(0xBF58476D1CE4E5B9), np.uint64(29)
_KEY = np.uint64(64 - 24)  # bits of a key: of unknown words one in a thousand has that of another
_MOST_KEY, _PLACE = (1 << 24) - 1, 9  # the last bits of a key, of which a few have the first ones


@dataclass(frozen=True, eq=False)
class CloseLanguages:
    """Groups of labels, and what their words say."""

    groups: tuple[tuple[int, ...], ...]  # labels; one may be in several groups
    starts: Ints  # [groups + 1] the words of each group in `keys`
    keys: npt.NDArray[np.uint32]  # hashes of words, ascending within a group
    odds: npt.NDArray[np.int8]  # [words, labels of the largest group] log odds times `PARTS`
    weights: Floats  # [WEIGHED, knots]

    def shared_out(self, probabilities: Floats, lines: Texts, firsts: Ints, large: Mask) -> Floats:
        """Probabilities [texts, labels] with those of each text's group shared out by its words.

        The group is that of the most probable label, one group after the other. Text i is
        `lines[firsts[i]:firsts[i + 1]]`, as `letters_only` gives them; `large` are the labels of
        most pages.
        """
        out = probabilities.copy()
        best = out.argmax(1)
        sizes = np.diff(text_buffers(lines).offsets[firsts])
        for number, group in enumerate(self.groups):
            members = np.array(group)
            rows = np.flatnonzero(np.isin(best, members))
            if not len(rows):
                continue
            inside = out[np.ix_(rows, members)]
            total = inside.sum(1, keepdims=True)
            words = self.words(number, lines, firsts, rows)
            scores = weighed(self.weights, inside / total, words, sizes[rows], large[members])
            shares = np.exp(scores - scores.max(1, keepdims=True))
            out[np.ix_(rows, members)] = total * shares / shares.sum(1, keepdims=True)
            best[rows] = out[rows].argmax(1)
        return out

    def words(self, group: int, lines: Texts, firsts: Ints, rows: Ints) -> Floats:
        """Log odds of the words of some texts, over the root of their number: [rows, labels]."""
        offsets, data = text_buffers(lines)
        span = slice(self.starts[group], self.starts[group + 1])
        out = np.zeros((len(rows), len(self.groups[group])))
        keys, odds, places = self.keys[span], self.odds[span], self._places[group]
        spans = np.stack([firsts[rows], firsts[rows + 1]], 1)
        scratch = np.empty(int(np.diff(offsets).max(initial=0)), np.uint32)  # words of a line
        _add(offsets, data, spans, keys, places, odds, scratch, out)
        return out

    @functools.cached_property
    def _places(self) -> list[Ints]:
        """Where keys with the same first bits begin, for each group: they are spread evenly."""
        spans, most = pairwise(self.starts), (_MOST_KEY >> _PLACE) + 1
        counts = (np.bincount(self.keys[a:b] >> _PLACE, minlength=most) for a, b in spans)
        return [np.cumsum(np.append(0, each)) for each in counts]


def weighed(weights: Floats, shares: Floats, words: Floats, sizes: Ints, large: Mask) -> Floats:
    """Log evidence for the languages of a group, of whose probability each has a share."""
    at = (hats(sizes)[:, None] * weights).sum(2)  # in order, as in `Evidence.scores`
    before = np.log(shares + FLOOR)
    return np.asarray(at[:, :1] * before + at[:, 1:2] * large + at[:, 2:] * words)


@merged
def _mixed(h: Int, c: Int) -> Int:
    h = (h ^ np.uint64(c)) * _FIRST
    return h ^ (h >> _FOLD)


@inlined
def _key(h: Int) -> Int:
    return np.uint32((h * _LAST) >> _KEY)


@borrowing
def _keys(data: Bytes, begin: Int, end: Int, out: Uint32s) -> Int:
    """Write the hashes of the words of one line, letters only; return how many."""
    n = 0
    word = _START
    inside = False
    before = np.int64(0)  # the Han character that this one follows
    i = begin
    while i < end:
        c, width = code_point(data, i)
        i += width
        han = _HAN[0] <= c < _HAN[1] or c >= _RARE_HAN
        if inside and (han or c == _SPACE):
            out[n] = _key(word)
            n += 1
            inside = False
        if han:
            out[n] = _key(_mixed(_START, c))
            n += 1
            if before:
                out[n] = _key(_mixed(_mixed(_START, before), c))
                n += 1
        elif c != _SPACE:
            word = _mixed(word if inside else _START, c)
            inside = True
        before = c if han else np.int64(0)
    if inside:
        out[n] = _key(word)
        n += 1
    return n


@borrowing
def _add(
    offsets: Int64s,
    data: Bytes,
    spans: Int64s,
    keys: Uint32s,
    places: Int64s,
    odds: Int8s,
    scratch: Uint32s,
    out: Float64s,
) -> None:
    members = out.shape[1]
    for row in range(len(spans)):
        words = 0
        for line in range(spans[row, 0], spans[row, 1]):
            n = _keys(data, offsets[line], offsets[line + 1], scratch)
            words += n
            for k in range(n):
                place = scratch[k] >> _PLACE
                low, high = places[place], places[place + 1]
                while low < high and keys[low] < scratch[k]:
                    low += 1
                if low < high and keys[low] == scratch[k]:
                    for member in range(members):
                        out[row, member] += odds[low, member]
        if words:
            scale = PARTS * np.sqrt(np.float64(words))
            for member in range(members):
                out[row, member] /= scale


def keys(lines: Texts) -> tuple[npt.NDArray[np.uint32], Ints]:
    """Hashes of the words of every line, one line after the other, and how many each has."""
    offsets, data = text_buffers(lines)
    out, ends = np.empty(int(offsets[-1] - offsets[0]), np.uint32), [0]
    for begin, end in pairwise(offsets.tolist()):
        ends.append(ends[-1] + int(_keys(data, begin, end, out[ends[-1] :])))
    return out[: ends[-1]], np.diff(ends)
