"""Every signal in plain Python, written from the definitions in docs/filters.md.

Strings, sets and loops only; nothing here is shared with the kernels but the classes of characters
(curation.text.characters), the lists and the reference distributions.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

from curation.filters.c4 import JAVASCRIPT_PHRASE, LOREM_PHRASE, POLICY_PHRASES
from curation.filters.filter_settings import SignalSettings
from curation.filters.reference import LENGTHS, LONGEST_TOKEN, Reference
from curation.text import characters as ch
from models.training.reference_counts import vocabulary
from tests.text.strings import token_hash
from tests.text.test_words import plain_words

PROPERTIES, LOWER = ch.properties(), ch.lower_case()
NAN = math.nan
MARKS = "".join(chr(c) for c in np.flatnonzero(PROPERTIES & ch.EXTEND).tolist())


def has(char: str, bits: int) -> bool:
    return bool(PROPERTIES[ord(char)] & bits)


def lower(text: str) -> str:
    return "".join(chr(LOWER[ord(c)]) for c in text)


def ascii_lower(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else NAN


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def is_word(token: str) -> bool:
    return any(has(c, ch.WORD) for c in token)


def has_letter(token: str) -> bool:
    return any(has(c, ch.ALPHA) for c in token)


def colons(text: str) -> str:
    """The colons at the end of a text that stand for a full stop in the script of the letters."""
    letters = [c for c in text if has(c, ch.ALPHA)]
    script = unicodedata.name(letters[-1], "").partition(" ")[0] if letters else ""
    marks = {"ARMENIAN": (":",), "ETHIOPIC": ("::", "፡፡")}.get(script, ())
    return next((m for m in marks if text.endswith(m)), "")


def sentences(text: str) -> int:
    """Marks with the closing quotes behind them end a sentence: those of ASCII only before white
    space or the end, and not one full stop behind a single capital."""
    count = 0
    text = text.strip()
    while text:
        count += 1
        i = since = 0
        while i < len(text):
            size = 1 if has(text[i], ch.TERMINAL) else 0
            for length in (1, 2):
                if colons(text[since : i + length]) == text[i : i + length]:
                    size = len(text[i : i + length])
            if not size:
                i += 1
                continue
            word = text[since:i]
            initial = (
                text[i] == "."
                and bool(word)
                and has(word[-1], ch.UPPER)
                and not (len(word) > 1 and has(word[-2], ch.UPPER | ch.ALPHA))
            )
            begin = i
            marks = [*text[i : i + size]]
            i += size
            while i < len(text) and has(text[i], ch.TERMINAL | ch.CLOSE):
                i += 1
            marks += [c for c in text[begin + size : i] if has(c, ch.TERMINAL)]
            since = i
            if i == len(text) or any(c > "\x7f" for c in marks):
                break
            if text[i].isspace() and not (initial and len(marks) == 1):
                break
        text = text[i:].strip()
    return count


def dclm_words(text: str) -> list[tuple[int, str]]:
    """Words with their places: pieces between white space, where each letter of an unspaced script
    is apart from letters and digits beside it, and keeps its punctuation, and each syllable of
    Tibetan."""
    code = "".join(
        " " if c.isspace() else "s" if has(c, ch.SINGLE) else "t" if c in "་༌"
        else "w" if has(c, ch.ALPHA | ch.NUMBER) else "o"
        for c in text
    )  # fmt: skip
    return [
        (m.start(), text[m.start() : m.end()])
        for m in re.finditer("[ot]*so*t?|[ot]*w[wo]*t?|[ot]+", code)
    ]


def dclm_counts(text: str, at: int, word: str) -> bool:
    """Whether DCLM counts the word: it begins with a letter or digit behind fastText's spaces."""
    if any(has(c, ch.SINGLE) for c in word):
        return True
    before = text[at - 1 : at]
    return has(word[0], ch.ALPHA | ch.NUMBER) and (before in " \n\r\t\v\f" or not before.isspace())


def stop_form(word: str) -> str:
    """A word as lists have it: of an unspaced script without punctuation."""
    for i, c in enumerate(word):
        if has(c, ch.SINGLE):
            marks = len(word[i + 1 :]) - len("".join(word[i + 1 :]).lstrip(MARKS))
            return word[i : i + 1 + marks]
    return lower(word)


def gopher_dclm(text: str, stop: Sequence[str]) -> dict[str, float]:
    """The filters of content_filters.py in mlfoundations/dclm; for spaced scripts `words` are
    text.split() but the mark of cells, and the count is of fasttext.tokenize(text) with
    w[0].isalnum()."""
    found = [(at, w) for at, w in dclm_words(text) if w != "|"]
    words = [w for _, w in found]
    lines = [piece for line in text.split("\n") if (piece := line.strip())]
    ellipses = sum(text.count(mark) for mark in ("...", ". . .", "…"))
    return {
        "gopher_word_count": sum(dclm_counts(text, at, w) for at, w in found),
        "gopher_mean_word_length": ratio(sum(map(len, words)), len(words)),
        "gopher_symbol_hash_ratio": ratio(text.count("#") + ellipses, len(words)),
        "gopher_ellipsis_ratio": ratio(ellipses, len(words)),
        "gopher_bullet_line_ratio": share(
            sum(line.startswith(("●", "•", "*", "-")) for line in lines), len(lines)
        ),
        "gopher_ellipsis_line_ratio": share(
            sum(line.endswith(("...", ". . .", "…")) for line in lines), len(lines)
        ),
        "gopher_alpha_word_ratio": ratio(sum(map(has_letter, words)), len(words)),
        "gopher_stop_words": sum(stop_form(w) in stop for w in words),
    }


def gopher(text: str, tokens: list[str], dialect: str, stop: Sequence[str]) -> dict[str, float]:
    if dialect == "dclm":
        return gopher_dclm(text, stop)
    words = [t for t in tokens if any(not has(c, ch.PUNCTUATION) for c in t)]
    lines = text.splitlines()
    bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines)
    dots = sum(line.rstrip().endswith(("...", "…")) for line in lines)
    ellipses = text.count("...") + text.count("…")
    return {
        "gopher_word_count": len(words),
        "gopher_mean_word_length": ratio(sum(map(len, words)), len(words)),
        "gopher_symbol_hash_ratio": ratio(text.count("#"), len(tokens)),
        "gopher_ellipsis_ratio": ratio(ellipses, len(tokens)),
        "gopher_bullet_line_ratio": share(bullets, len(lines)),
        "gopher_ellipsis_line_ratio": share(dots, len(lines)),
        "gopher_alpha_word_ratio": ratio(sum(map(has_letter, tokens)), len(tokens)),
        "gopher_stop_words": len(set(tokens) & set(stop)),
    }


def without_citations(line: str) -> str:
    out = ""
    while line:
        number = re.match(r"\[\d*]", line)
        if number:
            line = line[number.end() :]
            continue
        mark = next((m for m in ("[edit]", "[citation needed]") if line.startswith(m)), None)
        if mark:
            line = line[len(mark) :]
            continue
        out += line[0]
        line = line[1:]
    return out


def pieces(line: str) -> list[str]:
    """Pieces between white space; letters of unspaced scripts are their own."""
    apart = "".join(f" {c} " if has(c, ch.SINGLE) else c for c in line)
    return apart.split()


def holds(text: str, phrases: Sequence[str]) -> bool:
    """Whether one of the phrases is in the text, with white space of any kind for its blanks."""
    patterns = [r"\s+".join(map(re.escape, p.split(" "))) for p in phrases]
    return any(re.search(p, ascii_lower(text)) for p in patterns)


def lorem_goes_on(text: str, start: int, end: int) -> bool:
    """Whether "lorem ipsum" begins in text[start:end] and ends in a line of enough words."""
    small = ascii_lower(text)
    for i in range(start, end):
        match = re.compile(r"lorem\s+ipsum").match(small, i)
        if match and match.end() > end:
            rest = text[end : match.end()] + (text[match.end() :].splitlines() or [""])[0]
            return len(pieces(rest)) >= 3
    return False


def c4(text: str, settings: SignalSettings) -> dict[str, float]:
    held = settings.c4
    total = lorem = curly = 0
    at = 0
    for raw in text.splitlines(keepends=True):
        start = at + len(raw) - len(raw.lstrip())
        at += len(raw)
        line = raw.strip()
        found = pieces(line)
        if any(len(w) > 1000 for w in found):
            continue
        if lorem_goes_on(text, start, start + len(line)):
            lorem += 1
            continue
        line = without_citations(line)
        if held.terminal_punctuation:
            end = line[-1:]
            marks = end in ".?!\"'" if end.isascii() else has(end, ch.TERMINAL | ch.CLOSE)
            good = marks or bool(colons(line))
            if not end or not good or line.endswith("..."):
                continue
        if len(found) < 3:
            continue
        if holds(line, [LOREM_PHRASE]):
            lorem += 1
        elif holds(line, [JAVASCRIPT_PHRASE]):
            continue
        elif "{" in line:
            curly += 1
        elif not holds(line, POLICY_PHRASES):
            total += sentences(line)
    return {
        "c4_sentences": total,
        "c4_lorem_ipsum": lorem,
        "c4_curly_bracket": curly,
        "c4_long_lines": sum(len(line) >= 200 for line in text.split("\n")),
        "c4_characters": len(text),
    }


def fineweb(text: str, tokens: list[str], settings: SignalSettings) -> dict[str, float]:
    lines = [line for line in text.split("\n") if line.strip()]
    names = ("line_punct", "short_lines", "char_dup", "newlines_per_word")
    if not lines:
        return {f"fineweb_{name}": NAN for name in names}
    typed = settings.fineweb.colons_end_lines

    def opened(line: str) -> str:
        """The line without white space and what closes at its end; something always stays."""
        passed = ch.SPACE | (ch.CLOSE if settings.fineweb.closers_end_lines else 0)
        while len(line) > 1 and has(line[-1], passed):
            line = line[:-1]
        return line

    ends = sum(
        has(opened(line)[-1], ch.TERMINAL) or (typed and bool(colons(opened(line))))
        for line in lines
    )
    copies = sum(len(line) for i, line in enumerate(lines) if line in lines[:i])
    values = (
        ends / len(lines),
        sum(len(line) <= 30 for line in lines) / len(lines),
        copies / len(text.replace("\n", "")),
        ratio(text.count("\n"), len(tokens)),
    )
    return {f"fineweb_{name}": v for name, v in zip(names, values, strict=True)}


def spans(text: str, tokens: Sequence[str]) -> list[int]:
    """Number of the line that each token stands in."""
    ends = list(accumulate(map(len, text.splitlines(keepends=True))))
    at = 0
    lines = []
    for token in tokens:
        at = text.index(token, at)
        lines.append(bisect_right(ends, at))
        at += len(token)
    return lines


def words_of(token: str) -> Fraction:
    """How much of a word a token with letters is."""
    if any(has(c, ch.SPELLING) for c in token):
        return Fraction(1, 4)
    return Fraction(1, 2 if any(has(c, ch.SINGLE) for c in token) else 1)


def line_ngrams(text: str, tokens: list[str]) -> dict[str, float]:
    lines = spans(text, tokens)
    words = [i for i, t in enumerate(tokens) if has_letter(t)]
    grams: dict[tuple[int, int], tuple[str, ...]] = {}  # first and last token -> words
    for end, last in enumerate(words):
        start, length = end + 1, Fraction(0)
        while start > 0 and length < 4 and lines[words[start - 1]] == lines[last]:
            start -= 1
            length += words_of(tokens[words[start]])
        first = words[start]
        figures = sum(
            len(t)
            for t in tokens[first : last + 1]
            if not has_letter(t) and any(has(c, ch.NUMBER) for c in t)
        )
        gram = tuple(lower(tokens[i]) for i in words[start : end + 1])
        if length >= 4 and figures <= sum(map(len, gram)):
            grams[first, last] = gram
    counts = Counter(grams.values())
    covered = {
        i
        for (first, last), gram in grams.items()
        if counts[gram] >= 4
        for i in range(first, last + 1)
    }
    whole: Counter[int] = Counter()
    part: Counter[int] = Counter()
    for i, (token, line) in enumerate(zip(tokens, lines, strict=True)):
        whole[line] += len(token)
        part[line] += len(token) * (i in covered)
    lost = sum(n for line, n in whole.items() if part[line] / n > 0.6)
    return {"llama3_line_ngram_coverage": ratio(lost, whole.total())}


def dirty(
    tokens: list[str],
    flagged: Sequence[tuple[str, ...]],
    everyday: Sequence[tuple[str, ...]],
    allowed: Sequence[tuple[str, ...]],
) -> dict[str, float]:
    """Phrases are tuples of words in lower case; words stand side by side, without symbols."""
    held = dict.fromkeys(flagged, "flagged")
    held |= dict.fromkeys(everyday, "everyday")
    held |= dict.fromkeys(allowed, "allowed")
    longest = max(map(len, held), default=0)
    found, covered = Counter[str](), Counter[str]()
    total = free = 0
    for i, token in enumerate(tokens):
        if not is_word(token):
            continue
        total += 1
        if i < free:
            continue
        for size in range(longest, 0, -1):
            part = tokens[i : i + size]
            phrase = tuple(map(lower, part))
            if len(part) == size and all(map(is_word, part)) and phrase in held:
                free = i + size
                found[held[phrase]] += 1
                covered[held[phrase]] += size
                break
    count, words = (n["flagged"] + min(n["everyday"], n["flagged"]) for n in (found, covered))
    return {"dirty_word_count": count, "dirty_word_ratio": ratio(words, total)}


def finish(h: int) -> int:
    """The scrambling of curation.text.words, on Python's integers."""
    for _ in range(2):
        h = (h ^ h >> 32) * 0xD6E8FEB86659FD93 % 2**64
    return h ^ h >> 32


def ending_hash(word: str) -> int:
    h = 0x452821E638D01377
    for c in word[-3:]:
        h = (h ^ ord(c)) * 0x100000001B3 % 2**64
    return finish(h)


@lru_cache(maxsize=1)
def ranks() -> dict[bytes, int]:
    return {token: rank for rank, token in enumerate(vocabulary().tokens)}


def byte_pairs(raw: bytes) -> list[int]:
    """The pair of the lowest rank merges, leftmost first, until none is a token."""
    known = ranks()
    parts = [raw] if raw in known else [raw[i : i + 1] for i in range(len(raw))]
    while len(parts) > 1:
        found = [(known.get(a + b, 1 << 30), i) for i, (a, b) in enumerate(pairwise(parts))]
        rank, i = min(found)
        if rank == 1 << 30:
            break
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return [known[part] for part in parts]


def is_number(word: str) -> bool:
    return any(has(c, ch.NUMBER) for c in word) and not has_letter(word)


class PlainReference:
    """Cost (tenths of a nat) and class of words under a reference."""

    def __init__(self, held: Reference) -> None:
        self.held = held
        self._costs = dict(zip(held.tokens.tolist(), held.costs.tolist(), strict=True))
        words = zip(held.word_costs.tolist(), held.word_classes.tolist(), strict=True)
        self._words = dict(zip(held.words.tolist(), words, strict=True))
        endings = zip(held.endings.tolist(), held.ending_classes.tolist(), strict=True)
        self._endings = dict(endings)
        self._known: dict[str, tuple[int, int]] = {}

    def word(self, word: str) -> tuple[int, int]:
        if word not in self._known:
            self._known[word] = self._word(word)
        return self._known[word]

    def _word(self, word: str) -> tuple[int, int]:
        number = is_number(word)
        known = self._words.get((0x2545F4914F6CDD1D if number else token_hash(word)) >> 32)
        if known is not None:
            return max(known[0], 1), known[1]
        single = any(has(c, ch.SINGLE) for c in word)
        text = "" if single else " "
        for c in word:
            if len(text.encode()) >= 96:
                break
            text += c
        tokens = vocabulary().tokens
        cost = self.held.unknown + sum(
            self._costs.get(i, int(self.held.unseen[min(len(tokens[i]), LONGEST_TOKEN)]))
            for i in byte_pairs(b"0" if number else text.encode())
        )
        if len(text) > 4 and not single and not number:
            return cost, self._endings.get(ending_hash(text) >> 32, 0)
        return cost, 0


def divergence_parts(tokens: list[str], reference: PlainReference) -> list[float]:
    """Divergence of words, share of outliers, and of pairs, before the calibration."""
    words = [lower(t) for t in tokens if is_word(t)]
    if not words:
        return [NAN] * 3
    held, total = reference.held, len(words)
    counts = Counter("0" if is_number(w) else w for w in words)
    costs = {w: reference.word(w)[0] for w in counts}
    distance = sum(
        n / total * (math.log(n / total) + min(costs[w], held.limit) / 10)
        for w, n in counts.items()
    )
    outliers = sum(cost > held.bound for cost in costs.values())
    classes = [reference.word(w)[1] for w in words]
    fit = sum(int(held.pairs[a, b]) for a, b in pairwise(classes))
    return [distance, outliers / total, -fit / 16 / max(total - 1, 1)]


def divergence(tokens: list[str], reference: PlainReference) -> dict[str, float]:
    total = sum(is_word(t) for t in tokens)
    if total < 50:
        return {"kl_divergence": NAN, "outlier_token_ratio": NAN}
    parts = divergence_parts(tokens, reference)
    at = np.log(np.array(LENGTHS))
    excess = []
    for k, value in enumerate(parts):
        median, spread = (
            float(np.interp(math.log(total), at, reference.held.curve[:, k, j].astype(float)))
            for j in (0, 1)
        )
        excess.append(max((value - median) / spread, 0.0))
    return {
        "kl_divergence": max(excess[:2]) + excess[2],
        "outlier_token_ratio": parts[1],
    }


def measured(
    text: str,
    settings: SignalSettings,
    stop: Sequence[str],
    flagged: Sequence[tuple[str, ...]],
    everyday: Sequence[tuple[str, ...]],
    allowed: Sequence[tuple[str, ...]],
    reference: PlainReference,
) -> Mapping[str, float]:
    """All signals of a text but repetition (test_repetition) and kinds of content."""
    tokens = plain_words(text, True)
    return {
        **gopher(text, tokens, settings.gopher.dialect, stop),
        **c4(text, settings),
        **fineweb(text, tokens, settings),
        **line_ngrams(text, tokens),
        **dirty(tokens, flagged, everyday, allowed),
        **divergence(tokens, reference),
    }
