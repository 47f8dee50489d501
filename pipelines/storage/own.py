"""Which files of a stage folder a run wrote: only these are ever removed.

A file is a run's own when the manifest or a commit record names it, or when its name is that of a
task which a run has planned here. Anything else was put there by somebody, and is reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from curation.errors import ConfigError
from pipelines.storage.files import SCRATCH, Folder
from pipelines.storage.manifest import (
    MANIFEST,
    TIMINGS,
    inner_stages,
    named_files,
    read_manifest,
    remove_manifest,
)

#: Names of tasks planned, and files of manifests removed, since the stage was last complete. Twice,
#: since of tasks that were killed nothing else tells.
_NOTES = (f"{SCRATCH}/own.json", f"{SCRATCH}/.own.json")
_RECORDS = "shards/"
#: What file managers leave behind, besides hidden files.
_LITTER = {"desktop.ini", "Thumbs.db"}


def note_own(folder: Folder, tasks: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Remember what is going to be written, or was, before no manifest says so any more."""
    noted = _noted(folder)
    found = {
        "tasks": sorted({*noted.get("tasks", ()), *tasks}),
        "files": sorted({*noted.get("files", ()), *files}),
    }
    for name in _NOTES if found != noted else ():
        folder.write_own_json(name, found)


def _noted(folder: Folder) -> dict[str, Any]:
    return folder.read_own_json(_NOTES[0]) or folder.read_own_json(_NOTES[1])


def _files(folder: Folder) -> list[str]:
    """Files of a stage folder, without scratch, litter and stages inside this one (named mixes)."""
    inside = inner_stages(folder)
    return [n for n in folder.tree() if n.split("/", 1)[0] not in inside and not _is_litter(n)]


def _foreign(folder: Folder, names: Iterable[str]) -> list[str]:
    """Those of these files that no run wrote."""
    noted, manifest = _noted(folder), read_manifest(folder)
    tasks, files = set(noted.get("tasks", ())), {TIMINGS, *noted.get("files", ())}
    files |= {MANIFEST, *named_files(manifest)} if manifest else set()
    foreign = [
        n
        for n in names
        if n not in files
        and not any(part in tasks or _stem(part) in tasks for part in n.split("/"))
    ]
    if foreign:  # without notes, of a folder whose scratch was removed, the records must tell
        records = [n for n in names if n.startswith(_RECORDS) and n.endswith(".json")]
        for name, record in zip(records, folder.each(folder.read_own_json, records), strict=True):
            files |= {name, *record["files"]} if record else set()
        foreign = [n for n in foreign if n not in files]
    return [n for n in foreign if not _is_blank(folder, n)]


def unnamed_files(folder: Folder) -> list[str]:
    """Files in the folder of a complete stage that its manifest does not name."""
    named = {MANIFEST, TIMINGS, *named_files(read_manifest(folder))}
    return [name for name in _files(folder) if name not in named]


def refuse_foreign(folder: Folder) -> None:
    """Raise ConfigError where a stage is to be written among files that no run wrote."""
    foreign = _foreign(folder, _files(folder))
    if foreign:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise ConfigError(
            f"{folder.shown}/{foreign[0]}{more}: no run wrote this, and this folder is a stage's "
            "own; move it away, or give another --output"
        )


def remove_own(folder: Folder, keep: Iterable[str] = ()) -> None:
    """Remove the files that runs wrote, but those to keep."""
    names = _files(folder)
    folder.each(folder.remove, sorted({*names} - {*_foreign(folder, names), *keep}))


def remove_stage(folder: Folder) -> None:
    """Remove all that runs wrote of a stage and of stages inside it. Raises as `refuse_foreign`."""
    folders = with_inner(folder)
    for each in folders:
        refuse_foreign(each)
    for each in folders:
        remove_own(each)
        remove_manifest(each)
        each.remove(SCRATCH)
        if not each.tree():
            each.remove()


def with_inner(folder: Folder) -> list[Folder]:
    """The folder of a stage after those inside it."""
    return [*(folder / name for name in inner_stages(folder)), folder]


def _is_blank(folder: Folder, name: str) -> bool:
    """Whether a manifest or record holds nothing, as power failures leave files."""
    if name != MANIFEST and not name.startswith(_RECORDS):
        return False
    return not folder.read_bytes(name).strip(b"\0")


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name


def _is_litter(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] in _LITTER or any(part.startswith(".") for part in parts)
