"""A run folder: what lies in it, who works there, which of its stages are complete."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

import yaml

from curation.config import parse_yaml
from curation.errors import ConfigError, StoreError
from curation.recipe import STAGES, Recipe
from curation.stages import find, known_stages
from pipelines.storage.files import SCRATCH, Folder, room_for
from pipelines.storage.manifest import (
    MANIFEST,
    complete_manifest,
    inner_stages,
    manifest_sha256,
    read_manifest,
)

#: The resolved recipe next to the stage folders; `curate report` and `why` read the stages from it.
RECIPE_FILE = "recipe.yaml"
#: What `pipelines.report` writes next to it.
REPORT_PAGE, REPORT_DATA = "report.html", "report.json"
#: SHA-256 of the recipe and of every complete stage's manifest, as `sha256sum --check` takes them.
SUMS = "SHA256SUMS"
#: What `curate withdraw` gives back, by default.
WITHDRAWN = "withdrawn"
#: What `curate export` writes, by default.
EXPORT = "export"
#: What `curate trace` builds, and what `curate summary` writes by default.
TRACE, SUMMARY = "trace", "summary"
#: What is in these files when a run wrote them.
KNOWN_BY = {
    REPORT_PAGE: b"<title>Curation report",
    REPORT_DATA: b'"funnel"',
    SUMS: f"  {RECIPE_FILE}\n".encode(),
}
_LOCK = ".lock"
_MADE_OF_RUNS = (WITHDRAWN, EXPORT, TRACE, SUMMARY)
_BESIDE = (*_MADE_OF_RUNS, RECIPE_FILE, REPORT_PAGE, REPORT_DATA, SUMS, _LOCK, SCRATCH)


def own_paths(folder: Folder, recipe: Recipe) -> list[str]:
    """All that a run, and `curate withdraw`, may write to a run folder."""
    names = dict.fromkeys((*STAGES, *recipe.stages, *_BESIDE))
    return [(folder / name).url for name in names]


def make_run_folder(folder: Folder) -> None:
    """Make a local run folder unless it is there. Raises ConfigError where that can't be done."""
    try:
        os.makedirs(folder.path(), exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None


def _not_writable(folder: Folder, error: OSError) -> ConfigError:
    reason = "a file, no folder" if os.path.isfile(folder.path()) else error.strerror
    return ConfigError(f"{folder.shown}: can't be written as a run folder: {reason}")


@contextlib.contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """One run at a time in a local run folder; the lock goes with the process that holds it."""
    if not folder.is_local:
        yield
        return
    path = folder.path(_LOCK)
    with contextlib.ExitStack() as stack:
        while True:
            make_run_folder(folder)
            try:
                file = stack.enter_context(open(path, "a+"))
            except OSError as error:
                raise _not_writable(folder, error) from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise ConfigError(
                    f"{folder.shown}: another run (process {holder}) is at work in this folder"
                ) from None
            if _is_at(file, path):
                break
            # A run that ended removed this file after it was opened here: it locks nothing now.
            stack.close()
        with room_for(path):
            file.truncate(0)
            os.write(file.fileno(), str(os.getpid()).encode())  # past the buffer: fails here only
        try:
            yield
        finally:
            os.unlink(path)


def _is_at(file: IO[str], path: str) -> bool:
    """Whether an open file is still the one at that path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def load_run(directory: str, done: Collection[str] = ()) -> tuple[Folder, list[str]]:
    """A run folder and its complete stages in order; those of named mixes (`mix/annealing`) last.

    The stages and mixes are those of the recipe in the folder: what an earlier run with another one
    left is no part of it. Stages that this process has just done are complete, even where a
    listing does not show all their files yet. Raises ConfigError when it is no run folder.
    """
    folder = Folder(directory)
    if not directory.strip() or not folder.exists():
        raise ConfigError(f"{directory or 'an empty path'}: no such run folder")
    known: dict[str, dict[str, Any]] = {}
    stages = [s for s in all_stages(folder) if s in done or complete_manifest(folder / s, known)]
    if not stages:
        raise ConfigError(f"{directory}: no complete stage")
    return folder, stages


def sums(folder: Folder, stages: Sequence[str]) -> bytes:
    """Content of the file of SHA-256 sums: of the recipe, and of each stage's manifest, which has
    those of all that the stage wrote."""
    digests = folder.each(lambda stage: manifest_sha256(folder / stage), stages)
    lines = [f"{d}  {stage}/{MANIFEST}\n" for d, stage in zip(digests, stages, strict=True)]
    with contextlib.suppress(FileNotFoundError):  # `exists` takes a failing disk for a no
        data = folder.read_bytes(RECIPE_FILE)
        if len(data) != folder.size(RECIPE_FILE):
            raise StoreError(f"{folder.shown}/{RECIPE_FILE}: could only be read in part")
        lines.insert(0, f"{hashlib.sha256(data).hexdigest()}  {RECIPE_FILE}\n")
    return "".join(lines).encode()


def root_hash(folder: Folder, stages: Sequence[str]) -> str:
    """One SHA-256 for all that a run wrote: of its file of sums."""
    return hashlib.sha256(sums(folder, stages)).hexdigest()


def run_recipe(folder: Folder) -> dict[str, Any]:
    """The recipe in a run folder, with every value. Raises ConfigError when it is damaged."""
    recipe = whole_recipe(folder.read_bytes(RECIPE_FILE))
    if recipe is None:
        raise ConfigError(
            f"{folder.shown}/{RECIPE_FILE}: damaged; the run's command writes it again"
        )
    return recipe


def run_settings(folder: Folder, stage: str) -> dict[str, Any]:
    """The settings of a stage as it ran, in the order of its recipe.

    A manifest sorts its keys; the recipe beside it has the order, unless another was written since.
    """
    settings: dict[str, Any] = read_manifest(folder / stage)["settings"]
    if folder.exists(RECIPE_FILE):
        recipe = run_recipe(folder)
        if recipe.get(stage) == settings:
            return recipe[stage]  # type: ignore[no-any-return]
    return settings


@functools.lru_cache(maxsize=2)
def whole_recipe(data: bytes) -> dict[str, Any] | None:
    """A recipe with every section, as a run writes it, or None."""
    try:
        recipe = parse_yaml(data.decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    stages = recipe.get("stages") if isinstance(recipe, dict) else None
    return recipe if isinstance(stages, list) and {*stages} <= recipe.keys() else None


def _stages_and_mixes(folder: Folder) -> tuple[Sequence[str], list[str]]:
    """Those of the recipe in a run folder."""
    try:
        recipe = run_recipe(folder)
    except (FileNotFoundError, NotADirectoryError):
        return STAGES, []
    mixes = {name for stage in _per_mix() for name in recipe.get(stage, {}).get("mixes", {})}
    return recipe["stages"], sorted(mixes)


def all_stages(folder: Folder) -> list[str]:
    """Stages and named mixes of the recipe in a run folder, complete or not."""
    stages, mixes = _stages_and_mixes(folder)
    return [*stages, *_branches(mixes)]


def _branches(mixes: Sequence[str]) -> list[str]:
    return [f"{name}/{mix}" for mix in mixes for name in _per_mix()]


def _per_mix() -> list[str]:
    """Stages that run once for each named mix, too."""
    return [name for name, stage in known_stages().items() if stage.per_mix]


def stale_stages(folder: Folder, complete: Sequence[str]) -> list[str]:
    """Stages and named mixes in a run folder that are of an earlier run.

    The recipe does not have them, or their documents are not those of the stage before any more.
    `complete` are the stages of `load_run`.
    """
    wanted = all_stages(folder)
    found = present_stages(folder)
    for stage in _per_mix():
        if stage in wanted or stage not in found:
            found += [f"{stage}/{mix}" for mix in inner_stages(folder / stage)]
    return [
        s for s in found if s not in wanted or (s not in complete and read_manifest(folder / s))
    ]


def present_stages(folder: Folder) -> list[str]:
    """Every stage that a run has been at work on, known stages first, in their usual order."""
    found = [name for name in inner_stages(folder) if name not in _MADE_OF_RUNS]
    return sorted(found, key=lambda n: (STAGES.index(n) if n in STAGES else len(STAGES), n))


def stage_before(stage: str, stages: Sequence[str]) -> str | None:
    """The stage of a run whose documents a stage read, among `stages` of `load_run`."""
    name, _, mix = stage.partition("/")
    at = stages.index(name) if name in stages else 0
    before = stages[at - 1] if at else None
    return f"{before}/{mix}" if mix and before and find(before).per_mix else before
