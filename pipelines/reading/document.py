"""One document: its text with what stages cut, its decisions, its copies, its page.

Mark in a document's text what stages cut or replaced.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from curation.arrow import as_json, plain
from curation.config import settings_of_run
from curation.errors import InputError
from curation.html_page import harmless
from curation.schema import MADE
from curation.stages import find
from pipelines.reading.decisions import FACTS, compared, decision, token_spans, versions
from pipelines.reading.ledger import Ledger, key_of
from pipelines.reading.search import described
from pipelines.run_folder import run_recipe, run_settings
from pipelines.storage.files import Folder

if TYPE_CHECKING:
    from curation.readers.records import Page

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


#: Members of a cluster, lines of a difference, and characters of a text that are shown.
_MEMBERS, _DIFF_LINES, _TEXT = 60, 2000, 400_000
#: Lines that are compared; of longer texts only the beginning is.
_COMPARED = 5000
_IDENTITY = ("id", "url", "title", "date", "source")
#: Facts of a token span that are shown; the index has rights and own columns, too.
_SPAN = ("file", "sequence", "start", "length", "document_offset", "repeat")
#: Characters that are shown of a column of the document's own.
_OWN = 2000


def page_of(folder: Folder, ledger: Ledger, row: int) -> dict[str, Any]:
    """Return all that a run knows of a document, but its token spans."""
    base = ledger.read(folder, [row], _IDENTITY)[0]
    shard = ledger.source_of(row).name.split("/", 1)[1]
    reached = list(versions(folder, ledger.stages, shard, base))
    decisions = [decision(folder, *each, shard) for each in reached]
    texts = [version["text"] for *_, version in reached]
    edits = [
        Edit(each["stage"], _cuts(each), after)
        for each, after in zip(decisions[1:], texts[1:], strict=True)
        if each["decision"] == "kept"
    ]
    whole = texts[0] if texts else ""
    segments = mark(whole, edits) if len(whole) <= _TEXT else mark(whole[:_TEXT], [])
    return {
        **described(folder, ledger, [row], ["id", "source"])[0],
        "decisions": decisions,
        "own": _own(reached[-1][2]) if reached else {},
        "segments": segments,
        "cut_short": len(whole) > _TEXT,
        "cluster": cluster_of(folder, ledger, row),
    }


def _own(row: dict[str, Any]) -> dict[str, str]:
    """Return the columns that came with the document's table, as text."""
    own = {name: value for name, value in row.items() if name not in MADE and name not in FACTS}
    texts = {
        name: value if isinstance(value, str) else as_json(plain(value))
        for name, value in own.items()
        if value is not None
    }
    return {name: text[:_OWN] for name, text in texts.items()}


def _cuts(found: dict[str, Any]) -> list[Cut]:
    return [Cut(c["reason"], c["position"], c["text"]) for c in found.get("cut", [])]


def cluster_of(folder: Folder, ledger: Ledger, row: int) -> dict[str, Any] | None:
    """Return the kept document and those that went for it; None where it has no copies."""
    base = ledger.read(folder, [row], ["id", "kept_id"])[0]
    key = key_of(base["kept_id"] or base["id"])
    removed = ledger.copies.of_key(key)
    if not len(removed):
        return None
    kept = ledger.by_key.of_key(key)
    return {
        "kept": described(folder, ledger, kept[:1].tolist()),
        "removed": described(folder, ledger, removed[:_MEMBERS].tolist()),
        "all": len(removed),
    }


def difference(folder: Folder, ledger: Ledger, before: int, after: int) -> dict[str, Any]:
    """Lines of two documents: `[" ", line]` in both, `["-", line]` or `["+", line]` in one."""
    texts = [row["text"].splitlines() for row in ledger.read(folder, [before, after], ["text"])]
    lines = compared(*(held[:_COMPARED] for held in texts))
    cut = len(lines) > _DIFF_LINES or any(len(held) > _COMPARED for held in texts)
    return {
        "lines": lines[:_DIFF_LINES],
        "cut_short": cut,
        "documents": described(folder, ledger, [before, after]),
    }


def spans_of(
    folder: Folder, stages: Sequence[str], ledger: Ledger, row: int
) -> list[dict[str, Any]]:
    """Return where the document's tokens are, in every complete stage that writes tokens."""
    base = ledger.read(folder, [row], ["id", "source"])[0]
    found = []
    for stage in stages:
        for span in token_spans(folder / stage, base) if find(stage).is_sink else ():
            found.append({name: span[name] for name in _SPAN if name in span} | {"stage": stage})
    return found


class Inputs:
    """The run's input files by the names that its documents have for them."""

    def __init__(self, folder: Folder, stage: str, inputs: list[str]) -> None:
        self._stage, self._folder, self.given = stage, folder, inputs
        self._paths: dict[str, str] | None = None

    def page(self, source: dict[str, Any]) -> Page:
        """Return the record of a document. Raises InputError where it can't be found."""
        if not self.given:
            raise InputError(
                "the run doesn't say where its inputs are; start with --input PATH to see pages"
            )
        from curation.readers.discover import discover
        from curation.readers.index import with_archives
        from curation.readers.read import read_at
        from curation.readers.settings import ReaderSettings  # compiled kernels

        recipe = run_recipe(self._folder)
        readers = settings_of_run(ReaderSettings, recipe["readers"])
        if self._paths is None:
            found = with_archives(discover(self.given), readers)
            self._paths = {file.name: file.path for file in found}
        if source["file"] not in self._paths:
            raise InputError(f"{source['file']}: not among the files of --input")
        return read_at(self._paths[source["file"]], source["offset"], readers)

    def blocks(self, source: dict[str, Any]) -> dict[str, Any]:
        """Blocks of the page with score, threshold and fate, as extraction judged them."""
        from curation.extract.explain import explain  # compiled kernels
        from curation.extract.extract_settings import ExtractSettings

        settings = settings_of_run(ExtractSettings, run_settings(self._folder, self._stage))
        return asdict(explain(self._html(source, "blocks"), settings))

    def html(self, source: dict[str, Any]) -> bytes:
        """Return the page in UTF-8 with nothing in it that loads, runs or leads elsewhere."""
        return harmless(self._html(source, "page to show"))

    def _html(self, source: dict[str, Any], wanted: str) -> bytes:
        from curation.readers.charset import utf8_html  # compiled kernels

        page = self.page(source)
        if page.kind != "html":
            raise InputError(f"a record of plain text has no {wanted}")
        return utf8_html(page.content, page.charset)[0]
