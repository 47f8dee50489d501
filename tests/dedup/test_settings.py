import pytest
from pydantic import ValidationError

from curation.dedup.dedup_settings import (
    DocumentDedupSettings,
    LineDedupSettings,
    Settings,
    UrlDedupSettings,
    defaults,
    normalizations,
)

STAGES = [UrlDedupSettings, DocumentDedupSettings, LineDedupSettings]


@pytest.mark.parametrize("stage", STAGES)
def test_no_setting_has_a_default_in_code(stage: type[Settings]) -> None:
    for name, value in defaults(stage):
        assert stage.model_fields[name].is_required(), name
        for inner, field in getattr(type(value), "model_fields", {}).items():
            assert field.is_required(), f"{name}.{inner}"


@pytest.mark.parametrize("stage", STAGES)
def test_settings_survive_json(stage: type[Settings]) -> None:
    settings = defaults(stage)
    assert stage.model_validate_json(settings.model_dump_json()) == settings


def test_a_normalization_by_name() -> None:
    lines = defaults(LineDedupSettings)
    assert lines.normalization == normalizations()["llama3"]
    with pytest.raises(ValidationError, match="no normalization named 'cnet'; known: c4, ccnet"):
        LineDedupSettings.model_validate({**dict(lines), "normalization": "cnet"})


def test_unknown_keys_are_errors() -> None:
    with pytest.raises(ValidationError, match="max_occurences"):
        LineDedupSettings.model_validate({**dict(defaults(LineDedupSettings)), "max_occurences": 6})
