"""A run folder: its contents, its lock, and which of its stages are complete."""

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

import yaml

from curation.config import parse_yaml
from curation.errors import ConfigError, StoreError
from curation.recipe import STAGES, Recipe
from curation.stages import find, known_stages
from pipelines.process import has_ended, lock, owner
from pipelines.storage.files import SCRATCH, Folder, room_for
from pipelines.storage.manifest import (
    MANIFEST,
    complete_manifest,
    has_manifest,
    inner_stages,
    manifest_sha256,
    read_manifest,
)

_LOG = logging.getLogger(__name__)

#: The resolved recipe in the run folder; `curate report` and `why` read the stages from it.
RECIPE_FILE = "recipe.yaml"
RECIPE_HEAD = b"# The resolved recipe of this run, written by curate.\n"
#: Files that `pipelines.report` writes.
REPORT_PAGE, REPORT_DATA = "report.html", "report.json"
#: SHA-256 of the recipe and of every complete stage's manifest, as `sha256sum --check` takes them.
SUMS = "SHA256SUMS"
#: Default folder of documents restored by `curate withdraw`.
WITHDRAWN = "withdrawn"
#: Default folder of `curate export`.
EXPORT = "export"
#: Default folder of `curate summary`.
SUMMARY = "summary"
#: Text by which files written by a run are recognized.
KNOWN_BY = {
    REPORT_PAGE: b"<title>Curation report",
    REPORT_DATA: b'"funnel"',
    SUMS: f"  {RECIPE_FILE}\n".encode(),
}
#: The lock of a run, and the file that takes its place where the file system has no locks.
_LOCK, _OWNER = ".lock", ".owner"
_MADE_OF_RUNS = (WITHDRAWN, EXPORT, SUMMARY)
_BESIDE = (*_MADE_OF_RUNS, RECIPE_FILE, REPORT_PAGE, REPORT_DATA, SUMS, _LOCK, _OWNER, SCRATCH)


def own_paths(folder: Folder, recipe: Recipe) -> list[str]:
    """Return everything that a run and `curate withdraw` may write to a run folder."""
    return [(folder / name).url for name in dict.fromkeys((*STAGES, *recipe.stages, *_BESIDE))]


def refuse_own(place: Folder, root: bool = False) -> None:
    """Raise ConfigError for a place to write to in a stage of a run, or a file that a run wrote.

    With `root` also for a run's folder itself. Links are followed.
    """
    is_file, shortest = place.fs.isfile(place.path()), 1 if place.is_local else 3
    own = root and _has_recipe(place)
    for path in {place.url, os.path.realpath(place.url) if place.is_local else place.url}:
        parts = path.split("/")
        last = max(len(parts) - 4, shortest)  # mix/annealing/documents/a.parquet
        for end in range(len(parts), last, -1):
            name, folder = parts[end - 1], Folder("/".join(parts[: end - 1]))
            own |= is_file and name in _BESIDE and _has_recipe(folder)
            own |= has_manifest(folder / name)
    if own:
        raise ConfigError(f"{place.shown}: belongs to a run: give another --output")


def make_run_folder(folder: Folder) -> None:
    """Create a local run folder if missing. Raises ConfigError if that fails."""
    try:
        os.makedirs(folder.path(), exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None


def _not_writable(folder: Folder, error: OSError) -> ConfigError:
    reason = "a file, not a folder" if os.path.isfile(folder.path()) else error.strerror
    return ConfigError(f"{folder.shown}: can't be written as a run folder: {reason}")


@contextlib.contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Lock a local run folder for one run at a time; the lock is released with its process.

    Where the file system has no locks, a file names the process instead.
    """
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
            held = lock(file.fileno())
            if held is False:
                file.seek(0)
                raise _at_work(folder, file.read())
            if held is None:
                stack.callback(os.unlink, _claimed(folder))
                break
            if _is_at(file, path):
                break
            # A finished run removed this file after it was opened here: its lock is worthless.
            stack.close()
        with room_for(path):
            file.truncate(0)
            os.write(file.fileno(), owner().encode())  # unbuffered: errors appear here
        try:
            yield
        finally:
            os.unlink(path)


def _at_work(folder: Folder, holder: str, hint: str = "") -> ConfigError:
    by = holder.strip() or "process unknown"
    return ConfigError(f"{folder.shown}: another run ({by}) is at work in this folder{hint}")


def _claimed(folder: Folder) -> str:
    """Return the path of a new file that names this process as the one at work in a folder.

    Raises ConfigError if there is one of a process that may be alive.
    """
    path = folder.path(_OWNER)
    holder = _holder(folder)
    if holder is not None:
        if not has_ended(holder):
            raise _at_work(folder, holder, f"; if it has ended, remove {folder.shown}/{_OWNER}")
        os.unlink(path)
    try:
        with open(path, "x") as file:
            file.write(owner())
    except FileExistsError:
        raise _at_work(folder, _holder(folder) or "") from None
    _LOG.warning(
        "%s: no locks in this file system; %s names this process instead", folder.shown, _OWNER
    )
    return path


def _holder(folder: Folder) -> str | None:
    """Return the owner of a run folder without locks; None if there is none."""
    try:
        with open(folder.path(_OWNER)) as file:
            return file.read()
    except OSError:
        return None


def _is_at(file: IO[str], path: str) -> bool:
    """Return whether an open file is still the one at that path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def at_work(folder: Folder) -> str:
    """Return the `owner` of the run that is at work in a local folder; empty if there is none."""
    if not folder.is_local:
        return ""
    with contextlib.suppress(OSError), open(folder.path(_LOCK)) as file:
        held = lock(file.fileno(), fcntl.LOCK_SH)
        if held is False:
            return file.read().strip() or "process unknown"
        holder = "" if held else _holder(folder) or ""
        return "" if has_ended(holder) else holder
    return ""


def _has_recipe(folder: Folder) -> bool:
    """Return whether a folder has the recipe of a run."""
    return folder.exists(RECIPE_FILE) and folder.read_bytes(RECIPE_FILE).startswith(RECIPE_HEAD)


def runs_below(folder: Folder) -> Iterator[Folder]:
    """Yield a folder if it is that of a run, and those below it, without links."""
    stages = [name for name in inner_stages(folder) if not _has_recipe(folder / name)]
    if _has_recipe(folder) or any(has_manifest(folder / name) for name in stages):
        yield folder
    else:
        stages = []  # what looks like one has files of a run at work, such as a folder of receipts
    for inside in (folder / name for name in folder.folders() if name not in stages):
        if not os.path.islink(inside.path()):
            with contextlib.suppress(OSError):  # a folder that may not be listed
                yield from runs_below(inside)


def run_facts(folder: Folder) -> dict[str, Any]:
    """Return what there is in a run folder: recipe, state, inputs, documents, tokens, bytes."""
    stages, stale, root = list[str](), list[str](), None
    with contextlib.suppress(ConfigError):  # no stage is complete, or the recipe is damaged
        stages = load_run(folder.url)[1]
        stale, root = stale_stages(folder, stages), root_hash(folder, stages)
    held = [m for stage in present_stages(folder) if (m := read_manifest(folder / stage))]
    listed = folder.read_bytes(SUMS).decode(errors="replace") if folder.exists(SUMS) else ""
    names = [line.split("  ", 1)[-1].rpartition("/")[0] for line in listed.splitlines()]
    # Stages that later ones have read may be gone; the last of each mix may not.
    last = {name.partition("/")[2]: name for name in names}
    whole = bool(last) and {*last.values()} <= {*stages}
    state = "stale" if listed and stale else "complete" if whole else "interrupted"
    return {
        "run": folder.shown,
        "recipe": held[-1]["recipe"]["name"] if held else "",
        "state": "at work" if at_work(folder) else state,
        "inputs": len(held[0]["inputs"]) if held else 0,
        "documents": held[0]["counts"]["documents_in"] if held else 0,
        "tokens": ([0] + [m["counts"]["tokens"] for m in held if "tokens" in m["counts"]])[-1],
        "bytes": sum(manifest["bytes"] for manifest in held),
        "root": root,
    }


def load_run(directory: str, done: Collection[str] = ()) -> tuple[Folder, list[str]]:
    """Open a run folder; return it and its complete stages in order, named mixes last.

    The order is the recipe's, but that a stage follows the one whose documents it read.
    The stages and mixes (`mix/annealing`) are those of the recipe in the folder: those left by an
    earlier run with another recipe are ignored. Stages in `done`, which this process has just
    finished, are complete even if a listing does not show all their files yet. Raises ConfigError
    if it is not a run folder.
    """
    folder = Folder(directory)
    if not directory.strip() or not folder.exists():
        raise ConfigError(f"{directory or 'an empty path'}: no such run folder")
    known: dict[str, dict[str, Any]] = {}
    stages = [s for s in all_stages(folder) if s in done or complete_manifest(folder / s, known)]
    if not stages:
        raise ConfigError(f"{directory}: no complete stage")
    manifests = {s: known.get((folder / s).url) or read_manifest(folder / s) for s in stages}
    return folder, _as_they_ran(manifests)


def _as_they_ran(manifests: dict[str, dict[str, Any]]) -> list[str]:
    """Return stages, each behind the one whose documents it read, else in the order given."""
    order: dict[str, None] = {}

    def place(stage: str) -> None:
        if stage in manifests and stage not in order:
            place((manifests[stage].get("after") or {}).get("stage", ""))
            order[stage] = None

    for stage in manifests:
        place(stage)
    return list(order)


def sums(folder: Folder, stages: Sequence[str]) -> bytes:
    """Return the content of the file of SHA-256 sums.

    It has those of the recipe and of each stage's manifest, which has those of the stage's files.
    """
    digests = folder.each(lambda stage: manifest_sha256(folder / stage), stages)
    lines = [f"{d}  {stage}/{MANIFEST}\n" for d, stage in zip(digests, stages, strict=True)]
    with contextlib.suppress(FileNotFoundError):  # `exists` is False on a failing disk
        data = folder.read_bytes(RECIPE_FILE)
        if len(data) != folder.size(RECIPE_FILE):
            raise StoreError(f"{folder.shown}/{RECIPE_FILE}: could only be read in part")
        lines.insert(0, f"{hashlib.sha256(data).hexdigest()}  {RECIPE_FILE}\n")
    return "".join(lines).encode()


def root_hash(folder: Folder, stages: Sequence[str]) -> str:
    """Return one SHA-256 for everything that a run wrote: that of its file of sums."""
    return hashlib.sha256(sums(folder, stages)).hexdigest()


def run_recipe(folder: Folder) -> dict[str, Any]:
    """Read the full recipe in a run folder. Raises ConfigError if it is damaged."""
    recipe = whole_recipe(folder.read_bytes(RECIPE_FILE))
    if recipe is None:
        raise ConfigError(
            f"{folder.shown}/{RECIPE_FILE}: damaged; run the same command again to rewrite it"
        )
    return recipe


def held_recipe(folder: Folder) -> dict[str, Any]:
    """Return the recipe in a folder; empty if there is none, or not the whole of it."""
    return (folder.exists(RECIPE_FILE) and whole_recipe(folder.read_bytes(RECIPE_FILE))) or {}


def run_settings(folder: Folder, stage: str) -> dict[str, Any]:
    """Return the settings with which a stage ran, in the order of its recipe.

    A manifest sorts its keys; the recipe in the folder has the order, unless it was replaced since.
    """
    settings: dict[str, Any] = read_manifest(folder / stage)["settings"]
    if folder.exists(RECIPE_FILE):
        recipe = run_recipe(folder)
        if recipe.get(stage) == settings:
            return recipe[stage]  # type: ignore[no-any-return]
    return settings


@functools.lru_cache(maxsize=2)
def whole_recipe(data: bytes) -> dict[str, Any] | None:
    """Parse a recipe with every section, as a run writes it; None if it is not one."""
    try:
        recipe = parse_yaml(data.decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    stages = recipe.get("stages") if isinstance(recipe, dict) else None
    return recipe if isinstance(stages, list) and {*stages} <= recipe.keys() else None


def all_stages(folder: Folder) -> list[str]:
    """Return the stages and named mixes of a run folder's recipe, complete or not."""
    try:
        recipe = run_recipe(folder)
    except (FileNotFoundError, NotADirectoryError):
        return list(STAGES)
    mixes = {name for stage in _per_mix() for name in recipe.get(stage, {}).get("mixes", {})}
    return [*recipe["stages"], *(f"{name}/{mix}" for mix in sorted(mixes) for name in _per_mix())]


def _per_mix() -> list[str]:
    """Return the stages that also run once for each named mix."""
    return [name for name, stage in known_stages().items() if stage.per_mix]


def stale_stages(folder: Folder, complete: Sequence[str]) -> list[str]:
    """Return the stages and named mixes in a run folder that are no longer of the run.

    The recipe does not have them, their input has changed since, or their manifest is damaged.
    `complete` are the stages of `load_run`.
    """
    wanted = all_stages(folder)
    found = present_stages(folder)
    for stage in _per_mix():
        if stage in wanted or stage not in found:
            found += [f"{stage}/{mix}" for mix in inner_stages(folder / stage)]
    there = [s for s in found if s not in complete and (folder / s).exists(MANIFEST)]
    return [s for s in found if s not in wanted or s in there]


def present_stages(folder: Folder) -> list[str]:
    """Return every stage that a run has worked on, known stages first, in their usual order."""
    found = [name for name in inner_stages(folder) if name not in _MADE_OF_RUNS]
    return sorted(found, key=lambda n: (STAGES.index(n) if n in STAGES else len(STAGES), n))


def stage_before(stage: str, stages: Sequence[str]) -> str | None:
    """Return the stage whose documents a stage read, among `stages` of `load_run`."""
    name, _, mix = stage.partition("/")
    at = stages.index(name) if name in stages else 0
    before = stages[at - 1] if at else None
    return f"{before}/{mix}" if mix and before and find(before).per_mix else before
