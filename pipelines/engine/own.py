"""Which files of a stage folder a run wrote: only these are ever removed.

A file is a run's own when the manifest or a commit record names it, or when its name is that of a
task which a run has planned here. Anything else was put there by somebody, who is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from curation.errors import ConfigError
from pipelines.engine.files import SCRATCH, Folder

MANIFEST = "manifest.json"
TIMINGS = "timings.json"
#: Where the manifest of a stage waits whose input is being made anew.
WAITING = f"{SCRATCH}/{MANIFEST}"
#: Names of tasks planned, and files of manifests removed, since the stage was last complete.
OWN = f"{SCRATCH}/own.json"
_RECORDS = "shards/"
#: What file managers leave behind, besides hidden files.
_LITTER = {"desktop.ini", "Thumbs.db"}


def note_own(folder: Folder, tasks: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Remember what is going to be written, or was, before no manifest says so any more."""
    noted = folder.read_own_json(OWN)
    found = {
        "tasks": sorted({*noted.get("tasks", ()), *tasks}),
        "files": sorted({*noted.get("files", ()), *files}),
    }
    if found != noted:
        folder.write_json(OWN, found)


def note_manifests(folder: Folder) -> None:
    """Remember the files of the manifests that are going to be removed."""
    files = [n for m in (MANIFEST, WAITING) for n in folder.read_own_json(m).get("files", {})]
    if files:
        note_own(folder, files=files)


def own_and_foreign(folder: Folder) -> tuple[list[str], list[str]]:
    """Files of a stage folder that runs wrote, and those of others.

    Scratch and litter are neither, nor is what lies in stages inside this one (named mixes).
    """
    tree, beside = folder.tree(), inner_stages(folder)
    names = [n for n in tree if n.split("/", 1)[0] not in beside and not _is_litter(n)]
    noted = folder.read_own_json(OWN)
    tasks, files = set(noted.get("tasks", ())), {TIMINGS, *noted.get("files", ())}
    for name in (MANIFEST, WAITING):
        files |= _files_of(name, folder.read_own_json(name)) if name in tree else set()
    # A task's record stands beside its files.
    tasks_of_files = {_stem(part) for name in files for part in name.split("/")}
    foreign = [
        n
        for n in names
        if n not in files
        and not any(part in tasks or _stem(part) in tasks for part in n.split("/"))
        and not (n.startswith(_RECORDS) and _stem(n.removeprefix(_RECORDS)) in tasks_of_files)
    ]
    if foreign:  # without notes, of a folder whose scratch was removed, the records must tell
        records = [n for n in names if n.startswith(_RECORDS) and n.endswith(".json")]
        for name, record in zip(records, folder.each(folder.read_own_json, records), strict=True):
            files |= _files_of(name, record)
        foreign = [n for n in foreign if n not in files]
    return sorted(set(names) - set(foreign)), foreign


def refuse_foreign(folder: Folder) -> None:
    """Raise ConfigError where a stage is to be written among files that no run wrote."""
    _, foreign = own_and_foreign(folder)
    if foreign:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise ConfigError(
            f"{folder.shown}/{foreign[0]}{more}: no run wrote this, and this folder is a stage's "
            "own; move it away, or give another --output"
        )


def remove_own(folder: Folder, keep: Iterable[str] = ()) -> None:
    """Remove the files that runs wrote, but those to keep."""
    own, _ = own_and_foreign(folder)
    folder.each(folder.remove, sorted(set(own) - set(keep)))


def remove_stage(folder: Folder) -> None:
    """Remove all that runs wrote of a stage and of stages inside it. Raises as `refuse_foreign`."""
    folders = with_inner(folder)
    for each in folders:
        refuse_foreign(each)
    for each in folders:
        remove_own(each)
        each.remove(SCRATCH)
        if not each.tree():
            each.remove()


def with_inner(folder: Folder) -> list[Folder]:
    """The folder of a stage after those inside it."""
    return [*(folder / name for name in inner_stages(folder)), folder]


def is_stage(folder: Folder) -> bool:
    """Whether a run has been at work on a stage here."""
    return any(folder.exists(name) for name in (MANIFEST, "shards", SCRATCH))


def inner_stages(folder: Folder) -> list[str]:
    """Stages inside the folder of a stage: those of named mixes."""
    return [name for name in folder.folders() if is_stage(folder / name)]


def _files_of(name: str, content: dict[str, Any]) -> set[str]:
    """Files that a manifest or record names, and itself; of a damaged one just itself."""
    if content and not isinstance(content.get("files"), dict):
        return set()
    return {name, *content.get("files", {})}


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name


def _is_litter(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] in _LITTER or any(part.startswith(".") for part in parts)
