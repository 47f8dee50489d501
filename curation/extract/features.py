"""Measurements of every block, from which the model judges whether it is main content.

Three families: how the text of the block looks, what it stands in (its element and the three above:
their share of the page's long text, link density, class names, repetition), and what stands around
it (neighbours, the last heading, the dominant container, the page as a whole).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curation.compiled import inlined, kernel
from curation.extract import words as w
from curation.extract.blocks import (
    CONTINUED,
    GENERATOR,
    IN_LINK,
    LINKED_DATA,
    OG_TYPE,
    PRE,
    QUESTIONS,
    TITLE,
    Page,
)
from curation.extract.containers import (
    cards_of,
    class_scores,
    dominant,
    group,
    inherited,
    kinds_of,
    meeting,
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

Weights = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]
Names = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32], npt.NDArray[np.int32]]

#: Changes whenever the same page would give other features: models of another version don't load.
VERSION = 2

LONG_WORDS = 12  # a block of running text has at least this many words, most of them unlinked
LEVELS = 4
REGIONS = 13  # groups of class names in configs/lists/extract_regions.yaml


class Lexicons(NamedTuple):
    """What names and words say: open-addressing tables of hashes and values, slot by slot."""

    names: Names  # weights of class names, and their regions with the bit WEIGHED
    words: Weights


_BLOCK = """words chars link_density links tags sentences commas digits upper ends first symbols
lower_starts short_words word_length bold atoms pre continued in_link link_starts tag depth
""".split()
_ANCESTORS = [f"in_{name}" for name in ANCESTOR]
_LEVEL = """words link_density share blocks words_per_block class_score sentences repeated
repeated_words""".split()
_CHAIN = "class_min class_max class_sum flag_main flag_side flag_body flag_panel".split()
_AROUND = """word_score heading_score heading_distance heading_level heading_words
title_overlap title_cover title_distance before_title copies signature_count signature_share
dominant_off dominant_in dominant_share dominant_depth position words_before words_after
first_long last_long article_share article_order near_long""".split()
# The title's neighbourhood (how far up and down the tree, and through the text, a block is from the
# block that repeats the page's title) and the card (the outermost of three or more like siblings).
_TITLE = "title_kind title_up title_down title_share title_long title_between".split()
_CARD = """card_count card_words card_share card_link_density card_blocks card_index card_level
card_title""".split()
_NEIGHBOURS = [
    f"{name}_{offset}"
    for offset in (-1, 1, -2, 2)
    for name in ("words", "link_density", "same", "word_score", "class_sum")
]
_PAGE = """page_words page_long page_blocks page_link_density page_articles page_comments
page_og page_forum page_product page_article page_links_per_block page_paragraphs
page_list_words page_hidden page_questions""".split()
NAMES = (
    [f"b_{name}" for name in _BLOCK]
    + _ANCESTORS
    + [f"e{level}_{name}" for level in range(LEVELS) for name in _LEVEL]
    + _CHAIN
    + [f"region_{region}" for region in range(REGIONS)]
    + _AROUND
    + _TITLE
    + _CARD
    + _NEIGHBOURS
    + _PAGE
)
COUNT = len(NAMES)

_ANCESTOR_BITS = len(ANCESTOR)
_HIDDEN = ANCESTOR["hidden"]
_P = TAG["p"]
_LEVELS_OF_KIND = 3  # elements that are alike around blocks of one kind
_FORUMS = (b"phpbb", b"vbulletin", b"xenforo", b"discourse", b"discuz", b"mybb", b"smf", b"invision",
           b"vanilla", b"simple machines", b"flarum", b"nodebb")  # fmt: skip


def page_facts(source: bytes, page: Page) -> npt.NDArray[np.float32]:
    """What a page says it is: og:type, forum, product, article, questions (0 or a small number)."""
    facts = page.facts.tolist()
    og = source[facts[OG_TYPE] : facts[OG_TYPE + 1]].lower()
    generator = source[facts[GENERATOR] : facts[GENERATOR + 1]].lower()
    linked = b"".join(
        source[facts[slot] : facts[slot + 1]] for slot in range(LINKED_DATA, QUESTIONS, 2)
    )
    kind = 0
    if og:
        kind = 1 if b"article" in og else 2 if b"product" in og else 3 if b"website" in og else 4
    questions, forum, product, article = bool(facts[QUESTIONS]), False, kind == 2, kind == 1
    if generator:
        forum = any(name in generator for name in _FORUMS)
    if linked:
        questions = questions or b'"QAPage"' in linked
        forum = forum or b"DiscussionForumPosting" in linked
        product = product or b'Product"' in linked
        article = article or b"Article" in linked or b"BlogPosting" in linked
    forum = forum or questions
    return np.array([kind, forum, product, article, questions], np.float32)


# Of the counts that most pages have.
_LOGS = np.array([math.log1p(count) for count in range(1 << 10)], np.float32)


@inlined
def _log(x):  # type: ignore[no-untyped-def]
    count = np.int64(x)
    if count == x and 0 <= count < len(_LOGS):
        return _LOGS[count]
    return np.float32(np.log1p(np.float64(x)))


@inlined
def _text_row(row, words, density, links, tags, bold, atoms, flags, c, t, counts):  # type: ignore[no-untyped-def]
    """What stands in the block itself; `t` and `c` are its words and characters, at least 1."""
    letters = max(np.float64(counts[w.LETTERS]), 1.0)
    row[0] = _log(words)
    row[1] = _log(c)
    row[2] = density
    row[3] = min(links, 50)
    row[4] = tags / t
    row[5] = counts[w.SENTENCES] / t
    row[6] = counts[w.COMMAS] / t
    row[7] = counts[w.DIGITS] / c
    row[8] = counts[w.UPPER] / letters
    row[9] = counts[w.ENDS_SENTENCE]
    row[10] = counts[w.FIRST]
    row[11] = counts[w.SYMBOLS] / t
    row[12] = counts[w.LOWER_STARTS] / t
    row[13] = counts[w.SHORT_WORDS] / t
    row[14] = c / t
    row[15] = bold / c
    row[16] = min(atoms, 10)
    row[17] = 1 if flags & PRE else 0
    row[18] = 1 if flags & CONTINUED else 0
    row[19] = 1 if flags & IN_LINK else 0
    row[20] = links / t
    return 21


@inlined
def _levels(  # type: ignore[no-untyped-def]
    row, k, e, e_parent, words, chars, link, long, blocks, marks, class_score,
    siblings, sizes, sibling_words, page_long,
):  # fmt: skip
    """The element of the block and those above it."""
    x = e
    for _ in range(LEVELS):
        x = max(x, 0)
        size = sizes[siblings[x]]
        row[k] = _log(words[x])
        row[k + 1] = link[x] / max(chars[x], 1.0)
        row[k + 2] = long[x] / page_long
        row[k + 3] = _log(blocks[x])
        row[k + 4] = _log(words[x] / max(blocks[x], 1.0))
        row[k + 5] = class_score[x]
        row[k + 6] = marks[x] / max(words[x], 1.0)
        row[k + 7] = _log(size)
        row[k + 8] = _log(sibling_words[siblings[x]] / max(size, 1))
        k += 9
        x = e_parent[x]
    return k


@inlined
def _chain_row(row, k, low, high, total, flags, regions):  # type: ignore[no-untyped-def]
    """What the elements around the block are called and say that they are."""
    row[k] = low
    row[k + 1] = high
    row[k + 2] = total
    row[k + 3] = 1 if flags & FLAG_MAIN else 0
    row[k + 4] = 1 if flags & FLAG_SIDE else 0
    row[k + 5] = 1 if flags & FLAG_BODY else 0
    row[k + 6] = 1 if flags & FLAG_PANEL else 0
    k += 7
    for region in range(REGIONS):
        row[k + region] = (regions >> region) & 1
    return k + REGIONS


@inlined
def _title_row(row, k, title_depth, depth, long, page_long, distance):  # type: ignore[no-untyped-def]
    """How far the block is from the title: in the tree, from where they meet, and in the text."""
    row[k] = title_depth
    row[k + 1] = depth
    row[k + 2] = long / page_long
    row[k + 3] = _log(long)
    row[k + 4] = _log(distance) if distance >= 0 else -_log(-distance)


@inlined
def _card_row(  # type: ignore[no-untyped-def]
    row, k, x, words, chars, link, blocks, siblings, sizes, sibling_words, order,
    page_words, depth, holds_title,
):  # fmt: skip
    """The card that the block stands in."""
    g = siblings[x]
    row[k] = _log(sizes[g])
    row[k + 1] = _log(words[x])
    row[k + 2] = sibling_words[g] / page_words
    row[k + 3] = link[x] / max(chars[x], 1.0)
    row[k + 4] = _log(blocks[x])
    row[k + 5] = min(order[x], 10)
    row[k + 6] = depth
    row[k + 7] = 1 if holds_title else 0


@inlined
def _neighbours(row, k, b, b_element, b_words, density, word_score, total):  # type: ignore[no-untyped-def]
    """The two blocks before and behind."""
    for offset in (-1, 1, -2, 2):
        o = b + offset
        if 0 <= o < len(b_element):
            row[k] = _log(b_words[o])
            row[k + 1] = density[o]
            row[k + 2] = 1 if b_element[o] == b_element[b] else 0
            row[k + 3] = word_score[o]
            row[k + 4] = total[b_element[o]]
        else:
            row[k : k + 5] = -1
        k += 5
    return k


@inlined
def _weigh(counts, b_atoms, b_element, e_above, b_words):  # type: ignore[no-untyped-def]
    """Fill `b_words`: words of each block, formulas among them; return those of the long blocks
    that are seen, and of those that are not."""
    seen = 0.0
    unseen = 0.0
    for b in range(len(b_words)):
        t = np.float64(counts[b, w.WORDS]) + 5.0 * b_atoms[b]
        b_words[b] = t
        if t >= LONG_WORDS:
            if e_above[b_element[b]] & _HIDDEN:
                unseen += t
            else:
                seen += t
    return seen, unseen


@inlined
def _add_to_parents(e_parent, words, chars, link, long, blocks, marks):  # type: ignore[no-untyped-def]
    """Sums over elements, from those over the blocks right under each."""
    for e in range(len(e_parent) - 1, 0, -1):
        p = e_parent[e]
        words[p] += words[e]
        chars[p] += chars[e]
        link[p] += link[e]
        long[p] += long[e]
        blocks[p] += blocks[e]
        marks[p] += marks[e]


@kernel
def _features(
    b_element, b_chars, b_link, b_links, b_tags, b_bold, b_atoms, b_flags,
    e_parent, e_tag, e_depth, e_above, e_flags, e_sig,
    counts, text_hash, word_score, class_score, regions, title_size, facts, judged, out,
):  # type: ignore[no-untyped-def]  # fmt: skip
    n = len(b_element)
    m = len(e_parent)
    # ------------------------------------------------------------ sums over elements
    words = np.zeros(m, np.float64)
    chars = np.zeros(m, np.float64)
    link = np.zeros(m, np.float64)
    long = np.zeros(m, np.float64)
    blocks = np.zeros(m, np.float64)
    marks = np.zeros(m, np.float64)
    is_long = np.zeros(n, np.bool_)
    density = np.zeros(n, np.float32)
    b_words = np.zeros(n, np.float64)
    page_links = 0.0
    paragraphs = 0.0
    list_words = 0.0
    comment_words = 0.0
    chain_regions, chain_flags, low, high, total, article, article_order, articles = inherited(
        e_parent, e_tag, e_flags, class_score, regions
    )
    seen, unseen = _weigh(counts, b_atoms, b_element, e_above, b_words)
    # Text that scripts unfold counts for the page's shape only where most of the text is such.
    ignored = _HIDDEN if seen >= unseen else 0
    for b in range(n):
        e = b_element[b]
        t = b_words[b]
        c = max(np.float64(b_chars[b]), 1.0)
        density[b] = np.float32(b_link[b] / c)
        words[e] += t
        chars[e] += c
        link[e] += b_link[b]
        blocks[e] += 1
        marks[e] += counts[b, w.SENTENCES] + counts[b, w.COMMAS]
        page_links += b_links[b]
        if t >= LONG_WORDS and density[b] < 0.5 and not e_above[e] & ignored:
            is_long[b] = True
            long[e] += t
            if e_tag[e] == _P:
                paragraphs += 1
        if e_above[e] & 4:
            list_words += t
        if chain_regions[e] & 1:
            comment_words += t
    _add_to_parents(e_parent, words, chars, link, long, blocks, marks)
    page_long = max(long[0], 1.0)
    page_words = max(words[0], 1.0)
    of_page = np.empty(15, np.float32)
    of_page[0] = _log(page_words)
    of_page[1] = _log(page_long)
    of_page[2] = _log(n)
    of_page[3] = link[0] / max(chars[0], 1.0)
    of_page[4] = min(articles, 20)
    of_page[5] = comment_words / page_words
    for i in range(4):
        of_page[6 + i] = facts[i]
    of_page[10] = page_links / max(n, 1)
    of_page[11] = _log(paragraphs)
    of_page[12] = list_words / page_words
    of_page[13] = unseen / max(seen + unseen, 1.0)
    of_page[14] = facts[4]
    place, steps, d = dominant(e_parent, long, page_long)
    siblings, sibling_sizes, sibling_words, order = siblings_of(e_parent, e_sig, words)
    card = cards_of(e_parent, e_tag, siblings, sibling_sizes)
    same, same_sizes = group(kinds_of(b_element, e_parent, e_sig, _LEVELS_OF_KIND))
    same_long = np.zeros(n + 1, np.float64)
    for b in range(n):
        if is_long[b]:
            same_long[same[b]] += b_words[b]
    copies, copy_sizes = group(text_hash)
    # ------------------------------------------------------------ positions
    first_long = n
    last_long = -1
    around = np.zeros(n + 1, np.float64)
    for b in range(n):
        around[b + 1] = around[b] + (b_words[b] if is_long[b] else 0.0)
        if is_long[b]:
            last_long = b
            if first_long == n:
                first_long = b
    heading = -1
    heading_score = np.float32(0)
    title_block, title_kind = title_of_page(b_element, b_words, e_above, e_tag, counts, title_size)
    title_element = b_element[title_block] if title_kind else 0
    meets = meeting(e_parent, title_element)
    title_before = 0.0
    for b in range(title_block):
        title_before += b_words[b]
    before = 0.0
    r = -1
    for b in range(n):
        e = b_element[b]
        is_heading = e_above[e] & 2
        if not judged[b]:
            before += b_words[b]
            if is_heading:
                heading = b
                heading_score = word_score[b]
            continue
        r += 1
        t = max(np.float64(counts[b, w.WORDS]), 1.0)
        c = max(np.float64(b_chars[b]), 1.0)
        row = out[r]
        k = _text_row(
            row, b_words[b], density[b], b_links[b], b_tags[b], b_bold[b], b_atoms[b], b_flags[b],
            c, t, counts[b],
        )  # fmt: skip
        row[k] = e_tag[e]
        row[k + 1] = e_depth[e]
        k += 2
        for bit in range(_ANCESTOR_BITS):
            row[k] = (e_above[e] >> bit) & 1
            k += 1
        k = _levels(
            row, k, e, e_parent, words, chars, link, long, blocks, marks, class_score,
            siblings, sibling_sizes, sibling_words, page_long,
        )  # fmt: skip
        k = _chain_row(row, k, low[e], high[e], total[e], chain_flags[e], chain_regions[e])
        row[k] = word_score[b]
        row[k + 1] = heading_score
        row[k + 2] = min(b - heading, 60) if heading >= 0 else 61
        row[k + 3] = e_tag[b_element[heading]] if heading >= 0 else 0
        row[k + 4] = _log(b_words[heading]) if heading >= 0 else 0
        shared = counts[b, w.TITLE_SHARED]
        row[k + 5] = shared / max(t + title_size - shared, 1.0)
        row[k + 6] = shared / max(title_size, 1)
        if title_kind > 1:
            row[k + 7] = max(min(b - title_block, 100), -100)
            row[k + 8] = 1 if b < title_block else 0
        else:
            row[k + 7] = -101
            row[k + 8] = 0
        row[k + 9] = min(copy_sizes[copies[b]], 10)
        row[k + 10] = _log(same_sizes[same[b]])
        row[k + 11] = same_long[same[b]] / page_long
        q = place[e]
        inside = q >= steps
        row[k + 12] = steps - min(q, steps)
        row[k + 13] = 1 if inside else 0
        row[k + 14] = long[d] / page_long
        row[k + 15] = e_depth[e] - e_depth[d]
        row[k + 16] = b / max(n - 1, 1)
        row[k + 17] = before / page_words
        row[k + 18] = _log(page_words - before)
        row[k + 19] = max(min(b - first_long, 100), -100)
        row[k + 20] = max(min(b - last_long, 100), -100)
        a = article[e]
        row[k + 21] = long[a] / page_long if a >= 0 else -1
        row[k + 22] = min(article_order[a], 10) if a >= 0 else 0
        lo = max(0, b - 4)
        hi = min(n, b + 5)
        row[k + 23] = _log(around[hi] - around[lo])
        k += 24
        row[k] = title_kind
        x = meets[e]
        if title_kind:
            _title_row(
                row, k + 1, e_depth[title_element] - e_depth[x], e_depth[e] - e_depth[x],
                long[x], page_long, before - title_before,
            )  # fmt: skip
        else:
            row[k + 1 : k + 6] = -1
        k += 6
        x = card[e]
        if x >= 0:
            same_card = title_kind > 0 and card[title_element] == x
            _card_row(
                row, k, x, words, chars, link, blocks, siblings, sibling_sizes, sibling_words,
                order, page_words, e_depth[e] - e_depth[x], same_card,
            )  # fmt: skip
        else:
            row[k : k + 8] = -1
        k += 8
        k = _neighbours(row, k, b, b_element, b_words, density, word_score, total)
        for column in range(len(of_page)):
            row[k + column] = of_page[column]
        k += len(of_page)
        before += b_words[b]
        if is_heading:
            heading = b
            heading_score = word_score[b]
    return k


@kernel
def _measured(  # type: ignore[no-untyped-def]
    title, text, b_start, b_end, e_tokens, tokens,
    name_keys, name_weights, name_bits, word_keys, word_weights,
    b_element, b_chars, b_link, b_links, b_tags, b_bold, b_atoms, b_flags,
    e_parent, e_tag, e_depth, e_above, e_flags, e_sig, facts, judged,
):  # fmt: skip
    """The features of the blocks that are `judged` [n], of all where that is empty."""
    counts, text_hash, hashes, starts, title_size = _text_counts(title, text, b_start, b_end)
    word_score = w.word_scores(hashes, starts, word_keys, word_weights)
    class_score, regions = class_scores(e_tokens, tokens, name_keys, name_weights, name_bits)
    if len(judged) == 0:
        judged = np.ones(len(b_element), np.bool_)
    out = np.empty((judged.sum(), COUNT), np.float32)
    _features(
        b_element, b_chars, b_link, b_links, b_tags, b_bold, b_atoms, b_flags,
        e_parent, e_tag, e_depth, e_above, e_flags, e_sig,
        counts, text_hash, word_score, class_score, regions, title_size, facts, judged, out,
    )  # fmt: skip
    return out


_ALL = np.zeros(0, np.bool_)


def features(
    source: bytes, page: Page, lexicons: Lexicons, judged: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.float32]:
    """Features [n, COUNT] of the blocks of a scanned page; `source` is what was scanned.

    Where `judged` [n] is given, only the blocks that it names get a row.
    """
    out: npt.NDArray[np.float32] = _measured(
        _title(source, page), page.text, page.b_start, page.b_end, page.e_tokens, page.tokens,
        *lexicons.names, *lexicons.words,
        page.b_element, page.b_chars, page.b_link_chars, page.b_links, page.b_tags,
        page.b_bold_chars, page.b_atoms, page.b_flags,
        page.e_parent, page.e_tag, page.e_depth, page.e_above, page.e_flags, page.e_signature,
        page_facts(source, page), _ALL if judged is None else judged,
    )  # fmt: skip
    return out


class TextCounts(NamedTuple):
    """What stands in the blocks of a page, as words.py says."""

    counts: npt.NDArray[np.float32]
    text_hash: npt.NDArray[np.uint64]
    hashes: npt.NDArray[np.uint64]
    hash_starts: npt.NDArray[np.int32]
    title_size: int  # words


def text_counts(source: bytes, page: Page) -> TextCounts:
    """Count the words of a page's blocks."""
    return TextCounts(*_text_counts(_title(source, page), page.text, page.b_start, page.b_end))


def _title(source: bytes, page: Page) -> npt.NDArray[np.uint8]:
    """Bytes of the page's title, padded."""
    return np.frombuffer(source[page.facts[TITLE] : page.facts[TITLE + 1]] + bytes(8), np.uint8)


@kernel
def _text_counts(title, text, b_start, b_end):  # type: ignore[no-untyped-def]
    """The parts of TextCounts."""
    in_title = w.title_words(title, 0, len(title) - 8)
    keys, values = title_table(in_title)
    counts, text_hash, hashes, starts = w.count_words(text, b_start, b_end, keys, values)
    return counts, text_hash, hashes, starts, len(in_title)


@kernel
def title_table(hashes):  # type: ignore[no-untyped-def]
    """`hash_table` of a few hashes, each with value 0."""
    size = 16
    while size < 2 * len(hashes) + 2:
        size *= 2
    keys = np.zeros(size, np.uint64)
    values = np.zeros(size, np.int32)
    for h in hashes:
        if h == 0:
            continue
        slot = np.int64(h & np.uint64(size - 1))
        while keys[slot] != 0 and keys[slot] != h:
            slot = (slot + 1) & (size - 1)
        keys[slot] = h
    return keys, values
