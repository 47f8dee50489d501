"""Stage `decontaminate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from curation.decontaminate.decontaminate_settings import DecontaminationSettings
from curation.decontaminate.mappings import load_mapping
from curation.errors import ConfigError
from curation.stages.base import Columns, NamedFile, Stage


class _Decontaminate(Stage[DecontaminationSettings]):
    name = "decontaminate"
    purpose = "take items of evaluation sets out of the documents"
    settings = DecontaminationSettings
    after = "filter"
    optional = True
    adds = ("contamination",)
    packages = ("numba", "numpy", "regex", "zstandard")
    cost = 0.2
    beside = "contamination"

    def reads(self, settings: DecontaminationSettings) -> Columns:
        return Columns()

    def load(self, settings: DecontaminationSettings) -> None:
        if not settings.evals:
            raise ConfigError("decontaminate.evals: names no evaluation set")
        for name, of_set in settings.evals.items():
            if of_set.mapping is not None:
                try:
                    load_mapping(of_set.mapping)
                except ConfigError as error:
                    raise ConfigError(f"decontaminate.evals.{name}.mapping: {error}") from None

    def files(self, settings: DecontaminationSettings) -> Iterator[NamedFile]:
        for name, of_set in settings.evals.items():
            for i, path in enumerate(of_set.files):
                yield NamedFile(f"decontaminate.evals.{name}.files[{i}]", path, "file or folder")

    def tell(self, row: Mapping[str, Any]) -> Iterator[str]:
        judged = f"{row['score']:.4g} (threshold {row['threshold']:.4g}), exact {row['exact']:.4g}"
        place = f"bytes {row['start']} to {row['end']}"
        yield f"{row['action']}: {row['part']} of {row['set']} {row['item']}: {judged}, {place}"
        yield f"    item     {' '.join(row['item_text'].split())}"
        yield f"    document {' '.join(row['text'].split())}"


STAGE = _Decontaminate()
