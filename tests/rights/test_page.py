"""Licences, directives and reservations in pages and headers."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rights import facts
from curation.resources import root
from curation.rights import for_agents, parse_directives, read_page, reservation
from curation.rights.licences import Licence, licence_of, matches_licence, spdx_identifiers
from curation.rights.robots import Directive
from curation.rights.tdm import Reservation, of_path, parse_tdm_file

CASES = root().parent / "shared/data/rights/dev.jsonl.gz"


def _page(head: str = "", body: str = "<p>Text.</p>") -> bytes:
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>".encode()


@pytest.mark.parametrize(
    ("statement", "name", "jurisdiction"),
    [
        ("https://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0", None),
        ("//creativecommons.org/licenses/by-nc-sa/3.0/de/deed.de", "CC-BY-NC-SA-3.0", "de"),
        ("http://creativecommons.org/licenses/by/2.5/scotland/", "CC-BY-2.5", "scotland"),
        ("https://creativecommons.org/licenses/by-sa/3.0/legalcode", "CC-BY-SA-3.0", None),
        ("https://creativecommons.org/publicdomain/zero/1.0/deed.fr", "CC0-1.0", None),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "CC-PDM-1.0", None),
        ("http://creativecommons.org/licenses/publicdomain/", "CC-PDDC", None),
        ("http://i.creativecommons.org/l/by-nd/3.0/88x31.png", "CC-BY-ND-3.0", None),
        ("CC BY-NC-ND 4.0", "CC-BY-NC-ND-4.0", None),
        ("CC BY 4.0 International", "CC-BY-4.0", None),
        ("CC0", "CC0-1.0", None),
        ("https://www.gnu.org/licenses/fdl-1.3.html", "GFDL", None),
        ("https://www.apache.org/licenses/LICENSE-2.0", "Apache-2.0", None),
        ("https://opensource.org/licenses/MIT", "MIT", None),
        (
            "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
            "OGL-UK-3.0",
            None,
        ),
        ("https://opendatacommons.org/licenses/odbl/1-0/", "ODbL-1.0", None),
    ],
)
def test_names_of_licences(statement: str, name: str, jurisdiction: str | None) -> None:
    assert licence_of(statement) == Licence(name, jurisdiction)


@pytest.mark.parametrize(
    "statement", ["", "https://example.com/terms", "CCTV 4", "ACC BY", "CC BYTE"]
)
def test_other_words_are_no_licence(statement: str) -> None:
    assert licence_of(statement) is None


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("MIT", True),
        ("CC-BY-4.0", True),
        ("Proprietary", False),
        ("MIT OR Proprietary", True),
        ("MIT AND Proprietary", False),
        ("(MIT OR Proprietary)", True),
        ("(MIT OR Proprietary) AND CC-BY-4.0", True),
        ("(MIT OR Proprietary) AND Other", False),
        ("Proprietary OR (MIT AND (CC-BY-4.0 OR Other))", True),
        ("Proprietary OR MIT AND Other", False),
        ("MIT WITH Some-exception AND CC-BY-3.0", True),
        ("Other WITH Some-exception OR MIT", True),
        ("(MIT AND (Other", False),
        ("MIT)", True),
        ("(" * 5000 + "MIT" + ")" * 5000, True),
        ("AND-1.0 OR FOR", False),
    ],
)
def test_expressions_of_licences(licence: str, expected: bool) -> None:
    assert matches_licence(licence, ["mit", "CC-BY-?.0"]) is expected


def test_spdx_identifiers_of_code() -> None:
    text = (
        "// SPDX-License-Identifier: MIT OR Apache-2.0\n# SPDX-License-Identifier: GPL-2.0-only\n"
    )
    assert spdx_identifiers(text + text) == ["MIT OR Apache-2.0", "GPL-2.0-only"]


BY = "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize(
    ("head", "body", "scope", "place", "kind"),
    [
        (f'<link rel="license" href="{BY}">', "", "page", "head", "link"),
        (f"<LINK HREF={BY} REL=LICENSE>", "", "page", "head", "link"),
        (f'<meta name="dcterms.license" content="{BY}">', "", "page", "head", "meta"),
        ('<meta property="cc:license" content="CC BY 4.0">', "", "page", "head", "meta"),
        ("", f'<a rel="license noopener" href="{BY}">CC</a>', "page", "body", "anchor"),
        (
            "",
            f'<footer>All content under <a href="{BY}">this</a></footer>',
            "page",
            "footer",
            "anchor",
        ),
        (
            "",
            f'<div id="foot">Inhalte stehen unter <a href="{BY}">CC</a></div>',
            "page",
            "footer",
            "anchor",
        ),
        ("", f'<p>本サイトの内容は<a href="{BY}">CC</a></p>', "page", "body", "anchor"),
        (
            "",
            f'<figure><img><figcaption>A, <a rel=license href="{BY}">CC</a></figcaption></figure>',
            "part",
            "body",
            "anchor",
        ),
        ("", f'<p>Photo: Ann, <a href="{BY}">CC BY</a>, via Flickr</p>', "part", "body", "anchor"),
        ("", f'<p>Music by Bo (<a href="{BY}">CC BY</a>)</p>', "part", "body", "anchor"),
        ("", f"<script>map('tiles <a href=\"{BY}\">CC</a>')</script>", "part", "body", "anchor"),
    ],
)
def test_scope_and_place_of_a_licence(
    head: str, body: str, scope: str, place: str, kind: str
) -> None:
    (found,) = read_page(_page(head, body)).statements
    assert (found.licence, found.scope) == (Licence("CC-BY-4.0", None), scope)
    assert (found.place, found.kind) == (place, kind)


def test_json_ld_of_a_page_and_of_its_parts() -> None:
    thing = {"@graph": [{"@type": "Article", "license": BY, "image": {"license": "CC0"}}]}
    rights = read_page(_page(f'<script type="application/ld+json">{json.dumps(thing)}</script>'))
    assert [(s.licence and s.licence.name, s.scope) for s in rights.statements] == [
        ("CC-BY-4.0", "page"),
        ("CC0-1.0", "part"),
    ]


@pytest.mark.parametrize(
    "script",
    [
        '<SCRIPT TYPE="application/ld+json">{}</SCRIPT>',
        "<script type='application/LD+JSON'>{}</script>",
        "<script type=application/ld+json>{}</Script>",
    ],
)
def test_json_ld_in_any_case(script: str) -> None:
    rights = read_page(_page(script.replace("{}", json.dumps({"license": BY}))))
    assert [(s.kind, s.licence and s.licence.name) for s in rights.statements] == [
        ("json-ld", "CC-BY-4.0")
    ]


def test_terms_behind_others_that_are_commented_out() -> None:
    page = _page(
        "", '<!-- <a rel="license" href="/old"> --><a rel="license" href="/terms">Terms</a>'
    )
    assert [s.value for s in read_page(page).statements] == ["/terms"]


def test_what_is_commented_out_says_nothing() -> None:
    page = _page(
        '<!-- <meta name="robots" content="noai"> -->', f'<!-- <a rel=license href="{BY}"> -->'
    )
    rights = read_page(page)
    assert (rights.statements, rights.directives) == ((), ())


NOAI = '<meta name="robots" content="noai">'
INLINE = (
    '<script type="application/rsl+xml"><rsl xmlns="https://rslstandard.org/rsl"><content url="/">'
    "<license><permits>all</permits></license></content></rsl></script>"
)


@pytest.mark.parametrize(
    ("head", "read"),
    [
        (f"<title>About {NOAI}</title>", False),
        (f"<style>/* {NOAI} */</style>", False),
        (f"<template>{NOAI}</template>", False),
        (f"<textarea>{NOAI}</TEXTAREA>", False),
        (f"<noscript>{NOAI}</noscript>", True),
        (f"<title>Never closed {NOAI}", True),
        (f"<!-->{NOAI}", True),
        (f"<!--->{NOAI}", True),
        (f"<!--[if !IE]><!-->{NOAI}<!--<![endif]-->", True),
        (f'<meta name="x" content="y" {NOAI}', True),
        ('<link rel="alternate" href="https://rights.example/">' * 200 + NOAI, True),
    ],
)
def test_where_a_tag_of_the_head_is_one(head: str, read: bool) -> None:
    assert [one.name for one in read_page(_page(head, "")).directives] == ["noai"] * read


@pytest.mark.parametrize(
    ("page", "places"),
    [
        (f"<title>T</title>{INLINE}<p>Text", ["head"]),
        (f"<title>T</title><p>Text{INLINE}", ["body"]),
        (f"<head></head><template>{INLINE}</template>", []),
        (f"<!-->{INLINE}", ["head"]),
    ],
)
def test_where_terms_that_a_page_holds_are(page: str, places: list[str]) -> None:
    assert [place for place, _ in read_page(page.encode()).inline_terms] == places


def test_tags_that_never_end_cost_no_more_than_others() -> None:
    def seconds(tag: bytes) -> float:
        begin = time.process_time()
        read_page(tag * 60_000)
        return time.process_time() - begin

    begin = time.process_time()
    read_page(b"".join(b"<meta name=robots %d%s>" % (i, b"a" * 1900) for i in range(256)))
    assert time.process_time() - begin < 1
    never, ending = (min(seconds(tag) for _ in range(3)) for tag in (b"<meta x ", b"<meta x>"))
    assert never < 5 * ending


def test_terms_of_the_sites_own() -> None:
    (found,) = read_page(_page("", '<a rel="license" href="/terms">Terms</a>')).statements
    assert (found.licence, found.value) == (None, "/terms")
    assert read_page(_page()).licence is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noindex, NOAI", [("noindex", ""), ("noai", "")]),
        ("none", [("noindex", ""), ("nofollow", "")]),
        ("otherbot: noindex, nofollow", [("noindex", "otherbot"), ("nofollow", "otherbot")]),
        ("a: noai, b: noindex", [("noai", "a"), ("noindex", "b")]),
        (
            "unavailable_after: 25 Jun 2010 15:00:00 PST",
            [("unavailable_after:25 Jun 2010 15:00:00 PST", "")],
        ),
        ("CCBot: max-snippet: 20, noai", [("max-snippet:20", "ccbot"), ("noai", "ccbot")]),
        ("noindex nofollow; noai", [("noindex", ""), ("nofollow", ""), ("noai", "")]),
        ("we index no pages", []),
        ("", []),
        (",, ;", []),
    ],
)
def test_directives(value: str, expected: list[tuple[str, str]]) -> None:
    assert list(parse_directives(value)) == [Directive(*one) for one in expected]


def test_directives_for_a_crawler() -> None:
    found = parse_directives("noarchive") + parse_directives("CCBot: noai, GPTBot: noindex")
    assert for_agents(found, ["ccbot"]) == {"noarchive", "noai"}
    rights = read_page(
        _page('<meta name="googlebot" content="noindex"><meta name=robots content=noai>')
    )
    assert set(rights.directives) == {Directive("noindex", "googlebot"), Directive("noai", "")}


@pytest.mark.parametrize(
    ("values", "policies", "expected"),
    [
        (["1"], [" https://x.org/p.json "], Reservation(True, "https://x.org/p.json")),
        (["0"], ["https://x.org/p.json"], Reservation(False, None)),
        (["0", "1"], [], Reservation(True, None)),
        (["2"], [], None),
        ([], ["https://x.org/p.json"], None),
    ],
)
def test_reservations(values: list[str], policies: list[str], expected: Reservation | None) -> None:
    assert reservation(values, policies) == expected


def test_the_file_of_reservations() -> None:
    rules = [
        {"location": "/open/*", "tdm-reservation": 0},
        {"location": "/*.pdf$", "tdm-reservation": 1, "tdm-policy": "https://x.org/p"},
        {"location": "/", "tdm-reservation": "1"},
        {"location": 3},
        "nothing",
    ]
    file = parse_tdm_file(b"\xef\xbb\xbf" + json.dumps(rules).encode())
    assert of_path(file, "https://x.org/open/a.pdf") == Reservation(False, None)
    assert of_path(file, "https://x.org/a.pdf") == Reservation(True, "https://x.org/p")
    assert of_path(file, "https://x.org/a.html") == Reservation(True, None)
    assert of_path(parse_tdm_file(b"{"), "https://x.org/") is None
    assert of_path(parse_tdm_file(b"{}"), "https://x.org/") is None


def test_the_line_of_copyright() -> None:
    rights = read_page(_page("", "<p>Photo © Ann</p><footer>&copy; 2024  Example\nInc.</footer>"))
    assert rights.copyright == "© 2024 Example Inc."
    assert read_page(b"<p>Text").copyright is None


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("COPYRIGHT 2020 EXAMPLE", "COPYRIGHT 2020 EXAMPLE"),
        ("&COPY; 2020&nbsp;&nbsp;A &amp; B", "© 2020 A & B"),
        ("(C) 2020 <b>Example</b><!-- no -->Inc.", "(C) 2020 Example Inc."),
        ("© 2020 <style>p {color: red}</style>Example", "© 2020 Example"),
        ("© 2020 <scripts>Example", "© 2020 Example"),
        ("<script>a = '© 2019'</script>© 2020 Example", "© 2020 Example"),
        ("© 2020 <!-- © 2021", "© 2020"),
        ("<!--© 2021 --><i>x</i>", None),
        ('<i title="© 2021">x</i>', None),
        ("<script>" + "x;" * 2000 + "// © 2021 {", None),
    ],
)
def test_what_is_in_a_line_of_copyright(written: str, line: str | None) -> None:
    assert read_page(f"<html><body><p>Text</p><p>{written}".encode()).copyright == line


def test_where_blocks_begin_makes_no_difference() -> None:
    """Pages are looked at in blocks: signs, tags and links that lie across their edges count."""
    link = f'<a class="{"x " * 150}" href="/terms/license">CC BY 4.0</a>'
    head = '<meta name="robots" content="noai">'
    for shift in range(0, 530, 3):
        space = "y" * shift
        rights = read_page(
            f"<html><head><title>{space}</title>{head}</head><body><p>{space}</p><p>This text is "
            f"licensed: {link}.</p><p>{space}</p><p>COPYRIGHT 2020</p>{space}".encode()
        )
        assert rights.licence is not None, shift
        assert rights.licence.name == "CC-BY-4.0"
        assert rights.directives == (Directive("noai", ""),)
        assert (rights.copyright or "").startswith("COPYRIGHT 2020")


def test_cases_of_real_pages_and_specifications() -> None:
    if not CASES.exists():
        pytest.skip(f"{CASES} is not here")
    with gzip.open(CASES, "rt") as file:
        cases = [json.loads(line) for line in file]
    wrong = []
    for case in cases:
        found = facts(case)
        wrong += [(case["id"], name) for name, value in found.items() if case[name] != value]
    assert wrong == []
    assert len(cases) > 90


_PARTS = st.sampled_from(
    [
        b"<",
        b">",
        b"<!--",
        b"-->",
        b"<meta ",
        b"name=robots",
        b"content=",
        b'"',
        b"<script>",
        b"</script>",
        b"creativecommons.org/licenses/by/4.0/",
        b"rel=license",
        b"<a ",
        b"\xc2\xa9",
        b"&copy;",
        b"ld+json",
        b"<script type=application/ld+json>[{",
        b"<figure>",
        b"footer",
        b"\xff",
        b"\x00",
        b"</head>",
        b"<body>",
    ]
)


@given(st.lists(_PARTS, max_size=30).map(b"".join))
def test_any_bytes_are_a_page(source: bytes) -> None:
    read_page(source)


@pytest.mark.parametrize(
    "unit",
    [
        b"<meta ",
        b"<meta name=robots ",
        b"<!--",
        b"<script>",
        b"rel=license ",
        b'rel="',
        b"<a href=creativecommons.org/licenses/by/4.0/>",
        b"creativecommons.org/licenses/by/4.0/",
        b"&copy;",
        b"\xc2\xa9",
        b"<figure>",
        b"class=foot ",
        b"<script type=ld+json>",
        b"copyright ",
        b"<link rel=license ",
        b"<script type=application/ld+json>[[",
    ],
)
def test_reading_costs_linear_time(unit: bytes) -> None:
    def seconds(size: int) -> float:
        source = unit * (size // len(unit))
        best = 9.0
        for _ in range(3):
            begin = time.process_time()
            read_page(source)
            best = min(best, time.process_time() - begin)
        return best

    small, large = seconds(100_000), seconds(800_000)
    assert large < max(20 * small, 0.1)


def test_a_page_without_head_or_body() -> None:
    rights = read_page(
        f'<link rel=license href="{BY}"><p>All texts: <a href="{BY}">CC</a>'.encode()
    )
    assert [(s.kind, s.scope) for s in rights.statements] == [("link", "page"), ("anchor", "page")]
    assert read_page(f'<a rel="license" href="{BY}">CC</a>'.encode()).licence is not None


@pytest.mark.parametrize("kind", ["null", "5", "true", "{}", '[null, ["a"], {"b": 1}]'])
def test_types_of_things_that_are_no_names(kind: str) -> None:
    thing = f'<script type="application/ld+json">{{"@type": {kind}, "license": "MIT"}}</script>'
    (one,) = read_page(f"<html><head>{thing}</head><body>x".encode()).statements
    assert (one.kind, one.value, one.scope) == ("json-ld", "MIT", "page")
