"""What keeps the house open to readers, checked over all of its modules."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(p for part in ("curation", "pipelines") for p in (ROOT / part).rglob("*.py"))
KERNELS = {"kernel", "borrowing", "inlined"}
MOST_PARAMETERS = 8
MOST_OF_A_NAME = 3


def _imported(tree: ast.Module) -> set[str]:
    found = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    named = (n for n in ast.walk(tree) if isinstance(n, ast.Import))
    return found | {alias.name for node in named for alias in node.names}


def _kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return [f for f in functions if KERNELS & {ast.unparse(d) for d in f.decorator_list}]


def test_kernels_take_few_parameters() -> None:
    """Named state goes into a NamedTuple."""
    found = [(path, f) for path in MODULES for f in _kernels(ast.parse(path.read_text()))]
    assert len(found) > 300
    many = [
        f"{path.relative_to(ROOT)}: {f.name}"
        for path, f in found
        if len([*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs]) > MOST_PARAMETERS
    ]
    assert not many


def test_few_modules_share_a_name() -> None:
    names = Counter(path.name for path in MODULES)
    del names["__init__.py"]
    assert {name: n for name, n in names.items() if n > MOST_OF_A_NAME} == {}


@pytest.mark.parametrize(
    ("part", "foreign"), [("curation", ("pipelines", "apache_beam")), ("pipelines", ("tests",))]
)
def test_imports_go_one_way(part: str, foreign: tuple[str, ...]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / part).rglob("*.py")
        for name in _imported(ast.parse(path.read_text()))
        if name.split(".")[0] in foreign
    ]
    assert not wrong
