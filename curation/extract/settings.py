"""Settings of extraction; the defaults and their sources stand in configs/defaults/extract.yaml."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ExtractSettings(BaseModel):
    """How pages become text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["trafilatura", "resiliparse", "justext"] = Field(
        description="extractor for HTML pages"
    )
    favor: Literal["balanced", "precision", "recall"] = Field(
        description="what the extractor prefers where it is unsure (trafilatura only)"
    )
    comments: bool = Field(description="keep readers' comments and forum replies")
    max_html_bytes: int = Field(ge=1, description="larger pages are removed unread")
    max_depth: int = Field(
        ge=8, description="pages nested deeper are removed before they are parsed"
    )
    min_characters: int = Field(ge=0, description="pages with less text are removed")
    max_characters: int = Field(ge=1, description="pages with more text are removed")
    http_status: tuple[int, int] = Field(
        description="range of HTTP status codes that hold documents"
    )
