"""Settings of the tokenize stage."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class TokenizeSettings(BaseModel):
    """How documents become token sequences. Defaults: `configs/defaults/tokenize.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokenizer: str = Field(
        min_length=1, description="A built-in name, a `.tiktoken` file, or a trained folder"
    )
    context_length: int = Field(ge=2, le=1 << 24, description="Tokens of every sequence")
    packing: Literal["best_fit", "concat"] = Field(
        description="`best_fit`: a document is cut only where it is longer than a sequence; "
        "`concat`: documents end to end, cut at every sequence"
    )
    bos: bool = Field(description="Begin every document with the begin token")
    eos: bool = Field(description="End every document with the end token")
    seed: int = Field(ge=0, lt=1 << 63, description="Order of documents within a shard")
