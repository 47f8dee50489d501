"""A run with hostile pages among the samples, one with another threshold, and a server."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TypeVar

import pytest

from pipelines.reading.explorer import Explorer
from pipelines.view.server import Server
from tests.conftest import curate_well, made_once
from tests.readers.archives import http_response

#: The rule that the second run has another threshold for.
KEY, THRESHOLD = "filter.rules.gopher.word_count.min", 120
#: Without worker processes, which take longer to start than these runs to do.
ALONE = ("--workers", "0")
_SCRIPT = "<script>window.top.pwned=1</script>"
_WORDS = (
    "The lighthouse keeper counted the boats as they came home in the evening, and wrote the "
    "number into a small book that nobody ever asked to see. "
)
#: Titles, URLs and texts that would act where a page doesn't escape them.
HOSTILE = {
    "http://evil.example/a?x=\"'><svg/onload=pwned=1>": f"{_SCRIPT}</title>{_SCRIPT}",
    "http://<img src=x onerror=pwned=1>.example/b": "&lt;img src=x onerror=pwned=1&gt; & “quotes”",
    "javascript:pwned=1//http://evil.example/c": "${pwned=1}{{pwned=1}}",
    "http://evil.example/\u202egpj.exe": "\u202e\u2066override",
}


S = TypeVar("S", bound=HTTPServer)


class Canary(HTTPServer):
    """Counts who asks for anything: no page that is shown may."""

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", int(url.rpartition(":")[2])), _Told)
        self.url = url
        self.asked: list[str] = []


class _Told(BaseHTTPRequestHandler):
    server: Canary

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving(server: S) -> Iterator[S]:
    """Serve in a thread."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def canary_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where it would be asked: the same in all processes, which share pages."""

    def make(made: Path) -> None:
        made.mkdir()
        with HTTPServer(("127.0.0.1", 0), _Told) as free:
            (made / "url").write_text(f"http://127.0.0.1:{free.server_address[1]}")

    return (made_once(tmp_path_factory, "canary", make) / "url").read_text()


@pytest.fixture
def canary(canary_url: str) -> Iterator[Canary]:
    held = Canary(canary_url)
    with serving(held):
        yield held


def page(title: str, number: int, canary: str) -> bytes:
    """A page that tries to load and to run what it can."""
    text = "".join(f"<p>{number * 7 + i}. {_WORDS}{_SCRIPT}</p>" for i in range(6))
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title>"
        f"<meta http-equiv=refresh content='0;url={canary}/refresh'>"
        f"<base href='{canary}/'><link rel=preconnect href='{canary}'>"
        f"<link rel=stylesheet href='{canary}/style.css'>"
        f"<style>@import url({canary}/import.css); p {{ background: url({canary}/b.png) }}</style>"
        f"<script src='{canary}/script.js'></script>{_SCRIPT}</head>"
        f"<body onload='window.top.pwned=1'><article><h1>{title}</h1>"
        f"<img src='{canary}/i.png' onerror='window.top.pwned=1'>"
        f"<iframe src='{canary}/frame'></iframe><video poster='{canary}/p.png'></video>"
        f"{text}<p>&lt;img src=x onerror=pwned=1&gt; {_WORDS}</p></article></body></html>"
    ).encode()


def _record(url: str, number: int, body: bytes) -> bytes:
    block = http_response(body, b"Content-Type: text/html; charset=utf-8")
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Date: 2024-05-06T07:08:{number:02d}Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012d}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n"
    )
    return head.encode() + b"\r\n" + block + b"\r\n\r\n"


@pytest.fixture(scope="session")
def hostile_warc(tmp_path_factory: pytest.TempPathFactory, canary_url: str) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "hostile.warc"
    records = [
        _record(url, number, page(title, number, canary_url))
        for number, (url, title) in enumerate(HOSTILE.items())
    ]
    path.write_bytes(b"".join(records))
    return path


@pytest.fixture(scope="session")
def viewed_run(tmp_path_factory: pytest.TempPathFactory, hostile_warc: Path) -> Path:
    """A finished run of the samples and of hostile pages."""
    inputs = ["builtin:data_samples/*.*z*", hostile_warc]

    def make(made: Path) -> None:
        curate_well(["run", "sample", "--input", *inputs, "--output", made, *ALONE])

    return made_once(tmp_path_factory, "viewed_run", make)


@pytest.fixture(scope="session")
def changed_run(
    tmp_path_factory: pytest.TempPathFactory, viewed_run: Path, hostile_warc: Path
) -> Path:
    """The same run with another threshold."""
    inputs = ["builtin:data_samples/*.*z*", hostile_warc]

    def make(made: Path) -> None:
        shutil.copytree(viewed_run, made)
        arguments = ["run", "sample", "--input", *inputs, "--output", made, *ALONE]
        curate_well([*arguments, "--set", f"{KEY}={THRESHOLD}"])

    return made_once(tmp_path_factory, "changed_run", make)


@pytest.fixture(scope="session")
def table_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a table with own columns, whose names and values would act, or are endless."""
    folder = tmp_path_factory.mktemp("table")
    act = "<img src=x onerror=window.pwned=1>"
    rows = [
        {"id": f"doc-{i}", "url": f"https://h{i}.example/", "text": f"{i}. {_WORDS * (i + 1)}"}
        | {"title": f"Title {i}", act: act, "turned\u202e": "\u202eabc", "stars": i}
        for i in range(6)
    ]
    rows[0]["url"] = f"https://{'a' * 300_000}.example/{'b' * 300_000}"
    rows[1]["title"] = "T" * 1_000_000
    rows[2]["id"] = f"id\u202e{act}"
    rows[3]["url"] = "javascript:window.pwned=1"
    rows[4]["text"] = "x" * 1_000_000
    table = folder / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    stages = ["--stages", "identify-language,filter"]
    curate_well(["run", "llama3", *stages, "--input", table, "--output", folder / "run", *ALONE])
    return folder / "run"


#: Names and texts of the user's own, each of which acts where it isn't escaped.
ACT = "<img src=x onerror=window.pwned=1>"
STYLE = "<style>*{display:none!important}</style>"
SCRIPT = "</script><script>window.pwned=1</script>"
_OWN_TEXTS = (
    "Bees fly from one flower to the next, and it is for the honey that they do it every summer.",
    "The harbour was quiet when the first ships left it, and nobody asked where they were going.",
    "A clock that is wound up once a week will run for years if it is kept away from the damp.",
    "My grandmother wrote down what every child of the village had said about the long winter.",
    "Trains were late on that day because of the snow, which nobody had expected so early.",
)


@pytest.fixture(scope="session")
def named_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose recipe, rules, ids, hosts, titles, texts and input would act."""
    folder = tmp_path_factory.mktemp("named")
    rows: list[dict[str, object]] = [
        {
            "id": f"{ACT}{i}",
            "url": f"https://{ACT}{i % 2}.example/{STYLE}{SCRIPT}",
            "title": f"{STYLE}{SCRIPT}{ACT}{i}",
            "text": f"{text}\n" * 4 + (f"{ACT} {STYLE} {SCRIPT}" if i == 0 else ""),
            f"column {ACT}": f"{STYLE}{ACT}",
        }
        for i, text in enumerate(_OWN_TEXTS)
    ]
    rows.append({**rows[1], "id": f"{SCRIPT}copy"})
    table = folder / f"{ACT}.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    rule = {"signal": "gopher_word_count", "min": 1000}
    own: dict[str, object] = {ACT: {SCRIPT: rule, STYLE: rule | {"max": 2000}}}
    nothing = dict.fromkeys(
        ("repetition", "c4", "fineweb", "llama3", "code", "mathematics", "gopher")
    )
    recipe = {"extends": "llama3", "name": f"{ACT}{STYLE}", "filter": {"rules": own | nothing}}
    (folder / "recipe.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    stages = ["--stages", "identify-language,dedup-documents,filter"]
    output = folder / f"run {ACT}"
    given = ["--input", table, "--output", output, *ALONE]
    curate_well(["run", folder / "recipe.yaml", *stages, *given])
    return output


@pytest.fixture(scope="session")
def server(viewed_run: Path, changed_run: Path, hostile_warc: Path) -> Iterator[Server]:
    held = Server(Explorer(str(viewed_run), str(changed_run), [str(hostile_warc)]))
    with serving(held):
        yield held
