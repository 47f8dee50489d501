"""Mark in a document's text what stages cut or replaced."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

#: Lines that are compared character by character; longer ones are marked as a whole.
_MOST_COMPARED = 4000

Kind = Literal["kept", "cut", "added"]


class Cut(NamedTuple):
    """A passage cut out of a text, at a byte offset in its UTF-8."""

    reason: str
    position: int
    text: str


class Edit(NamedTuple):
    """A stage's changes to a text: the recorded cuts, and the resulting text."""

    stage: str
    cuts: Sequence[Cut]
    after: str


class Segment(NamedTuple):
    """A piece of a marked text. `stage` and `reason` are empty if it is unchanged."""

    text: str
    kind: Kind = "kept"
    stage: str = ""
    reason: str = ""


class _Span(NamedTuple):
    """Bytes to mark as cut, and their replacement."""

    start: int
    end: int
    reason: str
    added: str = ""


def mark(text: str, edits: Iterable[Edit]) -> list[Segment]:
    """Return the pieces of `text` in order, with what each edit removed and inserted.

    A cut that is not found at its offset is ignored. Unrecorded differences from the text that a
    stage left, such as replaced personal data, are found by comparison.
    """
    segments = [Segment(text)]
    for edit in edits:
        segments = _apply(segments, edit.stage, _recorded(_live(segments), edit.cuts))
        live = _live(segments).decode()
        if live != edit.after:
            spans = list(_differences(live, edit.after))
            segments = _apply(segments, edit.stage, spans)
    return [segment for segment in segments if segment.text]


def _live(segments: Sequence[Segment]) -> bytes:
    return "".join(s.text for s in segments if s.kind != "cut").encode()


def _recorded(live: bytes, cuts: Sequence[Cut]) -> list[_Span]:
    spans: list[_Span] = []
    for cut in sorted(cuts, key=lambda c: c.position):
        content = cut.text.encode()
        end = cut.position + len(content)
        begins = cut.position >= (spans[-1].end if spans else 0)
        if begins and live[cut.position : end] == content:
            spans.append(_Span(cut.position, end, cut.reason))
    return spans


def _differences(before: str, after: str) -> Iterator[_Span]:
    """Return the cuts and insertions that turn `before` into `after`."""
    ours, theirs = before.splitlines(True), after.splitlines(True)
    starts = [0]
    for line in ours:
        starts.append(starts[-1] + len(line.encode()))
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            old, new = "".join(ours[i:i_end]), "".join(theirs[j:j_end])
            yield from _within(starts[i], old, new)


def _within(start: int, old: str, new: str) -> Iterator[_Span]:
    if not old or not new or max(len(old), len(new)) > _MOST_COMPARED:
        yield _Span(start, start + len(old.encode()), "replaced", new)
        return
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            at = start + len(old[:i].encode())
            yield _Span(at, at + len(old[i:i_end].encode()), "replaced", new[j:j_end])


def _apply(segments: Sequence[Segment], stage: str, spans: Sequence[_Span]) -> list[Segment]:
    """Return the segments with these ascending spans of the live bytes marked."""
    out: list[Segment] = []
    waiting = list(spans)
    begin = 0
    for segment in segments:
        if segment.kind == "cut":
            out.append(segment)
            continue
        content = segment.text.encode()
        end, at = begin + len(content), 0
        while (waiting and waiting[0].start < end) or (waiting and waiting[0].start == end == 0):
            span = waiting[0]
            first, last = max(span.start - begin, at), min(span.end, end) - begin
            out.append(segment._replace(text=_text(content[at:first])))
            out.append(Segment(_text(content[first:last]), "cut", stage, span.reason))
            at = last
            if span.end > end:  # the rest of it lies in the next segment
                waiting[0] = span._replace(start=end)
                break
            out.append(Segment(span.added, "added", stage, span.reason))
            waiting.pop(0)
        out.append(segment._replace(text=_text(content[at:])))
        begin = end
    out += [Segment(span.added, "added", stage, span.reason) for span in waiting]
    return [segment for segment in out if segment.text]


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
