"""Pages made to hurt, small ones; benchmarks/hostile.py measures them at full size."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.extract import Extractor, PageTooLargeError, native
from curation.extract.clean import normal
from curation.extract.containers import representatives
from curation.extract.extractor import default_settings
from curation.extract.formulas import mathml_to_tex
from curation.extract.scan import scan
from tests.hostile_pages import ARTICLE, CASES, page

_SETTINGS = default_settings()
_EXTRACTOR = Extractor(_SETTINGS)
_SENTENCE = "The harbour wall was rebuilt after the flood of that year, and it has stood since."


@pytest.mark.parametrize("name", CASES)
def test_ends_with_text_or_a_reason(name: str) -> None:
    html = CASES[name](0.01)
    assert _EXTRACTOR.extract(html) == _EXTRACTOR.extract(html)
    if b"Harbour walls" in html and not name.endswith("_unclosed") and name != "linked_data":
        assert _SENTENCE in _EXTRACTOR.extract(html).text


def test_nested_elements_return_their_text() -> None:
    text = _EXTRACTOR.extract(CASES["nested_20_000"](1.0)).text
    assert text.startswith("Harbour walls\n") and text.count(_SENTENCE) == 24


def test_a_long_text_node_returns_its_text() -> None:
    html = CASES["text_20_mb"](0.25)
    assert _EXTRACTOR.extract(html).text.count(_SENTENCE) == html.count(_SENTENCE.encode())


@pytest.mark.parametrize(
    "limit, html, reason",
    [
        ("max_html_bytes", ARTICLE, "extract.too_large"),
        ("max_nodes", b"<p>a" * 200, "extract.too_many_nodes"),
        ("max_characters", ARTICLE, "extract.too_long"),
    ],
)
def test_beyond_a_limit_the_reason_is_told(limit: str, html: bytes, reason: str) -> None:
    small = Extractor(_SETTINGS.model_copy(update={limit: 100}))
    with pytest.raises(PageTooLargeError) as caught:
        small.extract(page(html))
    assert (caught.value.reason, caught.value.threshold) == (reason, 100)


def test_blocks_of_a_kind_share_a_judgement_on_enormous_pages() -> None:
    html = page(b"<div class=a>one<p>two</p></div><ul><li>three</ul>" * 50)
    scanned = scan(html, 512, 10_000)
    n = len(scanned.b_start)
    assert (representatives(scanned, n) == np.arange(n)).all()
    shared = representatives(scanned, n // 5)
    chosen = np.unique(shared)
    assert (shared[chosen] == chosen).all() and (shared <= np.arange(n)).all()
    assert n // 6 <= len(chosen) <= n // 5 + 3
    tags = scanned.e_tag[scanned.b_element]
    assert (tags == tags[shared]).all()


def test_features_of_some_blocks_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    html = page(ARTICLE + b"<ul><li><a href=x>link</a><li>item</ul>" * 20 + ARTICLE)
    whole = native.judge(html, _SETTINGS)
    monkeypatch.setattr(native, "MOST_JUDGED_BLOCKS", 10)
    some = native.judge(html, _SETTINGS)
    assert 2 < len(some.measured) < len(whole.measured) // 2
    assert np.array_equal(some.measured, whole.measured[np.unique(representatives(whole.page, 10))])


@given(st.text(alphabet="ae\u0301\u0316\u0345é한", max_size=120))
def test_normal_is_nfc_with_short_runs_of_marks(text: str) -> None:
    made = normal(text)
    assert unicodedata.is_normalized("NFC", made)
    assert made.replace("\u034f", "") == made or len(text) > 30
    expected = unicodedata.normalize("NFC", text)
    assert made == expected or "\u034f" in made


def test_many_marks_are_kept() -> None:
    marked = "x" + "\u0316" * 100
    assert normal(marked).replace("\u034f", "") == marked


@pytest.mark.parametrize(
    "source, tex",
    [
        ("<math><mi>a</mi><mo>&lt;</mo><mi>b</mi></math>", "a<b"),
        ('<math><mfenced open="[" close="]"><mi>a</mi></mfenced></math>', "\\left[a\\right]"),
        ("<m:math><m:msup><m:mi>x</m:mi><m:mn>2</m:mn></m:msup></m:math>", "x^{2}"),
        ("<math><!-- note --><mi>α</mi><mspace/><mi>x</mi></math>", "\\alpha x"),
        ("<math><mfrac><mi>a</mi><mi>b</mi></mfrac", "\\frac{a}{b}"),
    ],
)  # fmt: skip
def test_mathml_is_read_whatever_its_markup(source: str, tex: str) -> None:
    assert mathml_to_tex(source) == tex
