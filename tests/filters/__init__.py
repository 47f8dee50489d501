"""Tests of filters, and how they measure texts."""

import functools

import pyarrow as pa

from curation.arrow import Texts
from curation.filters.filter_settings import SignalSettings
from curation.filters.signals import Meter


@functools.lru_cache(maxsize=8)
def _meter(settings: str) -> Meter:
    return Meter(SignalSettings.model_validate_json(settings))


def measure(texts: Texts, languages: pa.Array | None, settings: SignalSettings) -> pa.StructArray:
    """Signals of every text (`Meter.measure`), with lists loaded once per settings."""
    return _meter(settings.model_dump_json(round_trip=True)).measure(texts, languages)
