"""Pages of our own: forms of formulas and code, kinds of pages, scripts, with gold for each.

A gold file holds fragments separated by lines of `=====`; one that starts with `!` must be absent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.extract import Extractor
from curation.extract.extractor import default_settings

_PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
_OWN = Extractor(default_settings().model_copy(update={"engine": "curation"}))


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.stem)
def test_page(path: Path) -> None:
    text = _OWN.extract(path.read_bytes()).text
    gold = path.with_suffix(".txt").read_bytes().decode("utf-8").removesuffix("\n")
    for fragment in gold.split("\n=====\n"):
        if fragment.startswith("!"):
            assert fragment[1:] not in text
        else:
            assert fragment in text
    for boilerplate in ("Privacy", "Terms", "Topics"):
        assert boilerplate not in text


def test_the_language_that_a_listing_states_inside_is_recorded() -> None:
    page = Path(__file__).parent / "pages" / "c01-small-things.html"
    assert _OWN.extract(page.read_bytes()).code_languages == ("python",)
