"""Settings of extraction; the defaults and their sources are in configs/defaults/extract.yaml."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config import Ascending, Natural, Positive, Settings, Share
from curation.models import ModelFile
from curation.resources import NamedPath
from curation.user_code import CodeSettings, UserCode


class Decision(Settings):
    """When a block is main content, for the engine `curation`."""

    article_threshold: Share = Field(
        description="probability that a block of an article needs to be kept"
    )
    recall_weight: float = Field(
        gt=0, description="of recall against precision in the threshold of any other page"
    )
    few_characters: float = Field(
        ge=0, description="of content on such a page that are half as likely as many are"
    )
    likely_probability: Share = Field(
        description="probability from which a block may well be content"
    )
    link_threshold: Share = Field(
        description="probability that a block of nothing but links needs at least"
    )
    menu_threshold: Share = Field(
        description="probability that a block of `menu_links` and nothing else needs"
    )
    link_share: Share = Field(
        description="share of a block's characters in links that makes it one of links"
    )
    menu_links: Positive = Field(description="links in one block of nothing else that make a menu")
    sibling_share: Share = Field(
        description="share of a block's score that is the mean over like blocks: those in elements "
        "of the same tag and class under the same parent"
    )
    template_share: Share = Field(
        description="share of a block's score that is the mean over blocks anywhere on the page whose "
        "element and the three above it have the same tags and classes, as in posts of a thread"
    )
    table_share: Share = Field(
        description="share of the probability of the text before a table of data that its cells get"
    )
    sure_probability: Share = Field(
        description="probability from which a block counts as surely content"
    )
    sure_share: Share = Field(
        description="share of the characters over `likely_probability` that are sure in an article"
    )
    comment_threshold: Share = Field(
        description="probability that readers' comments below an article need"
    )
    ending_share: Share = Field(
        description="share of the kept blocks' mean probability that a short block, by itself, needs "
        "to be the last of the text"
    )
    ending_characters: Natural = Field(
        description="characters from which a last block is not short"
    )
    ending_blocks: Natural = Field(description="last blocks that are dropped for it at most")
    hole_probability: Share = Field(
        description="probability from which a block between two kept ones is kept with them"
    )
    long_hole_probability: Share = Field(
        description="the same of several blocks in a row, in the mean"
    )
    card_hole_probability: Share = Field(
        description="the same where another post, product or entry begins behind them"
    )
    entry_probability: Share = Field(description="the same of items of lists in an article")
    hole_blocks: Natural = Field(description="such blocks in a row at most")
    copy_characters: Natural = Field(
        description="characters of two blocks or more that are dropped because they are earlier "
        "on the page in the same order"
    )
    near_copy_characters: Natural = Field(
        description="the same where both are under one grandparent, as refrains do"
    )
    remark_words: Natural = Field(
        description="comments on questions and answers with more words than these are content; "
        "shorter ones are names, dates and votes"
    )
    remark_digits: Share = Field(description="share of digits from which such a comment is a date")
    formula_characters: float = Field(
        ge=0, description="characters that a formula counts for in the size of a block"
    )
    article_characters: Natural = Field(
        description="characters, surely content or kept outside comments, that an article has"
    )


class DataTables(Settings):
    """Which tables hold data rather than a layout, for the engine `curation`."""

    cell_bytes: Positive = Field(
        description="a cell with so much text is part of a layout, and a line of its own"
    )
    least_rows: Positive = Field(description="tables with fewer rows of text are layouts")
    regular_share: Share = Field(
        description="share of the rows that have the same number of cells, two or more"
    )


class Structure(Settings):
    """How kept blocks become text, for the engine `curation`."""

    paragraphs: Literal["line", "blank_line"] = Field(
        description="what parts paragraphs: a line feed, or a blank line"
    )
    marks: bool = Field(
        description="mark list items with `- ` or their number, indent definitions and nested lists, "
        "and begin lines of quotations with `> `"
    )
    title: bool = Field(
        description="keep the headline before the text that repeats the title of the page"
    )
    images: bool = Field(description="keep the alternative text of images that are not formulas")

    @property
    def is_plain(self) -> bool:
        """Whether text is lines without marks."""
        return self.paragraphs == "line" and not self.marks


#: Options that some engines don't read: the value that changes nothing, and the engines that do.
_READ_BY: dict[str, tuple[object, tuple[str, ...]]] = {
    "favor": ("balanced", ("trafilatura",)),
    "comments": (True, ("curation", "trafilatura", "resiliparse")),
    "markdown": (False, ("curation",)),
}


class EngineCode(UserCode):
    """A function of HTML text and URL that returns the main content."""

    group: ClassVar[str] = "curation.engines"
    positional: ClassVar[int] = 2


class CustomEngine(CodeSettings):
    """An extractor of the user's own."""

    python: EngineCode = Field(description="function of (html, url) that returns text or None")

    def __str__(self) -> str:
        return self.python.reference


class SiteFileSettings(Settings):
    """Which files of sites say what crawlers may read (docs/rights.md)."""

    files: tuple[NamedPath, ...] = Field(
        description="archives, tables and folders with captures of robots.txt, tdmrep.json, ai.txt"
    )
    agents: tuple[str, ...] = Field(
        description="crawlers whose own group in robots.txt is read, besides that for all others"
    )


class ExtractSettings(Settings):
    """How pages become text."""

    engine: Literal["curation", "trafilatura", "resiliparse", "justext"] | CustomEngine = Field(
        description="extractor for HTML pages, or {python: ...} for one of your own"
    )
    favor: Literal["balanced", "precision", "recall"] = Field(
        description="what the extractor prefers where it is unsure (trafilatura only)"
    )
    comments: bool = Field(description="keep readers' comments and forum replies")
    markdown: bool = Field(description="markdown instead of plain text (engine `curation` only)")
    model: ModelFile = Field(description="what the engine `curation` judges blocks by")
    decision: Decision = Field(description="when a block is kept (engine `curation` only)")
    tables: DataTables = Field(description="what is a table of data (engine `curation` only)")
    structure: Structure = Field(description="how text is laid out (engine `curation` only)")
    stated_share: Share = Field(
        description="less text than this share of the article body that a page states as linked "
        "data is a failure, and the stated body is taken (engine `curation` only)"
    )
    noscript_bytes: Natural = Field(
        description="a <noscript> of at least this many bytes has the page as browsers without scripts show it, "
        "a shorter one counting pixels and requests (engine `curation` only; its model was trained "
        "on pages read with the default)"
    )
    max_html_bytes: Positive = Field(description="larger pages are removed unread")
    max_depth: int = Field(
        ge=8,
        description="elements open at once: the engine `curation` flattens what is deeper, for the "
        "others such pages are removed before they are parsed",
    )
    max_nodes: Positive = Field(
        description="pages with more elements or blocks are removed (engine `curation`)"
    )
    max_judged_blocks: Positive = Field(
        description="on pages with more blocks, those of one kind share the judgement of one among "
        "them (engine `curation`)"
    )
    max_engine_memory: int = Field(
        ge=1 << 28,
        description="bytes of address space of the process in which a stage runs an engine other "
        "than `curation`; a page that needs more is set aside",
    )
    min_characters: Natural = Field(description="pages with less text are removed")
    max_characters: Positive = Field(description="pages with more text are removed")
    http_status: Annotated[tuple[int, int], Ascending] = Field(
        description="range of HTTP status codes that hold documents"
    )
    rights: SiteFileSettings = Field(description="files of sites that say what may be read")

    @model_validator(mode="after")
    def _engine_reads_options(self) -> Self:
        for name, (without, engines) in _READ_BY.items():
            if getattr(self, name) != without and self.engine not in engines:
                raise ValueError(
                    f"{name} is not read by the engine {str(self.engine)!r}, only by "
                    f"{', '.join(engines)}: leave it at {json.dumps(without)}"
                )
        return self
