"""Commands of README and docs marked `<!-- run -->` run, and print what the docs say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

_BLOCK = re.compile(r"<!-- run -->\n```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "<!-- run -->" in path.read_text(encoding="utf-8")
]
_HEAD = 'set -euo pipefail\ncurate() { python -m pipelines.cli "$@"; }\n'
#: Seconds of a table, which are never the same.
_SECONDS = re.compile(r"[\d.]+ │$")


def _commands(kind: str, block: str) -> tuple[str, list[str]]:
    """What a block runs, and the lines that it shows of what is printed."""
    if kind == "sh":
        return block, []
    lines = block.splitlines()
    typed = [line[2:] for line in lines if line.startswith(("$ ", "> "))]
    return "\n".join(typed), [line for line in lines if not line.startswith(("$ ", "> "))]


def _squeezed(line: str) -> str:
    return " ".join(_SECONDS.sub("", line).split())


def _printed(script: str, folder: Path) -> list[str]:
    """Lines that a script of bash prints. `python` and `curate` are those of the tests."""
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {
        "COLUMNS": "80",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", _HEAD + script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout.splitlines()


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: path.name)
def test_the_commands_of_a_page(page: Path, sample_run: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_run, tmp_path / "out")
    for kind, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        script, shown = _commands(kind, block)
        printed = iter([_squeezed(line) for line in _printed(script, tmp_path)])
        for line in map(_squeezed, shown):
            assert line in printed, f"{script}\ndoes not print, in this order: {line}"


def test_every_page_is_in_the_navigation_and_leads_somewhere() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    named = set(re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert named == pages
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", text):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 90 and len(_PAGES) >= 8
