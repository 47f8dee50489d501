"""Files that settings name: found beside the recipe, part of the fingerprint, sent to workers."""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import shutil
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from curation.classify.classify_settings import FastTextQuality
from curation.errors import ConfigError
from curation.filters.filter_settings import OverruleSettings, Rule
from curation.judging import opened
from curation.readers.settings import ReaderSettings
from curation.recipe import load
from curation.resources import ArrayFolder, ModelPath, NamedPath, RunFolder, TextFolder, resolve
from curation.stages import find, known_stages
from curation.stages.custom import CustomSettings
from curation.user_code import walk
from pipelines.cli import main
from pipelines.custom import JudgeDocuments
from pipelines.dedup.indexes import index_files
from pipelines.engine.transform import TransformShards
from pipelines.named_files import check_named_files, stage_facts
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import Quiet
from pipelines.runners.tasklist import write_task_list
from pipelines.storage.files import Folder

Keys = tuple[str, ...]

#: Sections of recipes with the stage that reads them; `mine` is a stage of the user's own.
SECTIONS: dict[str, tuple[str, type[BaseModel]]] = {
    **{name: (name, stage.settings) for name, stage in known_stages().items()},
    "readers": ("extract", ReaderSettings),
    "mine": ("mine", CustomSettings),
}
#: What settings need besides a path.
REQUIRED: dict[type[BaseModel], dict[str, Any]] = {
    FastTextQuality: {"label": "1", "characters": 100},
    OverruleSettings: {"quality": 0.9, "rules": ["gopher"]},
    Rule: {"python": "code.py:f", "max": 1},
}
CODE = "def f(batch, second=None, *, at=None, also=None):\n    return [0.0] * len(batch)\n"


def kinds(annotation: Any) -> list[type]:
    """The classes in an annotation."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation]
    return [kind for part in typing.get_args(annotation) for kind in kinds(part)]


def fields(model: type[BaseModel], above: Keys) -> Iterator[tuple[Keys, Any]]:
    """Keys and annotations of all settings in a model and those inside it."""
    for name, field in model.model_fields.items():
        key = (*above, field.alias or name)
        inner = [k for k in kinds(field.annotation) if issubclass(k, BaseModel)]
        for kind in inner:
            yield from fields(kind, key)
        if not inner:
            yield key, field
            if name == "files" and "python" in model.model_fields:
                yield (*above, "settings"), model.model_fields["settings"]


def is_path(field: Any) -> bool:
    return any(issubclass(k, NamedPath) for k in kinds(field.annotation))


EVERY = {
    ".".join(key): key
    for name, (_, model) in SECTIONS.items()
    for key, field in fields(model, (name,))
    if is_path(field) or key[-1] == "settings"
    if "by_language" not in key  # code is refused there
}


def built(annotation: Any, keys: Keys, path: str, name: str = "at") -> Any:
    """A value for the annotation in which the setting with these keys below is the path."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is dict:
        return {name: built(parts[1], keys, path)}
    if origin in (tuple, list):
        return [built(parts[0], keys, path)]
    if parts:
        part = next(p for p in parts if leads_to(p, keys))
        return built(part, keys, path)
    if not issubclass(annotation, BaseModel):
        return path
    field = next(f for n, f in annotation.model_fields.items() if keys[0] in (f.alias or n, n))
    needed = REQUIRED.get(annotation, {})
    if "python" in annotation.model_fields and keys[0] != "model":  # one of the two
        needed = {"python": "code.py:f"} | needed
    if keys == ("settings",):
        return needed | {"settings": {"at": path}}
    name = ".at" if keys[0] == "formats" else "at"
    return needed | {keys[0]: built(field.annotation, keys[1:], path, name)}


def leads_to(annotation: Any, keys: Keys) -> bool:
    for kind in kinds(annotation):
        if keys and issubclass(kind, BaseModel):
            return any(keys[0] in (f.alias or n, n) for n, f in kind.model_fields.items())
        if not keys and issubclass(kind, NamedPath):
            return True
    return False


def kind_of(key: Keys) -> type[NamedPath]:
    model = SECTIONS[key[0]][1]
    field = next(f for k, f in fields(model, key[:1]) if k == key)
    return next((k for k in kinds(field.annotation) if issubclass(k, NamedPath)), NamedPath)


def write(place: Path, kind: type[NamedPath], version: str) -> None:
    """Write what a setting of this kind may name; its content differs by version."""
    if issubclass(kind, TextFolder | ArrayFolder):
        place.mkdir(exist_ok=True)
        (place / f"en{kind.suffix}").write_text(version)
    elif issubclass(kind, ModelPath):  # a vocabulary of bytes and one more token
        tokens = [*(bytes([i]) for i in range(256)), version.encode()]
        lines = (f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))
        place.write_text("".join(lines))
    else:
        place.write_text(version)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a recipe and what it names; the working directory is another."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    home = tmp_path / "recipes"
    home.mkdir()
    (home / "code.py").write_text(CODE)
    (home / "b.bin").write_text("a model")
    return home


def recipe_at(home: Path, body: dict[str, Any], base: str = "llama3") -> Any:
    path = home / "recipe.yaml"
    path.write_text(yaml.safe_dump({"extends": base, "name": "mine"} | body))
    return load(str(path))


def facts(recipe: Any, stage: str) -> dict[str, Any]:
    described = find(stage)
    return stage_facts(described, recipe.section(described), described.also(recipe))


INDEXES = {name for name, key in EVERY.items() if kind_of(key) is RunFolder}


@pytest.mark.parametrize("name", sorted(EVERY.keys() - INDEXES))
def test_a_changed_file_changes_the_fingerprint(home: Path, name: str) -> None:
    """Of every setting that takes a path, found in the models of settings."""
    key, kind = EVERY[name], kind_of(EVERY[name])
    section, model = SECTIONS[key[0]]
    place = "at.tiktoken" if kind is ModelPath else "at.txt"
    found = []
    for version in ("first", "second one", "first"):
        write(home / place, kind, version)
        body = {key[0]: built(model, key[1:], place)}
        found.append(facts(recipe_at(home, body), section))
        if name == "tokenize.tokenizer":
            found[-1] = found[-1] | {"mix": facts(recipe_at(home, body), "mix")}
    assert found[0] == found[2]
    assert found[0] != found[1]
    if name == "tokenize.tokenizer":
        assert found[0]["mix"] != found[1]["mix"]


def test_every_kind_of_setting_with_a_path_is_among_them() -> None:
    """So the test above can't become empty."""
    assert len(EVERY) >= 35
    assert {key[0] for key in EVERY.values()} >= {
        *("extract", "dedup-urls", "dedup-documents", "dedup-lines", "identify-language"),
        *("classify", "filter", "decontaminate", "tokenize", "readers", "mine"),
    }
    assert {
        f"dedup-{what}.index.against" for what in ("urls", "documents", "lines", "substrings")
    } == INDEXES


#: Words of files in the descriptions of settings that are no paths.
_NO_PATHS = """
read-tables.columns read-tables.kept_beside
identify-language.labels filter.signals.unlabelled_language
decontaminate.evals.fields.choices decontaminate.evals.fields.labels mix.phases.name
mix.mixes.phases.name tokenize.index_columns readers.text_columns readers.html_columns
readers.url_columns readers.date_columns readers.index
"""
_OF_FILES = re.compile(r"\b(files?|folders?|paths?|urls?|tables?|models?|lists?|runs?)\b", re.I)


def test_a_string_that_is_described_as_a_path_has_the_type_of_one() -> None:
    """A path that is a plain string would be no part of a fingerprint."""
    plain = {
        ".".join(key)
        for name, (_, model) in SECTIONS.items()
        for key, field in fields(model, (name,))
        if str in kinds(field.annotation) and not is_path(field) and key[-1] != "sha256"
        if _OF_FILES.search(field.description or "")
    }
    assert plain == set(_NO_PATHS.split())


USES = """
import pathlib


class Longest:
    # Whether texts are longer than the number in a file, which a folder of numbers adds to.
    def __init__(self, at, also=None, words=()):
        assert pathlib.Path(at).is_absolute(), at
        self.most = int(pathlib.Path(at).read_text())
        for file in pathlib.Path(also).glob("**/*") if also else ():
            self.most += int(file.read_text()) if file.is_file() else 0

    def __call__(self, texts):
        return [float(len(text) > self.most) for text in texts]


def short(batch, at):
    most = int(pathlib.Path(at).read_text())
    return [len(text) <= most for text in batch["text"].to_pylist()]


def lines(file, at):
    yield {"text": pathlib.Path(at).read_text(), "url": "http://lines.example/"}
    for line in file:
        yield {"text": line.decode().strip(), "url": "http://lines.example/" + line.decode()[:5]}
"""


class Told(Quiet):
    """Which stages were done, and which were complete."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        self.done += [stage] if state == "done" else []


def run_again(recipe: Path, home: Path, *settings: str) -> list[str]:
    """Run a recipe on the input, and return the stages that were done."""
    work = plan(load(str(recipe), settings), str(home / "out"), [str(home / "in.lines")])
    told = Told()
    with Executor(parse_beam_args([], 0), told) as executor:
        run_plan(work, executor)
    return told.done


OF_ALL_STAGES = {
    "extends": "llama3",
    "name": "mine",
    "stages": ["extract", "dedup-urls", "identify-language", "classify", "filter", "mine"],
    "readers": {"formats": {".lines": {"python": "uses.py:lines", "settings": {"at": "read.txt"}}}},
    "extract": {"min_characters": 1},
    "dedup-urls": {"canonical": {"tracking_parameters": "names.txt"}},
    "classify": {
        "min_quality": {"general": 0},
        "classifiers": {
            "long": {
                "python": "uses.py:Longest",
                "settings": {"at": "classify.txt", "also": "numbers", "words": ["a", "numbers.x"]},
                "max": 0.5,
            }
        },
    },
    "filter": {
        "blocklists": {"soft_words": "words.txt"},
        "rules": dict.fromkeys(
            ("gopher", "repetition", "c4", "fineweb", "llama3", "code", "mathematics")
        )
        | {
            "own": {
                "long": {"python": "uses.py:Longest", "files": {"at": "filter.txt"}, "max": 0.5}
            }
        },
    },
    "mine": {"python": "uses.py:short", "files": {"at": "mine.txt"}},
}
#: A file, the stage that reads it, and another content.
CHANGES = [
    ("read.txt", "extract", "Something else to read."),
    ("names.txt", "dedup-urls", "other_*"),
    ("classify.txt", "classify", "70000"),
    ("numbers/one", "classify", "11"),
    ("numbers/deep", "classify", "12"),
    ("filter.txt", "filter", "80000"),
    ("words.txt", "filter", "terrible"),
    ("mine.txt", "mine", "2"),
]


@pytest.fixture
def run_home(home: Path) -> Path:
    (home / "uses.py").write_text(USES)
    (home / "numbers").mkdir()
    for name, _, _ in CHANGES:
        (home / name).write_text("90000")
    (home / "in.lines").write_text("A line about bees.\nAnother line, about flowers.\n")
    (home / "recipe.yaml").write_text(yaml.safe_dump(OF_ALL_STAGES))
    return home


def test_a_stage_is_done_again_when_what_it_reads_has_changed(run_home: Path) -> None:
    """Of the recipe's folder, not the working directory; and what is changed back is as before."""
    recipe, stages = run_home / "recipe.yaml", OF_ALL_STAGES["stages"]
    assert run_again(recipe, run_home) == stages
    assert run_again(recipe, run_home) == []
    for name, stage, content in CHANGES:
        (run_home / name).write_text(content)
        assert run_again(recipe, run_home)[0] == stage, name
        assert run_again(recipe, run_home) == [], name
    manifest = json.loads((run_home / "out/mine/manifest.json").read_text())
    assert manifest["counts"]["documents"] == 0  # the last change removes all
    (run_home / "numbers/one").rename(run_home / "numbers/two")
    assert run_again(recipe, run_home)[0] == "classify"


_OPENED: list[str] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        _OPENED.append(os.path.abspath(os.fsdecode(arguments[0])))


def test_a_run_opens_no_file_of_the_user_that_its_manifests_do_not_name(run_home: Path) -> None:
    """Whatever setting or code names it."""
    sys.addaudithook(_note)  # it can't be removed, but _OPENED may be read no more
    run_again(run_home / "recipe.yaml", run_home)
    inside = {os.path.relpath(path, run_home) for path in _OPENED}
    mine = {path for path in inside if not path.startswith(("..", "out"))}
    assert mine >= {name for name, _, _ in CHANGES} | {"uses.py"}
    named: set[str] = set()
    for manifest in (run_home / "out").glob("*/manifest.json"):
        found = json.loads(manifest.read_text())
        named |= {*found["lists"], *(code.partition(":")[0] for code in found.get("code", {}))}
    named = {name for name in named if not name.startswith("builtin:")}
    assert mine - {"in.lines", "recipe.yaml"} == named


def test_the_recipe_comes_first_then_its_parents_then_the_working_directory(home: Path) -> None:
    parent = home.parent / "parent"
    parent.mkdir()
    for folder, names in ((home, "a"), (parent, "ab"), (Path(), "abc")):
        for name in names:
            (folder / f"{name}.txt").write_text(str(folder))
    (parent / "base.yaml").write_text("extends: llama3\nname: base\n")
    allow = ["a.txt", "b.txt", "c.txt", "d.txt", "builtin:x", "s3://b/e.txt", str(home / "a.txt")]
    body = {"filter": {"blocklists": {"allow": allow}}}
    recipe = recipe_at(home, body, "../parent/base.yaml")
    found = recipe.filter.blocklists.allow
    assert list(found) == allow
    assert [path.place for path in found] == [
        *(str(home / "a.txt"), str(parent / "b.txt"), os.path.abspath("c.txt")),
        *("", "", "", str(home / "a.txt")),
    ]
    assert recipe.model_dump(mode="json")["filter"]["blocklists"]["allow"] == allow


def arguments(home: Path, settings: Any, **more: Any) -> dict[str, Any]:
    mine = {"python": "code.py:f", "settings": settings} | more
    recipe = recipe_at(home, {"stages": ["extract", "mine"], "mine": mine})
    given: dict[str, Any] = recipe.section(find("mine")).settings
    return given


def test_what_is_no_path_stays_a_word(home: Path) -> None:
    (home / "en").mkdir()
    (home / "list.txt").write_text("words")
    words = ["", " ", ".", "..", "/", "//", "../", "no.txt", "a\nb", "x" * 5000, "list.txt "]
    given = {"words": words, "n": 1, "none": None, "deep": {"list.txt": [True, 1.5]}}
    assert arguments(home, given) == given
    assert not list(walk(arguments(home, given), "", (NamedPath,)))
    found = arguments(home, {"deep": {"all": ["list.txt", ["en"]]}, "builtin": "builtin:configs"})
    assert [key for key, _, _ in walk(found, "", (NamedPath,))] == [
        ".builtin",
        ".deep.all[0]",
        ".deep.all[1][0]",
    ]
    assert resolve(found["deep"]["all"][0]) == str(home / "list.txt")
    # what is declared is all there is, and a word that is a folder's name by chance stays a word
    found = arguments(home, {"at": "en"}, files={})
    assert found == {"at": "en"} and type(found["at"]) is str
    assert type(arguments(home, {"at": "en"}, files={"also": "list.txt"})["at"]) is str


@pytest.mark.parametrize(
    ("reads", "settings"),
    [
        ("Path(__file__).parent / 'list.txt'", {}),
        ("'list.txt'", {}),
        ("more['at'] + '.txt'", {"at": "list"}),
        ("more['at'].removeprefix('file://')", {"at": "file://{home}/list.txt"}),
        ("Path(more['at']) / 'list.txt'", {"at": "."}),
        ("next(iter(more['at']))", {"at": {"list.txt": 0.5}}),
        ("sorted(Path().glob(more['at']))[0]", {"at": "l*t.txt"}),
    ],
)
def test_a_file_that_code_reads_must_be_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, reads: str, settings: dict[str, Any]
) -> None:
    monkeypatch.chdir(home)
    (home / "list.txt").write_text("words")
    (home / "in.jsonl").write_text('{"text": "a", "url": "http://a.example/"}\n')
    (home / "reads.py").write_text(
        "from pathlib import Path\n\n\nclass F:\n    def __init__(self, **more):\n"
        f"        self.found = Path({reads}).read_text()\n\n"
        "    def __call__(self, batch):\n        return [True] * batch.num_rows\n"
    )
    given = json.loads(json.dumps(settings).replace("{home}", str(home)))
    mine = {"python": f"{home}/reads.py:F", "settings": given}
    place = [str(home / "out"), [str(home / "in.jsonl")]]
    body = {"stages": ["extract", "mine"], "mine": mine}
    for _ in range(2):  # nothing of the first try stays
        with pytest.raises(ConfigError, match=r"mine\.python: .*F reads .*/list\.txt, which"):
            plan(recipe_at(home, body), *place)
    body["mine"] = mine | {"files": {"words": "list.txt"}}
    plan(recipe_at(home, body), *place)


def test_a_large_folder_must_be_declared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.user_code._MOST_FILES", 2)
    for i in range(3):
        (home / f"many/{i}").mkdir(parents=True)
        (home / f"many/{i}/file").write_text("")
    with pytest.raises(ConfigError, match=r"mine\.settings: 'many' is a folder of over 2 files"):
        arguments(home, {"at": "many"})
    found = arguments(home, {}, files={"at": "many"})
    assert resolve(found["at"]) == str(home / "many")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"files": {"at": "no.txt"}}, r"mine\.files\.at: no\.txt: no such file or folder \(looked"),
        ({"files": {"at": ""}}, r"mine\.files\.at: an empty path"),
        ({"files": {"at": 3}}, r"mine\.files\.at: input should be a valid string"),
        ({"files": ["at"]}, r"mine\.files: input should be a mapping"),
        ({"files": {"what": "b.bin"}}, "no argument 'what'"),
        ({"settings": {"at": "builtin:no"}}, "builtin:no: no such built-in file"),
    ],
)
def test_mistakes_are_told(home: Path, section: dict[str, Any], message: str) -> None:
    (home / "in.jsonl").write_text('{"text": "a", "url": "http://a.example/"}\n')
    body = {"stages": ["extract", "mine"], "mine": {"python": "code.py:f"} | section}
    with pytest.raises(ConfigError, match=message):
        plan(recipe_at(home, body), str(home / "out"), [str(home / "in.jsonl")])


def test_nothing_of_an_earlier_content_is_kept_in_a_process(home: Path) -> None:
    (home / "uses.py").write_text(USES)
    section = {"python": "uses.py:Longest", "files": {"at": "most.txt"}}
    most = []
    for content in ("1", "22", "1"):
        (home / "most.txt").write_text(content)
        body = {"stages": ["extract", "mine"], "mine": section}
        mine = recipe_at(home, body).section(find("mine"))
        most.append(opened(mine.python, mine.settings).most)  # type: ignore[attr-defined]
    assert most == [1, 22, 1]


@pytest.mark.parametrize("store", ["memory://sent", "shared"])
@pytest.mark.parametrize("change", ["removed", "changed", "there"])
def test_workers_get_the_files(
    home: Path, store: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the run's folder, unless they have the very same; whatever lies at the path there."""
    (home / "uses.py").write_text(USES)
    (home / "most.txt").write_text("1")
    (home / "numbers/deep").mkdir(parents=True)
    (home / "numbers/deep/one").write_text("20")
    mine = {"python": "uses.py:Longest", "settings": {"at": "most.txt", "also": "numbers"}}
    recipe = recipe_at(home, {"stages": ["extract", "mine"], "mine": mine})
    step = TransformShards("mine", "key", JudgeDocuments("mine", recipe.section(find("mine"))))
    work = write_task_list(Folder(store if "://" in store else str(home / store)), step, [])
    monkeypatch.setenv("TMPDIR", str(home.parent))
    monkeypatch.setattr("tempfile.tempdir", None)
    if change == "removed":
        (home / "most.txt").unlink()
        shutil.rmtree(home / "numbers")
    elif change == "changed":
        (home / "most.txt").write_text("300")
        (home / "numbers/two").write_text("4000")
    settings = work.step.transform.settings
    assert opened(settings.python, settings.settings).most == 21  # type: ignore[attr-defined]
    assert opened(settings.python, settings.settings).most == 21  # type: ignore[attr-defined]
    copies = list(home.parent.glob("curation-files-*/*/*"))
    assert {copy.name for copy in copies} == (
        set() if change == "there" else {"most.txt", "numbers"}
    )
    for copy in copies:  # a damaged copy is fetched again
        if copy.is_file():
            copy.write_text("5")
    again = pickle.loads(pickle.dumps(settings))
    assert opened(again.python, again.settings).most == 21  # type: ignore[attr-defined]


def test_a_file_that_changes_during_a_run_ends_it(home: Path) -> None:
    """And without a copy, so does one that a worker does not have."""
    (home / "at.txt").write_text("1")
    path = pickle.loads(pickle.dumps(NamedPath("at.txt", [str(home)])))
    assert resolve(path) == str(home / "at.txt")
    (home / "at.txt").write_text("22")
    for _ in range(2):
        path = pickle.loads(pickle.dumps(path))
        with pytest.raises(ConfigError, match=r"at\.txt: .* has changed since the run began"):
            resolve(path)
        (home / "at.txt").unlink(missing_ok=True)


@pytest.mark.parametrize("stage", ["dedup-urls", "dedup-documents", "dedup-lines"])
def test_an_index_beside_the_recipe(home: Path, stage: str) -> None:
    """Its files, by what its manifest says of them, are inputs of the stage."""
    found = []
    for text in ("Many words about bees and flowers. " * 9, "Other words, about ferries. " * 9):
        rows = [{"text": text + str(i), "url": f"http://a/{i}", "language": "en"} for i in range(3)]
        (home / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shutil.rmtree(home / "earlier", ignore_errors=True)
        settings = ["--set", f"{stage}.index.write=true", "--stages", f"read-tables,{stage}"]
        given = ["--input", str(home / "in.jsonl"), "--output", str(home / "earlier")]
        assert main(["run", "llama3", *given, *settings, "--quiet"]) == 0
        recipe = recipe_at(home, {stage: {"index": {"against": ["earlier"]}}})
        described = find(stage)
        check_named_files(described, recipe.section(described))
        indexed = index_files(recipe.section(described).index.against[0], stage, 0)
        found.append([(one.name, one.fingerprint) for one in indexed])
    assert found[0] and found[0] != found[1]
