"""Forms of formulas, code, structure and white space: what `forms/*.txt` says."""

from __future__ import annotations

import pytest

from benchmarks.forms import Form, forms


@pytest.mark.parametrize("form", forms(), ids=lambda form: f"{form.file}-{form.name}")
def test_form(form: Form) -> None:
    assert form.extracted() == form.text


def test_enough_forms_are_exact() -> None:
    found = list(forms())
    assert len(found) >= 200
    assert len({(form.file, form.name) for form in found}) == len(found)
