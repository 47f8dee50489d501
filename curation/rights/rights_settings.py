"""Settings of the stage `rights`: which signals count, and what they do to a document."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from curation.config import Settings, Share, built_in_settings
from curation.rights.licences import known_patterns

Honoured = Literal[
    "train",
    "search",
    "ai-input",
    "content_signal",
    "content_usage",
    "rsl",
    "robots",
    "ai_txt",
    "tdm",
    "noai",
    "noimageai",
    "noindex",
    "nofollow",
    "noarchive",
    "nosnippet",
]
#: The reason of a document that is the copy of one whose use is forbidden.
COPY = "rights.copy"
#: The stage that finds which documents have one text.
COMPARES = "dedup-documents"
#: Identifiers of licences with `*` for anything, or `open` for all that configs/lists calls open.
Licences = Annotated[tuple[str, ...], AfterValidator(known_patterns)]


class RightsSettings(Settings):
    """Which signals of rights remove a document. Defaults: `configs/defaults/rights.yaml`."""

    agents: tuple[str, ...] = Field(
        description="crawlers whose signals count; of a robots.txt, the group of their own name, "
        "else that for all (`*`)"
    )
    honour: tuple[Honoured, ...] = Field(
        description="what removes a document, in the order in which it is looked at: a use that "
        "any signal denies (`train`, `search`, `ai-input`), or signals of one kind, which deny "
        "training"
    )
    contradictions: Literal["by_place", "strictest"] = Field(
        description="by_place: where text and data mining signals contradict each other, the "
        "page's tag overrides the header, and the header the site's file; a possible copy follows "
        "its own site. strictest: any reservation counts, and a possible copy is removed"
    )
    bought: tuple[str, ...] = Field(
        description="addresses of licences in RSL whose conditions are met"
    )
    retroactive: bool = Field(
        description="also apply files of sites that were captured after the page"
    )
    unknown: Literal["keep", "remove"] = Field(
        description="what to do with documents whose rights are unknown: without a value in the "
        "column or, where robots is honoured, from a site whose robots.txt was not read"
    )
    licences: dict[Literal["require"], Licences] = Field(
        description="`require`: documents whose page has none of these licences are removed "
        "(`CC-BY-*`, `open` for all open ones, `rsl:train` for what a licence in RSL permits)"
    )
    follow: Annotated[dict[Literal["near"], Share], Field(min_length=1)] | None = Field(
        default=None,
        description="after dedup-documents: also remove copies of documents whose site forbids "
        "their use (`rights.copy`); `near` is the least similarity of a copy",
    )


def default_settings() -> RightsSettings:
    """Return the settings of configs/defaults/rights.yaml."""
    return built_in_settings(RightsSettings, "defaults/rights")
