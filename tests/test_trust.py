"""What comes from outside has no power: over the terminal, in reports, and with credentials."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.credentials import redact, redact_all, without_userinfo
from curation.errors import InputError, StoreError
from curation.html_page import head
from curation.readers.discover import InputFile
from pipelines.cli import main
from pipelines.console import PlainConsole
from pipelines.plan import _named_safely
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.terminal import plain

#: Sets a window's title, colours, moves up, turns the direction of writing, ends a line.
EVIL = "a\x1b]0;owned\x07b\x1b[31mc\x9b2Ad\u202ee\rf\x7fg\u2028h"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
WORDS = (
    "The harbour wall was rebuilt after the flood of that year, and it has stood since. "
    "People of the town walk there in the evening, and boats come in with the tide. "
)


@given(st.text())
def test_nothing_acts_on_a_terminal(text: str) -> None:
    shown = plain(text)
    assert not ACTING.search(shown) and plain(shown) == shown
    shown.encode()  # half characters can't be printed
    if not ACTING.search(text) and text.isprintable():
        assert shown == text


@given(st.recursive(st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=5))
def test_json_keeps_its_values(value: object) -> None:
    assert json.loads(plain(json.dumps(value, ensure_ascii=False))) == value


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over records whose texts, addresses and file name want to act."""
    place = tmp_path_factory.mktemp("evil")
    lines = [
        {"text": (WORDS + EVIL + "\n") * 8, "url": f"http://user:geheim@host{i}/{EVIL}[/x]"}
        for i in range(2)
    ]
    lines.append({"text": f"{EVIL} short", "url": f"http://host/{EVIL}"})
    source = place / "pages\x1b[31m[red].jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    output = place / "out\x1b[7m"
    options = ["--output", str(output), "--workers", "0", "--quiet"]
    stages = ["--stages", "extract,identify-language,filter"]
    assert main(["run", "llama3", "--input", str(source), *options, *stages]) == 0
    return output


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["why", "http://host/" + EVIL], 0),
        (["why", f"http://host0/{EVIL}[/x]"], 0),
        (["why", f"http://host0/{EVIL}[/x]", "--json"], 0),
        (["why", "nothing" + EVIL], 1),
        (["report"], 0),
        (["withdraw", "--url-prefix", EVIL], 1),
    ],
)
def test_commands_print_no_controls(
    run: Path, command: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--run", str(run)]) == code
    said = capsys.readouterr()
    assert said.out + said.err
    assert not ACTING.search(said.out + said.err)
    if "--json" in command:
        json.loads(said.out)


def test_a_page_acts_on_no_terminal_and_comes_whole_to_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<p>{WORDS * 3} a\x9b2Ab</p>".replace("\x9b", "&#x202e;"))
    assert main(["extract-file", str(page)]) == 0
    raw = capsys.readouterr().out
    assert "\u202e" in raw
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["extract-file", str(page)]) == 0
    assert capsys.readouterr().out == raw.replace("\u202e", "\\u202e")


def test_messages_of_a_run_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    for mode in ("bar", "plain", "json"):
        with open_display(mode) as display:  # type: ignore[arg-type]
            display.stage("filter", "started")
            display.message(f"[bold]{EVIL} s3://u:geheim@host/x")
        said = capsys.readouterr().err
        assert "geheim" not in said and "[bold]" in said
        assert EVIL not in said and "\u202e" not in said and "\x07" not in said
    PlainConsole(stderr=True).print(f"[/x] {EVIL} :smile:")
    said = capsys.readouterr().err
    assert said.startswith("[/x]") and ":smile:" in said and not ACTING.search(said)


# ---------------------------------------------------------------------------------------- pages


class Page(HTMLParser):
    """Styles, policy and what would need leave of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.policy, self.styles, self.inside, self.refused = "", [""], "", list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.inside = tag
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"] or ""
        if tag in ("script", "img", "iframe", "link", "form", "object", "embed", "base"):
            self.refused.append(tag)
        self.refused += [n for n in named if n in ("style", "src", "srcset") or n.startswith("on")]

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.styles.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def check_policy(text: str) -> None:
    page = Page(text)
    digest = hashlib.sha256("".join(page.styles).encode()).digest()
    own_style = f"'sha256-{base64.b64encode(digest).decode()}'"
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "style-src": own_style,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert page.refused == []


def test_a_page_allows_nothing_but_its_style(run: Path) -> None:
    assert main(["report", "--run", str(run)]) == 0
    check_policy((run / "report.html").read_text())
    with pytest.raises(AssertionError):
        check_policy(head("t", "p {}").replace("p {}</style>", "p { }</style>"))


# ---------------------------------------------------------------------------------- credentials


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sftp://user:pa@ss@host/x", "sftp://***@host/x"),
        ("https://token@host:8080/x?y=1", "https://***@host:8080/x?y=1"),
        ("zip://a.warc::https://u:p@host/b.zip", "zip://a.warc::https://***@host/b.zip"),
        ("hdfs://user@host/x", "hdfs://user@host/x"),
        ("abfs://box@account.dfs.core.windows.net/x", "abfs://box@account.dfs.core.windows.net/x"),
        ("s3://bucket/a@2x.png", "s3://bucket/a@2x.png"),
        (
            "https://b.s3.amazonaws.com/x.gz?X-Amz-Date=1&X-Amz-Credential=A%2Fb&X-Amz-Signature=f",
            "https://b.s3.amazonaws.com/x.gz?X-Amz-Date=1&X-Amz-Credential=***&X-Amz-Signature=***",
        ),
        ("x.gz?sv=1&sig=a%3D&se=2: no such file", "x.gz?sv=1&sig=***&se=2: no such file"),
        ("'http://h/?access_token=a' and http://h/?TOKEN=b", None),
        ("http://host/?id=5&signal=3#part=1", "http://host/?id=5&signal=3#part=1"),
        (
            "https://h/#access_token=a&token_type=b&state=c",
            "https://h/#access_token=***&token_type=***&state=c",
        ),
        ("mail me@host: a=b", "mail me@host: a=b"),
    ],
)
def test_what_is_hidden_of_a_url(text: str, shown: str | None) -> None:
    shown = shown or "'http://h/?access_token=***' and http://h/?TOKEN=***"
    assert redact(text) == shown and redact(shown) == shown
    assert redact_all({text: [text, 1, None]}) == {shown: [shown, 1, None]}
    assert str(InputError(f"{text}: bad")) == f"{shown}: bad"


def test_pages_lose_nothing_but_the_user() -> None:
    for url in ("http://h/?token=a&sig=b", "http://h/@u:p@x", "file:a@b", "", "no url @ all"):
        assert without_userinfo(url) == url
    assert without_userinfo("http://u:p@h/?token=a@b") == "http://h/?token=a@b"
    assert without_userinfo("HTTPS://u@h") == "HTTPS://h"


@pytest.mark.parametrize("part", ["a.", "://a@", "?a=", "http://", "@", "&"])
def test_hiding_takes_linear_time(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part)) + "@"
        started = time.process_time()
        redact(text), without_userinfo(text)
        return time.process_time() - started

    least = min(seconds(1 << 16) for _ in range(3))
    assert min(seconds(1 << 19) for _ in range(2)) < 40 * least + 0.05


def test_credentials_stay_out_of_names_and_folders() -> None:
    signed = InputFile("https://h/a.gz?X-Amz-Signature=geheim", "a.gz?X-Amz-Signature=geheim", 1)
    (named,) = _named_safely([signed])
    assert named.name == "a.gz?X-Amz-Signature=***" and named.path == signed.path
    with pytest.raises(InputError, match="different credentials") as raised:
        _named_safely([signed, InputFile(signed.path + "2", signed.name + "2", 1)])
    assert "geheim" not in str(raised.value)
    folder = Folder("memory://user:geheim@host/x")
    assert "geheim" not in folder.shown and "geheim" in folder.url
    assert "geheim" not in str(StoreError(f"{folder.url_of('a')}: gone"))


def test_no_file_of_a_run_holds_the_user_of_a_page(run: Path) -> None:
    for path in run.rglob("*"):
        if path.is_file():
            assert b"geheim" not in path.read_bytes(), path


def test_credentials_in_settings_stay_out_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<p>{WORDS * 4}</p>")
    output = tmp_path / "out"
    settings = "filter.blocklists.lists={x: 'https://user:geheim@nowhere.invalid/l?sig=geheim'}"
    arguments = ["run", "llama3", "--input", str(page), "--output", str(output), "--workers", "0"]
    assert main([*arguments, "--stages", "extract", "--set", settings]) == 0
    assert "https://***@nowhere.invalid/l?sig=***" in (output / "recipe.yaml").read_text()
    said = capsys.readouterr()
    assert "geheim" not in said.out + said.err
    for path in output.rglob("*"):
        assert not path.is_file() or b"geheim" not in path.read_bytes(), path


def test_the_worker_pool_is_for_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    for host in ("0.0.0.0", "::", "", "192.0.2.1"):
        assert main(["worker-pool", "--host", host, "--port", "0"]) == 2
        assert "can run any code here" in capsys.readouterr().err
