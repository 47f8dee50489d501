"""The stages: their order, a further one by three files, one of another package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.errors import ConfigError
from curation.recipe import STAGES, load
from curation.schema import DOCUMENTS
from curation.stages import Stage, _in_order, find, known_stages
from pipelines.cli import main
from tests.conftest import ROOT

DESCRIPTION = """
from pydantic import Field

from curation.config import Settings
from curation.stages.base import Stage


class Limits(Settings):
    most: int = Field(ge=0)


class _Shorten(Stage[Limits]):
    name = "shorten"
    purpose = "remove long documents"
    settings = Limits
    after = "dedup-urls"
    counted = (("size", "Sizes"),)
    shown = ("size",)

    def limits(self, settings, row):
        yield {"rule": "shorten.long", "value": len(row["text"]), "max": settings["most"]}


STAGE = _Shorten()
"""
TRANSFORM = """
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.schema import Verdicts, with_column
from pipelines.engine.transform import Outcome, Transform, run_transform


@dataclass(frozen=True)
class Shorten(Transform):
    most: int

    def apply(self, batch, first_row):
        lengths = pc.utf8_length(batch["text"]).to_numpy(zero_copy_only=False)
        sizes = pa.array(np.where(lengths > 3, "much", "little"))
        verdicts = Verdicts.where(lengths > self.most, "shorten.long", lengths, self.most)
        return Outcome(with_column(batch, "size", sizes), verdicts)


def run(run):
    return run_transform(run, Shorten(run.settings.most))
"""


def write_documents(path: Path, *texts: str) -> None:
    rows = [
        {"id": str(i), "url": f"http://a/{i}", "text": t, "source": {"file": "a", "offset": i}}
        for i, t in enumerate(texts)
    ]
    pq.write_table(pa.Table.from_pylist(rows, DOCUMENTS), path)


def test_a_stage_is_two_modules_and_a_file(tmp_path: Path) -> None:
    house = tmp_path / "house"
    for name in ("curation", "pipelines", "configs"):
        shutil.copytree(ROOT / name, house / name, ignore=shutil.ignore_patterns("__pycache__"))
    (house / "models").symlink_to(ROOT / "models")
    (house / "data_samples").symlink_to(ROOT / "data_samples")
    (house / "curation/stages/shorten.py").write_text(DESCRIPTION)
    (house / "pipelines/shorten.py").write_text(TRANSFORM)
    (house / "configs/defaults/shorten.yaml").write_text("most: 5\n")
    write_documents(tmp_path / "in.parquet", "abc", "abcd", "abcdefg")

    commands = (
        "shorten --input in.parquet --output out --workers 0",
        *("why 1 --run out", "report --run out", "--help"),
    )
    code = "import sys, pipelines.cli as c; sys.exit(any(c.main(a.split()) for a in sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *commands],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "shorten" in done.stdout and "remove long documents" in done.stdout
    (written,) = (tmp_path / "out/shorten/removed").iterdir()
    (removed,) = pq.read_table(written).to_pylist()
    assert (removed["reason"], removed["value"], removed["threshold"]) == ("shorten.long", 7, 5)
    assert "size much" in done.stdout and "(max 5)" in done.stdout
    assert "<h2>Sizes</h2>" in (tmp_path / "out/report.html").read_text()
    assert "most: 5" in (tmp_path / "out/recipe.yaml").read_text()


def test_the_usual_order() -> None:
    assert STAGES[0] == "extract" and STAGES[-1] == "tokenize"
    assert load("llama3").stages == tuple(
        s for s in STAGES if s != "read-tables" and not find(s).optional
    )
    assert find("tokenize/books").name == "tokenize"
    for stage in known_stages().values():
        assert stage.purpose and stage.defaults()


def test_a_stage_that_follows_none() -> None:
    class Lost(Stage):  # type: ignore[type-arg]
        name, purpose, after = "lost", "nothing", "nowhere"

    with pytest.raises(ConfigError, match="follows the unknown stage 'nowhere'"):
        _in_order({"lost": Lost()})


def test_commands_of_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package names the table of its commands by an entry point."""
    info = tmp_path / "greeter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[curation.commands]\ngreeter = greeter\n")
    (tmp_path / "greeter.py").write_text(
        "from pipelines.commands import Command\n"
        "COMMANDS = {'greet': Command('greeting', 'greet', 'curate greet', after='why')}\n"
    )
    (tmp_path / "greeting.py").write_text(
        "def add(parser, name):\n    parser.set_defaults(command=lambda options: print('Hello'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["greet"]) == 0
    assert capsys.readouterr().out == "Hello\n"
    with pytest.raises(SystemExit):
        main([])
    shown = capsys.readouterr().out.split()
    assert shown.index("why") < shown.index("greet") < shown.index("view")


def test_stages_of_an_installed_package(tmp_path: Path) -> None:
    """A package names a stage, and a rule, by entry points."""
    site = tmp_path / "site"
    info = site / "plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "RECORD").write_text("plugin.py,,\nplugin-1.0.dist-info/METADATA,,\n")
    (info / "top_level.txt").write_text("plugin\n")
    (info / "entry_points.txt").write_text(
        "[curation.stages]\nlong-ones = plugin:long_ones\n"
        "[curation.rules]\nlength = plugin:length\n"
    )
    (site / "plugin.py").write_text(
        "import pyarrow.compute as pc\n"
        "def long_ones(batch, least=4):\n"
        "    return pc.greater_equal(pc.utf8_length(batch['text']), least)\n"
        "def length(texts):\n"
        "    return [len(t) for t in texts]\n"
    )
    write_documents(tmp_path / "in.parquet", "abc", "abcd", "abcdefg")
    rule = "filter.rules={mine: {length: {python: length, max: 6}}, gopher: null, fineweb: null}"
    (tmp_path / "r.yaml").write_text(
        "extends: llama3\nname: r\nstages: [long-ones, tokenize]\ntokenize: {context_length: 8}\n"
    )
    command = [sys.executable, "-m", "pipelines.cli", "run", "r.yaml", "--input", "in.parquet"]
    environment = os.environ | {"PYTHONPATH": f"{site}:{ROOT}"}
    done = subprocess.run(
        [*command, "--workers", "0", "--output", "out", "--set", rule],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out/long-ones/removed").iterdir()
    assert pq.read_table(written)["reason"].to_pylist() == ["long-ones.long_ones"]
