"""Pages of our own: forms of formulas and code, kinds of pages, scripts, with gold for each.

A gold file holds fragments separated by lines of `=====`; one that starts with `!` must be absent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation.extract import Extractor, default_settings

_PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
_OWN = Extractor(default_settings().model_copy(update={"engine": "curation"}))

_NOT_YET = {
    "a02-forum": "boxes about the authors of posts are kept",
}


def _parameter(path: Path) -> Any:
    reason = _NOT_YET.get(path.stem)
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", map(_parameter, _PAGES))
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
