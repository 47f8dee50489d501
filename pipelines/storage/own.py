"""Ownership: which files of a stage folder a run wrote. Only these are ever removed.

A run owns a file if the manifest or a commit record names it, or if its name is that of a task
which a run has planned here or left a record of. Anything else was put there by someone else and
raises an error.
"""

import re
from collections.abc import Iterable, Set
from pathlib import PurePath
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

#: Names of tasks planned, and files of removed manifests, since the stage was last complete. Stored
#: twice, since nothing else records the tasks that were killed.
_NOTES = (f"{SCRATCH}/own.json", f"{SCRATCH}/.own.json")
_RECORDS = "shards/"
#: Indexes of tasks over key ranges, whose records are in the scratch folder only.
_RANGE = re.compile(r"index/range-\d{5}-of-\d{5}\.arrow")
#: Files that file managers leave behind, besides hidden ones.
_LITTER = {"desktop.ini", "Thumbs.db"}


def note_own(folder: Folder, tasks: Iterable[str] = (), files: Iterable[str] = ()) -> None:
    """Record files to be written, and files whose manifest is about to be removed."""
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
    """Return a stage folder's files, without scratch, litter and inner stages (named mixes)."""
    inside = inner_stages(folder)
    return [n for n in folder.tree() if n.split("/", 1)[0] not in inside and not _is_litter(n)]


def _foreign(folder: Folder, names: Iterable[str]) -> list[str]:
    """Return those of these files that no run wrote, such as copies in `documents-old`."""
    noted, manifest = _noted(folder), read_manifest(folder)
    tasks, files = set(noted.get("tasks", ())), {TIMINGS, *noted.get("files", ())}
    files |= {MANIFEST, *named_files(manifest)} if manifest else set()
    kinds = {name.partition("/")[0] for name in names if "/" in name}
    foreign = [n for n in names if n not in files and not _is_of(n, tasks, kinds)]
    if foreign:  # without notes and manifest, which may be damaged, only the records tell
        records = [n for n in names if n.startswith(_RECORDS) and n.endswith(".json")]
        for name, record in zip(records, folder.each(folder.read_own_json, records), strict=True):
            files |= {name, MANIFEST, *record["files"]} if record else set()
            tasks |= {PurePath(name).stem} if record else set()
        foreign = [n for n in foreign if n not in files and not _is_of(n, tasks, kinds)]
    return [n for n in foreign if not _is_blank(folder, n)]


def _is_of(name: str, tasks: Set[str], kinds: Set[str]) -> bool:
    """Return whether a file, or its folder inside a kind's, is named after one of these tasks.

    So is the index of a key range. Copies of a kind's folder are the user's.
    """
    first, *inner = PurePath(name).parts
    named = {PurePath(name).stem} if len(inner) < 2 else {inner[0]}
    is_copy = any(first.startswith(kind) for kind in kinds - {first})
    return not is_copy and bool(named & tasks or _RANGE.fullmatch(name))


def unnamed_files(folder: Folder) -> list[str]:
    """Return the files in a complete stage's folder that its manifest does not name."""
    named = {MANIFEST, TIMINGS, *named_files(read_manifest(folder))}
    return [name for name in _files(folder) if name not in named]


def refuse_foreign(folder: Folder) -> None:
    """Raise ConfigError if a stage folder has files that no run wrote."""
    foreign = _foreign(folder, _files(folder))
    if foreign:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise ConfigError(
            f"{folder.shown}/{foreign[0]}{more}: not written by curate; stage folders must be "
            "empty or contain only curate's files; move it away, or give another --output"
        )


def remove_own(folder: Folder, keep: Iterable[str] = ()) -> None:
    """Remove the files that runs wrote, except those to keep."""
    names = _files(folder)
    folder.each(folder.remove, sorted({*names} - {*_foreign(folder, names), *keep}))


def remove_stage(folder: Folder) -> None:
    """Remove all files of a stage and its inner stages. Raises as `refuse_foreign` does."""
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
    """Yield the folders of inner stages, then the stage's own."""
    return [*(folder / name for name in inner_stages(folder)), folder]


def _is_blank(folder: Folder, name: str) -> bool:
    """Return whether a manifest or record is blank, as after a power failure."""
    if name != MANIFEST and not name.startswith(_RECORDS):
        return False
    return not folder.read_bytes(name).strip(b"\0")


def _is_litter(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] in _LITTER or any(part.startswith(".") for part in parts)
