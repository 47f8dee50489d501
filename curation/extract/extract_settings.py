"""Settings of extraction; the defaults and their sources are in configs/defaults/extract.yaml."""

import json
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from curation.config import Ascending, Natural, Positive, Settings
from curation.models import ModelFile
from curation.resources import NamedFile, NamedPath
from curation.user_code import CodeSettings, UserCode


class Structure(Settings):
    """How kept blocks become text, for the engine `curation`."""

    title: bool = Field(
        description="keep the headline before the text that repeats the title of the page"
    )


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

    engine: Literal["curation", "trafilatura", "resiliparse"] | CustomEngine = Field(
        description="extractor for HTML pages, or {python: ...} for one of your own"
    )
    favor: Literal["balanced", "precision", "recall"] = Field(
        description="what the extractor prefers where it is unsure (trafilatura only)"
    )
    comments: bool = Field(description="keep readers' comments and forum replies")
    markdown: bool = Field(description="markdown instead of plain text (engine `curation` only)")
    model: ModelFile = Field(description="what the engine `curation` judges blocks by")
    decision: NamedFile = Field(
        description="when a block is kept, fitted to the model's scores (engine `curation` only)"
    )
    structure: Structure = Field(description="how text is laid out (engine `curation` only)")
    max_html_bytes: Positive = Field(description="larger pages are removed unread")
    max_depth: int = Field(
        ge=8,
        description="elements open at once: the engine `curation` flattens what is deeper, for the "
        "others such pages are removed before they are parsed",
    )
    max_nodes: Positive = Field(
        description="pages with more elements or blocks are removed (engine `curation`)"
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
