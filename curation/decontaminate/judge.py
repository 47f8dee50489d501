"""Judge documents by the evaluation items they contain: mark, cut or remove."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import regex

from curation.arrow import Texts, cut_out, text_buffers
from curation.config import read_values
from curation.decontaminate.align import (
    Rival,
    Tokens,
    is_code,
    is_other_code,
    is_renumbered,
    is_source,
    is_template,
    losses,
)
from curation.decontaminate.catalog import PARTS, Catalog, Owner
from curation.decontaminate.decontaminate_settings import DecontaminationSettings, Rules
from curation.decontaminate.index import NUMBER, STEPS, Index
from curation.decontaminate.matching import HIT, Matcher
from curation.decontaminate.normalize import (
    SIZE,
    WORD,
    Scratch,
    folding,
    ngram_at,
    ngrams,
    tokenize,
)
from curation.schema import Verdicts, edits_of, with_column

REASON = "contamination"
#: Marks of a document: the items it contains.
MARK = pa.struct(
    [("set", pa.string()), ("item", pa.string()), ("part", pa.string()), ("score", pa.float32())]
)
MARKS = pa.list_(MARK)
#: Every part of an item that a document contains wholly or partly.
FOUND = pa.schema(
    [
        ("id", pa.string()),  # of the document
        ("input", pa.string()),  # first folder of its source: the name of a named input
        ("set", pa.string()),
        ("item", pa.string()),
        ("part", pa.string()),
        ("action", pa.string()),  # remove, cut or mark; touched: below the threshold
        ("score", pa.float32()),  # share of the part's weight
        ("threshold", pa.float32()),
        ("exact", pa.float32()),  # share of the part's tokens in equal n-grams
        ("start", pa.int64()),  # bytes of the text before this stage
        ("end", pa.int64()),
        ("text", pa.large_string()),  # the span
        ("item_text", pa.large_string()),
    ]
)
_TOUCHED = "touched"
#: Characters of span and item that are kept to be shown side by side.
_SHOWN = 600
#: A statement has the words of a question without its mark, and another word where it asks.
_QUESTION_MARK = regex.compile("[?\u037e\u061f\uff1f\u2753]")
#: Bytes behind a span in which its question mark is looked for.
_AFTER = 4
#: Bytes of a text whose matches are looked up together.
_CELL = 256
_CLOSING = b".?!"  # go with the sentence that they end


class Found(NamedTuple):
    """A part of an item in a document."""

    item: int
    set: str
    id: str
    part: str
    action: str
    score: float
    threshold: float
    exact: float
    start: int  # bytes of the text
    end: int
    pattern: int
    tokens: Tokens
    digits: npt.NDArray[np.bool_]  # which of the tokens are numbers
    pieces: tuple[tuple[int, int], ...]  # bytes of the text, in the item's order; largest: start


class Decontaminated(NamedTuple):
    """A batch with marks, verdicts, cuts, and everything found (FOUND); counts by name."""

    batch: pa.RecordBatch
    verdicts: Verdicts
    edits: pa.RecordBatch
    found: pa.RecordBatch
    counts: dict[str, int]


class Decontaminator:
    """Judges documents by the items of a catalog."""

    def __init__(self, settings: DecontaminationSettings, catalog: Catalog) -> None:
        self._settings, self._catalog = settings, catalog
        self._rules = read_values(settings.rules, Rules)
        self._acting = {name: settings.parts_of(name) for name in settings.evals}
        self._matcher = Matcher(catalog.patterns, folding(), settings.touched)
        self.index, self.items = catalog.patterns, catalog.items

    def detectable(self) -> npt.NDArray[np.bool_]:
        """Return which items have a part that acts and can be found: bool [items].

        Others are too short, or all their n-grams are common.
        """
        found = np.zeros(self.items.num_rows, np.bool_)
        reached = np.zeros(len(self.index.totals), np.bool_)
        reached[self.index.patterns] = True
        sets = self.items["set"].to_pylist()
        for pattern, *owner in self._catalog.owners.tolist():
            of = Owner(*owner)
            if reached[pattern] and PARTS[of.part] in self._acting[sets[of.item]]:
                found[of.item] |= self._tells(int(self.index.totals[pattern]), of)
        return found

    def find(self, texts: Texts) -> Iterator[list[Found]]:
        """Yield the matches of each text, best first; ties in the order of the items."""
        offsets, data = text_buffers(texts)
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            tokens = self._matcher.tokens(data, begin, end)
            hits = self._matcher.hits(tokens)
            found = [one for hit in hits for one in self._of_hit(hit, tokens)]
            text = data[begin:end]
            gathered = list(self._gathered(self._told(found, text), tokens))
            found = self._told(found + gathered, text)
            yield sorted(found, key=lambda f: (f.action == _TOUCHED, -f.score, f.item, f.part))

    def _told(self, found: Sequence[Found], text: npt.NDArray[np.uint8]) -> list[Found]:
        """Return the matches of a text, those of another text only as touched."""
        others = _Others(found, self.index)
        return [
            one._replace(action=_TOUCHED)
            if one.action != _TOUCHED
            and (self._of_another(one, others) or self._is_other_text(one, text))
            else one
            for one in found
        ]

    def apply(self, batch: pa.RecordBatch) -> Decontaminated:
        """Judge a batch of documents with `id` and `text`."""
        texts = batch.column("text")
        found = list(self.find(texts))
        table = pa.RecordBatch.from_pylist(
            [row for i, some in enumerate(found) for row in self._rows(batch, i, some)], FOUND
        )
        marks = [[_mark(f) for f in some if f.action != _TOUCHED] or None for some in found]
        buffers = text_buffers(texts)
        cuts = [(row, *cut) for row, some in enumerate(found) for cut in _cuts(texts[row], some)]
        rows, starts, ends = np.array([cut[:3] for cut in cuts], np.int64).reshape(-1, 3).T
        places = np.stack([starts, ends], 1) + buffers.offsets[rows, None]
        left, gone = cut_out(buffers, rows, places)
        emptied = {row for row, *_ in cuts if not left[row].as_py().encode().strip()}
        reasons = [_reason(some, row in emptied) for row, some in enumerate(found)]
        names = pa.array([f"{REASON}.{name}" for *_, name in cuts], pa.string())
        edits = edits_of(batch.column("id"), rows, names, starts, gone)
        removed = pa.array([reason is not None for reason in reasons], pa.bool_())
        # The texts of removed documents stay as they were.
        batch = with_column(batch, "text", pc.if_else(removed, texts, left.cast(texts.type)))
        batch = with_column(batch, REASON, pa.array(marks, MARKS))
        return Decontaminated(
            batch,
            _verdicts(reasons),
            edits.filter(pc.invert(removed.take(pa.array(rows)))),
            table,
            dict(Counter(f"{REASON}.{f.set}.{f.action}" for some in found for f in some)),
        )

    def _gathered(self, found: Sequence[Found], tokens: Scratch) -> Iterator[Found]:
        """Yield the items whose pieces are in several places of a document, none of them enough."""
        whole = {one.pattern for one in found if one.action != _TOUCHED}
        missed = sorted({one.pattern for one in found} - whole)
        for pattern, places in self._matcher.gathered(tokens, missed) if missed else ():
            some = Scratch._make(array[places] for array in tokens)
            breaks = np.flatnonzero(np.diff(places) != 1) + 1
            for hit in self._matcher.hits(some, pattern):
                items = self._of_hit(hit, some, breaks.tolist())
                yield from (one for one in items if one.action != _TOUCHED)

    def _of_hit(
        self, hit: npt.NDArray[np.int64], tokens: Scratch, breaks: Sequence[int] = ()
    ) -> Iterator[Found]:
        """Yield the items of a hit; at `breaks`, tokens go on elsewhere in the text."""
        index, pattern = self.index, int(hit[HIT.pattern])
        whole = max(1, int(index.totals[pattern]))
        length = int(index.offsets[pattern + 1] - index.offsets[pattern])
        aligned = hit
        for owner in self._catalog.owners_of(pattern):
            hit = aligned
            if hit[HIT.score] < self._settings.threshold * whole:
                hit = self._reordered(hit, owner, tokens)
            score = float(hit[HIT.score]) / whole
            start, end = int(hit[HIT.start]), int(hit[HIT.end])
            edges = [start, *(place for place in breaks if start < place < end), end]
            pieces = tuple(
                (int(tokens.starts[a]), int(tokens.ends[b - 1])) for a, b in pairwise(edges)
            )
            name = self.items["set"][owner.item].as_py()
            of_set = self._settings.evals[name]
            threshold = of_set.threshold or self._settings.threshold
            part = PARTS[owner.part]
            action = _TOUCHED
            if score >= threshold and self._counts(hit, owner, tokens):
                acts = part in self._acting[name]
                action = (of_set.action or self._settings.action) if acts else "mark"
            yield Found(
                owner.item,
                name,
                self.items["id"][owner.item].as_py(),
                part,
                action,
                round(min(score, 1.0), 4),
                threshold,
                round(int(hit[HIT.covered]) / length, 4),
                *max(pieces, key=lambda piece: piece[1] - piece[0]),
                pattern,
                tokens.hashes[start:end].astype(np.uint32),
                tokens.numbers[start:end].copy(),
                pieces,
            )

    def _reordered(
        self, hit: npt.NDArray[np.int64], owner: Owner, tokens: Scratch
    ) -> npt.NDArray[np.int64]:
        """Return the hit of a question with its choices, these in whatever order."""
        choices = self.items["choices"][owner.item].as_py()
        if PARTS[owner.part] != "question" or not choices:
            return hit
        pattern = int(hit[HIT.pattern])
        own, flagged = self.index.pattern(pattern), self.index.weights_of(pattern)
        weights = (flagged & (NUMBER - 1)).astype(np.int64)
        each = tokenize(choices)
        ends = len(own) - len(each.hashes) + each.offsets
        asked = int(ends[0])
        if asked <= 0 or not np.array_equal(own[asked:], each.hashes.astype(np.uint32)):
            return hit
        first = max(0, int(hit[HIT.start]) - len(own))
        near = tokens.hashes[first : int(hit[HIT.end]) + len(own)].astype(np.uint32)
        score = weights[:asked][~losses(own[:asked], near)].sum()
        start, end = int(hit[HIT.start]), int(hit[HIT.end])
        for a, b in pairwise(ends.tolist()):
            if not 0 < b - a <= len(near):
                continue
            windows = np.lib.stride_tricks.sliding_window_view(near, b - a)
            places = np.flatnonzero((windows == own[a:b]).all(axis=1))
            if len(places):
                score += weights[a:b].sum()
                start = min(start, first + int(places[0]))
                end = max(end, first + int(places[0]) + b - a)
        if score <= hit[HIT.score]:
            return hit
        hit = hit.copy()
        hit[[HIT.score, HIT.start, HIT.end]] = score, start, end
        hit[HIT.found] = np.isin(own[flagged & NUMBER != 0], near).sum()
        return hit

    def _of_another(self, one: Found, others: _Others) -> bool:
        """Return whether the match is another item of the template, or what the item asks about."""
        own = self.index.pattern(one.pattern)
        span = one.tokens
        words = int(self.index.sizes[one.pattern]) // WORD
        weights = self.index.weights_of(one.pattern)
        if one.part == "question":
            least = self._rules.template.renumbered
            if is_renumbered(own, weights, span, one.digits, least):
                return True
            rules = self._rules.source
            if not self._asks_code(one.item) and is_source(
                own, weights, span, one.score, words, rules
            ):
                return True
            if self._is_choices(others.choices_of(one.item), own, span):
                return True
        rivals = self._rivals(one, others, len(own))
        return is_template(own, span, one.score, rivals, self._rules.template)

    def _asks_code(self, item: int) -> bool:
        """Return whether an item's question is code."""
        return is_code(self.items["question"][item].as_py())

    def _is_other_text(self, one: Found, text: npt.NDArray[np.uint8]) -> bool:
        """Return whether what the tokens leave out decides: operators of code, a question mark."""
        if one.part not in ("question", "answer"):
            return False
        item: str = self.items[one.part][one.item].as_py()
        parts = [text[start : end + _AFTER].tobytes() for start, end in one.pieces]
        span = b"\n".join(parts).decode("utf-8", "ignore")
        if is_code(item):
            return is_other_code(item, span, self._rules.code)
        if one.part != "question" or not _QUESTION_MARK.search(item) or _QUESTION_MARK.search(span):
            return False
        own = self.index.pattern(one.pattern)
        lost = losses(own, one.tokens)
        short = self.index.sizes[one.pattern] < self._rules.short_words * WORD
        # A lost last word may have taken the mark with it.
        return bool(lost[: self._rules.quotation.asking].any() and (short or not lost[-1]))

    def _is_choices(self, choices: Iterable[int], own: Tokens, span: Tokens) -> bool:
        """Return whether a match of a question with its choices has the choices and not the
        question.

        `choices`: the tokens of those that match.
        """
        before = [len(own) - length for length in choices if length < len(own)]
        if not before:
            return False
        lost = losses(own, span)
        return any(lost[:length].mean() > self._rules.quotation.choices for length in before)

    def _rivals(self, one: Found, others: _Others, length: int) -> list[Rival]:
        """Other items of the set that fit the same place, best first, each by its pattern of about
        the same length."""
        rivals: dict[int, tuple[int, Rival]] = {}
        for other in others.around(one):
            common = min(other.end, one.end) - max(other.start, one.start)
            if other.item != one.item and common > (one.end - one.start) // 2:
                rival = Rival(other.score, self.index.pattern(other.pattern))
                off = abs(len(rival.tokens) - length)
                if other.item not in rivals or off < rivals[other.item][0]:
                    rivals[other.item] = off, rival
        return [rival for _, rival in rivals.values()]

    def _counts(self, hit: npt.NDArray[np.int64], owner: Owner, tokens: Scratch) -> bool:
        """Return whether a high score means the item: not another of its template, not a stock
        phrase."""
        rules = self._rules
        if hit[HIT.numbers] > 1 and hit[HIT.found] < rules.numbers * hit[HIT.numbers]:
            return False
        if not self._tells(int(hit[HIT.score]), owner):
            return False
        if hit[HIT.exact]:
            return True
        says_enough = hit[HIT.score] >= 2 * rules.least_bits * STEPS
        start, end = int(hit[HIT.start]), int(hit[HIT.end])
        if PARTS[owner.part] == "question" and self._quotes_passage(owner.item, start, end, tokens):
            return False
        size = int(self.index.sizes[hit[HIT.pattern]])
        length = int(np.diff(self.index.offsets[hit[HIT.pattern] :][:2])[0])
        if size >= rules.short_words * WORD:
            return True
        # Of scripts without spaces a token is a letter: 20 of them are enough if they say enough.
        if length >= rules.short_words and says_enough:
            return True
        short = rules.short
        if end - start > short.stretch * length and hit[HIT.covered] < short.in_runs * length:
            return False  # its words, here and there
        whole = int(self.index.totals[hit[HIT.pattern]])
        least = max(short.bits * STEPS, short.score * whole)
        if hit[HIT.found] == hit[HIT.numbers] and hit[HIT.score] >= least:
            return True
        return self._answer_near(owner.item, start, end, tokens)

    def _tells(self, score: int, owner: Owner) -> bool:
        """Return whether so much says whose it is; many wrote `def f(a, b): return a + b`."""
        least = self._rules.least_bits * STEPS
        if least <= score < 2 * least and PARTS[owner.part] == "question":
            return not self._asks_code(owner.item)
        return score >= least

    def _quotes_passage(self, item: int, start: int, end: int, tokens: Scratch) -> bool:
        """Return whether the span is from the item's passage, whose words a question takes up.

        It is not where it has most of the words that the question has and the passage has not.
        """
        passage = tokenize([self.items["passage"][item].as_py()])
        question = tokenize([self.items["question"][item].as_py()]).hashes
        own = question[~np.isin(question, passage.hashes)]
        share = self._rules.quotation.passage
        if len(own) and np.isin(own, tokens.hashes[start:end]).mean() >= share:
            return False
        grams, ends = ngrams(passage)
        found = [ngram_at(tokens.hashes, tokens.sizes, i, end, SIZE) for i in range(start, end)]
        spans = np.array([gram for gram, stop in found if stop >= 0], np.uint64)
        return bool(np.isin(spans, grams[ends >= 0]).sum() > share * len(spans))

    def _answer_near(self, item: int, start: int, end: int, tokens: Scratch) -> bool:
        """Return whether the answer is near: a short one word for word, of a long one most
        words."""
        answer = tokenize([self.items["answer"][item].as_py()]).hashes
        reach = self._rules.answer_words + len(answer)
        near = tokens.hashes[max(0, start - reach) : end + reach]
        if not len(answer) or len(near) < len(answer):
            return False
        if len(answer) >= self._rules.short.long_answer:
            return bool(np.isin(answer, near).mean() >= self._settings.threshold)
        windows = np.lib.stride_tricks.sliding_window_view(near, len(answer))
        return bool((windows == answer).all(axis=1).any())

    def _rows(
        self, batch: pa.RecordBatch, i: int, found: Sequence[Found]
    ) -> Iterator[dict[str, object]]:
        if not found:
            return
        text = batch["text"][i].as_py().encode()
        named = {"id": batch["id"][i].as_py(), "input": input_of(batch, i)}
        for one in found:
            column = "question" if one.part in ("question", "choices") else one.part
            item = self.items[column][one.item].as_py()
            span = text[one.start : one.end].decode("utf-8", "replace")
            row = {n: v for n, v in one._asdict().items() if n in FOUND.names}
            texts = {"text": span[:_SHOWN], "item_text": item[:_SHOWN]}
            yield row | named | {"item": one.id} | texts


class _Others:
    """The matches of a text, by place and by item: each is compared with few of the others."""

    def __init__(self, found: Sequence[Found], index: Index) -> None:
        self._near: dict[tuple[str, str, int], list[Found]] = defaultdict(list)
        self._choices: dict[int, set[int]] = defaultdict(set)
        for one in sorted(found, key=lambda f: (-f.score, f.item)):
            for cell in range(one.start // _CELL, (one.end - 1) // _CELL + 1):
                self._near[one.set, one.part, cell].append(one)
            if one.part == "choices":
                self._choices[one.item].add(len(index.pattern(one.pattern)))

    def around(self, one: Found) -> list[Found]:
        """Matches of the same set and part, best first: all that have more than half of the span.

        These have its middle.
        """
        middle = one.start + (one.end - one.start) // 2
        return self._near.get((one.set, one.part, middle // _CELL), [])

    def choices_of(self, item: int) -> set[int]:
        """Return tokens of the patterns by which the item's choices match."""
        return self._choices.get(item, set())


def input_of(batch: pa.RecordBatch, i: int) -> str:
    """Return the name of a document's input, the first folder of its source; or nothing."""
    source = batch["source"][i].as_py() if "source" in batch.schema.names else None
    folder, slash, _ = ((source or {}).get("file") or "").partition("/")
    return folder if slash else ""


def _mark(one: Found) -> dict[str, object]:
    return {"set": one.set, "item": one.id, "part": one.part, "score": one.score}


def _reason(found: Sequence[Found], emptied: bool) -> Found | None:
    """Return what removes a document: its best removing match, or a cut that leaves nothing."""
    first = next((f for f in found if f.action == "remove"), None)
    if first is None and emptied:
        first = next(f for f in found if f.action == "cut")
    return first


def _verdicts(reasons: Sequence[Found | None]) -> Verdicts:
    return Verdicts(
        pa.array([r and f"{REASON}.{r.set}" for r in reasons], pa.string()),
        pa.array([r and r.score for r in reasons], pa.float64()),
        pa.array([r and r.threshold for r in reasons], pa.float64()),
    )


def _cuts(text: pa.Scalar, found: Sequence[Found]) -> list[tuple[int, int, str]]:
    """Return the spans that go, with the set of each: those that overlap as one.

    Each ends with its last character and the signs that close its sentence.
    """
    spans = sorted((*piece, f.set) for f in found if f.action == "cut" for piece in f.pieces)
    raw = text.as_py().encode() if spans else b""
    cuts: list[tuple[int, int, str]] = []
    for start, end, name in spans:
        while end < len(raw) and (raw[end] & 0xC0 == 0x80 or raw[end] in _CLOSING):
            end += 1
        if cuts and start <= cuts[-1][1]:
            first = cuts.pop()
            start, end, name = first[0], max(end, first[1]), first[2]
        cuts.append((start, end, name))
    return cuts
