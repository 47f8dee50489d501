"""Why a page's text is what it is: its blocks with score, decision and reason."""

import html
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from curation.extract import blocks as s
from curation.extract.assemble import Texts
from curation.extract.extract_settings import ExtractSettings
from curation.extract.features import NAMES
from curation.extract.markup import TAG
from curation.extract.native import MOST_JUDGED_BLOCKS, Judged, judge, result

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
class Explanation:
    """All blocks of a page in reading order, and what was decided on the page as a whole."""

    blocks: tuple[Block, ...]
    notes: tuple[str, ...]


def explain(source: bytes, settings: ExtractSettings) -> Explanation:
    """Blocks of a page (UTF-8) with their fates. Raises PageTooLargeError, as extraction does."""
    judged = judge(source, settings)
    source, page, decisions = judged.source, judged.page, judged.decisions
    columns = [(NAMES.index(name), *shown) for name, shown in _SHOWN.items() if name in NAMES]
    blocks = []
    texts = Texts(source, page, np.arange(len(page.b_start)))
    for b in range(len(decisions.kept)):
        row = judged.measured[judged.rows[b]]
        blocks.append(
            Block(
                texts.of(b),
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
    return Explanation(tuple(blocks), tuple(_notes(judged, settings)))


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
    if len(judged.decisions.kept) > MOST_JUDGED_BLOCKS:
        yield "too many blocks to judge each: blocks of one kind share a judgement"
    if judged.shows_hidden:
        yield "hidden elements were read too, because without them no text was left"
    if result(judged, settings).content_score is None:
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
