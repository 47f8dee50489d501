"""robots.txt against RFC 9309's own examples and verdicts of other parsers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.resources import root
from curation.rights import parse_robots
from curation.rights.robots import Rule, matches, normalised, pattern_of

VECTORS = root().parent / "shared/data/robots/dev.jsonl.gz"

#: RFC 9309, section 5.1.
SIMPLE = b"""User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("anybot", "/example/", False),
        ("anybot", "/pictures/one.gif", False),
        ("anybot", "/pictures/one.gif?size=2", True),
        ("anybot", "/publications/", True),
        ("FooBot", "/other", False),
        ("FooBot", "/example/page.html", True),
        ("FooBot", "/example/allowed.gif", True),
        ("bazbot", "/example/page.html", False),
        ("barbot", "/example/other.html", True),
        ("quxbot", "/example/", True),
        ("quxbot/2.0", "/robots.txt", True),
    ],
)
def test_the_example_of_the_rfc(agent: str, path: str, allowed: bool) -> None:
    assert parse_robots(SIMPLE).access(agent, f"https://example.com{path}").allowed is allowed


def test_the_longest_match_decides() -> None:
    """RFC 9309, section 5.2; with equal lengths `Allow` does (2.2.2)."""
    robots = parse_robots(
        b"User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    )
    assert robots.access("foobot", "/example/page/").allowed
    refused = robots.access("foobot", "http://x.org/example/page/disallowed.gif")
    assert refused.rule is not None
    assert (refused.allowed, refused.rule.path) == (False, "/example/page/disallowed.gif")
    equal = parse_robots(b"user-agent: a\ndisallow: /page\nallow: /page\n")
    assert equal.access("a", "/page").allowed


def test_an_agent_named_twice_has_each_rule_once() -> None:
    file = parse_robots(b"User-agent: a\nUser-agent: b\nUser-agent: A/2\nDisallow: /x\n")
    assert list(file.groups) == ["a", "b"]
    assert file.groups["a"] == file.groups["b"] == [Rule.of(False, "/x")]


def test_groups_of_one_agent_are_one_group() -> None:
    robots = parse_robots(
        b"User-agent: a\rDisallow: /x\r\rUser-agent: b\rDisallow: /y\rUser-agent: A\rDisallow: /z\r"
    )
    assert [robots.access("a", p).allowed for p in ("/x", "/y", "/z")] == [False, True, False]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"Disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
        ("Disallow: /foo/bar/ツ".encode(), "/foo/bar/%E3%83%84"),
        (b"Disallow: /foo/bar/%E3%83%84", "/foo/bar/ツ"),
        (b"Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz"),
        (b"Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        (b"Disallow: /path/foo-%24", "/path/foo-$"),
        (b"disallow /private", "/private/a"),
        (b"Dissallow: /private", "/private/a"),
        (b"DISALLOW : /private # not this", "/private"),
    ],
)
def test_spellings_of_lines_and_octets(line: bytes, path: str) -> None:
    robots = parse_robots(b"\xef\xbb\xbfUser-agent: *\n" + line + b"\n")
    assert not robots.access("anybot", f"https://example.com{path}").allowed
    assert robots.access("anybot", "https://example.com/elsewhere").allowed


#: Where our reading differs, and why.
EXPLAINED = {
    "test_user_agent_precedence": "a crawler follows the group of its own name (RFC 9309, 2.2.1)",
    "test_unicode_url_and_useragent": "the agent is a product's name, not a whole header",
    "test_generosity": "an asterisk inside of a product's name means nothing",
    "test_special_symbols_dual_behaviour": "`$` at the end means the end alone (2.2.3)",
    "GoogleOnly_AcceptUserAgentUpToFirstSpace": "our own name is cut at a space, too",
    "test_with_absolute_urls": "a rule's path begins with `/` (2.2)",
}


def _vectors() -> list[dict[str, Any]]:
    if not Path(VECTORS).exists():
        pytest.skip(f"{VECTORS} is not here")
    with gzip.open(VECTORS, "rt") as file:
        return [json.loads(line) for line in file]


def test_verdicts_of_other_parsers() -> None:
    vectors = _vectors()
    differ = [
        v
        for v in vectors
        if parse_robots(v["robots"].encode()).access(v["agent"], v["url"]).allowed != v["allowed"]
        and not v["robots"].startswith("\ufeff")  # both other parsers lose the first line
    ]
    unexplained = [v for v in differ if v["source"].split()[-1] not in EXPLAINED]
    assert unexplained == []
    assert len(differ) <= 12
    assert len(vectors) > 2000


def _plain_match(pattern: str, path: str) -> bool:
    """As `matches`, by trying every length of every asterisk."""
    if not pattern:
        return True
    if pattern == "$":
        return not path
    if pattern[0] == "*":
        return any(_plain_match(pattern[1:], path[k:]) for k in range(len(path) + 1))
    return bool(path) and path[0] == pattern[0] and _plain_match(pattern[1:], path[1:])


@given(st.text("ab*", max_size=8), st.booleans(), st.text("ab", max_size=10))
def test_patterns_match_as_the_plain_reference(pattern: str, end: bool, path: str) -> None:
    pattern += "$" if end else ""
    assert matches(pattern, path) is _plain_match(pattern, path)


@given(st.text(max_size=30))
def test_normalised_paths_stay_as_they_are(path: str) -> None:
    once = normalised(path)
    assert once.isascii()
    assert normalised(once) == once


def test_patterns_keep_their_marks() -> None:
    assert pattern_of("/caf\u00e9/*.gif$") == "/caf%C3%A9/*.gif$"
    assert pattern_of("/a$b*") == "/a%24b*"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_file(content: bytes) -> None:
    parse_robots(content).access("anybot", "https://example.com/")
