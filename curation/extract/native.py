"""The engine `curation`: scan, measure, judge and assemble; no tree, no Python per element.

References that were escaped twice (`&amp;nbsp;`), so that the text has them: decoded where certain.
"""

import html
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html.entities import name2codepoint
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from curation.compiled import Bools, Float32s, Int64s, kernel
from curation.config import read_values
from curation.extract import blocks as s
from curation.extract.assemble import assemble
from curation.extract.clean import clean, normal
from curation.extract.containers import representatives
from curation.extract.decide import BlockDecisions, Limits, Places, decide_blocks, find_places
from curation.extract.extract_settings import ExtractSettings
from curation.extract.extraction import Extraction, PageTooLargeError
from curation.extract.features import Lexicons, Stated, measure, stated
from curation.extract.formulas import with_typed_formulas
from curation.extract.layout import laid_out
from curation.extract.markdown import markdown
from curation.extract.markup import ANCESTOR, TAG
from curation.extract.model import Branches, Model, judge_rows, load
from curation.extract.page_state import in_place, letters, linked_data, stated_article, stated_posts
from curation.extract.scan import scan
from curation.extract.tables import Tables, tables_of
from curation.rights.page import PageRights
from curation.text.mojibake import mended, repaired
from curation.text.surrogates import well_formed

#: Of more blocks, those of one kind share the judgement of one among them. The largest real page of
#: the development set has 6,200.
MOST_JUDGED_BLOCKS = 10_000
_NAMES = (name2codepoint.keys() | {"apos"}) - {"lt", "gt"}
# A backslash before it is markdown's.
_REFERENCE = re.compile(
    r"(?:\\&|&)(?:amp;)*(?:[a-zA-Z][a-zA-Z\d]{1,7}|#\d{2,6}|#[xX][\da-fA-F]{2,5});"
)
_AMPERSANDS = re.compile(r"\A(?:amp;)+(?=.)")  # of one that was escaped more than once
# A text that speaks of markup may mean the reference itself.
_ABOUT = re.compile(r"html|xml|entit|escap|markup|ampersand|encod|unicode|charset", re.I)
_ASCII = "\"&'"  # of ASCII, what may be read: `<` and `*` might make markup


def unescaped(*texts: str) -> tuple[str, ...]:
    """Text (or markdown) and title of a page without code with their references read.

    Where any of them is about markup they come back as they are.
    """
    lines = (line for text in texts for line in text.split("\n") if "&" in line)
    found = {one for line in lines for one in _REFERENCE.findall(line)}
    signs = {one: sign for one in found if (sign := _sign(one))}
    if not signs or any(_ABOUT.search(text) for text in texts):
        return texts
    return tuple("\n".join(_line(line, signs) for line in text.split("\n")) for text in texts)


def _line(line: str, signs: dict[str, str]) -> str:
    if "&" not in line:
        return line
    read = _REFERENCE.sub(lambda one: signs.get(one[0], one[0]), line)
    if read == line:
        return line
    indent = line[: len(line) - len(line.lstrip())]  # of lists in markdown
    return indent + " ".join(read.split())


def _sign(reference: str) -> str:
    """What a reference stands for; "" where it is none or is better left."""
    name = _AMPERSANDS.sub("", reference.removeprefix("\\")[1:])
    if name[0] != "#" and name[:-1] not in _NAMES:
        return f"&{name}" if "&amp;" in reference else ""
    sign = html.unescape(f"&{name}")
    return sign if len(sign) == 1 and (sign >= "\xa0" or sign in _ASCII) else ""


_TAGS = regex.compile(r"<[^<>]*>")
#: Less text than this share of the body that a page states as linked data is a failure of the engine.
_STATED_SHARE = 0.2
_NO_ARTICLE = 400  # characters of a page whose article may be in a script
_END = 60  # characters that tell whether a page shows it
_TITLE_BYTES = 2000  # of a title or a language, at most


@dataclass(frozen=True)
class Judged:
    """A scanned page with the decisions of its blocks."""

    source: bytes
    page: s.Page
    titles: tuple[str, str]  # that of <title>, and `og:title`
    tables: Tables
    measured: npt.NDArray[np.float32]  # features of the blocks that were judged
    rows: npt.NDArray[np.int64]  # [n] of them, that of each block
    decisions: BlockDecisions
    where: Places
    stated: npt.NDArray[np.bool_]  # [n] kept because the page's JSON-LD says the same
    shows_hidden: bool  # hidden elements were read, because without them nothing was left
    mended: bool = False


def judge(source: bytes, settings: ExtractSettings) -> Judged:
    """Scan a page (UTF-8) and decide on each block. Raises PageTooLargeError."""
    sound = mended(source)
    is_mended, source = sound is not source, in_place(sound)
    model = load(settings.model)
    judged = _judge(source, settings, model, keep_hidden=False)
    if judged.page.status == s.STATUS_UNCLOSED_HIDDEN or not len(judged.decisions.kept):
        # A hidden element swallowed the page, or everything is hidden until a script runs.
        judged = _judge(source, settings, model, keep_hidden=True)
    return replace(judged, mended=True) if is_mended else judged


def _judge(source: bytes, settings: ExtractSettings, model: Model, keep_hidden: bool) -> Judged:
    page = scan(source, settings.max_depth, settings.max_nodes, keep_hidden)
    if page.status == s.STATUS_TOO_MANY:
        limit = settings.max_nodes
        raise PageTooLargeError("extract.too_many_nodes", limit + 1, limit)
    rows = np.arange(len(page.b_start))  # of the features, that of each block
    some = np.ones(len(rows), np.bool_)  # the blocks that are judged
    if len(rows) > MOST_JUDGED_BLOCKS:
        stands = representatives(page, MOST_JUDGED_BLOCKS)
        some = stands == rows
        rows = (np.cumsum(some) - 1)[stands]
    tables, measured, where, decisions = _judge_blocks(
        tuple(page), tuple(stated(source, page)), (some, rows), model.arrays,
        (settings.comments, tuple(read_values(settings.decision, Limits))),
    )  # fmt: skip
    titles = _fact(source, page, s.TITLE), _fact(source, page, s.OG_TITLE)
    if settings.structure.title:
        decisions = decisions._replace(kept=with_headline(page, decisions.kept, titles))
    stated_ones = np.zeros(len(rows), np.bool_)
    if page.facts[s.LINKED_DATA]:
        barred = where.comments if not settings.comments else stated_ones
        stated_ones = stated_posts(source, page, decisions.kept, barred)
        decisions = decisions._replace(kept=decisions.kept | stated_ones)
    return Judged(
        source, page, titles, tables, measured, rows, decisions, where, stated_ones, keep_hidden
    )


@kernel
def _judge_blocks(
    columns: tuple[Any, ...],
    said: tuple[Any, ...],
    sample: tuple[Bools, Int64s],
    model: tuple[Any, ...],
    limits: tuple[Any, ...],
) -> tuple[Tables, Float32s, Places, BlockDecisions]:
    """Measure the blocks of a page and decide on them.

    One call, and plain tuples: to hand over a page costs as much as to decide on its blocks, and
    named tuples cost five times as much.
    """
    page = s.Page(*columns)
    some, rows = sample
    lexicons, branches, bases, sure = model
    comments, of_decision = limits
    decision: Any = Limits(*of_decision)
    tables = tables_of(page)
    measured = measure(Stated(*said), page, Lexicons(*lexicons), some)
    probabilities = judge_rows(Branches(*branches), bases, sure, measured)[rows]
    where = find_places(page.b_element, page.e_above, measured, rows, decision)
    decisions = decide_blocks(probabilities, page, tables, where, comments, decision)
    return tables, measured, where, decisions


def all_of(judged: Judged) -> Judged:
    """Return a page of which all is content."""
    kept = np.ones_like(judged.decisions.kept)
    return replace(judged, decisions=judged.decisions._replace(kept=kept))


def result(
    judged: Judged,
    settings: ExtractSettings,
    encoding: str = "",
    rights: PageRights | None = None,
    repairs: str = "",
) -> Extraction:
    """Main content, title and declared language of a judged page. Raises PageTooLargeError.

    Without scores the text is the `articleBody` that the page states, not its blocks.
    """
    source, page, kept = judged.source, judged.page, judged.decisions.kept
    is_mended = judged.mended
    limit = settings.max_characters
    if len(page.text) > limit and (length := int(page.b_chars[kept].sum())) > limit:
        raise PageTooLargeError("extract.too_long", length, limit)
    layout = laid_out(page, judged.tables, kept, judged.decisions.score)
    if settings.markdown:
        made = markdown(source, page, judged.tables, kept)
    else:
        made = assemble(source, page, layout)
    text, stated = made.text, False
    if page.facts[s.LINKED_DATA]:
        body = stated_body(source, page)
        if len(text) < _STATED_SHARE * len(body):
            text, stated = body, True
    body = _of_state(judged, settings) if len(text) < _NO_ARTICLE else ""
    if len(text) < _STATED_SHARE * len(body):
        text, stated = body, True
    title = next(filter(None, judged.titles), "") or _headline(page)
    if "[" in text and not _has_code(page):
        text = with_typed_formulas(text)
    if ("&" in text or "&" in title) and not _has_code(page):
        text, title = unescaped(text, title)
    if not made.normalized or text is not made.text:
        made_sound = repaired(text)
        is_mended, text = is_mended or made_sound is not text, normal(made_sound)
    score, share = (None, None) if stated else (round(layout.score, 4), round(layout.link_share, 4))
    return Extraction(
        text,
        clean(repaired(title)),
        _language(source, page),
        code_languages=made.code_languages,
        content_score=score,
        link_share=share,
        repaired=repairs or "mojibake" * is_mended,
        encoding=encoding,
        rights=rights,
    )


def _of_state(judged: Judged, settings: ExtractSettings) -> str:
    """Return the article in the scripts of a page, all of it kept; "" if the page itself shows its end."""
    article = well_formed(stated_article(judged.source, judged.titles))
    if "<" in article:
        inner = article.encode()
        page = scan(inner, settings.max_depth, settings.max_nodes)
        everything = np.ones(len(page.b_start), np.bool_)
        tables = tables_of(page)
        layout = laid_out(page, tables, everything, np.zeros(len(everything)))
        article = assemble(inner, page, layout).text
    return "" if article[-_END:].encode() in judged.page.text.tobytes() else article


def _has_code(page: s.Page) -> bool:
    """Whether a page has listings or code in its text."""
    return bool((page.b_flags & s.PRE).any() or (page.a_kind >= s.CODE_ON).any())


def _fact(source: bytes, page: s.Page, slot: int) -> str:
    start, end = page.facts[slot : slot + 2].tolist()
    raw = source[start : min(end, start + _TITLE_BYTES)].decode("utf-8", "replace")
    return " ".join(html.unescape(raw).split())


def head_of(source: bytes, settings: ExtractSettings) -> tuple[str, str]:
    """Return title and declared language of a page (UTF-8)."""
    page = scan(source, settings.max_depth, settings.max_nodes)
    return clean(_fact(source, page, s.TITLE)), _language(source, page)


def _language(source: bytes, page: s.Page) -> str:
    return _fact(source, page, s.LANGUAGE).lower()[:20]


def _headline(page: s.Page) -> str:
    """Text of the only <h1>, "" when there are several or none."""
    headings = np.flatnonzero(page.e_tag == TAG["h1"])
    if len(headings) != 1:
        return ""
    blocks = np.flatnonzero(page.b_element == headings[0])
    if len(blocks) != 1:
        return ""
    text = page.text[page.b_start[blocks[0]] : page.b_end[blocks[0]]][:_TITLE_BYTES]
    return " ".join(text.tobytes().decode("utf-8", "ignore").split())


def stated_body(source: bytes, page: s.Page) -> str:
    """The longest `articleBody` in the JSON-LD of a page, "" when there is none."""
    best = ""
    for whole in linked_data(source, page, [b"articleBody"]):
        waiting = [whole]
        while waiting:
            item = waiting.pop()
            if isinstance(item, dict):
                body = item.get("articleBody")
                if isinstance(body, str) and len(body) > len(best):
                    best = body
                waiting.extend(item.values())
            elif isinstance(item, list):
                waiting.extend(item)
    if "<" in best:
        best = _TAGS.sub(" ", best)
    return html.unescape(well_formed(best))


#: Of the headline: what repeats a page's title just before the text.
_HEADING, _ITEM = ANCESTOR["heading"], ANCESTOR["item"] | ANCESTOR["button"]
_ELSEWHERE = ANCESTOR["nav"] | ANCESTOR["aside"] | ANCESTOR["footer"] | ANCESTOR["hidden"]
_MOST_HEADINGS = 40  # that are looked at
_NEAR = 12  # blocks before the text, among which a headline is that no heading holds
_HEADLINE_BYTES = 1000  # longer headings are none
_LEAST_TITLE = 5  # letters and digits
_SHARE, _SURE_SHARE = 0.4, 0.6  # of the title, whose rest names the site


def with_headline(
    page: s.Page, kept: npt.NDArray[np.bool_], titles: tuple[str, ...]
) -> npt.NDArray[np.bool_]:
    """The kept blocks [n] and the headline before them, if there is one: the last heading, or else a
    block shortly before the text, that repeats one of the titles.
    """
    # Mostly, both titles are one.
    named = [text for text in map(letters, dict.fromkeys(titles)) if len(text) >= _LEAST_TITLE]
    if not named or not kept.any():
        return kept
    first = int(kept.argmax())
    above = page.e_above[page.b_element[: first + 1]].tolist()
    before = (b for b in range(first, -1, -1) if not above[b] & _ELSEWHERE)
    headings = (b for b in before if above[b] & _HEADING)
    block = _repeating(page, itertools.islice(headings, _MOST_HEADINGS), named, _SHARE)
    if block < 0:
        barred = _HEADING | _ITEM | _ELSEWHERE
        near = range(first, max(0, first - _NEAR) - 1, -1)
        block = _repeating(page, (b for b in near if not above[b] & barred), named, _SURE_SHARE)
    if block < 0 or kept[block]:
        return kept
    kept = kept.copy()
    kept[block] = True
    return kept


def _repeating(page: s.Page, blocks: Iterable[int], titles: list[str], share: float) -> int:
    """The first of some blocks that repeats at least `share` of a title, -1 if none does."""
    for block in blocks:
        start, end = page.b_start[block], page.b_end[block]
        if end - start > _HEADLINE_BYTES:
            continue
        text = letters(page.text[start:end].tobytes().decode("utf-8", "replace"))
        for title in titles:
            if len(text) >= max(_LEAST_TITLE, share * len(title)) and text in title:
                return block
    return -1
