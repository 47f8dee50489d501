"""Forms of formulas, code, structure and white space: what `forms/*.txt` says."""

from __future__ import annotations

import pytest

from benchmarks.forms import Form, forms
from curation.extract import extract
from curation.extract.formulas import delimited, tidy


@pytest.mark.parametrize("form", forms(), ids=lambda form: f"{form.file}-{form.name}")
def test_form(form: Form) -> None:
    assert form.extracted() == form.text


def test_enough_forms_are_exact() -> None:
    found = list(forms())
    assert len(found) >= 200
    assert len({(form.file, form.name) for form in found}) == len(found)


def test_a_group_that_holds_nothing_is_no_formula() -> None:
    """Sites that let MathJax write posts begin and end each with one."""
    assert delimited(tidy(r"\begingroup"), display=False) == ""
    assert delimited(tidy(r"$\endgroup$"), display=False) == ""
    assert delimited(tidy(r"\begingroup x + 1"), display=False) == "$x + 1$"
    assert delimited(tidy(r"\endgroupx"), display=False) == r"$\endgroupx$"


@pytest.mark.parametrize("command", [r"\begingroup", r"\endgroup", r"\displaystyle", r"\large"])
def test_formulas_of_which_nothing_is_left_leave_no_blanks(command: str) -> None:
    nothing = f'<script type="math/tex">{command}</script>'
    html = f"<article><p>{nothing} Is it {nothing} a group? {nothing} {nothing} It is one.</p>"
    rest = "<p>The rest of the answer is long enough to be kept, whatever else is here.</p>"
    text = extract(html + rest * 3).text
    assert text.startswith("Is it a group? It is one.\n")
