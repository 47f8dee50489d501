"""The examples of docs/extend.md, and what `curate new` writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from tests.conftest import ROOT

PAGES = [
    {"url": "http://a.example/calm", "html": f"<title>A</title><p>{'A calm page on bees. ' * 9}"},
    {"url": "https://a.example/calm", "html": f"<title>B</title><p>{'A calm page on wasps. ' * 9}"},
    {"url": "http://a.example/buy", "html": f"<title>C</title><p>{'Buy this! Why not? ' * 9}"},
]
SECTIONS = re.findall(
    r"^## (.+?)\n\n```python\n# (\S+)\n(.*?)```\n\n```yaml\n# recipe.yaml\n(.*?)```",
    (ROOT / "docs/extend.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
REASONS = {
    "A rule": "mine.exclamations",
    "A stage": "questions.too_many",
    "A classifier": "classify.advert",
}
#: The pages are made to show the examples, and would fail other rules.
ALSO = {
    "A rule": [
        f"filter.rules.{f}=null" for f in ("repetition", "gopher", "c4", "fineweb", "llama3")
    ],
    "A classifier": ["classify.min_quality.general=0", "classify.drop_formats=[]"],
}


def test_every_kind_has_an_example() -> None:
    assert len(SECTIONS) == 6 and {*REASONS} < {title for title, *_ in SECTIONS}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES))
    turns = [{"by": "a", "says": "Bees dance."}, {"by": "b", "says": "Do they? Where?"}]
    chat = {"link": "http://a.example/chat", "number": "c1", "turns": turns * 9}
    (tmp_path / "in.chat").write_text(json.dumps(chat))
    return tmp_path


@pytest.mark.parametrize(("title", "file", "code", "recipe"), SECTIONS, ids=lambda v: v[:15])
def test_an_example(home: Path, title: str, file: str, code: str, recipe: str) -> None:
    (home / file).write_text(code)
    (home / "recipe.yaml").write_text(recipe)
    given = "in.chat" if title == "A file format" else "in.jsonl"
    arguments = ["run", "recipe.yaml", "--input", given, "--output", "out", "--workers", "0"]
    changes = [option for change in ALSO.get(title, ()) for option in ("--set", change)]
    assert main([*arguments, *changes, "--quiet"]) == 0
    removed = [
        reason
        for path in Path("out").glob("*/removed/*.parquet")
        for reason in pq.read_table(path)["reason"].to_pylist()
    ]
    assert REASONS.get(title) is None or REASONS[title] in removed
    assert title != "An output format" or list(Path("out/tokenize/raw").rglob("tokens.bin"))


@pytest.mark.parametrize("kind", ["rule", "stage"])
def test_new_code_works_at_once(home: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", kind, "my-check"]) == 0
    printed = capsys.readouterr().out
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_my_check.py"], cwd=home, check=False
    )
    assert tested.returncode == 0
    lines = printed.split("\n\n", 1)[1].replace("[..., my-check, ...]", "[extract, my-check]")
    stages = "" if kind == "stage" else "stages: [extract, filter]\n"
    (home / "recipe.yaml").write_text(f"extends: llama3\nname: mine\n{stages}{lines}")
    arguments = ["run", "recipe.yaml", "--input", "in.jsonl", "--output", "out", "--workers", "0"]
    assert main([*arguments, "--quiet"]) == 0
    assert main(["new", kind, "my-check"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["new", kind, "Ü"]) == 2
