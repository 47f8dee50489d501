"""Thresholds that `curate policy --set` and the explorer change."""

from __future__ import annotations

import re

import pytest

from curation.errors import ConfigError
from curation.filters.filter_settings import default_tree
from pipelines.reading.thresholds import changed_settings


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("filter.rules.gopher.word_cuont.min=3", "did you mean 'word_count'?"),
        ("filter.rules.gophr.word_count.min=3", "did you mean 'gopher'?"),
        ("filter.rule.gopher.word_count.min=3", "did you mean 'rules'?"),
        ("filter.exempt.cod.min=3", "did you mean 'code'?"),
        ("rules.gopher.word_count.min=3", "did you mean 'filter.rules.gopher.word_count.min'?"),
        ("filter.edits.c4=true", "run the stage again"),
        ("filter.rules.gopher.word_count.mn=3", "did you mean 'min'?"),
        ("filter.rules.gopher.word_count=3", "--set filter: rules.gopher.word_count: input"),
    ],
)
def test_unknown_keys_are_named(key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        changed_settings(default_tree(), [key])
