"""The server answers who has its secret, and lets pages do nothing."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from curation.html_page import harmless
from pipelines.cli import main
from pipelines.commands import view as command
from pipelines.commands.view import has_desktop
from pipelines.reading.explorer import Explorer
from pipelines.storage.files import Folder
from pipelines.view.server import Server
from tests.conftest import ROOT
from tests.view.conftest import serving


def ask(
    server: Server, path: str, method: str = "GET", body: str | None = None, kind: str = ""
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    return connection.getresponse()


def path_of(server: Server, name: str) -> str:
    return urlsplit(server.url).path + name


@pytest.mark.parametrize("path", ["/", "/api/run", "/x/api/run", "/x/", "//", "/%2e%2e/etc/passwd"])
def test_without_the_secret_nothing_is_found(server: Server, path: str) -> None:
    assert ask(server, path).status == 404


@pytest.mark.parametrize(
    "name", ["../cli.py", "..%2f..%2fcli.py", "api/nothing", "api/__init__", "static/app.js"]
)
def test_only_known_names_are_served(server: Server, name: str) -> None:
    assert ask(server, path_of(server, name)).status == 404


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32


@pytest.mark.parametrize("name", ["", "app.js", "app.css", "icon.svg", "api/run", "page?row=0"])
def test_every_answer_has_a_policy(server: Server, name: str) -> None:
    answer = ask(server, path_of(server, name))
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "http:" not in policy
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    if name.startswith("page"):
        assert policy.startswith("sandbox;")
    else:
        assert "unsafe-inline" not in policy


def test_the_page_names_nothing_outside(server: Server) -> None:
    for name in ("", "app.css"):
        assert b"http" not in ask(server, path_of(server, name)).read()
    script = ask(server, path_of(server, "app.js")).read().decode()
    found = {
        url.split('"')[0] for url in script.split("http")[1:] if url.startswith(("://", "s://"))
    }
    assert found <= {
        "://www.w3.org/2000/svg",
        "://www.w3.org/1998/Math/MathML",
        "://www.w3.org/1999/xhtml",
    }


def test_wrong_questions_are_answered(server: Server) -> None:
    answer = ask(server, path_of(server, "api/document?row=-1"))
    assert answer.status == 400
    assert "no document" in json.loads(answer.read())["error"]


def test_pages_are_harmless() -> None:
    page = b"<SCRIPT src=a></script><Link rel=preconnect href=b><meta http-equiv=refresh>"
    page += b"<img SRC = x onerror=y><a HREF='z'>text</a><formula>src of</formula>"
    found = harmless(page)
    for name in (b"<SCRIPT", b"</script", b"<Link", b"<meta", b" SRC ", b" HREF=", b" onerror="):
        assert name not in found
    assert b"text</a><formula>src of</formula>" in found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8080"}, 200),  # a tunnel
        ({"Host": "[::1]:8080"}, 200),
        ({"Host": "evil.example"}, 404),  # a name that leads to this machine
        ({"Host": "127.0.0.1.evil.example:80"}, 404),
        ({"Host": "[::1"}, 404),
        ({"Host": "127.0.0.1", "Origin": "http://evil.example"}, 404),
        ({"Host": "127.0.0.1", "Origin": "null"}, 404),
        ({"Host": "127.0.0.1", "Origin": "http://localhost:8080"}, 200),
    ],
)
def test_other_sites_read_nothing(server: Server, headers: dict[str, str], status: int) -> None:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
    connection.request("GET", path_of(server, "api/run"), headers=headers)
    assert connection.getresponse().status == status


@pytest.mark.parametrize("path", ["*", "x", "http://[/", "//", "?", "http://127.0.0.1"])
@pytest.mark.parametrize("length", ["0", "-1", "many", "9" * 30])
def test_a_broken_request_is_answered(server: Server, path: str, length: str) -> None:
    with socket.create_connection(server.server_address[:2], timeout=60) as held:
        held.sendall(f"POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n".encode())
        assert held.recv(1000).startswith(b"HTTP/1.1 501")  # nothing is written here


@pytest.mark.parametrize(
    "platform, environment, expected",
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, False),
        ("darwin", {}, True),
        ("darwin", {"SSH_TTY": "/dev/ttys001"}, False),
    ],
)
def test_where_a_browser_would_open(
    platform: str, environment: dict[str, str], expected: bool
) -> None:
    assert has_desktop(platform, environment) is expected


@pytest.mark.parametrize("more", [[], ["--no-browser"]])
def test_the_command_opens_the_address(
    more: list[str],
    viewed_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(command, "has_desktop", lambda *_: True)
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    monkeypatch.setattr(Server, "serve_forever", _interrupted)
    monkeypatch.setattr(command, "leave", sys.exit)
    with pytest.raises(SystemExit, match="0"):
        main(["view", "--run", str(viewed_run), *more])
    printed = capsys.readouterr()
    assert [url in printed.out + printed.err for url in opened] == [True] * (not more)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_without_a_word(viewed_run: Path, number: signal.Signals) -> None:
    arguments = ["view", "--run", str(viewed_run), "--no-browser"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *arguments], stdout=pipe, stderr=pipe, text=True
    )
    assert process.stdout and process.stdout.readline().startswith("http://127.0.0.1:")
    process.stdout.readline()  # how to end it: it is being served
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, "")


def _interrupted(_: Server) -> None:
    raise KeyboardInterrupt


def test_a_run_that_is_gone_or_damaged_is_told(viewed_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(viewed_run, run)
    with serving(Server(Explorer(str(run)))) as server:

        def told(name: str) -> str:
            answer = ask(server, path_of(server, name))
            assert answer.status == 500
            return str(json.loads(answer.read())["error"])

        path = max((run / "mix" / "documents").glob("*.parquet"), key=lambda p: p.stat().st_size)
        data = path.read_bytes()
        path.write_bytes(data[:40] + bytes(400) + data[440:])
        kept = [row["row"] for row in server.explorer.documents({"stage": "kept"})["rows"]]
        shown = Folder(str(run)).shown
        errors = {told(f"api/document?row={kept[-1]}")}
        assert all("a file is damaged" in e and f"curate verify --run {shown}" in e for e in errors)
        shutil.rmtree(run)
        for name in ("api/run", "api/document?row=0", "api/limits"):
            assert "removed or written again since it was opened" in told(name)
        assert ask(server, path_of(server, "api/funnel")).status == 200  # still in memory


def test_a_supervisor_ends_it_without_a_word(viewed_run: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cli", "view", "--run", str(viewed_run)]
    with subprocess.Popen(
        [*command, "--no-browser"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("http://")
        process.terminate()
        assert process.wait(60) == 0 and process.stderr.read() == ""
