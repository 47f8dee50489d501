"""Settings of the tokenize stage."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from curation.config import Positive, Settings
from curation.resources import ModelPath
from curation.user_code import CodeSettings, UserCode

Context = Annotated[int, Field(ge=2, le=1 << 24)]


class EncodeSettings(Settings):
    """What decides the tokens of a document, and with them its part of a mix."""

    tokenizer: ModelPath = Field(
        description="A built-in name, a `.tiktoken` file, a trained folder, or Hugging Face's "
        "`tokenizer.json`",
    )
    bos: bool = Field(description="Begin every document with the begin token")
    eos: bool = Field(description="End every document with the end token")

    @property
    def marks(self) -> int:
        """Begin and end tokens that every document gets."""
        return int(self.bos) + int(self.eos)


class FormatCode(UserCode):
    """A function of sequences and a folder that writes files there."""

    group: ClassVar[str] = "curation.outputs"
    positional: ClassVar[int] = 2


class CustomFormat(CodeSettings):
    """A custom format."""

    python: FormatCode = Field(
        description="function of (sequences [n, context_length], folder) that writes files"
    )


class TokenizeSettings(EncodeSettings):
    """How documents become token sequences. Defaults: `configs/defaults/tokenize.yaml`."""

    context_length: Context = Field(description="Tokens of every sequence")
    shard_tokens: Positive = Field(description="About as many tokens go into one shard")
    formats: tuple[CustomFormat, ...] = Field(
        default=(),
        description="Formats of your own besides Megatron-Core's: {python: ...}",
    )
    index_columns: tuple[str, ...] | None = Field(
        default=None,
        description="Columns of documents that the document index has, as JSON; null: all that "
        "came with the input's tables and that no stage makes",
    )
    seed: int = Field(ge=0, lt=1 << 63, description="Order of documents over the whole data set")
    mixes: dict[str, dict[Literal["context_length"], Context]] = Field(
        default={}, description="What differs for a named mix: its `context_length`"
    )

    @property
    def encoding(self) -> EncodeSettings:
        """The part that decides tokens."""
        return EncodeSettings(tokenizer=self.tokenizer, bos=self.bos, eos=self.eos)

    def for_mix(self, name: str = "") -> TokenizeSettings:
        """Return the settings under which one mix is written; the empty name is the mix without
        one."""
        length = self.mixes.get(name, {}).get("context_length", self.context_length)
        return self.model_copy(update={"context_length": length, "mixes": {}})
