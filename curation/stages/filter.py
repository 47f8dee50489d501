"""Stage `filter`."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from curation.config import settings_of_run
from curation.filters.filter_settings import FilterSettings, default_settings
from curation.filters.lists import closest
from curation.language.language_settings import default_settings as default_language_settings
from curation.stages.base import Columns, Limit, Stage, limit

#: Keys of `filter.signals` that name a folder with one file per language.
_FOLDERS = {
    "stop_words": ".txt",
    "dirty_words": ".txt",
    "allowed_words": ".txt",
    "reference": ".npz",
}


class _Filter(Stage[FilterSettings]):
    name = "filter"
    purpose = "measure and judge documents by heuristic rules"
    settings = FilterSettings
    after = "dedup-lines"
    adds = ("signals", "path")
    cost = 3.0
    packages = ("idna", "numpy", "regex")
    has_signals = True
    decides_by = ("rules", "by_language")
    counted = (("path", "Paths: prose, code, mathematics"),)
    shown = ("path", "overruled")

    def reads(self, settings: FilterSettings) -> Columns:
        return Columns(used=("language",))

    def check_recipe(self, settings: FilterSettings, recipe: Any) -> None:
        if self.name in recipe.stages and (problem := settings.unmeasured()):
            raise ValueError(f"filter.{problem}")

    def check(
        self, settings: FilterSettings, recipe: Any, known: Mapping[str, Collection[str]]
    ) -> None:
        if "language" not in known:
            return
        from curation.language.identifier import (  # compiled kernels
            LanguageIdentifier,
            check_known,
        )

        # Languages of the defaults are known with any model: a recipe with another keeps their
        # rules.
        languages = set(known["language"])
        languages |= LanguageIdentifier(default_language_settings()).languages
        languages |= {language for _, language in default_settings().languages()}
        for key, language in settings.languages():
            # `zh-Hant` has the rules of `zh`, and may have its own under a model that tells it.
            if closest(language, languages) is None:
                check_known(f"filter.{key}", [language], languages)

    def limits(self, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Limit]:
        from curation.filters.rules import RuleBook  # descriptions need no Arrow

        signals = row.get("signals") or {}
        rules = RuleBook(settings_of_run(FilterSettings, settings)).of(row.get("language"))
        for _, reason, rule in rules if signals else ():
            value = signals.get(rule.signal)
            yield limit(reason, value, min=rule.min, max=rule.max, signal=rule.signal)


STAGE = _Filter()
