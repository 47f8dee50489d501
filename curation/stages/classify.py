"""Stage `classify`."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from curation.classify.classify_settings import ClassifySettings, PageEvidence
from curation.columns import DOMAINS
from curation.stages.base import Columns, Limit, Stage, limit


class _Classify(Stage[ClassifySettings]):
    name = "classify"
    purpose = "score quality, domain, topic and format"
    settings = ClassifySettings
    after = "dedup-documents"
    adds = ("quality", "domain", "topic", "format")
    cost = 0.4
    decides_by = ("min_quality", "drop_topics", "drop_formats")
    packages = ("numpy", "regex")
    counted = (("domain", "Domains"), ("topic", "Topics"), ("format", "Formats"))
    shown = ("quality", "domain", "topic", "format")

    def reads(self, settings: ClassifySettings) -> Columns:
        of_pages = PageEvidence.columns() if settings.evidence else ()
        return Columns(used=("language", *of_pages))

    def check(
        self, settings: ClassifySettings, recipe: Any, known: Mapping[str, Collection[str]]
    ) -> None:
        from curation.classify.classifier import check_labels  # compiled kernels
        from curation.language.identifier import check_known

        ours = self.values(settings)
        check_labels("topic", settings.drop_topics, ours["topic"], "classify.drop_topics")
        check_labels("format", settings.drop_formats, ours["format"], "classify.drop_formats")
        evidence = settings.weights.format
        if evidence is not None and set(evidence.weights) & set(ours["format"]):
            check_labels("format", evidence.weights, ours["format"], "classify.evidence")
        if "language" in known:
            names = settings.multilingual_excludes
            check_known("classify.multilingual_excludes", names, set(known["language"]))

    def values(self, settings: ClassifySettings) -> dict[str, Collection[str]]:
        from curation.classify.classifier import Classifier

        classifier = Classifier(settings)
        topics, formats = classifier.labels("topic"), classifier.labels("format")
        return {"domain": DOMAINS, "topic": topics, "format": formats}

    def adds_of(self, settings: ClassifySettings) -> tuple[str, ...]:
        return (*self.adds, *settings.classifiers)

    def load(self, settings: ClassifySettings) -> None:
        from curation.classify.classifier import Classifier

        Classifier(settings).load()

    def shows(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(settings.get("classifiers", {}))

    def limits(self, settings: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Limit]:
        from curation.classify.decide import LOW_SCORE  # descriptions need no Arrow

        least, quality = settings["min_quality"].get(row["domain"]), row.get("quality")
        # What is code or formulas from end to end may be below: it is not judged by quality.
        if least is not None and quality is not None and quality >= least:
            yield limit(LOW_SCORE, quality, min=least)
        for name, classifier in settings.get("classifiers", {}).items():
            ends = {end: classifier[end] for end in ("min", "max")}
            if row.get(name) is not None and any(end is not None for end in ends.values()):
                yield limit(f"classify.{name}", row[name], **ends)


STAGE = _Classify()
