"""The headline of a page: what repeats its title just before the text."""

import numpy as np
import numpy.typing as npt

from curation.extract import blocks as s
from curation.extract.markup import ANCESTOR

_HEADING, _ITEM = ANCESTOR["heading"], ANCESTOR["item"] | ANCESTOR["button"]
_ELSEWHERE = ANCESTOR["nav"] | ANCESTOR["aside"] | ANCESTOR["footer"] | ANCESTOR["hidden"]
_MOST_HEADINGS = 40  # that are looked at
_NEAR = 12  # blocks before the text, among which a headline is that no heading holds
_BYTES = 1000  # longer headings are none
_LEAST = 5  # letters and digits
_SHARE, _SURE_SHARE = 0.4, 0.6  # of the title, whose rest names the site
_SIGNS = bytes(c for c in range(128) if not chr(c).isalnum())


def with_headline(
    page: s.Page, kept: npt.NDArray[np.bool_], titles: tuple[str, ...]
) -> npt.NDArray[np.bool_]:
    """The kept blocks [n] and the headline before them, if there is one: the last heading, or else a
    block shortly before the text, that repeats one of the titles.
    """
    # Mostly, both titles are one.
    squeezed = [text for text in map(_squeezed, dict.fromkeys(titles)) if len(text) >= _LEAST]
    if not squeezed or not kept.any():
        return kept
    first = int(kept.argmax())
    above = page.e_above[page.b_element[: first + 1]]
    here = (above & _ELSEWHERE) == 0
    headings = np.flatnonzero(here & (above & _HEADING > 0))[: -_MOST_HEADINGS - 1 : -1]
    block = _repeating(page, headings, squeezed, _SHARE)
    if block < 0:
        low = max(0, first - _NEAR)
        others = here[low:] & (above[low:] & (_HEADING | _ITEM) == 0)
        block = _repeating(page, low + np.flatnonzero(others)[::-1], squeezed, _SURE_SHARE)
    if block < 0 or kept[block]:
        return kept
    kept = kept.copy()
    kept[block] = True
    return kept


def _repeating(page: s.Page, blocks: npt.NDArray[np.int64], titles: list[str], share: float) -> int:
    """The first of some blocks that repeats at least `share` of a title, -1 if none does."""
    for block in blocks.tolist():
        start, end = page.b_start[block], page.b_end[block]
        if end - start > _BYTES:
            continue
        raw = page.text[start:end].tobytes()
        if raw.isascii():  # sooner
            text = raw.lower().translate(None, _SIGNS).decode()
        else:
            text = _squeezed(raw.decode("utf-8", "replace"))
        for title in titles:
            if len(text) >= max(_LEAST, share * len(title)) and text in title:
                return block
    return -1


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
