"""How familiar the letters of a text are for the language it is taken for.

A model with a label for other languages knows those it was shown; a relative that nobody showed it
still looks like its nearest label. Such a text gives itself away by runs of letters that the
language does not have. Known runs of three letters are kept as bits of a hash table (Bloom 1970,
one hash), and each language has its own usual share of known runs. Names, code and loan words of
one language, English, are on pages of all others: its runs are known everywhere.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.arrow import Texts, text_buffers
from curation.bytes.code_points import code_point
from curation.bytes.hash_tables import has_bit
from curation.compiled import (
    Bool,
    Bytes,
    Float64s,
    Int,
    Int64s,
    Uint64s,
    borrowing,
    inlined,
    kernel,
    merged,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Places of the table: 2 ** BITS; half a million runs leave it 94 % empty.
BITS = 23

# Of the different runs with accented letters, the share that is unknown, and unknown ones per run:
# where a text begins to seem misread, and where it surely is. Shares of short texts vary: they need
# so many deviations more. Fewer unknown runs than 5 say nothing.
_MISREAD_SHARE, _MISREAD_RATE, _FEW_MISREAD = (0.14, 0.22), (0.02, 0.03), 5
_DEVIATIONS = 1.5
# Places, and bits of a run's number that are not its place, in which runs are seen again.
_SEEN, _NOT_SEEN = 1 << 14, np.uint64(50)

_SPACE = np.uint64(32)
# multipliers of splitmix64 and of its relatives (Steele et al. 2014), one for each part of a run
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_THIRD, _LABEL = np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_PLACE = np.uint64(64 - BITS)


@dataclass(frozen=True, eq=False)
class Familiarity:
    """Known runs of letters of k languages, and what share of a text's runs usually is known."""

    table: npt.NDArray[np.uint8]  # [2 ** BITS / 8] bits
    usual: Floats  # [k] mean share of known runs in texts of the language
    spread: Floats  # [k] its deviation; infinite for a language that is not judged
    runs: Floats  # [k] runs of such a text: shorter ones vary more
    everywhere: int  # the label whose runs count as known in every language

    def strangeness(self, lines: Texts, firsts: Ints, labels: Ints) -> Floats:
        """Deviations by which each text has fewer known runs than usual for its label: [texts].

        Text i is `lines[firsts[i]:firsts[i + 1]]`, as `letters_only` gives them. Below 0 for more
        than usual; 0 for a text without letters.
        """
        known, total = self._counts(lines, firsts, labels[:, None])[:2]
        share = known / np.maximum(total, 1)
        wider = np.sqrt(np.maximum(self.runs[labels] / np.maximum(total, 1), 1))
        strange = (self.usual[labels] - share) / (self.spread[labels] * wider)
        return np.where(total > 0, strange, 0.0)

    def misread(self, lines: Texts, firsts: Ints, labels: Ints) -> Floats:
        """Return how sure it is that each text was read in another encoding: 0 to 1, [texts].

        Then runs with accented letters are unknown to the languages it may be in, `labels` [texts,
        any number], and there are many. English has accents in names alone, of any language.
        """
        _, total, accented, strange, times = self._counts(lines, firsts, labels)
        (share, surely), (rate, often) = _MISREAD_SHARE, _MISREAD_RATE
        varies = _DEVIATIONS * np.sqrt(share * (1 - share) / np.maximum(accented, 1))
        sure = (strange / np.maximum(accented, 1) - varies - share) / (surely - share)
        many = (times / np.maximum(total, 1) - rate) / (often - rate)
        enough = strange / _FEW_MISREAD - 1
        english = labels[:, 0] == self.everywhere
        sure = sure.clip(0, 1) * many.clip(0, 1) * enough.clip(0, 1)
        return np.where(english, 0.0, sure)

    def _counts(self, lines: Texts, firsts: Ints, labels: Ints) -> Floats:
        """Return the numbers of each text's runs that are known, of all, of different ones with
        accented letters, of the unknown ones among these, and how often these occur: [5, texts].

        With several labels to a text, known are those with accented letters alone, and all numbers
        are 0 where it has none.
        """
        offsets, data = text_buffers(lines)
        counts = np.zeros((5, len(labels)))
        scratch = np.empty((int(np.diff(offsets).max(initial=0)) + 1, 2), np.uint64)
        table = self.table.view(np.uint64)
        _count(offsets, data, firsts, labels, table, self.everywhere, scratch, counts)
        return counts


@inlined
def _place(run: Int, label: Int) -> Int:
    h = run ^ ((np.uint64(label) + np.uint64(1)) * _LABEL)
    h = (h ^ (h >> _SHIFT)) * _SECOND
    return (h ^ (h >> _SHIFT)) * _THIRD >> _PLACE


@merged
def _is_accented(c: Int) -> Bool:
    """Whether a code point is a Latin letter beyond ASCII that an 8-bit encoding can give.

    Letters with dots below, as Igbo and Yoruba have them, no misreading gives.
    """
    return 0xAA <= c < 0x250


@borrowing
def _runs(data: Bytes, begin: Int, end: Int, out: Uint64s, n: Int) -> Int:
    """Append the runs of one line, a space before and behind it."""
    if begin == end:
        return n
    a = np.uint64(0)
    b = _SPACE
    i = begin
    while i <= end:
        c = _SPACE
        if i < end:
            code, width = code_point(data, i)
            c = np.uint64(code)
            i += width
        else:
            i += 1
        if a:
            out[n, 0] = (a * _FIRST) ^ (b * _SECOND) ^ (c * _THIRD)
            out[n, 1] = _is_accented(a) | _is_accented(b) | _is_accented(c)
            n += 1
        a = b
        b = c
    return n


@kernel
def _count(
    offsets: Int64s,
    data: Bytes,
    firsts: Int64s,
    labels: Int64s,
    table: Uint64s,
    everywhere: Int,
    scratch: Uint64s,
    counts: Float64s,
) -> None:
    seen = np.empty(_SEEN, np.bool_)
    for text in range(len(labels)):
        some = labels.shape[1] == 1
        for i in range(offsets[firsts[text]], offsets[firsts[text + 1]]):
            some |= 0xC2 <= data[np.uint64(i)] < 0xCA  # with which accented letters begin
        hits = runs = accented = strange = times = 0
        seen[:] = False
        for line in range(firsts[text], firsts[text + 1] if some else 0):
            n = _runs(data, offsets[line], offsets[line + 1], scratch, 0)
            runs += n
            for k in range(n):
                if labels.shape[1] > 1 and not scratch[k, 1]:
                    continue
                known = has_bit(table, _place(scratch[k, 0], everywhere))
                for label in labels[text]:
                    if not known:
                        known = has_bit(table, _place(scratch[k, 0], label))
                hits += known
                if scratch[k, 1]:
                    place = scratch[k, 0] >> _NOT_SEEN
                    accented += not seen[place]
                    strange += not (seen[place] or known)
                    times += not known
                    seen[place] = True
        counts[0, text], counts[1, text], counts[2, text] = hits, runs, accented
        counts[3, text], counts[4, text] = strange, times


def places(lines: Texts, labels: Ints) -> tuple[Ints, Ints]:
    """Places of the runs of every line, one line after the other, and how many each has."""
    offsets, data = text_buffers(lines)
    runs, ends = np.empty((int(offsets[-1] - offsets[0]) + len(labels), 2), np.uint64), [0]
    for begin, end in pairwise(offsets.tolist()):
        ends.append(int(_runs(data, begin, end, runs, ends[-1])))
    place: Any = _place.py_func  # of arrays as of numbers
    counts = np.diff(ends)
    return place(runs[: ends[-1], 0], np.repeat(labels, counts)).astype(np.int64), counts
