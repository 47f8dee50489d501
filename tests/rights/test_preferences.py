# ruff: noqa: E501 (cases)
"""One answer from Content Signals, Content-Usage, RSL, TDMRep and noai."""

from __future__ import annotations

import base64
import gzip
import http.client
import io
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.config import built_in_settings
from curation.readers.read import read
from curation.readers.records import Page
from curation.readers.settings import ReaderSettings
from curation.resources import root
from curation.rights import preferences, read_page
from curation.rights.policy import Policy, Ruling
from curation.rights.rights_settings import RightsSettings, default_settings
from curation.rights.robots import MOST_BYTES
from curation.rights.signals import document_rights
from curation.rights.sites import SiteIndex, build_index, read_site_files
from curation.rights.usage import dictionary
from curation.schema import RIGHTS
from tests.conftest import curate_well
from tests.readers.archives import http_response, warc_record

URL = "https://a.example/articles/1"
TERMS = "https://a.example/terms.xml"
RSL = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/">%s</content></rsl>'
SEARCH_ONLY = RSL % '<license><permits type="usage">search</permits></license>'
PAID = RSL % '<license><permits>all</permits><payment type="crawl"/></license>'


def _page(tmp_path: Path, head: bytes = b"Content-Type: text/html") -> Page:
    record = warc_record(1, http_response(b"<html><p>Text", head), url=URL)
    (tmp_path / "page.warc").write_bytes(record + b"\r\n\r\n")
    readers = built_in_settings(ReaderSettings, "defaults/readers")
    (page,) = (one for one in read(str(tmp_path / "page.warc"), readers) if isinstance(one, Page))
    return page


def ruled(settings: RightsSettings, rights: Mapping[str, Any] | None) -> Ruling | None:
    return Policy(settings).rulings(pa.array([rights], RIGHTS))[0]


def answers(**given_: Any) -> tuple[str, str, str]:
    found = preferences(url=given_.pop("url", URL), **given_)
    return found["train"], found["search"], found["ai-input"]


CASES = root().parent / "shared/data/preferences/dev.jsonl.gz"


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode()


def _inputs(case: Mapping[str, Any]) -> dict[str, Any]:
    also, kind = case.get("also") or {}, case["kind"]
    found: dict[str, Any] = {"url": case["url"], "agents": case["agents"]}
    files = {name: _bytes(text) for name, text in (also.get("files") or {}).items()}
    given_ = {**also, kind: case["input"]}
    for name in ("robots", "html"):
        if name in given_:
            found[name] = _bytes(given_[name])
    if "headers" in given_:
        found["headers"] = [tuple(line) for line in given_["headers"]]
    if kind in ("well-known", "rsl-xml"):
        files[also.get("path") or also["at"]] = _bytes(case["input"])
    return {**found, "well_known": files}


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")
def test_the_shared_cases() -> None:
    wrong = []
    for line in gzip.decompress(CASES.read_bytes()).splitlines():
        case = json.loads(line)
        found = preferences(**_inputs(case))
        for use, expected in case["expected"].items():
            allowed = expected if isinstance(expected, list) else [expected]
            known = expected is None or found[use.replace("_", "-")] in allowed
            if not known and not case.get("undecided"):
                wrong.append((case["id"], use, case["why"]))
    assert not wrong


def test_a_crawler_follows_its_own_group() -> None:
    robots = b"Content-Signal: search=no\nUser-agent: *\nContent-Signal: ai-train=no\n"
    robots += b"User-agent: CCBot\nAllow: /\n"
    assert answers(robots=robots) == ("deny", "deny", "unstated")
    assert answers(robots=robots, agents=["CCBot"]) == ("unstated",) * 3
    assert answers(robots=robots, agents=["CCBot", "GPTBot"]) == ("deny", "deny", "unstated")
    robots = b"User-agent: *\nDisallow: /b\nUser-agent: CCBot\nAllow: /\nDisallow: /a\n"
    found = preferences(url="https://x.example/a", agents=["CCBot"], robots=robots)["signals"]
    assert [(one.agent, one.value) for one in found] == [("*", ""), ("CCBot", "Disallow: /a")]


def test_a_group_without_a_name_is_for_nobody() -> None:
    robots = b"User-agent:\nDisallow: /\nContent-Signal: ai-train=no\n\nUser-agent: *\nAllow: /a\n"
    for agents in ((), ("CCBot",), ("",)):
        found = preferences(url=URL, robots=robots, agents=agents)
        assert found["train"] == "unstated"
        assert [one.value for one in found["signals"]] == ["Allow: /a"]


def test_rules_of_access_are_as_before() -> None:
    from curation.rights import parse_robots

    file = parse_robots(
        b"User-agent: a\nLicense: https://x.example/t\nContent-Signal: search=no\n"
        b"User-agent: b\nDisallow: /x\n"
    )
    assert not file.access("a", "/x").allowed and not file.access("b", "/x").allowed
    assert [t.name for t in file.terms["a"]] == ["license", "content-signal"]
    assert file.terms["b"] == []


@pytest.mark.parametrize("end", ["", ",", ";", " x", "=", '="', "=(", '=%"é"'])
def test_one_error_spoils_a_dictionary(end: str) -> None:
    expected = "deny" if end == "" else "unstated"
    assert answers(headers=[("Content-Usage", f"train-ai=n{end}")])[0] == expected


@given(st.text(alphabet='ab=,;()"\\%:?@.1 \tyn*é-', max_size=30))
def test_dictionaries_of_any_text(text: str) -> None:
    try:
        found = dictionary(text)
    except ValueError:
        return
    assert all(key and value for key, value in found.items())
    again = ", ".join(f"{k}={v}" for k, v in found.items())
    assert dictionary(again) == found


def test_the_page_supersedes_the_header_and_this_the_file() -> None:
    page = b'<head><meta name="tdm-reservation" content="0"></head>'
    file = b'[{"location": "/", "tdm-reservation": 1}]'
    given_ = {"headers": [("TDM-Reservation", "1")], "html": page}
    files = {"/.well-known/tdmrep.json": file}
    assert answers(**given_, well_known=files)[0] == "allow"
    assert answers(headers=given_["headers"], well_known=files)[0] == "deny"
    found = preferences(url=URL, **given_, well_known=files)["signals"]
    rights = {"signals": [one._asdict() for one in found], "licence": None}
    honour = {"agents": (), "honour": ("tdm",)}
    by_place = default_settings().model_copy(update=honour)
    strictest = by_place.model_copy(update={"contradictions": "strictest"})
    assert ruled(by_place, rights) is None
    ruling = ruled(strictest, rights)
    assert ruling is not None and (ruling.reason, ruling.signal["value"]) == ("rights.tdm", "1")


def test_terms_that_cost_money_deny_until_they_are_bought() -> None:
    robots = f"License: {TERMS}\nUser-agent: *\nAllow: /\n".encode()
    found = preferences(url=URL, robots=robots, well_known={"/terms.xml": PAID.encode()})
    assert [found[use] for use in ("train", "search", "ai-input")] == ["deny"] * 3
    (one,) = found["decided"]["train"]
    assert one.value == f"{TERMS} / permits=all payment=crawl"
    rights = {"signals": [one._asdict() for one in found["signals"]], "licence": None}
    for kind in ("rsl", "train", "search"):
        policy = default_settings().model_copy(update={"agents": (), "honour": (kind,)})
        ruling = ruled(policy, rights)
        assert ruling is not None and ruling.reason == f"rights.{kind}"
        assert (
            Policy(policy.model_copy(update={"bought": (TERMS,)})).rulings(
                pa.array([rights], RIGHTS)
            )[0]
            is None
        )


@pytest.mark.parametrize(
    ("terms", "bought", "reason"),
    [
        (RSL % "<license><permits>all</permits></license>", (), None),
        (SEARCH_ONLY, (), "rights.licence"),
        (PAID, (), "rights.licence"),
        (PAID, (TERMS,), None),
        ("", (), "rights.licence"),
    ],
)
def test_what_rsl_permits_can_be_required(
    terms: str, bought: tuple[str, ...], reason: str | None
) -> None:
    robots = f"License: {TERMS}\nUser-agent: *\nAllow: /\n" if terms else ""
    found = preferences(url=URL, robots=robots, well_known={"/terms.xml": terms})["signals"]
    rights = {"signals": [one._asdict() for one in found], "licence": None}
    given_ = {"agents": (), "honour": (), "bought": bought}
    given_["licences"] = {"require": ["CC0-*", "rsl:train"]}
    ruling = ruled(RightsSettings(**{**default_settings().model_dump(), **given_}), rights)
    assert (ruling and ruling.reason) == reason


def test_the_shared_licence_of_terms_is_kept() -> None:
    by = "https://creativecommons.org/licenses/by/4.0/"
    payment = f'<payment type="attribution"><standard> {by} </standard></payment>'
    terms = RSL % f"<license><permits>all</permits>{payment}</license>"
    found = preferences(url=URL, robots=f"License: {TERMS}", well_known={TERMS: terms})
    (said,) = found["decided"]["train"]
    assert said.value == f"{TERMS} / permits=all payment=attribution standard={by}"
    assert found["train"] == "allow"


def test_only_known_uses_can_be_required() -> None:
    given_ = {**default_settings().model_dump(), "licences": {"require": ["rsl:ai-train"]}}
    with pytest.raises(ValueError, match=r"rsl:ai-train: no use; there are: train, search, ai-in"):
        RightsSettings(**given_)


def test_documents_of_rsl_that_are_hostile_permit_nothing() -> None:
    bomb = "<!DOCTYPE rsl [<!ENTITY a0 'aaaaaaaaaa'>"
    bomb += "".join(f"<!ENTITY a{n + 1} '{f'&a{n};' * 10}'>" for n in range(9)) + "]>"
    documents = [
        bomb + (RSL % "<license><permits>all</permits><legal>&a9;</legal></license>"),
        "<rsl>" * 100_000,
        RSL % ("<license>" * 50_000),
        RSL % "<license><permits>all</permits></license>" + " " * (1 << 20),
        SEARCH_ONLY.replace("search", "all")[:-6],
    ]
    begun = time.process_time()
    endless = b"license application/rsl+xml" + b"<script " * 300_000 + b"<link " * 300_000
    assert answers(html=endless) == ("unstated",) * 3
    named = RSL % f"<license><permits>{'x ' * 200_000}{'search' + chr(10)}</permits></license>"
    many = (
        RSL
        % f"<license><permits>{'search' + chr(10)}{('x' + chr(10)) * 400_000}</permits></license>"
    )
    for document, train in ((named, "deny"), (many, "deny")):
        page = f'<head><script type="application/rsl+xml">{document}</script></head>'.encode()
        assert answers(html=page)[:2] == (train, "allow")
    for document in documents:
        page = f'<head><script type="application/rsl+xml">{document}</script></head>'.encode()
        assert answers(html=page) == ("unstated",) * 3
    assert time.process_time() - begun < 10


def test_what_one_page_can_say_in_rsl_is_bounded() -> None:
    content = '<content url="/"><license><permits>all</permits></license></content>'
    script = '<script type="application/rsl+xml"><rsl xmlns="https://rslstandard.org/rsl">%s</rsl></script>'
    few, many = (f"<head>{script % (content * n)}</head>".encode() for n in (400, 420))
    assert answers(html=few) == ("allow",) * 3 and answers(html=many) == ("unstated",) * 3
    (one,) = preferences(url=URL, html=many)["signals"]
    assert one.value == "inline unread=8400_characters_on_one_page"
    scripts = f"<head>{(script % content) * 1000}</head>".encode()
    assert len(preferences(url=URL, html=scripts)["signals"]) <= 64


@pytest.mark.parametrize("address", ["http://[bad", "https://a.example:x/", "//[", "mailto:", ""])
def test_addresses_that_are_none_are_kept_as_they_are(address: str) -> None:
    rel = 'rel="license"; type="application/rsl+xml"'
    html = f'<body><link {rel.replace(";", "")} href="{address}">'.encode()
    link = ("Link", f'<{address}>; {rel}, <{address}>; rel="canonical"')
    for url in (URL, "https://[::1", "https://a]//b]/", " //[", ""):
        robots = f"User-agent: *\nLicense: {address}\n".encode()
        found = preferences(url=url, headers=[link], html=html, robots=robots)
        assert found["train"] == "unstated"
        assert all(one.kind in ("rsl", "robots", "canonical") for one in found["signals"])


@pytest.mark.parametrize("encoding", ["none-such", "rot13", "hex", "idna", "shift_jis", "utf-16"])
def test_terms_in_odd_encodings_permit_nothing(encoding: str) -> None:
    document = f'<?xml version="1.0" encoding="{encoding}"?>{RSL % "<license/>"}'
    page = f'<head><script type="application/rsl+xml">{document}</script></head>'.encode()
    (one,) = preferences(url=URL, html=page)["malformed"]
    assert one.kind == "rsl" and one.value.startswith("inline unread=")


@pytest.mark.parametrize(
    ("name", "value", "broken"),
    [
        ("Content-Signal", "search=yes, ai-train=no, use=reference, x=1", False),
        ("Content-Signal", "ai-train=maybe", True),
        ("Content-Signal", "search=yes, ai-train", True),
        ("Content-Signal", "", True),
        ("Content-Usage", 'train-ai=n;a="b", x=(1 2), train-genai=y', False),
        ("Content-Usage", "train-ai=n,, search=y", True),
        ("Content-Usage", "Train-AI=n", True),
        ("Content-Usage", "a=:=A:, train-ai=n", True),
        ("Content-Usage", "train-ai=maybe", False),  # an unknown value is no error
    ],
)
def test_what_is_malformed_is_told(name: str, value: str, broken: bool) -> None:
    found = preferences(url=URL, headers=[(name, value)])
    assert [one.value for one in found["malformed"]] == ([value] if broken else [])


FILE = "/.well-known/tdmrep.json"
RULE = '{"location": "/", "tdm-reservation": 1}'


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ({"robots": "License: not a url\n"}, "rsl unread=not_a_url"),
        ({"robots": "License:\n"}, "rsl unread=no_address"),
        ({"robots": "User-agent: *\nLicense: x.xml\n"}, "rsl unread=x.xml"),
        ({"robots": f"License: {TERMS} / permits=all\n"}, f"rsl unread={TERMS}_/_permits=all"),
        ({"robots": "Content-Signal:\n"}, "content_signal "),
        ({"robots": "User-agent: *\nContent-Usage: /a train-ai=n,\n"}, "content_usage /a train-ai=n,"),
        ({"html": '<link rel=license type="application/rsl+xml">'}, "rsl unread=no_address"),
        ({"html": '<p><script type="application/rsl+xml">no licence</script>'}, "rsl inline unread=syntax_error:_line_1,_column_0"),
        ({"html": '<head><meta name="tdm-reservation" content="yes">'}, "tdm unread=yes"),
        ({"headers": {"TDM-Reservation": "yes"}}, "tdm unread=yes"),
        ({"headers": {"TDM-Reservation": ["1 x", "0"]}}, "tdm unread=1_x"),
        ({"headers": {"TDM-Reservation": ""}}, "tdm unread=nothing"),
        ({"headers": {"Link": '<>; rel="license"; type="application/rsl+xml"'}}, "rsl unread=no_address"),
        ({"well_known": {FILE: "{"}}, "tdm unread=no_JSON"),
        ({"well_known": {FILE: ""}}, "tdm unread=no_JSON"),
        ({"well_known": {FILE: "[" * 100_000}}, "tdm unread=no_JSON"),
        ({"well_known": {FILE: '{"a": 1}'}}, "tdm unread=nothing"),
        ({"well_known": {FILE: '["/", 7]'}}, "tdm unread=nothing"),
        ({"well_known": {FILE: '[{"location": "/", "tdm-reservation": "yes"}]'}}, "tdm unread=yes"),
        ({"well_known": {FILE: '[{"tdm-reservation": 1}]'}}, "tdm unread=1"),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_kept_and_says_nothing(given_: dict[str, Any], why: str) -> None:
    found = preferences(url=URL.replace("articles", "a"), **given_)
    assert [f"{one.kind} {one.value}" for one in found["malformed"]] == [why]
    assert {found[use] for use in ("search", "ai-input")} == {"unstated"}
    assert found["train"] == ("allow" if "1_x" in why else "unstated")


def test_a_neighbour_of_what_can_not_be_read_counts() -> None:
    for given_ in (
        {"robots": "License: no\nUser-agent: *\nContent-Signal: ai-train=no, search\n"},
        {"headers": [("TDM-Reservation", "yes"), ("TDM-Reservation", "1")]},
        {"headers": {"TDM-Reservation": "1"}, "html": '<meta name="tdm-reservation" content="2">'},
        {"headers": {"TDM-Reservation": "10"}, "well_known": {f"https://a.example{FILE}": f"[{RULE}]"}},
        {"well_known": {FILE: f'[7, {{"location": "/", "tdm-reservation": "no"}}, {RULE}]'}},
    ):  # fmt: skip
        found = preferences(url=URL, **given_)
        assert found["train"] == "deny" and found["malformed"], given_


def test_a_file_of_many_lines_is_cut_and_counted() -> None:
    robots = "User-agent: *\n" + "".join(f"Content-Signal: x={n}\n" for n in range(300))
    found = preferences(url=URL, robots=robots + "Content-Usage: train-ai=n\nDisallow: /b\n")
    assert len(found["signals"]) == 258 and found["train"] == "unstated"
    assert [one.value for one in found["malformed"]] == ["45 further lines"]


def test_arguments_as_one_has_them() -> None:
    robots = "\ufeffUser-agent: CCBot\nContent-Signal: ai-train=no\n"
    for text in (robots, robots.encode(), bytearray(robots, "utf-8")):
        assert answers(robots=text, agents="CCBot")[0] == "deny"
    page = '<head><meta charset="utf-16"><meta name="robots" content="noai">\udc80'
    assert answers(html=page, headers=None)[0] == "deny"
    for name, wrong in (
        ("url", None),
        ("agents", 5),
        ("robots", 5),
        ("html", ["<p>"]),
        ("headers", ["X-Robots-Tag: noai"]),
        ("headers", {"Link": 5}),
        ("well_known", [b"[]"]),
    ):
        with pytest.raises(ValueError, match=rf"\n{name}"):
            preferences(**{"url": URL, name: wrong})


def test_headers_of_any_library() -> None:
    raw = (
        b"Content-Usage: train-ai=n,\r\n search=y\r\ncontent-usage: ai-use=n\r\nX: caf\xe9\r\n\r\n"
    )
    message = http.client.parse_headers(io.BytesIO(raw))
    pairs = [("content-usage ", "train-ai=n, search=y"), (b"Content-Usage", b"ai-use=n")]
    for headers in (message, message.items(), pairs, iter(pairs), [*pairs, (b"X", b"\xe9")]):
        assert answers(headers=headers) == ("deny", "allow", "deny")
    assert answers(headers={b"X-Robots-Tag": (b"noindex", "noai")})[0] == "deny"
    for merged, train in (("1, 1", "deny"), ("0,1", "deny"), ("0", "allow"), ("0 1", "unstated")):
        assert answers(headers={"tdm-reservation": merged})[0] == train


def test_a_line_that_the_limit_cuts_says_nothing() -> None:
    robots = "User-agent: *\nDisallow: /b\nContent-Signal: ai-train=no"
    padding = "#" * (MOST_BYTES - len(robots) - 1)
    for rest, train in (("", "deny"), ("t-stated", "unstated"), ("\n" + "#" * 9, "unstated")):
        assert answers(robots=f"{padding}\n{robots}{rest}")[0] == train


def test_parameters_of_links() -> None:
    rsl = 'type="application/rsl+xml"'
    for link, read_ in (
        (f'<t.xml>; title="a <b>, \\"c"; rel=license; {rsl}', True),
        (f'<t.xml>; {rsl[:-1]}; charset=utf-8"; rel="describedby license"', True),
        (f'<t.xml>; title="rel=license"; {rsl}', False),
        (f"<t.xml>; rel=next; rel=license; {rsl}", False),
        (f'<t.xml>; rel=license; anchor="/else"; {rsl}', False),
        (f"<t.xml / permits=all>; rel=license; {rsl}", False),
    ):
        found = preferences(
            url=URL, headers={"Link": link}, well_known={"/articles/t.xml": PAID.encode()}
        )
        assert found["train"] == ("deny" if read_ else "unstated"), link
    begun = time.process_time()
    for part in ('<a>"', '<a>"\\', '"\\"<', "<a>;a=", '<a>;a="'):
        preferences(url=URL, headers={"Link": part * 20_000})
    preferences(url=URL, headers={"Link": "<a>;" + "a" * 60_000})
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("document", "train"),
    [
        ("<license><permits>all</permits></license>", "unstated"),  # of no content
        ('<content url="/zz"/><license><permits>all</permits></license>', "unstated"),
        ('<content url="/"><license><permits>all</permits><payment><amount currency="EUR">5</amount></payment></license></content>', "deny"),
        ('<content url="https://A.Example"><license><permits>all</permits></license></content>', "allow"),
        ('<content url="https://a.example.org/"><license><permits>all</permits></license></content>', "unstated"),
        ('<content url="*"><license><prohibits>all</prohibits></license></content>', "deny"),
    ],
)  # fmt: skip
def test_terms_at_other_places(document: str, train: str) -> None:
    file = f'<rsl xmlns="https://rslstandard.org/rsl">{document}</rsl>'
    robots = f"License: {TERMS}\nUser-agent: *\nAllow: /\n"
    assert answers(robots=robots, well_known={TERMS: file})[0] == train


def test_what_is_malformed_is_counted(tmp_path: Path) -> None:
    head = b"Content-Usage: a=\r\nContent-Signal: search=yes\r\nTDM-Reservation: yes"
    _page(tmp_path, b"Content-Type: text/html\r\n" + head)
    command = ["extract", "--input", tmp_path / "page.warc", "--output", tmp_path / "out"]
    (tmp_path / "sites/a.example/.well-known").mkdir(parents=True)
    (tmp_path / "sites/a.example/robots.txt").write_text("License: nowhere\n")
    (tmp_path / "sites/a.example/.well-known/tdmrep.json").write_text("<html>Not found")
    files = ["--set", f"extract.rights.files=[{tmp_path / 'sites'}]"]
    curate_well([*command, "--recipe", "llama3", "--workers", "0", *files])
    counts = json.loads((tmp_path / "out/extract/manifest.json").read_text())["counts"]
    assert {k: n for k, n in counts.items() if k.startswith("malformed")} == {
        "malformed.content_usage": 1,
        "malformed.rsl": 1,
        "malformed.tdm": 2,
    }


def test_a_site_file_of_terms_is_found_by_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.example").mkdir()
    robots = f"License: {TERMS}\n\nUser-agent: *\nContent-Usage: /articles/ ai-use=n\n"
    (tmp_path / "a.example" / "robots.txt").write_text(robots)
    (tmp_path / "a.example" / "terms.xml").write_text(SEARCH_ONLY)
    (tmp_path / "a.example" / "feed.xml").write_text("<rss></rss>")
    readers = built_in_settings(ReaderSettings, "defaults/readers")
    build_index(read_site_files([str(tmp_path)], readers), (), tmp_path / "index")
    index = SiteIndex(tmp_path / "index")
    assert index.counts == {"robots": 1, "rsl": 1}
    page = _page(tmp_path)
    found = document_rights(page, read_page(page.content), "", index)
    assert found is not None
    said = {(s["kind"], s["agent"], s["value"]) for s in found["signals"]}
    assert said == {
        ("robots", "*", ""),
        ("content_usage", "*", "/articles/ ai-use=n"),
        ("rsl", None, f"{TERMS} / permits=search"),
    }
    policy = default_settings().model_copy(update={"honour": ("train", "ai-input")})
    ruling = ruled(policy, found)
    assert ruling is not None and ruling.signal["kind"] == "rsl"


def test_headers_of_archives_are_kept(tmp_path: Path) -> None:
    head = b"Content-Type: text/html\r\nContent-Usage: train-ai=n\r\nContent-Signal: search=no\r\n"
    page = _page(tmp_path, head[:-2])
    found = document_rights(page, None, "")
    assert found is not None
    assert [(s["kind"], s["value"]) for s in found["signals"]] == [
        ("content_signal", "search=no"),
        ("content_usage", "train-ai=n"),
    ]
