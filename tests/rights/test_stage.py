# ruff: noqa: E501 (pages)
"""Rights from the archive to the token index, the policy, and what it would cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.rights.policy import Policy
from curation.rights.rights_settings import default_settings
from curation.schema import RIGHTS, Verdicts
from pipelines.engine.transform import ShardWriter
from pipelines.reading.explorer import Explorer
from pipelines.storage.files import Folder
from pipelines.storage.shards import Tally
from tests.conftest import curate, curate_well
from tests.readers.archives import http_response, warc_record

WORDS = (
    "The bridge over the river was built by the people of the town in the year of the flood. "
    "It has four arches of stone, and the oldest of them carries the marks of every mason. "
)
ROBOTS = b"User-agent: *\nDisallow: /closed\n\nUser-agent: GPTBot\nDisallow: /\n"
LATER = b"User-agent: *\nDisallow: /\n"
BY = "https://creativecommons.org/licenses/by/4.0/"


def page(number: int, head: str = "", foot: str = "") -> bytes:
    text = f"<h1>Bridge {number}</h1>" + f"<p>{WORDS} Number {number}.</p>" * 4
    return f"<!doctype html><html lang=en><head><title>B</title>{head}</head><body><main>{text}</main>{foot}</body></html>".encode()


PAGES: dict[str, tuple[bytes, bytes]] = {
    "https://a.example/plain": (page(0), b"Content-Type: text/html; charset=utf-8\r\nLast-Modified: Mon, 06 May 2024 07:00:00 GMT"),
    "https://a.example/closed/1": (page(1), b"Content-Type: text/html"),
    "https://b.example/noai": (page(2), b"Content-Type: text/html\r\nX-Robots-Tag: noindex\r\nX-Robots-Tag: CCBot: noai"),
    "https://b.example/tdm": (page(3), b"Content-Type: text/html\r\nTDM-Reservation: 1\r\nTDM-Policy: https://b.example/p.json"),
    "https://b.example/meta": (page(4, '<meta name="robots" content="noai">'), b"Content-Type: text/html"),
    "https://b.example/licence": (page(5, f'<link rel="license" href="{BY}">', "<footer>© 2024 Bridge</footer>"), b"Content-Type: text/html"),
    "https://b.example/link": (page(6), f'Content-Type: text/html\r\nLink: <{BY}>; rel="license"'.encode()),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rights")
    records = [
        warc_record(i, http_response(body, head), url=url)
        for i, (url, (body, head)) in enumerate(PAGES.items())
    ]
    (folder / "pages.warc").write_bytes(b"".join(records))
    plain = b"Content-Type: text/plain"
    url = "https://a.example/robots.txt"
    captures = [
        warc_record(0, http_response(ROBOTS, plain), url=url),
        warc_record(50, http_response(LATER, plain), url=url),
    ]
    (folder / "robots.warc").write_bytes(b"".join(captures))
    (folder / "recipe.yaml").write_text(
        f"""
extends: llama3
name: defended
stages: [extract, rights, tokenize]
extract: {{rights: {{files: ["{folder}/robots.warc"]}}}}
rights: {{retroactive: false}}
tokenize: {{context_length: 64}}
"""
    )
    return folder


@pytest.fixture(scope="module")
def done(place: Path) -> Path:
    return run(place, "out")


def run(place: Path, output: str, *arguments: str) -> Path:
    command = ["run", place / "recipe.yaml", "--input", place / "pages.warc"]
    curate_well([*command, "--output", place / output, "--workers", "0", *arguments])
    return place / output


def rows(folder: Path, kind: str) -> dict[str, dict[str, Any]]:
    return {row["url"]: row for row in pq.read_table(folder / kind).to_pylist()}


def said(row: dict[str, Any], *kinds: str) -> list[tuple[str, str, str | None, str]]:
    return [
        (s["kind"], s["place"], s["agent"], s["value"])
        for s in row["rights"]["signals"]
        if s["kind"] in kinds
    ]


def test_the_columns_of_documents(done: Path) -> None:
    found = rows(done, "extract/documents")
    assert found["https://a.example/plain"]["response"] == {
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "last_modified": "Mon, 06 May 2024 07:00:00 GMT",
        "language": "en",
    }
    assert said(found["https://b.example/noai"], "directive") == [
        ("directive", "header", "*", "noindex"),
        ("directive", "header", "ccbot", "noai"),
    ]
    assert said(found["https://b.example/tdm"], "tdm") == [
        ("tdm", "header", None, "1 https://b.example/p.json")
    ]
    licensed = found["https://b.example/licence"]
    assert licensed["rights"]["licence"] == "CC-BY-4.0"
    assert said(licensed, "licence", "copyright") == [
        ("licence", "head", None, BY),
        ("copyright", "footer", None, "© 2024 Bridge"),
    ]
    linked = found["https://b.example/link"]
    assert (linked["rights"]["licence"], said(linked, "licence")) == (
        "CC-BY-4.0",
        [("licence", "header", None, BY)],
    )


def test_robots_at_the_date_and_later(done: Path) -> None:
    closed = rows(done, "extract/documents")["https://a.example/closed/1"]
    assert said(closed, "robots") == [
        ("robots", "robots.txt", "*", "Disallow: /closed"),
        ("robots", "robots.txt", "GPTBot", "Disallow: /"),
        ("robots", "latest robots.txt", "*", "Disallow: /"),
    ]
    assert not said(rows(done, "extract/documents")["https://b.example/tdm"], "robots")


def test_the_policy_and_the_signals_that_it_found(done: Path) -> None:
    removed = rows(done, "rights/removed")
    assert {url: row["reason"] for url, row in removed.items()} == {
        "https://a.example/plain": "rights.robots",
        "https://a.example/closed/1": "rights.robots",
        "https://b.example/tdm": "rights.tdm",
        "https://b.example/noai": "rights.noai",
        "https://b.example/meta": "rights.noai",
    }
    assert {url: row["value_text"] for url, row in removed.items()} == {
        "https://a.example/plain": "Disallow: /",
        "https://a.example/closed/1": "Disallow: /closed",
        "https://b.example/tdm": "1 https://b.example/p.json",
        "https://b.example/noai": "noai",
        "https://b.example/meta": "noai",
    }
    ids = {row["id"]: url for url, row in removed.items()}
    beside = pq.read_table(done / "rights/signals").to_pylist()
    assert {(ids[r["id"]], r["place"], r["agent"], r["value"]) for r in beside} == {
        ("https://a.example/plain", "robots.txt", "GPTBot", "Disallow: /"),
        ("https://a.example/closed/1", "robots.txt", "*", "Disallow: /closed"),
        ("https://b.example/tdm", "header", None, "1 https://b.example/p.json"),
        ("https://b.example/noai", "header", "ccbot", "noai"),
        ("https://b.example/meta", "head", "*", "noai"),
    }


def test_the_value_found_is_shown_everywhere(done: Path) -> None:
    sample = curate_well(["sample", "--run", done, "--rule", "rights.tdm", "-n", "1"])
    assert "value 1 https://b.example/p.json" in sample
    curate_well(["report", "--run", done])
    assert "1 https://b.example/p.json" in (done / "report.html").read_text()
    found = json.loads(curate_well(["trace", "--run", done, WORDS, "--json"]))["found"]
    texts = {one["url"]: one.get("value_text") for one in found}
    assert texts["https://b.example/tdm"] == "1 https://b.example/p.json"
    explorer = Explorer(str(done))
    shown = [explorer.document({"row": str(row)}) for row in range(len(PAGES))]
    (tdm,) = (page for page in shown if page["url"] == "https://b.example/tdm")
    assert tdm["value_text"] == tdm["decisions"][-1]["value_text"] == "1 https://b.example/p.json"


def test_a_lost_document_has_the_columns_of_the_others(tmp_path: Path) -> None:
    """A document that crashes a stage whose values are texts goes into the same file."""
    batch = pa.RecordBatch.from_pylist([{"id": name, "text": "t"} for name in "ab"])
    reasons = pa.array([None, "rights.noai"])
    with ShardWriter(Folder(str(tmp_path)), "x", "rights", Tally()) as writer:
        writer.write(batch, Verdicts.of_texts(reasons, pa.array([None, "noai"])))
        writer.write_lost(batch.slice(0, 1), batch.schema, "crash.rights", values_are_texts=True)
    found = pq.read_table(tmp_path / "removed").to_pylist()
    assert [(row["id"], row["value_text"]) for row in found] == [("b", "noai"), ("a", None)]


@pytest.mark.parametrize(
    ("agents", "answers", "reason"),
    [
        (["CCBot"], {"*": "Disallow: /", "CCBot": "Allow: /"}, None),
        (["CCBot"], {"*": "Disallow: /", "GPTBot": "Allow: /"}, "rights.robots"),
        (["CCBot", "GPTBot"], {"*": "", "GPTBot": "Disallow: /"}, "rights.robots"),
        (["CCBot", "*"], {"*": "Disallow: /", "CCBot": "Allow: /"}, "rights.robots"),
        ([], {"*": "Disallow: /", "CCBot": "Allow: /"}, "rights.robots"),
    ],
)
def test_a_crawler_follows_its_own_group(
    agents: list[str], answers: dict[str, str], reason: str | None
) -> None:
    settings = default_settings().model_copy(update={"agents": tuple(agents)})
    signals = [
        {"kind": "robots", "place": "robots.txt", "agent": agent, "value": value}
        for agent, value in answers.items()
    ]
    ruling = Policy(settings).rulings(pa.array([{"licence": None, "signals": signals}], RIGHTS))[0]
    assert (ruling and ruling.reason) == reason


def test_rights_are_in_the_token_index(done: Path) -> None:
    index = pq.read_table(done / "tokenize/index")
    assert index.schema.field("rights").type == RIGHTS
    licences = {row["url"]: row["rights"]["licence"] for row in index.to_pylist()}
    assert licences == {
        "https://b.example/licence": "CC-BY-4.0",
        "https://b.example/link": "CC-BY-4.0",
    }


def test_why_and_the_cost_of_other_policies(done: Path) -> None:
    told = curate_well(["why", "https://b.example/tdm", "--run", done])
    assert "removed by rights.tdm, value 1 https://b.example/p.json" in told
    assert "tdm in header: 1 https://b.example/p.json" in told
    costs = json.loads(curate_well(["rights", "--what-if", "--run", done, "--json"]))
    by_name = {cost["policy"]: cost["documents"] for cost in costs["policies"]}
    assert costs["documents"] == len(PAGES)
    assert (by_name["robots"], by_name["tdm"], by_name["noindex"]) == (2, 1, 1)
    assert by_name["licences: open"] == len(PAGES) - 2
    assert by_name["robots, unknown: remove"] == len(PAGES)
    change = "rights.retroactive=true"
    costs = json.loads(
        curate_well(["rights", "--what-if", "--run", done, "--set", change, "--json"])
    )
    assert costs["policies"][0]["removed"] == {
        "rights.robots": 2,
        "rights.tdm": 1,
        "rights.noai": 2,
    }


def test_a_policy_that_nothing_can_answer(place: Path) -> None:
    command = [
        "run",
        place / "recipe.yaml",
        "--input",
        place / "pages.warc",
        "--output",
        place / "x",
    ]
    for change, message in (
        ("extract.rights.files=[]", "name captures in extract.rights.files"),
        ("rights.agents=[NewBot]", "'NewBot' is not among extract.rights.agents"),
        ("rights.honour=[noia]", "noai"),
    ):
        answer = curate(*command, "--set", change)
        assert answer.returncode == 2 and message in answer.stderr


def test_documents_without_the_column_are_refused(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "url": "",
        "date": None,
        "text": "t",
        "title": "",
        "source": {"file": "f", "offset": 0},
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    answer = curate(
        "rights",
        "--input",
        tmp_path / "t.jsonl",
        "--output",
        tmp_path / "o",
        "--set",
        "rights.honour=[tdm]",
    )
    assert answer.returncode and "rights needs the column 'rights'" in answer.stderr


def test_columns_are_null_where_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": WORDS, "rights": "mine"}) + "\n")
    curate_well(
        ["extract", "--input", tmp_path / "t.jsonl", "--output", tmp_path / "o", "--workers", "0"]
    )
    table = pq.read_table(tmp_path / "o/extract/documents")
    assert table.schema.field("rights").type == RIGHTS
    (found,) = table.to_pylist()
    assert (found["rights"], found["response"], found["own_rights"]) == (None, None, "mine")


def test_code_states_its_licence(tmp_path: Path) -> None:
    text = "// SPDX-License-Identifier: MIT\nint main() { return 0; }\n"
    (tmp_path / "t.jsonl").write_text(json.dumps({"text": text}) + "\n")
    curate_well(
        ["extract", "--input", tmp_path / "t.jsonl", "--output", tmp_path / "o", "--workers", "0"]
    )
    (found,) = pq.read_table(tmp_path / "o/extract/documents").to_pylist()
    assert found["rights"]["licence"] == "MIT"


def test_code_in_an_archive(tmp_path: Path) -> None:
    """Other types than pages are passed over unless the recipe names them; texts are unchanged."""
    code = b"# SPDX-License-Identifier: MIT\nimport os  \n\n\n\ndef f():\n\treturn os\n"
    types = ("text/x-python", "text/css", "application/javascript", "text/plain")
    records = [
        warc_record(
            i, http_response(code, f"Content-Type: {kind}".encode()), url=f"https://a.example/{i}"
        )
        for i, kind in enumerate(types)
    ]
    (tmp_path / "a.warc").write_bytes(b"".join(records))
    command = ["extract", "--input", tmp_path / "a.warc", "--workers", "0"]
    curate_well([*command, "--output", tmp_path / "usual"])
    (plain,) = pq.read_table(tmp_path / "usual/extract/documents").to_pylist()
    assert plain["url"] == "https://a.example/3"
    change = ["--set", "readers.text_types=[text/plain, text/x-*]"]
    change += ["--set", "readers.normalize_text=none"]
    curate_well([*command, "--output", tmp_path / "code", *change])
    found, other = pq.read_table(tmp_path / "code/extract/documents").to_pylist()
    assert found["text"] == code.decode() and other["url"] == plain["url"]
    assert (found["rights"]["licence"], found["response"]["content_type"]) == ("MIT", types[0])
    counts = json.loads((tmp_path / "code/extract/manifest.json").read_text())["counts"]
    assert {n for n in counts if n.startswith("skipped.mime")} == {
        f"skipped.mime:{kind}" for kind in types[1:3]
    }


def tokens_of(folder: Path, index: Path) -> dict[str, list[int]]:
    """Tokens of every document by id, where an index says they are."""
    data = {p.stem: np.fromfile(p, "<u2" if small(p) else "<i4") for p in folder.glob("*.bin")}
    found: dict[str, list[int]] = {}
    for path in sorted(index.glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            at = row["sequence"] * 64 + row["start"]
            found.setdefault(row["id"], []).extend(
                data[path.stem][at : at + row["length"]].tolist()
            )
    return found


def small(path: Path) -> bool:
    return path.with_suffix(".idx").read_bytes()[17] == 8


@pytest.fixture(scope="module")
def whole(place: Path) -> Path:
    """A run whose policy honours nothing."""
    return run(place, "whole", "--set", "rights.honour=[]")


@pytest.mark.parametrize(
    ("option", "given", "gone", "reason", "value"),
    [
        ("--hosts", ".A.example.\n\n", {"https://a.example/plain", "https://a.example/closed/1"}, "withdrawn.host", "a.example"),
        ("--hosts", "example", set(PAGES), "withdrawn.host", "example"),
        ("--rights", "rights: {honour: [tdm]}", {"https://b.example/tdm"}, "rights.tdm", "tdm header 1 https://b.example/p.json"),
    ],
)  # fmt: skip
def test_withdrawal_by_host_and_by_right(
    whole: Path, tmp_path: Path, option: str, given: str, gone: set[str], reason: str, value: str
) -> None:
    (tmp_path / "given").write_text(given)
    out = tmp_path / "out"
    told = curate_well(["withdraw", "--run", whole, option, tmp_path / "given", "--output", out])
    assert f"{len(gone)} documents withdrawn" in told
    record = pq.read_table(out / "withdrawn.parquet").to_pylist()
    assert {row["url"] for row in record} == gone
    assert {(row["reason"], row["value"]) for row in record} == {(reason, value)}
    before = tokens_of(whole / "tokenize", whole / "tokenize/index")
    after = tokens_of(out / "tokens/tokenize", out / "tokens/tokenize/index")
    ids = {row["id"] for row in record}
    assert after == {name: tokens for name, tokens in before.items() if name not in ids}
    masked = tokens_of(out / "tokens/tokenize", whole / "tokenize/index")
    assert len({token for name in ids for token in masked[name]}) == 1
    facts = json.loads((out / "withdrawn.json").read_text())
    figures = facts["tokens"]["tokenize"]
    assert figures["documents"] == len(gone)
    assert figures["tokens"] == sum(len(before[name]) for name in ids)
    assert facts["runs"][0]["root"]


def test_withdrawal_with_a_policy_in_the_command(whole: Path, tmp_path: Path) -> None:
    command = ["withdraw", "--run", whole, "--output", tmp_path / "out", "--rights"]
    assert "1 documents withdrawn" in curate_well([*command, "{honour: [noindex]}"])
    for given, message in (
        ("{honour: [noia]}", "noai"),
        ("nothing", "neither a file nor keys"),
        ("{honour: [", "--rights"),
    ):
        answer = curate(*command, given)
        assert answer.returncode == 2 and message in answer.stderr


def test_a_mix_of_openly_licensed_documents(place: Path) -> None:
    """A named mix leaves out all others; the mix without a name takes them."""
    changes = (
        "stages=[extract, classify, mix]",
        "mix.mixes={open: {licences: [open]}}",
        "classify.min_quality.general=0",
    )
    out = run(place, "mixed", *(part for change in changes for part in ("--set", change)))
    licensed = {"https://b.example/licence", "https://b.example/link"}
    assert set(rows(out, "mix/open/documents")) <= licensed
    left = rows(out, "mix/open/removed")
    assert {row["reason"] for url, row in left.items() if url not in licensed} == {"mix.licence"}
    assert set(rows(out, "mix/documents")) - licensed
