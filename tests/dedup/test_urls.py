import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.dedup.dedup_settings import UrlDedupSettings, defaults
from curation.dedup.urls import canonical_url, canonical_urls
from curation.errors import ConfigError

DEFAULT = defaults(UrlDedupSettings).canonical
OFF = DEFAULT.model_copy(update={"tracking_parameters": None})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://www.example.com/a/", "example.com/a"),
        ("HTTPS://Example.COM", "example.com"),
        ("https://example.com/Path", "example.com/Path"),
        ("http://example.com:80/a", "example.com/a"),
        ("https://example.com:80/a", "example.com:80/a"),
        ("https://user:pw@example.com/a", "example.com/a"),
        ("http://www.com/", "www.com"),
        ("http://[2001:DB8::1]:80/", "[2001:db8::1]"),
        ("http://a.com/x#part", "a.com/x"),
        ("http://a.com/x#!/app", "a.com/x#!/app"),
        ("http://a.com/?utm_source=x&UTM_Medium=y&gclid=1", "a.com"),
        ("http://a.com/?utm%5Fsource=x&page=2", "a.com?page=2"),
        ("http://a.com/?b=2&a=1&b=1", "a.com?a=1&b=2&b=1"),
        ("http://a.com/story?sid=12&PHPSESSID=ab", "a.com/story?sid=12"),
        ("http://a.com/x;JSESSIONID=1F/y;sid=2;v=3", "a.com/x/y;v=3"),
        ("http://a.com/%7euser/%e4%bd%a0%2f", "a.com/~user/%E4%BD%A0%2F"),
        ("http://a.com/你 好|100%", "a.com/%E4%BD%A0%20%E5%A5%BD%7C100%25"),
        ("http://a.com/a/./b/../../c/.", "a.com/c"),
        ("http://a.com/../..", "a.com"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://BÜCHER.example:8080/", "xn--bcher-kva.example:8080"),
        ("  http://a.com/x\n", "a.com/x"),
        ("mailto:someone@example.com", "mailto:someone@example.com"),
        *((text, "") for text in ("no url", "n/a", "None", "-")),
        *((text, text) for text in ("/wiki/Bee", "a.example/x", "urn:isbn:0", "http://")),
    ],
)
def test_default_rules(url: str, expected: str) -> None:
    assert canonical_url(url, DEFAULT) == expected
    assert canonical_urls([url], DEFAULT).to_pylist() == [expected or None]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://a.com/x#y", "a.com/x"),
        ("http://a.com/x?b&&a", "a.com/x?a&b"),
        ("http://u@a.com/x?", "a.com/x"),
        ("http://a.com/%41", "a.com/A"),
        ("HTTP://WWW.A.com", "a.com"),
        ("http://a.com/?utm_source=x", "a.com?utm_source=x"),
    ],
)
def test_rules_without_a_list(url: str, expected: str) -> None:
    assert canonical_url(url, OFF) == expected


PARTS = st.tuples(
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "http:/", ""]),
    st.sampled_from(["a.com", "www.a.com", "www.com", "A.com", "a.com:80", "u@a.com", "www."]),
    st.lists(
        st.sampled_from(["", "/", "x", "ü", "..", ".", "/x", "/.y", "%7e", "%2f", ";sid=1", "//"]),
        max_size=5,
    ).map("".join),
    st.sampled_from(["", "?", "?a=1", "?b=1&a=2", "?utm_x=1", "?&a", "#f", "#!f", "?a#f", " "]),
).map("".join)


@given(st.lists(PARTS | st.none() | st.text(max_size=8), max_size=8))
@settings(max_examples=150)
def test_both_routes_agree(urls: list[str | None]) -> None:
    for chosen in (DEFAULT, OFF):
        expected = [canonical_url(u, chosen) or None if u is not None else None for u in urls]
        assert canonical_urls(urls, chosen).to_pylist() == expected


@given(PARTS)
@settings(max_examples=150)
def test_canonical_urls_stay_as_they_are(url: str) -> None:
    once = canonical_url(url, DEFAULT)
    if re.match(r"\w+://[^/?#]", url.strip()):
        assert canonical_url(f"ws://{once}", DEFAULT) == once
    else:
        assert once == url.strip()


def test_absent_list_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "none.txt")
    with pytest.raises(ConfigError, match=r"none\.txt: cannot be read"):
        canonical_url("http://a.com", DEFAULT.model_copy(update={"tracking_parameters": path}))
