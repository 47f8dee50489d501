"""What keeps the house open to readers, checked over all of its modules."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import house

MOST_PARAMETERS = 8
#: Machine code differs by processor: on one that `ceilings.yaml` doesn't name, at most this factor.
#: On the same one it may differ a little by the order of compiling.
OTHER_PROCESSOR, OTHER_ORDER = 1.15, 1.003


def test_no_figure_is_above_its_ceiling() -> None:
    """A capability that needs more room takes something away (`python -m tests.house`)."""
    figures, ceilings = house.flat(house.measured()), house.flat(house.ceilings())
    above = [
        f"{name}: {figure:,}, at most {ceilings.get(name, 0):,}"
        for name, figure in figures.items()
        if figure > ceilings.get(name, 0)
    ]
    assert not above, _instead("the house has grown; take as much away elsewhere", above)


def test_no_ceiling_was_ever_lower() -> None:
    """Ceilings may only fall: each is compared with all its earlier values in the history.

    A section of settings may grow where others give up as many, and so may the code of `models`:
    of all together the ceiling falls.
    """
    now = _of_all(house.ceilings())
    for commit in _git("log", "--format=%H", "--", _name()).split():
        earlier = _of_all(_ceilings_of(commit))
        for section in [n for n in earlier if n.startswith("settings: ") and "in all" not in n]:
            del earlier[section]
        raised = [
            f"{name}: {now[name]:,}, was {before:,} in {commit[:8]}"
            for name, before in earlier.items()
            if now.get(name, 0) > before
        ]
        assert not raised, _instead(f"{_name()} was raised; put the earlier values back", raised)


def _instead(what: str, lines: list[str]) -> str:
    """Return what is wrong and what to do, then each case on a line."""
    return "\n  ".join([f"{what} (CONTRIBUTING.md):", *lines])


def _of_all(ceilings: dict[str, Any]) -> dict[str, int]:
    """Return ceilings by name, that of `models` as one of all the product's code."""
    found = house.flat(ceilings)
    models = found.pop("code lines: models", None)
    if models is not None:
        found["code lines: product"] = models + found["code lines: curation and pipelines"]
    return found


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=house.ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode:
        pytest.skip(f"no history here: {done.stderr.strip()}")
    return done.stdout


def _name() -> str:
    return str(house.CEILINGS.relative_to(house.ROOT))


def _ceilings_of(commit: str) -> dict[str, Any]:
    ceilings: dict[str, Any] = yaml.safe_load(_git("show", f"{commit}:{_name()}"))
    return ceilings


def test_machine_code_is_not_above_its_ceiling() -> None:
    """What a first run compiles, as bytes: seconds depend on the machine."""
    processor, size = house.machine_code()
    if size is None:
        pytest.skip("kernels are not compiled; `curate warm-up` does it")
    ceilings = house.ceilings()["machine code"]
    most = OTHER_PROCESSOR * max(ceilings.values())
    ceiling = int(OTHER_ORDER * ceilings.get(processor, most))
    larger = [f"machine code: {size:,} bytes, at most {ceiling:,}"]
    assert size <= ceiling, _instead("compiled kernels have grown; see Kernels in", larger)


_SOURCE = '''"""Doc."""

# why
def f(a, b):
    """Doc.

    More."""
    if a and b or a:
        return [i for i in a if i]

    def g():
        if a:
            pass
'''


def test_figures_are_counted_as_stated(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(_SOURCE)
    assert house.code_lines(path) == 6
    assert house.complexity(house.parsed(path).body[1]) == 6


def test_kernels_take_few_parameters() -> None:
    """Named state goes into a NamedTuple."""
    found = [each for each in house.functions("curation", "pipelines") if each.is_kernel]
    assert len(found) > 300
    many = [f"{f.path}: {f.name}" for f in found if f.parameters > MOST_PARAMETERS]
    what = f"kernels with over {MOST_PARAMETERS} parameters; put named state into a NamedTuple"
    assert not many, _instead(what, many)


#: Packages that only what trains imports, but for PyTorch's loader, which takes batches of shards.
_OF_TRAINING = ("fasttext", "scipy", "sklearn", "torch")
_LOADER = "curation/tokenize/reader.py: torch"


@pytest.mark.parametrize(
    ("part", "foreign"),
    [
        ("curation", ("pipelines", "models", "apache_beam", *_OF_TRAINING)),
        ("models", ("pipelines", "models.commands", "apache_beam")),
        ("models/commands", ("apache_beam", "tests", *_OF_TRAINING)),
        ("pipelines", ("tests", "models", *_OF_TRAINING)),
    ],
)
def test_imports_go_one_way(part: str, foreign: tuple[str, ...]) -> None:
    """Commands of `models` stand on `pipelines`, which knows none of them; trainers don't."""
    places = {path: str(path.relative_to(house.ROOT)) for path in house.modules(part)}
    wrong = [
        f"{place}: {name}"
        for path, place in places.items()
        for name in house.named_imports(path)
        if part != "models" or not place.startswith("models/commands/")
        if any(f"{name}.".startswith(f"{one}.") for one in foreign)
        if not f"{place}: {name}".startswith(_LOADER)
    ]
    assert not wrong, _instead(f"{part} may not import these", wrong)


def test_a_wheel_has_every_package_of_models() -> None:
    """`models/` is carried as data; its packages are named one by one."""
    project = tomllib.loads((house.ROOT / "pyproject.toml").read_text())["tool"]
    packages = {f"models/{path.parent.name}" for path in house.ROOT.glob("models/*/__init__.py")}
    carried = project["hatch"]["build"]["targets"]["wheel"]["force-include"].keys()
    checked = {name.replace(".", "/") for name in project["mypy"]["packages"]}
    left = sorted((packages - carried) | (packages - checked))
    assert not left, f"add {', '.join(left)} to force-include and mypy's packages in pyproject.toml"
