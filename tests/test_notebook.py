"""The notebook of the examples runs, cell by cell, and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

_CELLS = json.loads((ROOT / "examples" / "one_crawl.ipynb").read_text(encoding="utf-8"))["cells"]


def _shell(line: str, names: dict[str, Any]) -> str:
    """Run a line that begins with `!` as IPython does, with its `{names}` filled in."""
    done = subprocess.run(
        ["bash", "-c", "set -eo pipefail; " + line.format_map(names)],
        env=os.environ | {
            "COLUMNS": "80",
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout}"
    return done.stdout


def _executed(source: str, names: dict[str, Any]) -> str:
    """Return what a cell prints."""
    printed, plain = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        for line in [*source.splitlines(), "!"]:
            if not line.startswith("!"):
                plain += f"{line}\n"
                continue
            exec(compile(plain, "cell", "exec"), names)
            plain = ""
            print(_shell(line[1:], names), end="")
    return printed.getvalue()


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    seen = 0
    for cell in _CELLS:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])  # a string or its lines
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        printed = _executed(source, names)
        assert bool(printed.strip()) == bool(shown.strip()), source
        if "kept" in shown and "removed" in shown and "!" not in source:
            seen += 1  # the counts of every stage
            assert printed == shown, "run the notebook again"
    assert seen == 1
