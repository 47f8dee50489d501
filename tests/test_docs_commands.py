"""Commands of README and docs marked `<!-- run -->` run, and print what the docs say."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from pipelines import cli
from tests.conftest import ROOT, as_typed

_BLOCK = re.compile(r"<!-- run -->\n```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ALL = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_PAGES = [path for path in _ALL if "<!-- run -->" in path.read_text(encoding="utf-8")]
#: Any block of commands, and the mark before it.
_ANY = re.compile(
    r"(?:<!-- ([^\n]*) -->\n)?```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_REASON = re.compile(r"not run: .+")
_CURATE = re.compile(r"^(?:\$ )?(curate .*?)(?: *#.*|[|;&>] .*| \|\| true)?$", re.MULTILINE)
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


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: path.name)
def test_the_commands_of_a_page(page: Path, sample_run: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_run, tmp_path / "out")
    for kind, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        script, shown = _commands(kind, block)
        printed = iter(map(_squeezed, as_typed(script, tmp_path).splitlines()))
        for line in map(_squeezed, shown):
            assert line in printed, f"{script}\ndoes not print, in this order: {line}"


@pytest.mark.parametrize("page", _ALL, ids=lambda path: path.name)
def test_all_commands_run_or_say_why_not(page: Path) -> None:
    """And those that don't run have options that there are."""
    for mark, block in _ANY.findall(page.read_text(encoding="utf-8")):
        assert mark == "run" or _REASON.fullmatch(mark), f"no mark before:\n{block}"
        for command in _CURATE.findall(block.replace("\\\n", " ")):
            arguments = shlex.split(command)[1:]
            cli.build_parser(arguments).parse_args(arguments)


def test_every_page_is_in_the_navigation_as_one_kind() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)) == sorted(pages)
    kinds = re.findall(r"^  - (.+):$", navigation, re.MULTILINE)
    assert kinds == ["Tutorial", "How to", "Reference", "Explanation"]


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 90 and len(_PAGES) >= 8
