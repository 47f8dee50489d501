"""Settings of language identification; defaults in configs/defaults/identify-language.yaml."""

import functools
from typing import Literal

from pydantic import Field

from curation.config import Settings, Share, built_in_settings
from curation.models import ModelFile

#: The label of texts in no language that the models know.
UNKNOWN = "und"


class LanguageSettings(Settings):
    """How languages are identified and which documents stay."""

    model: ModelFile = Field(description="any supervised fastText model (.bin or .ftz)")
    corrector: ModelFile | None = Field(
        description="second model that corrects the first (`curate train corrector`), or null"
    )
    labels: Literal[176, "all"] | tuple[str, ...] = Field(
        description="languages that a document can get: the model's 176; all, with those that only "
        "the corrector knows; or a list of them, by ISO 639-3 and script (`xho_Latn`)"
    )
    unknown_below: Share = Field(description="below this score the language is `und`")
    lines_below: Share = Field(
        description="documents that score less are identified line by line: they may be in several "
        "languages"
    )
    languages: tuple[str, ...] | None = Field(description="languages to keep; null keeps all")
    thresholds: dict[str, Share] = Field(
        description="score below which a document is removed, by language; `default` applies to "
        "languages that have none, and without it those are kept"
    )

    paths: bool = Field(
        description="documents that are code or mathematics stay whatever their score; false: they "
        "are judged as all others"
    )

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


@functools.cache
def default_settings() -> LanguageSettings:
    """Return the settings of configs/defaults/identify-language.yaml."""
    return built_in_settings(LanguageSettings, "defaults/identify-language")
