"""What commands import, packages that import their names when used, and YAML by libyaml."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import curation
from curation import config
from curation.resources import root
from tests.conftest import ROOT

_HEAVY = ["apache_beam", "numba", "numpy", "pyarrow", "scipy", "sklearn"]
_ARRAYS = ["numpy", "pyarrow"]
_PACKAGES = ["classify", "dedup", "extract", "filters", "language", "rights", "tokenize"]


def _imported(*commands: Sequence[str]) -> list[str]:
    """Heavy packages that commands import, one after the other in one process."""
    code = (
        "import json, sys\nfrom pipelines import cli\n"
        f"for command in {[list(command) for command in commands]!r}:\n"
        "    try: assert cli.main(command) == 0\n"
        "    except SystemExit as end: assert end.code == 0\n"
        f"print(json.dumps([name for name in {_HEAVY} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_listings_need_neither_beam_nor_arrays() -> None:
    assert _imported(["recipes"], ["models"], ["--help"]) == []


def test_reading_a_run_needs_neither_beam_nor_kernels(sample_run: Path) -> None:
    run = ["--run", str(sample_run)]
    why = ["why", "syndicate14.example/article/swim-breath.html", *run]
    assert _imported(["report", *run], why) == _ARRAYS


def test_a_finished_run_needs_neither_beam_nor_kernels(sample_run: Path) -> None:
    assert _imported(["run", "sample", "--output", str(sample_run), "--quiet"]) == _ARRAYS


def test_a_page_alone_needs_no_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>Bees</title><article><p>Bees dance, and so on.</p></article>")
    assert not {"apache_beam", "pyarrow", "sklearn"} & {*_imported(["extract-file", str(page)])}


def test_the_library_needs_neither_beam_nor_pipelines() -> None:
    names = [m.name for m in pkgutil.walk_packages(curation.__path__, "curation.")]
    code = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "assert not {'apache_beam', 'pipelines'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", _PACKAGES)
def test_public_names_are_there_whatever_was_imported_first(name: str) -> None:
    package = importlib.import_module(f"curation.{name}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"curation.{name}.{module.name}")
    typed = re.findall(r"^    from \S+ import \w+ as (\w+)", inspect.getsource(package), re.M)
    assert package.__all__ == typed
    for public in package.__all__:
        assert not isinstance(getattr(package, public), ModuleType)
    assert getattr(curation, name, package) is package
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def _by_python(text: str) -> object:
    return yaml.load(text, config._LOADERS[-1])


@pytest.mark.parametrize("path", sorted((root() / "configs").rglob("*.yaml")), ids=lambda p: p.name)
def test_both_loaders_read_the_same(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert yaml.load(text, config._LOADERS[0]) == _by_python(text) == config.parse_yaml(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(_VALUES)
def test_values_come_back(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert config.parse_yaml(text) == _by_python(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n  c: 1\n  c: 2\n",
        "a: [1, {b: 1, b: 2}]\n",
        "base: &x {a: 1}\nother: {<<: *x, <<: *x}\n",
        "a: 1\n b: 2\n",
        "a: [1, 2\nb: 3\n",
        "a: 'open\n",
        "a: *nowhere\n",
        "a: !!python/object:os.system x\n",
        "a: \x07\n",
        "- 1\n---\n- 2\n",
        "\ta: 1\n",
        "? [a]\n: 1\n",
    ],
)
def test_what_is_wrong_is_said_as_before(text: str) -> None:
    with pytest.raises(yaml.YAMLError) as before:
        _by_python(text)
    with pytest.raises(yaml.YAMLError) as now:
        config.parse_yaml(text)
    assert str(now.value) == str(before.value)
    marks = [getattr(error.value, "problem_mark", None) for error in (now, before)]
    places = [mark and (mark.line, mark.column) for mark in marks]
    assert places[0] == places[1]


def test_a_file_s_error_names_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: x\nfilter:\n  rules: {}\n  rules: {}\n")
    with pytest.raises(config.ConfigError, match=r"mine\.yaml:4:3: .*duplicate key 'rules'"):
        config.read_yaml(path)
