"""Stage `identify-language`."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from curation.language.language_settings import LanguageSettings
from curation.stages.base import Limit, Stage, limit


class _IdentifyLanguage(Stage[LanguageSettings]):
    name = "identify-language"
    purpose = "add each document's language"
    settings = LanguageSettings
    after = "dedup-urls"
    adds = ("language", "language_score")
    cost = 1.1
    decides_by = ("thresholds", "languages")
    packages = ("numpy", "regex")
    counted = (("language", "Languages"),)
    shown = ("language", "language_score")

    def values(self, settings: LanguageSettings) -> dict[str, Collection[str]]:
        from curation.language.identifier import LanguageIdentifier  # compiled kernels

        return {"language": LanguageIdentifier(settings).languages}

    def load(self, settings: LanguageSettings) -> None:
        from curation.language.identifier import LanguageIdentifier

        LanguageIdentifier(settings).load()

    def limits(self, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Limit]:
        from curation.language.decide import DEFAULT, LOW_SCORE  # descriptions need no Arrow

        thresholds = settings["thresholds"]
        least = thresholds.get(row["language"], thresholds.get(DEFAULT))
        if least is not None:
            yield limit(LOW_SCORE, row["language_score"], min=least)


STAGE = _IdentifyLanguage()
