"""What a page is after the scan: blocks of text, the elements that hold them, formulas, facts."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]

# Kinds of atoms: what is inside a block and is no plain text.
MATHML, TEX_INLINE, TEX_DISPLAY, IMAGE = 1, 2, 3, 4
DATA_MATHML = 5
HTML_INLINE, HTML_DISPLAY = 8, 9  # TeX with references and perhaps tags
CODE_ON, CODE_OFF = 20, 21
CODE_CLASS = 22  # a <code> in a listing: its class

# Bits of `Page.b_flags`.
PRE, CONTINUED, IN_LINK, HAS_BREAK = 1, 2, 4, 8

# Slots of `Page.facts`.
TITLE, LANGUAGE, OG_TYPE, GENERATOR, LINKED_DATA = 0, 2, 4, 6, 8
MAX_LINKED_DATA = 8
ITEM_TYPES = LINKED_DATA + 2 * MAX_LINKED_DATA  # bits of the schema.org types of its elements
OG_TITLE = ITEM_TYPES + 1
FACTS = OG_TITLE + 2

# Bits of `Page.facts[ITEM_TYPES]`.
QA_PAGE, QUESTION, FAQ_PAGE, FORUM_POST = 1, 2, 4, 8

STATUS_OK, STATUS_TOO_MANY, STATUS_UNCLOSED_HIDDEN = 0, 1, 2


class Page(NamedTuple):
    """A scanned page: n blocks, m elements, k class tokens, a atoms.

    Block b is `text[b_start[b]:b_end[b]]`, UTF-8 with white space collapsed (kept in code). Element
    0 is the body; parents come before children. An atom precedes byte `a_at` of the text;
    its source is `source[a_start:a_end]`.
    """

    status: int
    text: npt.NDArray[np.uint8]
    b_start: Ints  # [n]
    b_end: Ints  # [n]
    b_element: Ints  # [n]
    b_chars: Ints  # [n] characters without white space
    b_link_chars: Ints  # [n]
    b_links: Ints  # [n]
    b_tags: Ints  # [n] inline elements
    b_bold_chars: Ints  # [n]
    b_atoms: Ints  # [n] formulas
    b_flags: Ints  # [n]
    e_parent: Ints  # [m], -1 for the body
    e_tag: Ints  # [m]
    e_depth: Ints  # [m]
    e_above: Ints  # [m] bits of ANCESTOR, own tag included
    e_flags: Ints  # [m] bits of FLAG_*, own only
    e_signature: npt.NDArray[np.uint64]  # [m] of tag and class
    e_tokens: Ints  # [m + 1] where the class tokens of each element start
    e_class: Ints  # [m, 2] where its class is in the source
    e_span: Ints  # [m] columns and rows of a cell that has several: columns + 65,536 * rows, or 0
    tokens: npt.NDArray[np.uint64]  # [k] hashes of class and id names and their parts
    a_at: Ints  # [a]
    a_kind: Ints
    a_start: Ints
    a_end: Ints
    facts: Ints  # [FACTS] spans of the source, and ITEM_TYPES
