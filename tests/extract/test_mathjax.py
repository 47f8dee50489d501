"""What MathJax draws: parts in the order of MathML, whatever the drawing looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.extract.formulas import delimited, mathml_to_tex, tidy
from curation.extract.mathjax import drawing_to_mathml


def _character(point: str) -> str:
    return f'<mjx-mi><mjx-c class="mjx-c{point} TEX-I"></mjx-c></mjx-mi>'


_X, _N = _character("1D465"), _character("1D45B")
_SURD = '<mjx-surd><mjx-mo class="mjx-sop"><mjx-c class="mjx-c221A"></mjx-c></mjx-mo></mjx-surd>'


@pytest.mark.parametrize(
    ("drawing", "tex"),
    [
        (f"<mjx-mroot><mjx-root>{_N}</mjx-root><mjx-sqrt>{_SURD}<mjx-box>{_X}</mjx-box></mjx-sqrt>"
         "</mjx-mroot>", r"\sqrt[n]{x}"),
        (f"<mjx-mover><mjx-over>{_character('5E')}</mjx-over><mjx-base>{_X}</mjx-base></mjx-mover>",
         r"\hat{x}"),
        (f"<mjx-munder><mjx-row><mjx-base>{_character('6C')}</mjx-base></mjx-row>"
         f"<mjx-row><mjx-under>{_N}</mjx-under></mjx-row></mjx-munder>", r"\underset{n}{l}"),
        ('<mjx-munderover limits="false"><mjx-mo><mjx-c class="mjx-c2211"></mjx-c></mjx-mo>'
         f"<mjx-script>{_N}<mjx-spacer></mjx-spacer>{_X}</mjx-script></mjx-munderover>",
         r"\sum_{x}^{n}"),
        ('<mjx-mo><mjx-stretchy-v><mjx-beg><mjx-c class="mjx-c239B"></mjx-c></mjx-beg><mjx-ext>'
         '<mjx-c class="mjx-c239C"></mjx-c></mjx-ext></mjx-stretchy-v></mjx-mo>' + _X, "(x"),
        (_character("1D538") + _character("1D400"), r"\mathbb{A}\mathbf{A}"),
        ("<mjx-assistive></mjx-assistive>", ""),
    ],
    ids=["root", "accent", "under", "limits beside", "tall fence", "variants", "nothing"],
)  # fmt: skip
def test_a_drawing_is_read(drawing: str, tex: str) -> None:
    found = drawing_to_mathml(f"<mjx-container><mjx-math>{drawing}</mjx-math></mjx-container>")
    assert mathml_to_tex(found).strip() == tex


def test_a_group_that_holds_nothing_is_no_formula() -> None:
    """Sites that let MathJax write posts begin and end each with one."""
    assert delimited(tidy(r"\begingroup"), display=False) == ""
    assert delimited(tidy(r"$\endgroup$"), display=False) == ""
    assert delimited(tidy(r"\begingroup x + 1"), display=False) == "$x + 1$"
    assert delimited(tidy(r"\endgroupx"), display=False) == r"$\endgroupx$"


@given(st.lists(st.sampled_from(
    ["<mjx-msub>", "</mjx-msub>", _X, "<mjx-script>", "</mjx-script>", "<mjx-over>", "<g", ">",
     '<path data-c="FFFFF"/>', '<mjx-c class="mjx-cD800">', "<mjx-munderover>", "<mjx-msqrt>"]
)))  # fmt: skip
def test_any_drawing_is_read_without_an_error(pieces: list[str]) -> None:
    mathml_to_tex(drawing_to_mathml("".join(pieces)))


def test_deep_drawings_are_cut() -> None:
    assert drawing_to_mathml("<mjx-mrow>" * 5000 + _X).count("<mrow>") < 300
