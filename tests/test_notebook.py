"""The notebook of the examples runs, cell by cell, and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, as_typed

_CELLS = json.loads((ROOT / "examples" / "one_crawl.ipynb").read_text(encoding="utf-8"))["cells"]


def _executed(source: str, names: dict[str, Any]) -> str:
    """Return what a cell prints, with lines that begin with `!` run as IPython does."""
    printed, plain = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        for line in [*source.splitlines(), "!"]:
            if not line.startswith("!"):
                plain += f"{line}\n"
                continue
            exec(compile(plain, "cell", "exec"), names)
            plain = ""
            print(as_typed(line[1:].format_map(names), Path.cwd()), end="")
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
