"""Pages made from pages: what a small training set lacks.

Three kinds. The markup of other times, for pages older or plainer than those at hand. Pages whose
content is cut short, because a model that has only seen long articles takes the longest text for
the content. Pages with the comments, cards or listings of another page behind them, which are
content there and none here.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.extract.blocks import Page

Floats = npt.NDArray[np.float64]

_Rewrite = tuple[float, tuple[tuple[bytes, bytes], ...]]
# Markup of other times, each applied to a page with the probability before it: no elements of
# HTML5, no class names, tables for divisions, line breaks for paragraphs, headings and items.
_REWRITES: tuple[_Rewrite, ...] = (
    (
        1.0,
        ((rb"<(/?)(?:article|main|section|nav|aside|header|footer|figure|figcaption|details|summary)"
          rb"(?=[\s>])", rb"<\1div"),),
    ),
    (0.6, ((rb"\s(?:class|id|role|itemprop)\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+)", b""),)),
    (
        0.5,
        (
            (rb"<div(?=[\s>])([^>]*)>", rb"<table\1><tr><td>"),
            (rb"</div\s*>", b"</td></tr></table>"),
        ),
    ),
    (0.35, ((rb"<p(?=[\s>])[^>]*>", b"<br><br>"), (rb"</p\s*>", b""))),
    (0.35, ((rb"<h[1-6](?=[\s>])[^>]*>", b"<br><br><b>"), (rb"</h[1-6]\s*>", b"</b><br>"))),
    (
        0.35,
        (
            (rb"<li(?=[\s>])[^>]*>", b"<br>"),
            (rb"</li\s*>", b""),
            (rb"</?ul(?=[\s>])[^>]*>", b"<br><br>"),
        ),
    ),
)  # fmt: skip


def rewritten(source: bytes, chance: random.Random) -> bytes:
    """Return the page in markup of another time; its text stays."""
    for probability, steps in _REWRITES:
        if chance.random() < probability:
            for pattern, replacement in steps:
                source = re.sub(pattern, replacement, source, flags=re.IGNORECASE)
    return source


def shortened(
    label: Floats, words: Floats, bounds: tuple[float, float], chance: random.Random
) -> npt.NDArray[np.bool_] | None:
    """Blocks [n] to leave of a page so that its content ends early; None when it is short already.

    `label` is the share of content in each block, `words` its number of words; the content's length
    is drawn evenly on a logarithmic scale between the `bounds`, in words.
    """
    wanted = math.exp(chance.uniform(math.log(bounds[0]), math.log(bounds[1])))
    content = label > 0.5
    before = np.cumsum(np.where(content, words, 0.0)) - np.where(content, words, 0.0)
    left = ~content | (before < wanted)
    if words[content].sum() < 1.5 * wanted or left.sum() < 3:
        return None
    return left


def subset(page: Page, blocks: npt.NDArray[np.bool_]) -> Page:
    """Return the page with only some of its blocks; all elements stay."""
    fields: dict[str, Any] = {
        name: getattr(page, name)[blocks] for name in page._fields if name[:2] == "b_"
    }
    return page._replace(**fields)


def foreign_content(
    label: Floats, words: Floats, limit: float, chance: random.Random
) -> npt.NDArray[np.int64]:
    """Return a run of content blocks with at least `limit` words, where there are so many."""
    content = np.flatnonzero(label > 0.5)
    start = chance.randrange(max(1, len(content) // 2)) if len(content) > 8 else 0
    taken = np.cumsum(words[content[start:]]) - words[content[start:]] <= limit
    return content[start:][taken]


def grafted(page: Page, other: Page, blocks: npt.NDArray[np.int64]) -> Page:
    """Return the page followed by `blocks` of another page, in the elements that they are in
    there."""
    shift = len(page.e_parent) - 1  # the body of both is one
    fields: dict[str, Any] = {}
    for name in page._fields:
        if name[:2] == "b_":
            added = getattr(other, name)[blocks]
            if name in ("b_start", "b_end"):
                added = added + len(page.text)
            elif name == "b_element":
                added = np.where(added == 0, 0, added + shift)
            own = getattr(page, name)
            fields[name] = np.concatenate([own, added.astype(own.dtype)])
    for name in ("e_tag", "e_depth", "e_above", "e_flags", "e_signature", "e_class"):
        fields[name] = np.concatenate([getattr(page, name), getattr(other, name)[1:]])
    parents = other.e_parent[1:]
    parents = np.where(parents == 0, 0, parents + shift).astype(np.int32)
    fields["e_parent"] = np.concatenate([page.e_parent, parents])
    first, used = int(other.e_tokens[1]), int(page.e_tokens[-1])
    fields["tokens"] = np.concatenate([page.tokens[:used], other.tokens[first:]])
    starts = (other.e_tokens[2:] - first + used).astype(np.int32)
    fields["e_tokens"] = np.concatenate([page.e_tokens, starts])
    fields["text"] = np.concatenate([page.text, other.text])
    return page._replace(**fields)
