"""Stage `decontaminate`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curation.config import read_values
from curation.decontaminate.decontaminate_settings import (
    DecontaminationSettings,
    Rules,
    load_mapping,
)
from curation.errors import ConfigError
from curation.stages.base import Columns, Stage

#: Of a row, but for the item's name.
_SHOWN = ("action", "set", "part", "score", "start", "end", "item_text")


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
        from curation.decontaminate.items import check_fields  # its packages are slow to import

        if not settings.evals:
            raise ConfigError("decontaminate.evals: names no evaluation set")
        for name, of_set in settings.evals.items():
            if of_set.mapping is not None:
                try:
                    load_mapping(of_set.mapping)
                except ConfigError as error:
                    raise ConfigError(f"decontaminate.evals.{name}.mapping: {error}") from None
            check_fields(name, of_set)
        read_values(settings.rules, Rules)

    def tell(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        same: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in rows:  # questions on one passage, say
            same.setdefault(tuple(row[key] for key in _SHOWN), []).append(row)
        for row, *others in same.values():
            more = f" and {len(others)} more with these words" if others else ""
            judged = f"{row['score']:.4g} (threshold {row['threshold']:.4g})"
            place = f"exact {row['exact']:.4g}, bytes {row['start']} to {row['end']}"
            what = f"{row['part']} of {row['set']} {row['item']}{more}"
            yield f"{row['action']}: {what}: {judged}, {place}"
            yield f"    item     {' '.join(row['item_text'].split())}"
            yield f"    document {' '.join(row['text'].split())}"


STAGE = _Decontaminate()
