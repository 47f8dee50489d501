"""Stages of the user's own: a function in a recipe's section, anywhere among the stages."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from curation.stages.base import Columns, Stage
from curation.user_code import CodeSettings, UserCode


class StageCode(UserCode):
    """A function or class that judges documents; see `curation.judging`."""

    group: ClassVar[str] = "curation.stages"


class CustomSettings(CodeSettings):
    """A stage of the user's own."""

    python: StageCode = Field(description="function of a record batch, or class of such functions")
    reads: tuple[str, ...] = Field(
        default=(), description="columns that it needs besides those of every document"
    )
    adds: tuple[str, ...] = Field(default=(), description="columns that it adds")


class Custom(Stage[CustomSettings]):
    """The description of a stage that only a recipe knows."""

    settings = CustomSettings

    def __init__(self, name: str) -> None:
        self.name = name
        self.purpose = "code of your own"

    def reads(self, settings: CustomSettings) -> Columns:
        return Columns(settings.reads)

    def adds_of(self, settings: CustomSettings) -> tuple[str, ...]:
        return settings.adds

    def shows(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(settings.get("adds", ()))

    @property
    def module(self) -> str:
        return "pipelines.custom"
