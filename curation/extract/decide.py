"""Which blocks are kept, given the probability of each to be main content.

Passages that a page holds more than once, such as one for screens and one for telephones.

The filter stage cuts copies too (`curation/filters/repeated.py`), from text of any source and by its
lines alone. Here the tree tells those apart that a reader sees twice: refrains, quotations, cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import (
    Bool,
    Bools,
    Bytes,
    Float,
    Float32s,
    Float64s,
    Int,
    Int32s,
    Int64s,
    borrowing,
    kernel,
    merged,
)
from curation.extract import blocks as s
from curation.extract.containers import group, kinds_of, like
from curation.extract.features import LONG_WORDS, NAMES
from curation.extract.markup import ANCESTOR
from curation.extract.parts import POINTS, drop_others, keep_end, parts_of
from curation.extract.tables import whole_tables
from curation.extract.units import same_text, whole
from curation.hashing import xxh64

if TYPE_CHECKING:
    from curation.extract.tables import Tables

# Quotations repeat on purpose, and so do cells and lines of code.
_REPEAT = ANCESTOR["quote"] | ANCESTOR["code"] | ANCESTOR["cell"]
_PRE = s.PRE
_BLOCKS = 2  # of a passage; what single blocks say twice is mostly a motto or an offer


@kernel
def copies(kept: Bools, page: s.Page, in_comments: Bools, least: Int, least_near: Int) -> Bools:
    """Return which of the kept blocks [n] are copies: runs of two or more blocks, `least`
    characters or more in all, that occur earlier on the page in the same order under other parents.
    Of several earlier places the one after what the previous run repeats is taken, else the first.

    Readers see one of them, since style sheets hide the other. Where both have one grandparent,
    `least_near` characters are required, because refrains look like this. Comments, quotations, cells and
    code are never copies. O(n + bytes of the kept blocks).
    """
    e_parent = page.e_parent
    out = np.zeros(len(kept), np.bool_)
    chosen = np.flatnonzero(kept)
    m = len(chosen)
    keys = np.empty(m, np.uint64)
    parent = np.empty(m, np.int32)
    for i in range(m):
        b = chosen[i]
        e = page.b_element[b]
        parent[i] = e_parent[e]
        # The text of a block lacks its formulas: those that differ in nothing else aren't the same.
        apart = in_comments[b] or page.b_atoms[b] > 0 or page.b_flags[b] & _PRE
        apart = apart or page.e_above[e] & _REPEAT
        keys[i] = i if apart else xxh64(page.text, page.b_start[b], page.b_end[b], np.uint64(0))
    kind = group(keys)[0]
    first = np.full(m, -1, np.int64)  # of each kind
    for i in range(m):
        if first[kind[i]] < 0:
            first[kind[i]] = i
    behind = 0  # the place behind what the run before repeats; 0: none
    i = 0
    while i < m:
        source = behind if behind and kind[behind] == kind[i] else first[kind[i]]
        needed = least
        if e_parent[max(parent[source], 0)] == e_parent[max(parent[i], 0)]:
            needed = least_near
        start = i
        size = 0
        while i < m and source < start and kind[source] == kind[i] and parent[source] != parent[i]:
            size += page.b_chars[chosen[i]]
            source += 1
            i += 1
        if i - start >= _BLOCKS and size >= needed:
            out[chosen[start:i]] = True
        behind = source if i > start else 0
        i = max(i, start + 1)
    return out


@borrowing
def title_again(kept: Bools, page: s.Page) -> Int:
    """Return the one of the first two kept blocks that says what the other, a heading, says; -1 for
    none. Manuals have a page's title in a row for navigation, above the title itself."""
    first = second = -1
    for b in range(len(kept)):
        if kept[b] and first < 0:
            first, second = second, b
    if first < 0 or page.b_atoms[first] > 0 or page.b_atoms[second] > 0:
        return -1
    if not same_text(page, first, second):
        return -1
    if page.e_above[page.b_element[second]] & _HEADING:
        return first
    return second if page.e_above[page.b_element[first]] & _HEADING else -1


# How far up code and formulas (in rows of tables, often) and the text around them look for a
# container that they share.
_LEVELS_OF_CODE, _LEVELS_OF_TEXT = 8, 2
# How many elements, its own and those above, must be alike where a block is kin to another.
_LEVELS_OF_KIN = 4
CUTS = 40  # thresholds between 0 and 1 that are weighed against each other
_COMMENTS = NAMES.index("region_0")
_QUESTIONS, _WORDS = NAMES.index("page_questions"), NAMES.index("b_words")
_FORUM = NAMES.index("page_forum")
_DIGITS, _ENDS = NAMES.index("b_digits"), NAMES.index("b_ends")
_WORD_SCORE, _CLASS_MIN = NAMES.index("word_score"), NAMES.index("class_min")
_SENTENCES, _CHARS = NAMES.index("b_sentences"), NAMES.index("b_chars")
# Logarithms, as features have them: of words, and of characters where words have no blanks between, or where
# nothing ends a sentence, as in Thai.
_TOLD_WORDS, _TOLD_CHARS, _TOLD_OPEN = np.log1p(np.array([LONG_WORDS, 60, 100])).astype(np.float32)
_STOCK = -2.0  # score of words that are mostly beside content: notices of rights, requests
_LINK_DENSITY = NAMES.index("b_link_density")
_HIDDEN, _GUTTER = ANCESTOR["hidden"], ANCESTOR["gutter"]
_HEADING, _ITEM = ANCESTOR["heading"], ANCESTOR["item"]
# What may be a link and yet the page's own.
_SHOWN = _ITEM | _HEADING | ANCESTOR["figure"]
_PANEL_NAME, _PANEL_ROLE = NAMES.index("region_12"), NAMES.index("flag_panel")


@kernel
def attached(
    probabilities: Float64s, special: Bools, b_element: Int32s, e_parent: Int32s
) -> Float64s:
    """Probabilities [n] where code and formulas (`special` [n]) are decided as the text around them is.

    Their words say little about them; what they are in says more.
    """
    n = len(probabilities)
    out = probabilities.copy()
    after = np.full(n + 1, -1, np.int32)  # the next ordinary block from here on
    for b in range(n - 1, -1, -1):
        after[b] = after[b + 1] if special[b] else b
    before = np.int32(-1)
    for b in range(n):
        if not special[b]:
            before = np.int32(b)
            continue
        for other in (before, after[b]):
            if other >= 0 and probabilities[other] > out[b]:
                if _together(b_element[b], b_element[other], e_parent):
                    out[b] = probabilities[other]
    return out


@borrowing
def _together(code: Int, text: Int, e_parent: Int32s) -> Bool:
    """Whether two elements share a container, the body left out."""
    for _ in range(_LEVELS_OF_TEXT + 1):
        element = code
        for _ in range(_LEVELS_OF_CODE + 1):
            if element == text:
                return True
            element = e_parent[element]
            if element <= 0:
                break
        text = e_parent[text]
        if text <= 0:
            break
    return False


class Limits(NamedTuple):
    """When a block is main content, fitted to the scores of a model: a file next to it."""

    article_threshold: float  # probability that a block of an article needs to be kept
    recall_weight: float  # of recall against precision in the threshold of any other page
    few_characters: float  # of content on such a page that are half as likely as many are
    likely_probability: float  # probability from which a block may well be content
    link_threshold: float  # probability that a block of nothing but links needs at least
    menu_threshold: float  # probability that a block of `menu_links` and nothing else needs
    link_share: float  # share of a block's characters in links that makes it one of links
    menu_links: int  # links in one block of nothing else that make a menu
    #: share of a block's score that is the mean over like blocks: those in elements of
    #: the same tag and class under the same parent
    sibling_share: float
    #: share of a block's score that is the mean over blocks anywhere on the page whose
    #: element and the three above it have the same tags and classes, as in posts of a
    #: thread
    template_share: float
    #: share of the probability of the text before a table of data that its cells get
    table_share: float
    sure_probability: float  # probability from which a block counts as surely content
    #: share of the characters over `likely_probability` that are sure in an article
    sure_share: float
    comment_threshold: float  # probability that readers' comments below an article need
    #: share of the kept blocks' mean probability that a short block, by itself, needs to
    #: be the last of the text
    ending_share: float
    ending_characters: int  # characters from which a last block is not short
    ending_blocks: int  # last blocks that are dropped for it at most
    #: probability from which a block between two kept ones is kept with them
    hole_probability: float
    long_hole_probability: float  # the same of several blocks in a row, in the mean
    card_hole_probability: float  # the same where another post, product or entry begins behind them
    entry_probability: float  # the same of items of lists in an article
    hole_blocks: int  # such blocks in a row at most
    #: characters of two blocks or more that are dropped because they are earlier on the
    #: page in the same order
    copy_characters: int
    near_copy_characters: int  # the same where both are under one grandparent, as refrains do
    #: comments on questions and answers with more words than these are content; shorter
    #: ones are names, dates and votes
    remark_words: int
    remark_digits: float  # share of digits from which such a comment is a date
    formula_characters: float  # characters that a formula counts for in the size of a block
    #: characters, surely content or kept outside comments, that an article has
    article_characters: int


class Places(NamedTuple):
    """What the blocks of a page are in, [n] each."""

    comments: npt.NDArray[np.bool_]
    #: Comments on questions and answers, with words of their own.
    short_comments: npt.NDArray[np.bool_]
    hidden: npt.NDArray[np.bool_]  # out of sight, and nothing says that a reader can unfold it
    gutter: npt.NDArray[np.bool_]  # where line numbers or empty columns of the layout are
    closed: npt.NDArray[np.bool_]  # they end as sentences do
    stock: npt.NDArray[np.bool_]  # in words that are mostly beside content
    told: npt.NDArray[np.bool_]  # long, in sentences, with few links, and in sight
    names: npt.NDArray[np.float32]  # the lowest score of the class names around
    thread: bool  # the page says that it is of a forum


@kernel
def find_places(
    b_element: Int32s, e_above: Int32s, measured: Float32s, rows: Int64s, limits: Limits
) -> Places:
    """Return the Places of a page; row `rows` [n] of `measured` has the features of each block."""
    remark = np.float32(np.log1p(np.float64(limits.remark_words)))  # as `b_words` counts
    n = len(b_element)
    comments, short_comments, hidden, gutter, closed, stock, told = (
        np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_),
        np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_),
    )  # fmt: skip
    names = np.zeros(n, np.float32)
    thread = n > 0 and measured[rows[0], _FORUM] > 0
    for b in range(n):
        row, above = measured[rows[b]], e_above[b_element[b]]
        closed[b] = row[_ENDS] == 1
        stock[b] = row[_WORD_SCORE] < _STOCK
        names[b] = row[_CLASS_MIN]
        comments[b] = row[_COMMENTS] > 0
        wordy = row[_WORDS] > remark and row[_LINK_DENSITY] < 0.5
        wordy = wordy and row[_DIGITS] < limits.remark_digits
        short_comments[b] = comments[b] and wordy and row[_QUESTIONS] > 0
        hidden[b] = above & _HIDDEN != 0 and not (row[_PANEL_NAME] > 0 or row[_PANEL_ROLE] > 0)
        gutter[b] = above & _GUTTER != 0
        long = row[_WORDS] >= _TOLD_WORDS or row[_CHARS] >= _TOLD_CHARS
        ends = closed[b] or row[_SENTENCES] > 0 or row[_CHARS] >= _TOLD_OPEN
        tells = long and ends and row[_LINK_DENSITY] < POINTS
        told[b] = tells and not (stock[b] or hidden[b] or comments[b])
    return Places(comments, short_comments, hidden, gutter, closed, stock, told, names, thread)


@kernel
def _line_numbers(text: Bytes, b_start: Int32s, b_end: Int32s, gutter: Bools) -> Bools:
    """Which blocks [n] in a gutter are nothing but numbers."""
    out = np.zeros(len(gutter), np.bool_)
    for b in range(len(gutter)):
        if gutter[b]:
            seen = text[b_start[b] : b_end[b]]
            seen = seen[seen > 32]
            out[b] = len(seen) > 0 and ((seen >= 48) & (seen <= 57)).all()
    return out


class BlockDecisions(NamedTuple):
    """What is decided on the blocks of a page, and by what."""

    kept: npt.NDArray[np.bool_]  # [n]
    score: npt.NDArray[np.float64]  # [n] probability to be content, as the decision saw it
    threshold: npt.NDArray[np.float64]  # [n] score that the block needed
    article: Bool  # held to the threshold of articles
    copied: npt.NDArray[np.bool_]  # [n] reached their thresholds, but are earlier on the page
    filled: npt.NDArray[np.bool_]  # [n] kept because they are inside a kept run
    ended: npt.NDArray[np.bool_]  # [n] reached their thresholds, but end the text as stock


@merged
def decide_blocks(
    probabilities: Float64s,
    page: s.Page,
    tables: Tables,
    where: Places,
    comments: Bool,
    limits: Limits,
) -> BlockDecisions:
    """Return the BlockDecisions, given the blocks' probabilities [n], their Tables and Places.

    A page with a sure body of text, an article, is held to one high threshold; where nothing is as
    certain, that of the most agreement with what may be content is sought (`best_cut`). Where an
    article is outside the comments, these need to be surer still; on other pages they are the
    page. Items of a list, cells of a row and paragraphs of one parent are mostly decided alike, so
    that one odd among them doesn't stay or go alone, and runs of kept blocks are made whole
    (`units.whole`). What the page holds twice is kept once. Something is always kept.
    """
    score, linked, weight, special = _first_look(probabilities, page, limits)
    # The posts of a thread and the entries of a list are each in an element of its own.
    kinds = kinds_of(page.b_element, page.e_parent, page.e_signature, _LEVELS_OF_KIN)
    score = _shared(score, weight, *group(kinds), limits.template_share)
    score = attached(score, special, page.b_element, page.e_parent)
    score = whole_tables(
        score, tables.data, tables.table, linked, limits.table_share, page.b_element, page.e_tag
    )
    alike = like(page.e_parent, page.e_signature)
    kept, score, threshold, article = _weighed(score, weight, page, where, comments, limits, alike)
    if article:
        # Blocks that are mostly links point elsewhere or say who wrote it, unless they are sentences, lists,
        # cells, headings or captions: no hole is filled with them, and no neighbour of theirs is.
        for b in range(len(kept)):
            above = page.e_above[page.b_element[b]]
            stays = tables.data[b] >= 0 or above & _SHOWN != 0 or where.closed[b]
            if 2 * page.b_link_chars[b] > page.b_chars[b] and not (kept[b] or stays):
                score[b] = 0.0
    parts = parts_of(kept, probabilities, score, page, alike)
    added = drop_others(parts, kept, score, page, where, article, limits)
    kept, filled, ended = whole(
        kept, probabilities, score, where, page, tables.data, limits, article
    )
    keep_end(parts, kept, added, probabilities, score, page, where, limits)
    copied = copies(kept, page, where.comments, limits.copy_characters, limits.near_copy_characters)
    for b in range(len(kept)):
        kept[b] = kept[b] and not copied[b]
        filled[b] = (filled[b] or added[b]) and not copied[b]
    title = title_again(kept, page)
    if title >= 0:
        copied[title], kept[title], filled[title] = True, False, False
    return BlockDecisions(kept, score, threshold, article, copied, filled, ended)


@kernel
def _first_look(
    probabilities: Float64s, page: s.Page, limits: Limits
) -> tuple[Float64s, Bools, Float64s, Bools]:
    """Score, whether it is links, weight, and whether it is code or a formula, of each block."""
    chars, atoms = page.b_chars, page.b_atoms
    heading = page.e_above[page.b_element] & _HEADING != 0  # which may link to itself
    linked = (page.b_link_chars > limits.link_share * chars) & ~heading
    menu = page.b_links >= limits.menu_links
    score = probabilities.copy()
    score[linked & (score < np.where(menu, limits.menu_threshold, limits.link_threshold))] = 0.0
    special = (page.b_flags & s.PRE != 0) | ((atoms > 0) & (chars <= 4 * atoms))
    return score, linked, chars + limits.formula_characters * atoms, special


@kernel
def _shared(
    score: Float64s, weight: Float64s, alike: Int32s, sizes: Int32s, share: Float
) -> Float64s:
    """Scores [n] of which `share` is the mean of like blocks. 0 and 1 are rules' and stay."""
    n = len(score)
    total = np.zeros(len(sizes), np.float64)
    whole = np.zeros(len(sizes), np.float64)
    for b in range(n):
        if score[b] < 1.0:
            size = np.sqrt(weight[b])
            total[alike[b]] += size * score[b]
            whole[alike[b]] += size
    out = score.copy()
    for b in range(n):
        if 0.0 < score[b] < 1.0:
            out[b] = (1.0 - share) * score[b] + share * total[alike[b]] / whole[alike[b]]
    return out


@kernel
def best_cut(score: Float64s, weight: Float64s, few: Float, recall_weight: Float) -> Float:
    """The threshold whose blocks agree best with what may be the content.

    Blocks are right or wrong together: what is content is taken to be all of a score over some u,
    and u, which nobody knows, to be as likely anywhere from 0 to 1, so that each block is content
    with the probability that is its score; but content of size c is c / (c + `few`) times as
    likely, since a title alone is hardly ever all that a page says. The cut has the highest
    expected F (Jansche 2007, "A maximum expected utility framework for binary sequence labeling")
    in which recall counts `recall_weight` times precision; `weight` [n] is the blocks' size.
    O(n + CUTS^2).
    """
    above = np.zeros(CUTS + 1, np.float64)  # weight of the blocks over each cut
    for b in range(len(score)):
        above[min(int(score[b] * CUTS + 0.5), CUTS)] += weight[b]
    for cut in range(CUTS - 1, -1, -1):
        above[cut] += above[cut + 1]
    most = -1.0
    best = 0.0
    for cut in range(CUTS):
        kept = above[cut + 1]
        expected = 0.0
        for other in range(CUTS):
            content = above[other + 1]
            if content > 0.0:
                likely = content / (content + few)
                expected += likely * min(kept, content) / (kept + recall_weight * content)
        if expected > most:
            most, best = expected, (cut + 0.5) / CUTS
    return best


@merged
def _weighed(
    score: Float64s,
    weight: Float64s,
    page: s.Page,
    where: Places,
    comments: Bool,
    limits: Limits,
    alike: tuple[Int32s, Int32s],
) -> tuple[Bools, Float64s, Float64s, Bool]:
    """What is kept by scores and thresholds alone, both, and whether the page is an article."""
    score = score.copy()
    in_comments = where.comments
    # Remarks on questions and answers are part of the page; without comments none of them is.
    if comments:
        score[where.short_comments] = 1.0
    else:
        score[in_comments] = 0.0
    # Hidden text goes, unless it is most of the page, which a script then shows as a whole.
    likely = score >= limits.likely_probability
    if weight[likely & where.hidden].sum() <= weight[likely & ~where.hidden].sum():
        score[where.hidden] = 0.0
    score[_line_numbers(page.text, page.b_start, page.b_end, where.gutter)] = 0.0
    sure = weight[score >= limits.sure_probability].sum()
    all_likely = weight[score >= limits.likely_probability].sum()
    article = sure >= max(limits.article_characters, limits.sure_share * all_likely)
    needed = limits.article_threshold if article else limits.likely_probability
    outside = weight[(score >= needed) & ~in_comments].sum()
    # Of like elements of one parent.
    siblings, sizes = alike
    score = _shared(score, weight, siblings[page.b_element], sizes, limits.sibling_share)
    if not article:
        needed = best_cut(score, weight, limits.few_characters, limits.recall_weight)
    threshold = np.full(len(score), needed)
    if outside >= limits.article_characters:
        threshold[in_comments] = max(needed, limits.comment_threshold)
    kept = score >= threshold
    if len(score) and not kept.any():
        kept = score >= score.max()
    return kept, score, threshold, article
