"""Measures the size of the house. Ceilings are in `ceilings.yaml`; `test_house.py` compares.

python -m tests.house            # every figure beside its ceiling, and the largest functions
python -m tests.house --lower    # lower the ceilings to what was measured; none is raised
"""

from __future__ import annotations

import argparse
import ast
import importlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from curation.stages import known_stages

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = Path(__file__).with_name("ceilings.yaml")
#: Folders of Python code whose size is bounded. Tests may grow: each mended fault brings one.
FOLDERS = {
    "curation and pipelines": ("curation", "pipelines"),
    "models": ("models",),
    "benchmarks": ("benchmarks",),
    "deploy": ("deploy",),
    "data_samples": ("data_samples",),
}
PRODUCT = ("curation", "pipelines", "models")
KERNELS = {"kernel", "borrowing", "inlined"}
#: Rooms of `pipelines`, the uppermost first. One may import those after it, never those before.
LAYERS = (
    {"cli"},
    {"commands"},
    {"view", "report"},
    {"reading", "withdrawals"},
    {"transforms", "table"},
    {"forecast", "run", "plan", "run_folder"},
    {"custom", *(name.replace("-", "_") for name in known_stages())},
    {"dedup"},
    {"engine"},
    {"runners"},
    {"named_files"},
    {"storage"},
    {"process", "console", "terminal"},
)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.Assert)
_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Function(NamedTuple):
    """A function with its cyclomatic complexity and its number of lines."""

    complexity: int
    lines: int
    name: str
    path: str
    parameters: int
    is_kernel: bool


def modules(*folders: str) -> list[Path]:
    """Return all Python files below folders of the checkout, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all nodes of the syntax tree of a file, outer ones first."""
    return [*ast.walk(parsed(path))]


def code_lines(path: Path) -> int:
    """Return the number of lines with code: docstrings, comments and blank lines don't count."""
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    found = {number for number, line in lines if line.strip() and line.lstrip()[0] != "#"}
    strings, documentation = set[int](), set[int]()
    for node in nodes(path):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno:
            strings.update(range(node.lineno, node.end_lineno + 1))  # type: ignore[operator]
        if isinstance(node, _SCOPES) and ast.get_docstring(node, clean=False) is not None:
            documentation.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))  # type: ignore[operator]
    return len((found | strings) - documentation)


def complexity(function: ast.AST) -> int:
    """Return the cyclomatic complexity of a function, without functions inside it.

    1 and one more for each branch, loop, handler, assertion, case, condition of a comprehension,
    comprehension, and further operand of `and` and `or` (McCabe 1976, as radon counts).
    """
    found, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        found += isinstance(node, (*_BRANCHES, ast.match_case))
        found += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        found += len(node.ifs) + 1 if isinstance(node, ast.comprehension) else 0
        waiting += ast.iter_child_nodes(node)
    return found


def functions(*folders: str) -> Iterator[Function]:
    """Yield every function and method below folders."""
    for path in modules(*folders):
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield Function(
                    complexity(node),
                    (node.end_lineno or node.lineno) - node.lineno + 1,
                    node.name,
                    str(path.relative_to(ROOT)),
                    len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]),
                    bool(KERNELS & {ast.unparse(each) for each in node.decorator_list}),
                )


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the checkout."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> dict[str, set[str]]:
    """Return, for each module of the product, those that it imports at any place.

    Imports inside functions count, those for types alone don't.
    """
    names = {module_name(path): path for path in modules(*PRODUCT)}
    found: dict[str, set[str]] = {}
    for name, path in names.items():
        named = named_imports(path)
        known = {each if each in names else each.rpartition(".")[0] for each in named}
        found[name] = (known & names.keys()) - {name}
    return found


def named_imports(path: Path) -> set[str]:
    """Return the dotted names that a file imports, at any place but for types alone."""
    return {each for node in _imports_of(parsed(path)) for each in _named(node)}


def _imports_of(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        yield from _imports_of(child)


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def circles() -> list[list[str]]:
    """Return groups of modules that import each other, directly or by way of others."""
    graph = imports()
    reached = {name: _reachable(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def imports_upwards() -> list[str]:
    """Return the imports in `pipelines` from a layer to one above it.

    Raises ValueError for a module that is in no layer.
    """
    level = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
    inside = {path.relative_to(ROOT / "pipelines").parts[0] for path in modules("pipelines")}
    strange = {room.removesuffix(".py") for room in inside} - {"__init__"} - level.keys()
    if strange:
        raise ValueError(f"{', '.join(sorted(strange))}: add the layer to LAYERS in tests/house.py")
    found = []
    for name, others in imports().items():
        for other in others:
            rooms = [each.split(".")[1] for each in (name, other) if each.startswith("pipelines.")]
            if len(rooms) == 2 and level[rooms[1]] < level[rooms[0]]:
                found.append(f"{name} -> {other}")
    return sorted(found)


def settings() -> Counter[str]:
    """Return how many settings there are by package, without those of training."""
    classes = {
        node.name: (node, path)
        for path in modules("curation", "pipelines")
        if "train" not in path.parts
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    }
    derived = {"Settings"}
    while more := {n for n, (c, _) in classes.items() if derived & set(map(ast.unparse, c.bases))}:
        if more <= derived:
            break
        derived |= more
    found: Counter[str] = Counter()
    for node, path in (classes[name] for name in sorted(derived & classes.keys())):
        room = path.relative_to(ROOT).parts[1].removesuffix(".py")
        found[room] += sum(
            isinstance(each, ast.AnnAssign)
            and "ClassVar" not in ast.unparse(each.annotation)
            and not ast.unparse(each.target).startswith("_")
            for each in node.body
        )
    return +found


def defaults() -> int:
    """Return how many values `configs/defaults` has."""
    files = sorted((ROOT / "configs" / "defaults").glob("*.yaml"))
    return sum(_leaves(yaml.safe_load(path.read_text(encoding="utf-8"))) for path in files)


def _leaves(tree: Any) -> int:
    return sum(map(_leaves, tree.values())) if isinstance(tree, dict) and tree else 1


def machine_code() -> tuple[str, int | None]:
    """Return the processor, and the bytes of instructions of all listed kernels for it.

    Parts have none. None where one isn't compiled (`curate warm-up`). Names are not counted: they
    have the path of the checkout and the order of compiling in them.
    """
    import llvmlite.binding as llvm
    from numba.core.registry import cpu_target

    from curation import compiled, kernels, warm_up

    total = 0
    for known in (each for each in warm_up.known_kernels() if not each.is_part):
        module, _, name = known.kernel.partition(":")
        dispatcher = getattr(importlib.import_module(module), name)
        signature = tuple(compiled.type_of(each) for each in known.types)
        cached = compiled.KernelCache(dispatcher.py_func)
        content = kernels.read_kept(next(cached._files(signature, cpu_target.target_context)))
        if content is None:
            return llvm.get_host_cpu_name(), None
        entry = bytes(content)
        compiled_code = llvm.ObjectFileRef.from_data(entry[entry.index(b"\x7fELF") :])
        total += sum(each.size() for each in compiled_code.sections() if each.is_text())
    return llvm.get_host_cpu_name(), total


def words(paths: Iterable[Path]) -> int:
    """Return how many words text files have."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def measured() -> dict[str, Any]:
    """Return every figure that has a ceiling, but the bytes of machine code."""
    every = [*functions(*PRODUCT)]
    # A stage's description has the name of the module that runs it.
    described = set(modules("curation/stages"))
    every_name = {*modules("curation", "pipelines")} - described
    names = Counter(path.name for path in every_name if path.stem != "__init__")
    of_settings = settings()
    return {
        "code lines": {
            name: sum(map(code_lines, modules(*folders))) for name, folders in FOLDERS.items()
        },
        "modules": {"in all": len(modules(*PRODUCT))}
        | {"at the top of curation": len([*(ROOT / "curation").glob("*.py")])}
        | {"of a shared base name": sum(n for n in names.values() if n > 1)},
        "settings": dict(sorted(of_settings.items())) | {"in all": of_settings.total()},
        "values of defaults": defaults(),
        "kernels": {
            "functions": sum(each.is_kernel for each in every),
            "compiled forms": len((ROOT / "configs/kernels.jsonl").read_bytes().splitlines()),
        },
        "complexity": {
            "most": max(every).complexity,
            "functions above 20": sum(each.complexity > 20 for each in every),
            "functions above 40": sum(each.complexity > 40 for each in every),
        },
        "lines of a function": {
            "most": max(each.lines for each in every),
            "functions above 50": sum(each.lines > 50 for each in every),
        },
        "parameters above 8": sum(each.parameters > 8 for each in every),
        "modules in import circles": sum(map(len, circles())),
        "imports upwards in pipelines": len(imports_upwards()),
        "words of docs": {
            "docs": words((ROOT / "docs").glob("*.md")),
            "README": words([ROOT / "README.md"]),
        },
    }


def flat(figures: dict[str, Any]) -> dict[str, int]:
    """Return nested figures by path."""
    found: dict[str, int] = {}
    for key, value in figures.items():
        inner = flat(value) if isinstance(value, dict) else {"": value}
        found |= {f"{key}: {name}" if name else key: n for name, n in inner.items()}
    return found


def ceilings() -> dict[str, Any]:
    """Return the ceilings, nested as the figures are."""
    return yaml.safe_load(CEILINGS.read_text(encoding="utf-8"))


def _lowered(ceiling: Any, figure: Any) -> Any:
    if isinstance(figure, dict):
        return {key: _lowered(ceiling.get(key, value), value) for key, value in figure.items()}
    return min(ceiling, figure)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lower", action="store_true")
    figures, known = measured(), ceilings()
    processor, size = machine_code()
    if size is not None:
        figures["machine code"] = {processor: size}
    if parser.parse_args().lower:
        header = CEILINGS.read_text(encoding="utf-8").split("\n\n")[0]
        lowered = _lowered(known, figures)
        lowered["machine code"] = known["machine code"] | lowered.get("machine code", {})
        text = yaml.safe_dump(lowered, sort_keys=False)
        CEILINGS.write_text(f"{header}\n\n{text}", encoding="utf-8")
    limits = flat(ceilings())
    for name, n in flat(figures).items():
        print(f"{n:>10,} of {limits.get(name, 0):>10,}  {name}{' !' * (n > limits.get(name, 0))}")
    by_room: defaultdict[str, int] = defaultdict(int)
    for path in modules(*PRODUCT):
        by_room["/".join(path.relative_to(ROOT).parts[:2])] += code_lines(path)
    print(
        "\nLargest rooms:",
        *(f"{n:>7,}  {r}" for r, n in Counter(by_room).most_common(20)),
        sep="\n",
    )
    print("\nMost complex functions:")
    for each in sorted(functions(*PRODUCT), reverse=True)[:20]:
        print(f"{each.complexity:>7}  {each.lines:>4} lines  {each.path}: {each.name}")
    print("\nCircles:", *(" <-> ".join(each) for each in circles()), sep="\n  ")
    print("\nImports upwards:", *imports_upwards(), sep="\n  ")


if __name__ == "__main__":
    _main()
