"""References that were escaped twice."""

from __future__ import annotations

import pytest

from curation.extract import Extractor
from curation.extract.extractor import default_settings

_REST = "The rest of the paragraph is as it should be, and there is enough of it to be kept. " * 3
_TWICE = (
    "Don&amp;#039;t ask &amp;quot;why&amp;quot; at AT&amp;amp;amp;T &amp;nbsp; caf&amp;eacute; "
    "1 &amp;lt; 2 &amp;#x2014; R&amp;D;"
)


def extracted(body: str, title: str = "", markdown: bool = False) -> tuple[str, str]:
    settings = default_settings().model_copy(update={"markdown": markdown})
    html = f"<title>{title}</title><article><p>{body}</p><p>{_REST}</p></article>"
    found = Extractor(settings).extract(html)
    return found.text.split("\n")[0], found.title


@pytest.mark.parametrize("markdown", [False, True])
def test_they_are_read(markdown: bool) -> None:
    text, title = extracted(_TWICE, "Bob&amp;rsquo;s caf&amp;eacute;", markdown)
    shown = text.replace("\\", "")
    assert shown == 'Don\'t ask "why" at AT&T café 1 &lt; 2 — R&D;'
    assert title == "Bob’s café"


@pytest.mark.parametrize(
    "body, shown",
    [
        ("Write &amp;nbsp; so that HTML keeps a line.", "Write &nbsp; so that HTML keeps a line."),
        ("With <code>code</code>, R&amp;amp;D.", "With code, R&amp;D."),
        ("None: &amp;nbsp, &amp;thing; &amp;#7; &amp;#42;", "None: &nbsp, &thing; &#7; &#42;"),
    ],
)
def test_what_may_be_meant_stays(body: str, shown: str) -> None:
    assert extracted(body)[0] == shown
