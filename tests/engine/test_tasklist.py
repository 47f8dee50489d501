"""Steps and tasks as files of data: every one there is comes back equal, and no code with it."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import json
import pickle
import pkgutil
import types
import typing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import models.commands
import pipelines
from curation.dedup.lines import LineTotals
from curation.dedup.substrings import Copy
from curation.errors import InputError
from curation.mix.mix_settings import Mixture
from curation.mix.plan import MixPlan
from curation.readers.ranges import Checkpoint, Span
from curation.recipe import STAGES, built_in, load
from curation.schema import DOCUMENTS, EDITS
from curation.stages.custom import CustomSettings, StageCode
from curation.tokenize.tokenize_settings import EncodeSettings
from curation.user_code import Found
from pipelines.dedup.indexes import Place
from pipelines.engine.stage import Shard, StageRun
from pipelines.engine.transform import Transform
from pipelines.extract.sources import Part, SourceShard
from pipelines.runners import tasklist
from pipelines.runners.tasklist import describe, restore, write_task_list
from pipelines.runners.tasks import Task
from pipelines.storage.files import Folder
from tests.engine.toys import WriteName

#: What a transform gets when it is opened, and never takes along.
_OPENED = (pa.RecordBatch, MixPlan, LineTotals, dict[int, list[Copy]])


def _classes() -> list[type]:
    """Every dataclass of the pipelines and commands that is a step or a transform."""
    found, preload = set(), "pipelines.runners.preload"
    modules = [*pkgutil.walk_packages(pipelines.__path__, "pipelines.")]
    modules += pkgutil.walk_packages(models.commands.__path__, "models.commands.")
    for module in modules:
        if module.name == preload:  # loads every kernel, which whoever collects tests needs not
            continue
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
                fields = {f.name for f in dataclasses.fields(kind)}
                step = hasattr(kind, "run") and "settings_key" in fields and kind is not StageRun
                if step or {"open", "apply"} <= set(dir(kind)):
                    found.add(kind)
    return sorted(found, key=lambda k: k.__name__)


CLASSES = _classes()
TRANSFORMS = [k for k in CLASSES if hasattr(k, "apply")]


@functools.cache
def _settings() -> dict[type, list[BaseModel]]:
    """Settings of the built-in recipes by class."""
    found: dict[type, list[BaseModel]] = {}
    for recipe in (load(name) for name in built_in()):
        _add_settings(recipe, found)
        _add_settings(recipe.tokenize.encoding, found)
        _add_settings(recipe.mix.mixture(""), found)
        for stage in STAGES:
            _add_settings(recipe.settings(stage), found)
    code = Found("mine.py", "f", "def f(batch): return [True] * batch.num_rows", "0" * 64)
    custom = CustomSettings(python=StageCode("mine.py:f", (), code), settings={"most": 3})
    _add_settings(custom, found)
    return found


def _add_settings(one: BaseModel, found: dict[type, list[BaseModel]]) -> None:
    found.setdefault(type(one), []).append(one)
    for name in type(one).model_fields:
        if isinstance(value := getattr(one, name), BaseModel):
            _add_settings(value, found)


text = st.text(max_size=8)
numbers = st.integers(0, 2**64 - 1)
folders = st.builds(Folder, text.map(lambda t: f"s3://bucket/{t}"))
hashes = st.tuples(text, text)


def made(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type."""
    if kind is Any:
        return payloads
    if kind is Folder:
        return folders
    if kind is Transform:
        return st.sampled_from(TRANSFORMS).flatmap(instances)
    if kind is pa.Schema:
        return st.sampled_from([DOCUMENTS, EDITS])
    if kind in _OPENED:
        return st.none()
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return st.sampled_from(_settings()[kind])
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return st.one_of(*map(made, arguments))
    if typing.get_origin(kind) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(made(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(made, arguments))
    if typing.get_origin(kind) is typing.Literal:
        return st.sampled_from(arguments)
    if typing.get_origin(kind) is list:
        return st.lists(made(arguments[0]), max_size=3)
    if typing.get_origin(kind) is dict:
        return st.dictionaries(made(arguments[0]), made(arguments[1]), max_size=3)
    if dataclasses.is_dataclass(kind):
        return instances(kind)
    plain = {
        str: text,
        int: st.integers(),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        types.NoneType: st.none(),
    }
    return plain[kind]


def instances(kind: Any) -> st.SearchStrategy[Any]:
    """Instances of a dataclass with every field of its annotated type."""
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{f.name: made(hints[f.name]) for f in dataclasses.fields(kind)})


shards = st.builds(Shard, text, folders, text, text, st.integers(0), st.integers(0))
payloads: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | text
    | numbers
    | st.floats(allow_nan=False)
    | shards
    | st.builds(
        SourceShard,
        text,
        st.lists(hashes, max_size=2).map(tuple),
        numbers,
        st.none()
        | st.builds(
            Part,
            numbers,
            st.builds(Span, numbers, numbers, numbers),
            text,
            st.none() | st.builds(Checkpoint, numbers, st.none() | numbers, numbers),
        ),
    )
    | st.builds(Place, text, st.integers(0), shards, st.integers(0), st.none() | text),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
tasks = st.builds(Task, text, st.lists(hashes, max_size=3).map(tuple), st.integers(0), payloads)


def through_a_file(value: Any) -> Any:
    classes: dict[str, type] = {}
    return restore(json.loads(json.dumps(describe(value, classes))), classes.values())


def test_the_steps_are_found() -> None:
    names = {kind.__name__ for kind in CLASSES}
    assert {"ExtractShards", "UrlSurvivors", "Clusters", "CutLines"} <= names
    assert {"PackShards", "DrawDocuments", "TransformShards"} <= names
    assert {"FilterDocuments", "ClassifyDocuments", "IdentifyLanguage"} <= {
        k.__name__ for k in TRANSFORMS
    }


@pytest.mark.parametrize("kind", CLASSES, ids=lambda k: k.__name__)
def test_every_step_comes_back_equal(kind: type) -> None:
    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(instances(kind))
    def check(step: Any) -> None:
        again = through_a_file(step)
        assert again == step and type(again) is type(step)

    check()


@settings(max_examples=50)
@given(tasks)
def test_every_task_comes_back_equal(task: Task) -> None:
    again = through_a_file(task)
    assert again == task and again.key("k") == task.key("k")


def test_settings_keep_the_order_of_their_keys() -> None:
    """The filter tries rules in the recipe's order."""
    for one in (one for every in _settings().values() for one in every):
        assert through_a_file(one).model_dump_json() == one.model_dump_json()


def test_what_is_no_data_is_refused() -> None:
    for value in (print, object(), b"bytes", {1, 2}, Task("a", (), payload=pickle.dumps)):
        with pytest.raises(TypeError, match="must consist of data"):
            describe(value, {})


def test_only_classes_of_the_job_are_made() -> None:
    described = describe(Task("a", ()), {})
    with pytest.raises(InputError, match="Task: not a class"):
        restore(described, [Shard])
    with pytest.raises(InputError, match=r"subprocess\.Popen: not a class"):
        restore({"is": "subprocess.Popen", "args": ["true"]}, [Task])
    with pytest.raises(InputError, match="unexpected keyword"):
        restore(described | {"more": 1}, [Task])


def test_a_list_that_somebody_changed_does_not_count(tmp_path: Path) -> None:
    work = write_task_list(Folder(str(tmp_path)), WriteName(), [Task("a", (("a", "1"),))])
    assert work.step == WriteName() and [t.name for t in work.tasks] == ["a"]
    path = tmp_path / work.file
    path.write_text(path.read_text().replace('"a"', '"b"'))
    tasklist._load.cache_clear()
    with pytest.raises(InputError, match="changed since the run wrote it"):
        _ = work.tasks
    assert pickle.loads(pickle.dumps(work)) == work  # as a job carries it


def test_recipes_have_all_settings_of_the_steps() -> None:
    assert {EncodeSettings, Mixture} <= set(_settings())
