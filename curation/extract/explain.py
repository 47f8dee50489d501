"""Why a page's text is what it is: its blocks with score, decision and reason, also as an HTML view."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from curation.extract import blocks as s
from curation.extract.assemble import Atoms, with_formulas
from curation.extract.extract_settings import ExtractSettings
from curation.extract.features import NAMES
from curation.extract.markup import TAG
from curation.extract.native import Judged, judge, result
from curation.extract.units import units_of
from curation.html_page import harmless, head

_TAG_NAMES = {number: name for name, number in TAG.items()}
_PATH = 6  # elements of a path that are shown
_CLASS = 40  # characters of a class that are shown
# What says most about a block, as far as it is among the features; True: stored as a logarithm.
_SHOWN = {
    "b_words": ("words", True),
    "b_link_density": ("share of characters in links", False),
    "b_sentences": ("sentence ends per word", False),
    "word_score": ("score of its words", False),
    "heading_score": ("score of the heading above", False),
    "e0_class_score": ("score of its class names", False),
    "class_sum": ("score of all class names around it", False),
    "e1_share": ("share of long text in its parent", False),
    "e1_link_density": ("share of links in its parent", False),
    "dominant_in": ("inside the dominant container", False),
    "copies": ("copies on the page", False),
    "position": ("position on the page", False),
}


@dataclass(frozen=True)
class Block:
    """A run of text under one block element."""

    text: str
    path: str  # the elements that it is in, outermost first
    characters: int  # without white space
    score: float  # probability to be main content
    threshold: float  # what it needed
    kept: bool
    reason: str
    code: bool
    values: tuple[tuple[str, float], ...]  # what was measured


@dataclass(frozen=True)
class Unit:
    """A group of like elements, or a run of text between groups."""

    blocks: range
    elements: int  # like elements of a group, 0 of a run of text


@dataclass(frozen=True)
class Explanation:
    """All blocks of a page in reading order, and what was decided on the page as a whole."""

    blocks: tuple[Block, ...]
    units: tuple[Unit, ...]
    notes: tuple[str, ...]
    judged: Judged


def explain(source: bytes, settings: ExtractSettings) -> Explanation:
    """Blocks of a page (UTF-8) with their fates. Raises PageTooLargeError, as extraction does."""
    judged = judge(source, settings)
    source, page, decisions = judged.source, judged.page, judged.decisions
    columns = [(NAMES.index(name), *shown) for name, shown in _SHOWN.items() if name in NAMES]
    blob = page.text.tobytes()
    blocks = []
    atoms = Atoms.of(page)
    for b in range(len(decisions.kept)):
        row = judged.measured[judged.rows[b]]
        blocks.append(
            Block(
                _text(source, page, blob, atoms, b),
                _path(source, page, int(page.b_element[b])),
                int(page.b_chars[b]),
                float(decisions.score[b]),
                float(decisions.threshold[b]),
                bool(decisions.kept[b]),
                _reason(judged, b, settings),
                bool(page.b_flags[b] & s.PRE),
                tuple(
                    (label, float(np.expm1(row[column]) if log else row[column]))
                    for column, label, log in columns
                ),
            )
        )
    return Explanation(tuple(blocks), _units(page), tuple(_notes(judged, settings)), judged)


def _units(page: s.Page) -> tuple[Unit, ...]:
    found = units_of(page)
    bounds = zip(found.start[:-1].tolist(), found.start[1:].tolist(), strict=True)
    return tuple(
        Unit(range(*bound), elements)
        for bound, elements in zip(bounds, found.elements.tolist(), strict=True)
    )


def _text(source: bytes, page: s.Page, blob: bytes, atoms: Atoms, block: int) -> str:
    start, end = int(page.b_start[block]), int(page.b_end[block])
    first, last = np.searchsorted(atoms.at, start), np.searchsorted(atoms.at, end, side="right")
    inside = range(first, last)
    return with_formulas(source, blob, start, end, atoms, inside)


def _reason(judged: Judged, block: int, settings: ExtractSettings) -> str:
    decisions = judged.decisions
    score, threshold = decisions.score[block], decisions.threshold[block]
    if judged.stated[block]:
        return "the page's JSON-LD has it as a question, an answer or a post"
    if decisions.filled[block]:
        return f"score {score:.2f} is under {threshold:.2f}, but what surrounds it is kept"
    if decisions.ended[block]:
        return "the text would end in it, and by itself it is unlikely to be content"
    if decisions.kept[block]:
        if score < threshold:
            if score < decisions.score.max():
                return "the headline, which repeats the title of the page"
            return "nothing reached its threshold, and this has the highest score of the page"
        return f"score {score:.2f} reaches {threshold:.2f}"
    if decisions.copied[block]:
        return "the page says the same above"
    if judged.where.hidden[block] and score == 0:
        return "hidden, and nothing says that a reader can unfold it"
    if judged.where.gutter[block] and score == 0:
        return "numbers in a gutter"
    if judged.where.comments[block]:
        if not settings.comments:
            return "in comments, which the settings leave out"
        return f"in comments below an article: score {score:.2f} is under {threshold:.2f}"
    return f"score {score:.2f} is under {threshold:.2f}"


def _notes(judged: Judged, settings: ExtractSettings) -> Iterator[str]:
    if judged.decisions.article:
        yield "judged as an article: a block needs the threshold of articles"
    else:
        yield "judged as a page without one sure body of text: a block needs the page's own threshold"
    if len(judged.decisions.kept) > settings.max_judged_blocks:
        yield "too many blocks to judge each: blocks of one kind share a judgement"
    if judged.shows_hidden:
        yield "hidden elements were read too, because without them no text was left"
    if result(judged, settings).stated:
        yield (
            "the text is not that of the blocks, which have far less, but the article body that "
            "the page states as linked data"
        )


def _path(source: bytes, page: s.Page, element: int) -> str:
    names: list[str] = []
    while element > 0 and len(names) < _PATH:
        start, end = page.e_class[element]
        classes = html.unescape(source[start : min(end, start + _CLASS)].decode("utf-8", "replace"))
        shown = "".join(f".{name}" for name in classes.split()[:3])
        names.append(_TAG_NAMES.get(int(page.e_tag[element]), "?") + shown)
        element = int(page.e_parent[element])
    names.append("…" if element > 0 else "body")
    return " > ".join(reversed(names))


_STYLE = Path(__file__).with_name("explain.css")


#: Red for 0, yellow in the middle, green for 1, as light or dark as the page is.
_SHADES = 60
_COLOURS = "\n".join(f".s{i} {{ --hue: {120 * i / _SHADES:.0f}; }}" for i in range(_SHADES + 1))
_CLOSEST = 5  # close calls that are linked


def view(explanation: Explanation, title: str, text: str) -> str:
    """One HTML document without outside resources or scripts: the page, and its blocks by fate.

    The page is in a frame that runs and loads nothing. Runs of removed blocks are folded.
    """
    blocks = explanation.blocks
    page = html.escape(harmless(explanation.judged.source).decode("utf-8", "replace"))
    style = _STYLE.read_text(encoding="utf-8") + _COLOURS
    parts = [
        head(f"{_safe(title)} - extraction explained", style, frames=True),
        f"<main><h1>{_safe(title)}</h1>",
        *(f"<p>{_safe(note)}</p>" for note in explanation.notes),
        _totals(blocks),
        _close_calls(blocks),
        _legend(),
        "<div class=sides><section class=page><h2>The page</h2>",
        f'<iframe sandbox="" title="The page, without scripts and network" srcdoc="{page}"></iframe>',
        "</section><section class=blocks><h2>Its blocks</h2>",
        *_folded(explanation),
        f"</section></div><h2>Text</h2><pre>{_safe(text)}</pre></main></html>\n",
    ]
    return "\n".join(parts)


def _safe(text: str) -> str:
    return html.escape(text)


def _totals(blocks: tuple[Block, ...]) -> str:
    rows = []
    for name, chosen in (
        ("kept", [b for b in blocks if b.kept]),
        ("removed", [b for b in blocks if not b.kept]),
        ("close calls (within 0.1 of the threshold)", [b for b in blocks if _close(b)]),
    ):
        characters = sum(b.characters for b in chosen)
        rows.append(f"<tr><td>{name}<td>{len(chosen):,}<td>{characters:,}")
    head = "<tr><th><th>blocks<th>characters (no white space)"
    return f"<table>{head}{''.join(rows)}</table>"


def _close(block: Block) -> bool:
    return abs(block.score - block.threshold) < 0.1


def _close_calls(blocks: tuple[Block, ...]) -> str:
    """Links to the blocks nearest to their thresholds. Browsers unfold what a link leads to."""
    close = sorted((abs(b.score - b.threshold), n) for n, b in enumerate(blocks) if _close(b))
    links = (
        f"<a href=#b{n}>{_safe(blocks[n].text[:40].strip() or blocks[n].path)}</a> "
        f"({blocks[n].score:.2f}, needs {blocks[n].threshold:.2f})"
        for _, n in close[:_CLOSEST]
    )
    return f"<p>Closest calls: {', '.join(links)}</p>" if close else ""


def _colour(score: float) -> str:
    """Class of the colour of a score."""
    return f"s{_SHADES * min(max(score, 0.0), 1.0):.0f}"


def _legend() -> str:
    swatches = "".join(
        f"<span class='{_colour(score / 10)}'>{score / 10:.1f}</span>" for score in range(0, 11, 2)
    )
    return (
        f"<p class=legend>Score: {swatches} &nbsp; The bar on the left says what became of the "
        "block: <b class=green>green, kept</b>; <b class=red>red, removed</b> (runs of those are "
        "folded). Point at a block, or tap it, to see what was measured and where it is.</p>"
    )


def _folded(explanation: Explanation) -> Iterator[str]:
    """Blocks under their units; each run of removed ones, with the units inside it, is one fold.

    The heading of a unit that begins with removed blocks but has kept ones is outside the fold.
    """
    blocks, waiting = explanation.blocks, _Fold()
    for unit in explanation.units:
        inside = [blocks[number] for number in unit.blocks]
        if any(block.kept for block in inside):
            yield from waiting.taken()
            yield _heading(unit, inside)
        else:
            waiting.parts.append(_heading(unit, inside))
        for number, block in zip(unit.blocks, inside, strict=True):
            if block.kept:
                yield from waiting.taken()
                yield _block(number, block)
            else:
                waiting.parts.append(_block(number, block))
                waiting.blocks.append(block)
    yield from waiting.taken()


@dataclass
class _Fold:
    """A run of removed blocks that grows."""

    parts: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def taken(self) -> Iterator[str]:
        """The fold, if there is anything in it; it is empty then."""
        if self.blocks:
            close = sum(map(_close, self.blocks))
            yield (
                f"<details class=dropped><summary>{_count(len(self.blocks), 'block')} removed, "
                f"{_count(sum(b.characters for b in self.blocks), 'character')}"
                f"{', ' + _count(close, 'close call') if close else ''}</summary>"
            )
            yield from self.parts
            yield "</details>"
        self.parts, self.blocks = [], []


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _heading(unit: Unit, inside: list[Block]) -> str:
    name = f"{unit.elements} like elements" if unit.elements else "run of text"
    kept = sum(block.kept for block in inside)
    mean = sum(block.score for block in inside) / len(inside)
    return (
        f"<p class=unit>{name}: {kept} of {_count(len(inside), 'block')} kept, mean score {mean:.2f}, "
        f"{_count(sum(block.characters for block in inside), 'character')}</p>"
    )


def _block(number: int, block: Block) -> str:
    decision = "kept" if block.kept else "removed"
    values = "".join(f"<tr><td>{label}<td>{value:.4g}" for label, value in block.values)
    return (
        f'<div class="block {decision}{" code" if block.code else ""} {_colour(block.score)}" '
        f"tabindex=0 id=b{number}><div class=text>{_safe(block.text)}</div>"
        f"<div class=why>{decision}: {_safe(block.reason)} "
        f"<code>{_safe(block.path.rpartition(' > ')[2])}</code></div>"
        f"<div class=facts><code>{_safe(block.path)}</code><table><tr><td>score<td>{block.score:.4f}"
        f"<tr><td>threshold<td>{block.threshold:.4f}<tr><td>characters<td>{block.characters}{values}"
        "</table></div></div>"
    )
