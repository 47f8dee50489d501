# ruff: noqa: E501 (cases)
"""Files of sites: read from archives, tables and folders, and asked about pages."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.config import built_in_settings
from curation.errors import InputError
from curation.readers.read import read
from curation.readers.records import Page
from curation.readers.settings import ReaderSettings
from curation.rights.page import read_page
from curation.rights.policy import Policy
from curation.rights.preferences import decide, preferences
from curation.rights.rights_settings import default_settings
from curation.rights.signals import LATEST, Signal, document_rights
from curation.rights.sites import (
    SiteFile,
    SiteIndex,
    build_index,
    kind_of,
    read_site_files,
    site_of,
)
from curation.rights.tdm import of_path, parse_tdm_file
from curation.schema import RIGHTS, SET_ASIDE
from tests.readers.archives import http_response, warc_record

READERS = built_in_settings(ReaderSettings, "defaults/readers")
ROBOTS = b"User-agent: *\nDisallow: /private\n\nUser-agent: GPTBot\nDisallow: /\n"


def index_of(tmp_path: Path, files: list[SiteFile], agents: tuple[str, ...] = ()) -> SiteIndex:
    build_index(files, agents, tmp_path / "sites.sqlite")
    return SiteIndex(tmp_path / "sites.sqlite")


def robots(
    content: bytes,
    url: str = "https://a.example/robots.txt",
    day: int | None = None,
    status: int | None = None,
    location: str = "",
) -> SiteFile:
    date = datetime(2024, 5, day, tzinfo=UTC) if day else None
    return SiteFile("robots", url, date, status, location, content)


def said(index: SiteIndex, url: str, day: int | None = None) -> list[tuple[str | None, str]]:
    date = datetime(2024, 5, day, tzinfo=UTC) if day else None
    found = index.signals(url, date)
    return [(s.agent, s.value) for s in found if not s.place.startswith(LATEST)]


def test_agents_with_a_group_of_their_own(tmp_path: Path) -> None:
    index = index_of(tmp_path, [robots(ROBOTS)], ("CCBot", "GPTBot"))
    assert said(index, "https://a.example/private/x") == [
        ("*", "Disallow: /private"),
        ("GPTBot", "Disallow: /"),
    ]
    assert said(index, "https://a.example/x") == [("*", ""), ("GPTBot", "Disallow: /")]
    assert said(index, "https://b.example/x") == []
    assert index.counts == {"robots": 1}


def test_the_capture_at_the_date_of_the_page(tmp_path: Path) -> None:
    files = [
        robots(b"User-agent: *\nDisallow: /%d" % day + b"\nDisallow: /p\n", day=day)
        for day in (10, 20)
    ]
    files += [robots(b"User-agent: *\nDisallow: /20b\nDisallow: /20c", day=20)]
    index = index_of(tmp_path, files)
    for day, path in ((5, "/10"), (10, "/10"), (19, "/10"), (20, "/20b"), (None, "/20b")):
        assert said(index, f"https://a.example{path}", day) == [("*", f"Disallow: {path}")]
        assert said(index, "https://a.example/else", day) == [("*", "")]
    date = datetime(2024, 5, 10, tzinfo=UTC)
    later = [(s.place, s.value) for s in index.signals("https://a.example/20c", date)]
    assert later == [("robots.txt", ""), ("latest robots.txt", "Disallow: /20c")]


def test_each_capture_tells_who_has_a_group(tmp_path: Path) -> None:
    """A crawler without a group in the latest file follows that for all there, and only there."""
    own = b"User-agent: *\nContent-Signal: ai-train=no\n\nUser-agent: CCBot\nAllow: /\n"
    for n, (first, last, places) in enumerate(
        (
            (own, own.partition(b"\n\n")[0], ["latest robots.txt"]),
            (own.partition(b"\n\n")[0], own, ["robots.txt"]),
            (own, own, []),
        )
    ):
        files = [robots(first, day=10), robots(last + b"# later", day=20)]
        index = index_of(tmp_path / str(n), files, ("CCBot",))
        found = index.signals("https://a.example/x", datetime(2024, 5, 10, tzinfo=UTC))
        _, decided = decide([one._asdict() for one in found], ["CCBot"])["train"]
        assert [one["place"] for one in decided] == places
    closed = own + b"User-agent: b\nDisallow: /\n"
    files = [
        robots(own, day=10),
        robots(closed.replace(b"User-agent: *", b"User-agent: c"), day=20),
    ]
    index = index_of(tmp_path / "closed", files, ("CCBot", "b"))
    found = index.signals("https://a.example/x", datetime(2024, 5, 10, tzinfo=UTC))
    rights = pa.array([{"licence": None, "signals": [one._asdict() for one in found]}], RIGHTS)
    for agent, removed in (("CCBot", False), ("b/2.0", True)):
        changes = {"agents": (agent,), "honour": ("robots",)}
        (ruling,) = Policy(default_settings().model_copy(update=changes)).rulings(rights)
        assert (ruling is not None) is removed


def test_newer_licences_are_told_to_the_group_that_names_them(tmp_path: Path) -> None:
    page = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>%s</license></content></rsl>'
    yes, no = ((page % f"<{one}>all</{one}>").encode() for one in ("permits", "prohibits"))
    group = b"User-agent: b\nLicense: https://a.example/t.xml\nAllow: /\n"
    over = b"License: https://a.example/t.xml\n\n" + group.replace(b"t.xml", b"own.xml")
    for n, (lines, to, answer) in enumerate(
        ((group, "", "deny"), (over, "", "allow"), (group, "https://b.example/new", "deny"))
    ):
        terms = [("t.xml", 1, yes, ""), ("own.xml", 1, yes, ""), ("t.xml", 20, no, to)]
        files = [robots(lines, day=1)] + [
            SiteFile(
                "rsl", f"https://a.example/{name}", datetime(2024, 5, d, tzinfo=UTC), None, at, said
            )
            for name, d, said, at in terms
        ]
        files.append(SiteFile("rsl", "https://b.example/new", None, None, "", no))
        index, url, date = (
            index_of(tmp_path / str(n), files, ("b",)),
            "https://a.example/x",
            datetime(2024, 5, 10, tzinfo=UTC),
        )
        found = index.with_terms(index.signals(url, date), url, date)
        assert decide([one._asdict() for one in found], ["b"])["train"][0] == answer


def test_redirects_of_licences_are_read(tmp_path: Path) -> None:
    moved = http_response(b"", b"Location: /new.xml").replace(b"200 OK", b"301 Moved")
    (tmp_path / "r.warc").write_bytes(warc_record(0, moved, url="https://a.example/t.xml"))
    (one,) = read_site_files([str(tmp_path / "r.warc")], READERS)
    assert (one.kind, one.location) == ("rsl", "/new.xml")


def test_what_newer_files_say_takes_the_place_of_all_that_older_ones_said(tmp_path: Path) -> None:
    terms = "https://a.example/t.xml"
    page = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>%s</license></content></rsl>'
    newer = [
        robots(b"", "https://a.example/robots.txt"),
        SiteFile("tdm", "https://a.example/.well-known/tdmrep.json", None, 200, "", b"[]"),
        SiteFile("rsl", terms, None, 200, "", (page % "<prohibits>search</prohibits>").encode()),
    ]
    index = index_of(tmp_path, newer)
    before = [
        Signal("robots", "robots.txt", "*", "Disallow: /"),
        Signal("tdm", "tdmrep.json", None, "1"),
        Signal("tdm", "latest tdmrep.json", None, "1"),
        Signal("rsl", "header", None, f"{terms} / permits=all"),
        Signal("rsl", "header", None, f"{terms} / permits=search"),
        Signal("tdm", "header", None, "0"),
    ]
    rights = {"licence": "CC0-1.0", "signals": [one._asdict() for one in before]}
    found = index.renewed(rights, "https://a.example/x")
    assert found is not None and found["licence"] == "CC0-1.0"
    assert [(s["kind"], s["place"], s["value"]) for s in found["signals"]] == [
        ("robots", "robots.txt", ""),
        ("rsl", "header", f"{terms} / prohibits=search"),
        ("tdm", "header", "0"),
    ]
    assert index.renewed(None, "https://b.example/x") is None
    assert index.renewed(rights, "https://b.example/x")["signals"][0] == before[0]._asdict()  # type: ignore[index]


def test_terms_that_have_changed_since(tmp_path: Path) -> None:
    page = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>%s</license></content></rsl>'
    terms, days = (
        "https://a.example/t.xml",
        [datetime(2024, 5, n, tzinfo=UTC) for n in (10, 15, 20)],
    )
    captures = zip(
        days[::2], ("permits>all</permits", "prohibits>ai-train</prohibits"), strict=True
    )
    files = [
        SiteFile("rsl", terms, day, 200, "", (page % f"<{said_}>").encode())
        for day, said_ in captures
    ]
    index, header = index_of(tmp_path, files), Signal("rsl", "header", None, terms)
    for day, expected in (
        (days[1], [("header", f"{terms} / permits=all"), ("latest header", f"{terms} / prohibits=ai-train")]),
        (days[2], [("header", f"{terms} / prohibits=ai-train")]),
        (None, [("header", f"{terms} / prohibits=ai-train")]),
    ):  # fmt: skip
        found = index.with_terms([header], "https://a.example/x", day)
        assert [(one.place, one.value) for one in found] == expected
        once = {"licence": None, "signals": [one._asdict() for one in found]}
        now = index.renewed(once, "https://a.example/x")
        assert now is not None and {s["value"] for s in now["signals"]} == {expected[-1][1]}


def test_newer_terms_are_judged_with_their_group(tmp_path: Path) -> None:
    """Those of a robots.txt that hasn't changed since the page, too."""
    document = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>%s</license></content></rsl>'
    yes, no = (document % one for one in ("<permits>all</permits>", "<prohibits>all</prohibits>"))
    days = [datetime(2024, 5, n, tzinfo=UTC) for n in (10, 15, 20)]
    mine, theirs = "License: https://a.example/1.xml\n", "License: https://a.example/2.xml\n"
    for number, (file, removed) in enumerate(
        (
            (f"User-agent: b\n{mine}Allow: /\n", True),
            (f"User-agent: *\n{mine}\nUser-agent: b\nAllow: /\n", False),
            (f"{mine}\nUser-agent: b\n{theirs}Allow: /\n", False),
            (mine, True),
        )
    ):
        captures = ((1, 0, yes), (2, 0, yes), (1, 2, no))
        terms = [
            SiteFile("rsl", f"https://a.example/{n}.xml", days[day], 200, "", text.encode())
            for n, day, text in captures
        ]
        place = tmp_path / str(number)
        index = index_of(place, [robots(file.encode(), day=10), *terms], ("b",))
        url = "https://a.example/x"
        found = index.with_terms(index.signals(url, days[1]), url, days[1])
        rights = pa.array([{"licence": None, "signals": [s._asdict() for s in found]}], RIGHTS)
        changes = {"agents": ("b",), "honour": ("train",)}
        (ruling,) = Policy(default_settings().model_copy(update=changes)).rulings(rights)
        assert (ruling is not None) is removed, file


@pytest.mark.parametrize("values", ["10", "01"])
def test_a_reservation_then_or_now_counts(values: str) -> None:
    places = zip(("tdmrep.json", "latest tdmrep.json"), values, strict=True)
    signals = [Signal("tdm", place, None, value)._asdict() for place, value in places]
    assert decide(signals, [])["train"][0] == "deny"
    page = Signal("tdm", "head", None, "0")._asdict()
    assert decide([*signals, page], [])["train"][0] == "allow"


def test_directives_for_a_name_with_a_dot() -> None:
    noai = Signal("directive", "header", "some.bot", "noai")._asdict()
    rights = pa.array([{"licence": None, "signals": [noai]}], RIGHTS)
    for honoured in ("noai", "train"):
        changes = {"agents": ("Some.Bot",), "honour": (honoured,)}
        assert Policy(default_settings().model_copy(update=changes)).rulings(rights) != [None]


def test_terms_are_known_by_how_they_begin() -> None:
    root = '<rsl xmlns="https://rslstandard.org/rsl">'
    for before in ("", " ", "<?xml version='1.0'?>", "<!DOCTYPE rsl>", "<!-- a > b -->" * 30):
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-be"):
            assert kind_of("https://a.example/t", (before + root).encode(encoding)) == "rsl"
    begun = time.process_time()
    for other in ("<!-- a -->" * 400, "<!-->" * 400, "<?x?>" * 400, " " * 4000):
        assert not kind_of("https://a.example/t", f"{other}<html>".encode())
    assert time.process_time() - begun < 1


def test_redirects_and_answers_in_place_of_the_file(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        [
            robots(b"", status=301, location="https://www.a.example/robots.txt"),
            robots(ROBOTS, "https://www.a.example/robots.txt"),
            robots(b"", "https://round.example/robots.txt", location="/robots.txt"),
            robots(b"", "https://lost.example/robots.txt", location="/start.html"),
            robots(ROBOTS, "https://no.example/robots.txt", status=404),
            robots(ROBOTS, "https://down.example/robots.txt", status=503),
            robots(ROBOTS, "http://plain.example/robots.txt"),
            robots(ROBOTS, "https://port.example:8443/robots.txt"),
        ],
    )
    assert said(index, "https://a.example/private") == [("*", "Disallow: /private")]
    assert said(index, "https://round.example/private") == []
    assert said(index, "https://lost.example/private") == []
    assert said(index, "https://no.example/private") == [("*", "HTTP 404")]
    assert said(index, "https://down.example/private") == [("*", "HTTP 503")]
    assert said(index, "https://PLAIN.example:443/private") == [("*", "Disallow: /private")]
    assert said(index, "https://port.example/private") == []
    assert said(index, "https://port.example:8443/private") == [("*", "Disallow: /private")]


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("HTTPS://A.example:443/x", "https://a.example"),
        ("http://a.example:8080", "http://a.example:8080"),
        ("https://BÜcher.example/x", "https://xn--bcher-kva.example"),
        ("ftp://a.example/", ""),
        ("file:a/b", ""),
        ("http://[bad/", ""),
        ("http://a.example:port/", ""),
        ("", ""),
    ],
)
def test_names_of_sites(url: str, site: str) -> None:
    assert site_of(url) == site


def test_a_reservation_without_a_list_around_it() -> None:
    file = parse_tdm_file(b'{"location": "/", "tdm-reservation": 1}')
    assert of_path(file, "https://a.example/x") == (True, None)


def test_ai_txt_and_reservations(tmp_path: Path) -> None:
    tdm = [{"location": "/open", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]
    index = index_of(
        tmp_path,
        [
            SiteFile(
                "ai_txt",
                "https://a.example/ai.txt",
                None,
                200,
                "",
                b"User-Agent: *\nDisallow: *.html\n",
            ),
            SiteFile(
                "tdm",
                "https://a.example/.well-known/tdmrep.json",
                None,
                200,
                "",
                json.dumps(tdm).encode(),
            ),
        ],
    )
    found = index.signals("https://a.example/about", None)
    assert [(s.kind, s.place, s.agent, s.value) for s in found] == [
        ("ai_txt", "ai.txt", "*", "Disallow: *.html"),
        ("tdm", "tdmrep.json", None, "1"),
    ]
    assert said(index, "https://a.example/open/x.pdf") == [("*", ""), (None, "0")]


def test_half_a_pair_in_json_stops_nothing(tmp_path: Path) -> None:
    place = "https://a.example/.well-known/tdmrep.json"
    rule = rb'{"location": "/\ud800", "tdm-reservation": 1, "tdm-policy": "https://p/\ud800"}'
    half = rb'{"location": "/", "tdm-reservation": "\ud800"}'
    thing = rb'<script type="application/ld+json">{"license": "https://l.example/\ud800"}</script>'
    for content, value in (
        (rule.replace(rb"/\ud800", b"/", 1), "1 https://p/\ufffd"),
        (half, "unread=\ufffd"),
    ):
        index = index_of(tmp_path, [SiteFile("tdm", place, None, 200, "", b"[%s]" % content)])
        page = Page("https://a.example/\ud800", content=thing)
        rights = document_rights(page, read_page(thing), "", index)
        for one in (rights, index.renewed(rights, page.url)):
            assert one is not None and [s["value"] for s in one["signals"]][:1] == [value]
            assert pa.array([one], RIGHTS).to_pylist()[0]["signals"][-1]["value"][-1] == "\ufffd"
    found = preferences(url=place, html=thing, well_known={place: b"[%s]" % rule})
    assert {s.value[-1] for s in found["signals"]} == {"\ufffd"}


def test_archives_tables_and_folders(tmp_path: Path) -> None:
    page = http_response(b"<p>no", b"Content-Type: text/html")
    moved = b"HTTP/1.1 301 Moved\r\nLocation: https://www.a.example/robots.txt\r\n\r\n"
    records = [
        warc_record(0, page, url="https://a.example/"),
        warc_record(1, moved, url="https://a.example/robots.txt"),
        warc_record(
            2,
            http_response(ROBOTS, b"Content-Type: text/plain"),
            url="https://www.a.example/robots.txt",
        ),
    ]
    (tmp_path / "robots.warc").write_bytes(b"".join(records))
    row = {"url": "https://b.example/robots.txt", "text": ROBOTS.decode(), "status": 200}
    (tmp_path / "robots.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "sites/c.example/.well-known").mkdir(parents=True)
    (tmp_path / "sites/c.example/robots.txt").write_bytes(ROBOTS)
    (tmp_path / "sites/c.example/.well-known/tdmrep.json").write_text("[]")
    names = [str(tmp_path / name) for name in ("robots.warc", "robots.jsonl", "sites")]
    found = list(read_site_files(names, READERS))
    assert [(f.kind, f.url, f.status) for f in found] == [
        ("robots", "https://a.example/robots.txt", 301),
        ("robots", "https://www.a.example/robots.txt", 200),
        ("robots", "https://b.example/robots.txt", 200),
        ("tdm", "https://c.example/.well-known/tdmrep.json", None),
        ("robots", "https://c.example/robots.txt", None),
    ]
    assert found[0].location == "https://www.a.example/robots.txt"
    assert found[1].content == found[2].content == found[4].content == ROBOTS


def test_a_path_without_any_such_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "no robots", "url": "https://a.example/"}\n')
    with pytest.raises(InputError, match=r"a\.jsonl: has no robots\.txt"):
        list(read_site_files([str(tmp_path / "a.jsonl")], READERS))


def test_heads_of_pages_that_were_set_aside_come_back(tmp_path: Path) -> None:
    head = (("x-robots-tag", "noai"), ("x-robots-tag", "CCBot: noindex"))
    row = dict.fromkeys(SET_ASIDE.names) | {
        "id": "1",
        "url": "https://a.example/",
        "html": b"<p>Text.",
        "status": 200,
        "headers": head,
        "source": {"file": "a.warc", "offset": 7},
    }
    whole = pa.Table.from_pylist([row], SET_ASIDE)
    pq.write_table(whole, tmp_path / "new.parquet")
    # As earlier versions wrote them.
    pq.write_table(whole.drop_columns(["status", "headers"]), tmp_path / "old.parquet")
    (new,) = read(str(tmp_path / "new.parquet"), READERS)
    (old,) = read(str(tmp_path / "old.parquet"), READERS)
    assert isinstance(new, Page) and (new.status, new.headers) == (200, head)
    assert isinstance(old, Page) and (old.status, old.headers) == (None, ())
