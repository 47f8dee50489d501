"""Measurements of every block, from which the model judges whether it is main content.

Three families: how the text of the block looks, what it is in (its element and the three above:
their share of the page's long text, link density, class names, repetition), and what surrounds
it (neighbours, the last heading, the dominant container, the page as a whole).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.bytes.hash_tables import slot_of
from curation.compiled import (
    Bool,
    Bools,
    Bytes,
    Float,
    Float32s,
    Float64s,
    Int,
    Int32s,
    Record,
    Records,
    Uint64s,
    inlined,
    kernel,
    merged,
)
from curation.extract import blocks as s
from curation.extract import words as w
from curation.extract.containers import (
    cards_of,
    dominant,
    group,
    inherited,
    kinds_of,
    meeting,
    scores_of,
    siblings_of,
    title_of_page,
)
from curation.extract.markup import (
    ANCESTOR,
    FLAG_BODY,
    FLAG_MAIN,
    FLAG_PANEL,
    FLAG_SIDE,
    TAG,
)

if TYPE_CHECKING:
    from curation.extract.containers import Chain, Siblings

Names = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32], npt.NDArray[np.int32]]

#: Changes whenever the same page would give other features: models of another version don't load.
VERSION = 2

LONG_WORDS = 12  # a block of running text has at least this many words, most of them unlinked
LEVELS = 4
REGIONS = 13  # groups of class names in configs/lists/extract_regions.yaml


class Lexicons(NamedTuple):
    """What names and words say: open-addressing tables of hashes and values, slot by slot."""

    names: Names  # weights of class names, and their regions with the bit WEIGHED
    words: Names  # without regions


def _columns(names: str) -> np.dtype[Any]:
    return np.dtype([(name, np.float32) for name in names.split()])


# What is measured of a block, family by family.
_BLOCK = _columns(
    """words chars link_density links tags sentences commas digits upper ends first symbols
    lower_starts short_words word_length bold atoms pre continued in_link link_starts tag depth"""
)
_LEVEL = _columns(
    """words link_density share blocks words_per_block class_score sentences repeated
    repeated_words"""
)
_CHAIN = _columns("class_min class_max class_sum flag_main flag_side flag_body flag_panel")
_AROUND = _columns(
    """word_score heading_score heading_distance heading_level heading_words
    title_overlap title_cover title_distance before_title copies signature_count signature_share
    dominant_off dominant_in dominant_share dominant_depth position words_before words_after
    first_long last_long article_share article_order near_long"""
)
# The title's neighbourhood (how far up and down the tree, and through the text, a block is from the
# block that repeats the page's title) and the card (the outermost of three or more like siblings).
_TITLE = _columns("title_kind title_up title_down title_share title_long title_between")
_CARD = _columns(
    """card_count card_words card_share card_link_density card_blocks card_index card_level
    card_title"""
)
_NEIGHBOUR = _columns("words link_density same word_score class_sum")
_NEIGHBOURS = (-1, 1, -2, 2)
_PAGE = _columns(
    """page_words page_long page_blocks page_link_density page_articles page_comments
    page_og page_forum page_product page_article page_links_per_block page_paragraphs
    page_list_words page_hidden page_questions"""
)
#: The features of a block; NAMES are the names of its columns.
ROW = np.dtype(
    [
        ("block", _BLOCK),
        ("ancestors", np.float32, len(ANCESTOR)),
        ("levels", _LEVEL, LEVELS),
        ("chain", _CHAIN),
        ("regions", np.float32, REGIONS),
        ("around", _AROUND),
        ("title", _TITLE),
        ("card", _CARD),
        ("neighbours", _NEIGHBOUR, len(_NEIGHBOURS)),
        ("page", _PAGE),
    ]
)
NAMES = [
    *(f"b_{name}" for name in _BLOCK.names or ()),
    *(f"in_{name}" for name in ANCESTOR),
    *(f"e{level}_{name}" for level in range(LEVELS) for name in _LEVEL.names or ()),
    *(_CHAIN.names or ()),
    *(f"region_{region}" for region in range(REGIONS)),
    *(_AROUND.names or ()),
    *(_TITLE.names or ()),
    *(_CARD.names or ()),
    *(f"{name}_{offset}" for offset in _NEIGHBOURS for name in _NEIGHBOUR.names or ()),
    *(_PAGE.names or ()),
]
COUNT = len(NAMES)
_PAGE_COUNT = len(_PAGE.names or ())
_ABSENT = np.float32(-1)  # of what a block doesn't have: a title, a card, a neighbour, an article

_ANCESTORS = len(ANCESTOR)
_HIDDEN, _HEADING, _ITEM = ANCESTOR["hidden"], ANCESTOR["heading"], ANCESTOR["item"]
_COMMENTS = 1  # bit of the region of comments
_P = TAG["p"]
_LEVELS_OF_KIND = 3  # elements that are alike around blocks of one kind
_NEAR = 4  # blocks before and behind
_FORUMS = (b"phpbb", b"vbulletin", b"xenforo", b"discourse", b"discuz", b"mybb", b"smf", b"invision",
           b"vanilla", b"simple machines", b"flarum", b"nodebb")  # fmt: skip


class Stated(NamedTuple):
    """What a page says of itself."""

    title: npt.NDArray[np.uint8]  # padded
    og: int  # kind of its og:type
    questions: bool
    forum: bool
    product: bool
    article: bool


def stated(source: bytes, page: s.Page) -> Stated:
    """Return what a page says of itself."""
    facts = page.facts.tolist()
    og = source[facts[s.OG_TYPE] : facts[s.OG_TYPE + 1]].lower()
    generator = source[facts[s.GENERATOR] : facts[s.GENERATOR + 1]].lower()
    linked = b""
    if facts[s.LINKED_DATA]:
        linked = b"".join(
            source[facts[slot] : facts[slot + 1]] for slot in range(s.LINKED_DATA, s.ITEM_TYPES, 2)
        )
    kind = 0
    if og:
        kind = 1 if b"article" in og else 2 if b"product" in og else 3 if b"website" in og else 4
    types = facts[s.ITEM_TYPES]
    # A list of frequent questions has questions, too, which nobody discusses.
    asked = types & (s.QUESTION | s.FAQ_PAGE) == s.QUESTION
    questions = asked or bool(types & s.QA_PAGE) or b'"QAPage"' in linked
    forum = questions or bool(types & s.FORUM_POST) or b"DiscussionForumPosting" in linked
    forum = forum or (generator != b"" and any(name in generator for name in _FORUMS))
    product = kind == 2 or b'Product"' in linked
    article = kind == 1 or b"Article" in linked or b"BlogPosting" in linked
    return Stated(_title(source, page), kind, questions, forum, product, article)


# Of the counts that most pages have.
_LOGS = np.array([math.log1p(count) for count in range(1 << 10)], np.float32)


@inlined
def _log(x: Float) -> Float:
    count = np.int64(x)
    if count == x and 0 <= count < len(_LOGS):
        return _LOGS[count]
    return np.float32(np.log1p(np.float64(x)))


class TextCounts(NamedTuple):
    """What is in the blocks of a page, as words.py says."""

    counts: npt.NDArray[np.float32]
    text_hash: npt.NDArray[np.uint64]
    hashes: npt.NDArray[np.uint64]
    hash_starts: npt.NDArray[np.int32]
    title_size: int  # words


class Sums(NamedTuple):
    """Sums over elements, [m] each, and what blocks add to them, [n] each."""

    words: Any
    chars: Any
    link: Any
    long: Any  # words of long blocks
    blocks: Any
    marks: Any
    b_words: Any  # formulas among them
    density: Any  # of links
    is_long: Any


@inlined
def _text_row(row: Record, page: s.Page, b: Int, sums: Sums, counts: Float32s) -> None:
    """What is in the block itself."""
    t = max(np.float64(counts[w.WORDS]), 1.0)
    c = max(np.float64(page.b_chars[b]), 1.0)
    e = page.b_element[b]
    letters = max(np.float64(counts[w.LETTERS]), 1.0)
    row.words = _log(sums.b_words[b])
    row.chars = _log(c)
    row.link_density = sums.density[b]
    row.links = min(page.b_links[b], 50)
    row.tags = page.b_tags[b] / t
    row.sentences = counts[w.SENTENCES] / t
    row.commas = counts[w.COMMAS] / t
    row.digits = counts[w.DIGITS] / c
    row.upper = counts[w.UPPER] / letters
    row.ends = counts[w.ENDS_SENTENCE]
    row.first = counts[w.FIRST]
    row.symbols = counts[w.SYMBOLS] / t
    row.lower_starts = counts[w.LOWER_STARTS] / t
    row.short_words = counts[w.SHORT_WORDS] / t
    row.word_length = c / t
    row.bold = page.b_bold_chars[b] / c
    row.atoms = min(page.b_atoms[b], 10)
    row.pre = 1 if page.b_flags[b] & s.PRE else 0
    row.continued = 1 if page.b_flags[b] & s.CONTINUED else 0
    row.in_link = 1 if page.b_flags[b] & s.IN_LINK else 0
    row.link_starts = page.b_links[b] / t
    row.tag = page.e_tag[e]
    row.depth = page.e_depth[e]


@inlined
def _level(
    row: Record, x: Int, sums: Sums, class_score: Float32s, siblings: Siblings, page_long: Float
) -> None:
    """The element of the block, or one above it."""
    size = siblings.sizes[siblings.group[x]]
    row.words = _log(sums.words[x])
    row.link_density = sums.link[x] / max(sums.chars[x], 1.0)
    row.share = sums.long[x] / page_long
    row.blocks = _log(sums.blocks[x])
    row.words_per_block = _log(sums.words[x] / max(sums.blocks[x], 1.0))
    row.class_score = class_score[x]
    row.sentences = sums.marks[x] / max(sums.words[x], 1.0)
    row.repeated = _log(size)
    row.repeated_words = _log(siblings.words[siblings.group[x]] / max(size, 1))


@inlined
def _chain_row(row: Record, e: Int, chain: Chain) -> None:
    """What the elements around the block are called and say that they are."""
    flags = chain.flags[e]
    row.class_min = chain.low[e]
    row.class_max = chain.high[e]
    row.class_sum = chain.total[e]
    row.flag_main = 1 if flags & FLAG_MAIN else 0
    row.flag_side = 1 if flags & FLAG_SIDE else 0
    row.flag_body = 1 if flags & FLAG_BODY else 0
    row.flag_panel = 1 if flags & FLAG_PANEL else 0


@inlined
def _title_row(
    row: Record, title_depth: Int, depth: Int, long: Float, page_long: Float, distance: Float
) -> None:
    """How far the block is from the title: in the tree, from where they meet, and in the text."""
    row.title_up = title_depth
    row.title_down = depth
    row.title_share = long / page_long
    row.title_long = _log(long)
    row.title_between = _log(distance) if distance >= 0 else -_log(-distance)


@inlined
def _card_row(
    row: Record,
    x: Int,
    sums: Sums,
    siblings: Siblings,
    page_words: Float,
    depth: Int,
    holds_title: Bool,
) -> None:
    """The card that the block is in."""
    g = siblings.group[x]
    row.card_count = _log(siblings.sizes[g])
    row.card_words = _log(sums.words[x])
    row.card_share = siblings.words[g] / page_words
    row.card_link_density = sums.link[x] / max(sums.chars[x], 1.0)
    row.card_blocks = _log(sums.blocks[x])
    row.card_index = min(siblings.order[x], 10)
    row.card_level = depth
    row.card_title = 1 if holds_title else 0


@inlined
def _neighbour(
    row: Record,
    b: Int,
    o: Int,
    b_element: Int32s,
    sums: Sums,
    word_score: Float32s,
    total: Float32s,
) -> None:
    """One of the two blocks before and behind."""
    row.words = _log(sums.b_words[o])
    row.link_density = sums.density[o]
    row.same = 1 if b_element[o] == b_element[b] else 0
    row.word_score = word_score[o]
    row.class_sum = total[b_element[o]]


@inlined
def _weigh(page: s.Page, counts: Float32s, b_words: Float64s) -> tuple[Float, Float]:
    """Fill `b_words`: words of each block, formulas among them; return those of the long blocks
    that are seen, and of those that are not."""
    seen = 0.0
    unseen = 0.0
    for b in range(len(b_words)):
        t = np.float64(counts[b, w.WORDS]) + 5.0 * page.b_atoms[b]
        b_words[b] = t
        if t >= LONG_WORDS:
            if page.e_above[page.b_element[b]] & _HIDDEN:
                unseen += t
            else:
                seen += t
    return seen, unseen


@inlined
def _add_to_parents(e_parent: Int32s, sums: Sums) -> None:
    """Sums over elements, from those over the blocks right under each."""
    for e in range(len(e_parent) - 1, 0, -1):
        p = e_parent[e]
        sums.words[p] += sums.words[e]
        sums.chars[p] += sums.chars[e]
        sums.link[p] += sums.link[e]
        sums.long[p] += sums.long[e]
        sums.blocks[p] += sums.blocks[e]
        sums.marks[p] += sums.marks[e]


@inlined
def _sum_up(page: s.Page, counts: Float32s, chain: Chain, sums: Sums, of_page: Record) -> None:
    """Fill `sums` and the page's own features."""
    n = len(page.b_element)
    page_links = 0.0
    paragraphs = 0.0
    list_words = 0.0
    comment_words = 0.0
    seen, unseen = _weigh(page, counts, sums.b_words)
    # Text that scripts unfold counts for the page's shape only where most of the text is such.
    ignored = _HIDDEN if seen >= unseen else 0
    for b in range(n):
        e = page.b_element[b]
        t = sums.b_words[b]
        c = max(np.float64(page.b_chars[b]), 1.0)
        sums.density[b] = np.float32(page.b_link_chars[b] / c)
        sums.words[e] += t
        sums.chars[e] += c
        sums.link[e] += page.b_link_chars[b]
        sums.blocks[e] += 1
        sums.marks[e] += counts[b, w.SENTENCES] + counts[b, w.COMMAS]
        page_links += page.b_links[b]
        if t >= LONG_WORDS and sums.density[b] < 0.5 and not page.e_above[e] & ignored:
            sums.is_long[b] = True
            sums.long[e] += t
            if page.e_tag[e] == _P:
                paragraphs += 1
        if page.e_above[e] & _ITEM:
            list_words += t
        if chain.regions[e] & _COMMENTS:
            comment_words += t
    _add_to_parents(page.e_parent, sums)
    page_words = max(sums.words[0], 1.0)
    of_page.page_words = _log(page_words)
    of_page.page_long = _log(max(sums.long[0], 1.0))
    of_page.page_blocks = _log(n)
    of_page.page_link_density = sums.link[0] / max(sums.chars[0], 1.0)
    of_page.page_articles = min(chain.articles, 20)
    of_page.page_comments = comment_words / page_words
    of_page.page_links_per_block = page_links / max(n, 1)
    of_page.page_paragraphs = _log(paragraphs)
    of_page.page_list_words = list_words / page_words
    of_page.page_hidden = unseen / max(seen + unseen, 1.0)


@merged
def _features(
    page: s.Page,
    texts: TextCounts,
    word_score: Float32s,
    names: tuple[Float32s, Int32s],
    judged: Bools,
    rows: Records,
    of_page: Records,
) -> None:
    """Fill the rows of the blocks that are judged, and the features of the page."""
    b_element, e_parent, e_depth = page.b_element, page.e_parent, page.e_depth
    n, m = len(b_element), len(e_parent)
    counts = texts.counts
    class_score, regions = names
    chain = inherited(e_parent, page.e_tag, page.e_flags, class_score, regions)
    sums = Sums(
        np.zeros(m, np.float64), np.zeros(m, np.float64), np.zeros(m, np.float64),
        np.zeros(m, np.float64), np.zeros(m, np.float64), np.zeros(m, np.float64),
        np.zeros(n, np.float64), np.zeros(n, np.float32), np.zeros(n, np.bool_),
    )  # fmt: skip
    _sum_up(page, counts, chain, sums, of_page[0])
    long, is_long, b_words = sums.long, sums.is_long, sums.b_words
    page_long = max(long[0], 1.0)
    page_words = max(sums.words[0], 1.0)
    place, steps, d = dominant(e_parent, long, page_long)
    siblings = siblings_of(e_parent, page.e_signature, sums.words)
    card = cards_of(page, siblings.group, siblings.sizes, False)
    same, same_sizes = group(kinds_of(b_element, e_parent, page.e_signature, _LEVELS_OF_KIND))
    same_long = np.zeros(n + 1, np.float64)
    copies, copy_sizes = group(texts.text_hash)
    first_long, last_long = n, -1
    around = np.zeros(n + 1, np.float64)
    for b in range(n):
        around[b + 1] = around[b] + (b_words[b] if is_long[b] else 0.0)
        if is_long[b]:
            same_long[same[b]] += b_words[b]
            last_long = b
            if first_long == n:
                first_long = b
    heading = -1
    heading_score = np.float32(0)
    title_size = texts.title_size
    title_block, title_kind = title_of_page(page, b_words, counts, title_size)
    title_element = b_element[title_block] if title_kind else 0
    meets = meeting(e_parent, title_element)
    title_before = 0.0
    for b in range(title_block):
        title_before += b_words[b]
    before = 0.0
    r = -1
    levels = np.empty(m, _LEVEL)  # of the elements around blocks, each measured once
    measured = np.zeros(m, np.bool_)
    for b in range(n):
        e = b_element[b]
        if judged[b]:
            r += 1
            row = rows[r]
            row.page = of_page[0]
            _text_row(row.block, page, b, sums, counts[b])
            for bit in range(_ANCESTORS):
                row.ancestors[bit] = (page.e_above[e] >> bit) & 1
            x = e
            for level in range(LEVELS):
                x = max(x, 0)
                if not measured[x]:
                    _level(levels[x], x, sums, class_score, siblings, page_long)
                    measured[x] = True
                row.levels[level] = levels[x]
                x = e_parent[x]
            _chain_row(row.chain, e, chain)
            for region in range(REGIONS):
                row.regions[region] = (chain.regions[e] >> region) & 1
            here = row.around
            here.word_score = word_score[b]
            here.heading_score = heading_score
            here.heading_distance = min(b - heading, 60) if heading >= 0 else 61
            here.heading_level = page.e_tag[b_element[heading]] if heading >= 0 else 0
            here.heading_words = _log(b_words[heading]) if heading >= 0 else 0
            shared = counts[b, w.TITLE_SHARED]
            t = max(np.float64(counts[b, w.WORDS]), 1.0)
            here.title_overlap = shared / max(t + title_size - shared, 1.0)
            here.title_cover = shared / max(title_size, 1)
            here.title_distance = -101
            here.before_title = 0
            if title_kind > 1:
                here.title_distance = max(min(b - title_block, 100), -100)
                here.before_title = 1 if b < title_block else 0
            here.copies = min(copy_sizes[copies[b]], 10)
            here.signature_count = _log(same_sizes[same[b]])
            here.signature_share = same_long[same[b]] / page_long
            q = place[e]
            here.dominant_off = steps - min(q, steps)
            here.dominant_in = 1 if q >= steps else 0
            here.dominant_share = long[d] / page_long
            here.dominant_depth = e_depth[e] - e_depth[d]
            here.position = b / max(n - 1, 1)
            here.words_before = before / page_words
            here.words_after = _log(page_words - before)
            here.first_long = max(min(b - first_long, 100), -100)
            here.last_long = max(min(b - last_long, 100), -100)
            a = chain.article[e]
            here.article_order = 0
            if a >= 0:
                here.article_share = long[a] / page_long
                here.article_order = min(chain.article_order[a], 10)
            near = around[min(n, b + _NEAR + 1)] - around[max(0, b - _NEAR)]
            here.near_long = _log(near)
            row.title.title_kind = title_kind
            x = meets[e]
            if title_kind:
                _title_row(
                    row.title, e_depth[title_element] - e_depth[x], e_depth[e] - e_depth[x],
                    long[x], page_long, before - title_before,
                )  # fmt: skip
            x = card[e]
            if x >= 0:
                same_card = title_kind > 0 and card[title_element] == x
                _card_row(
                    row.card, x, sums, siblings, page_words, e_depth[e] - e_depth[x], same_card
                )
            for k in range(len(_NEIGHBOURS)):
                o = b + _NEIGHBOURS[k]
                if 0 <= o < n:
                    _neighbour(row.neighbours[k], b, o, b_element, sums, word_score, chain.total)
        before += b_words[b]
        if page.e_above[e] & _HEADING:
            heading = b
            heading_score = word_score[b]


@kernel
def measure(said: Stated, page: s.Page, lexicons: Lexicons, judged: Bools) -> Float32s:
    """The features of the blocks that are judged [n]; `said` is what the page says of itself."""
    texts = _text_counts(said.title, page.text, page.b_start, page.b_end)
    word_score, _ = scores_of(texts.hash_starts, texts.hashes, *lexicons.words)
    names = scores_of(page.e_tokens, page.tokens, *lexicons.names)
    out = np.full((judged.sum(), COUNT), _ABSENT)
    rows = out.reshape(-1).view(ROW)
    of_page = np.zeros(_PAGE_COUNT, np.float32)
    row = of_page.view(_PAGE)[0]
    row.page_og, row.page_questions, row.page_forum = said.og, said.questions, said.forum
    row.page_product, row.page_article = said.product, said.article
    _features(page, texts, word_score, names, judged, rows, of_page.view(_PAGE))
    return out


def features(
    source: bytes, page: s.Page, lexicons: Lexicons, judged: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.float32]:
    """Features [n, COUNT] of the blocks of a scanned page; `source` is what was scanned.

    Where `judged` [n] is given, only the blocks that it names get a row.
    """
    if judged is None:
        judged = np.ones(len(page.b_element), np.bool_)
    out: npt.NDArray[np.float32] = measure(stated(source, page), page, lexicons, judged)
    return out


def text_counts(source: bytes, page: s.Page) -> TextCounts:
    """Count the words of a page's blocks."""
    counts: TextCounts = _text_counts(_title(source, page), page.text, page.b_start, page.b_end)
    return counts


def _title(source: bytes, page: s.Page) -> npt.NDArray[np.uint8]:
    """Bytes of the page's title, padded."""
    return np.frombuffer(source[page.facts[s.TITLE] : page.facts[s.TITLE + 1]] + bytes(8), np.uint8)


@kernel
def _text_counts(title: Bytes, text: Bytes, b_start: Int32s, b_end: Int32s) -> TextCounts:
    in_title = w.title_words(title, 0, len(title) - 8)
    counts, text_hash, hashes, starts = w.count_words(text, b_start, b_end, _set_of(in_title))
    return TextCounts(counts, text_hash, hashes, starts, len(in_title))


@kernel
def _set_of(hashes: Uint64s) -> Uint64s:
    """Return the keys of a table of a few hashes."""
    size = 16
    while size < 2 * len(hashes) + 2:
        size *= 2
    keys = np.zeros(size, np.uint64)
    for h in hashes:
        keys[slot_of(keys, h, h, np.uint64(0))] = h
    return keys
