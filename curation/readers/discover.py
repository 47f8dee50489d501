"""Resolve patterns to input files, with names that don't change when the data is moved."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from fsspec.implementations.local import LocalFileSystem

from curation import stores
from curation.errors import ConfigError, InputError
from curation.readers.suffixes import READ, without_compression
from curation.resources import resolve

_GLOB = re.compile(r"[*?\[]")
_HIDDEN = "of a name that begins with . or _"
_UNKNOWN = "of unknown suffix"
_FOLDER = "matched by a pattern but folders"
_NO_FILE = "neither file nor folder"
_AGAIN = "read by another path"
_OWN = "written by the run itself"
_RUN = "of another run (give a stage's folder to read it)"
#: Files that every complete stage has in its folder.
_STAGE_FILES = ("manifest.json", "timings.json")
_REPORTS = ("report.html", "report.json")
_NOTES = "next to a saved Hugging Face dataset"
#: What `datasets.save_to_disk` writes next to the Arrow files of a dataset, and what `map` adds.
_NOTE = re.compile(r"(^|/)((state|dataset_info|dataset_dict)\.json|cache-[^/]*\.arrow)$")
#: Why there may be more at an address of Hugging Face than is seen.
_HINT = (
    "; a dataset is hf://datasets/OWNER/NAME, and one that is private or gated needs "
    "your token in HF_TOKEN"
)
_EXAMPLES = 3  # example names shown per reason


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read. `name` is its path below the fixed part of the pattern that found it."""

    path: str
    name: str
    size: int
    version: str = ""  # of an object: the store's version tag in the listing
    records: str = ""  # of an archive in an index: offset, length and URL of those read, as JSON


@dataclass
class PassedOver:
    """Files in input folders that are not read: counts by reason, and example names."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        self.add_all(PassedOver(Counter([reason]), {reason: [name]}))

    def add_all(self, other: PassedOver) -> None:
        for reason in other.counts:
            shown = self.examples.setdefault(reason, [])
            shown += other.examples[reason][: _EXAMPLES - len(shown)]
            self.counts[reason] += other.counts[reason]

    @property
    def of_others(self) -> PassedOver:
        """The same without files that the run itself writes."""
        return PassedOver(
            Counter({k: v for k, v in self.counts.items() if k != _OWN}), self.examples
        )

    def __str__(self) -> str:
        """`4 of unknown suffix (a.md, b, c, ...), 1 with ...`; empty for nothing."""
        return ", ".join(
            f"{count:,} {reason} ({', '.join(self.examples[reason])}"
            f"{', ...' if count > _EXAMPLES else ''})"
            for reason, count in sorted(self.counts.items())
        )


def discover(
    patterns: Sequence[str],
    own: Sequence[str] = (),
    passed_over: PassedOver | None = None,
    suffixes: Collection[str] = (),
) -> list[InputFile]:
    """Return the files of all patterns, sorted by name, each once, whatever links lead to it.

    A pattern is a file, a folder (searched recursively for known suffixes, hidden ones left out)
    or a glob of files (`*`, `?`, `[...]`, `**`), local or as a URL of fsspec. What is there by the
    name of the pattern wins over what it matches. Links are followed. Files of the same name from
    different folders get so many of their parent folders before their names that these differ.

    `own` are files and folders that the run writes, which are not input. These, and other files in
    the folders that are not read, are added to `passed_over`. `suffixes` are read besides the known
    ones.

    Raises InputError, naming the pattern, if it can't be listed or nothing matches.
    """
    ours = _Own(own)
    over = PassedOver() if passed_over is None else passed_over
    found: dict[str, InputFile] = {}
    for pattern in patterns:
        for file in _match(pattern, ours, over, tuple(suffixes)):
            found.setdefault(file.path, file)
    once: dict[str, InputFile] = {}
    by_name = sorted(found.values(), key=lambda file: file.path)
    for file in sorted(by_name, key=lambda file: ours.real(file.path) != file.path):
        if once.setdefault(ours.real(file.path), file) is not file:
            over.add(_AGAIN, file.name)
    return sorted(_distinct(list(once.values())), key=lambda file: (file.name, file.path))


class _Own:
    """Files and folders that the run writes."""

    def __init__(self, places: Sequence[str]) -> None:
        self._real_folders: dict[str, str] = {}
        self._starts = tuple(f"{self.real(_full(*stores.file_system(p)))}/" for p in places)

    def holds(self, place: str) -> bool:
        return f"{self.real(place)}/".startswith(self._starts)

    def real(self, place: str) -> str:
        """Return a local path with all links resolved, or the URL."""
        if stores.is_url(place):
            return place.rstrip("/")
        if os.path.islink(place):
            return os.path.realpath(place)
        folder, _, name = place.rpartition("/")
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder or "/").rstrip("/")
        return f"{self._real_folders[folder]}/{name}"


def _full(system: Any, path: str) -> str:
    """Return a local path, or the URL."""
    return path if isinstance(system, LocalFileSystem) else str(system.unstrip_protocol(path))


def _match(pattern: str, own: _Own, over: PassedOver, suffixes: tuple[str, ...]) -> list[InputFile]:
    if not pattern.strip():
        raise InputError("an empty path is not an input")
    place = os.path.expanduser(resolve(pattern))
    there = os.path.lexists(place)
    if there or not stores.is_url(place):
        place = str(Path(place).absolute())
    left = PassedOver()
    try:
        system, path = stores.file_system(place)
        if _GLOB.search(path) and not there:
            base = _GLOB.split(path, maxsplit=1)[0].rpartition("/")[0]
            listed = _Listed(base, stores.glob(system, path, place))
        else:
            listed = _named(system, path, place, own, left)
    except (OSError, ValueError, ConfigError) as error:
        raise InputError(f"{pattern}: can't be listed: {error}") from error
    files = []
    saved = listed.searched and any(path.endswith(".arrow") for path in listed.found)
    runs = _of_runs(listed)
    for path, info in sorted(listed.found.items()):
        full, name = _full(system, path), path[len(listed.base) :].lstrip("/")
        reason = _OWN if own.holds(full) else _not_read(name, info, listed.searched, suffixes)
        if not reason and f"{path}/".startswith(runs):
            reason = _RUN
        if saved and not reason and _NOTE.search(name):
            reason = _NOTES
        if reason:
            left.add(reason, name)
        else:
            # Python has surrogates for bytes of a name that are no UTF-8.
            if any("\ud800" <= character <= "\udfff" for character in full):
                raise InputError(f"{full}: {stores.misread()}")
            size = int(info.get("size") or 0)
            files.append(InputFile(full, name, size, stores.version(info)))
    if not files:
        only = f", only {left}" if left.counts else ""
        hint = _HINT if pattern.startswith("hf://") else ""
        raise InputError(f"{pattern}: no input file matches{only}{hint}")
    over.add_all(left)
    return files


def _of_runs(listed: _Listed) -> tuple[str, ...]:
    """Return the folders of stages in a searched folder, and the reports next to them.

    What a run kept and removed of its input is not more input. Each ends with a slash.
    """
    if not listed.searched:
        return ()
    folders = {path.rpartition("/")[0] for path in listed.found}
    folders.discard(listed.base)  # may be a stage's: it was asked for
    stages = sorted(
        f for f in folders if all(f"{f}/{name}" in listed.found for name in _STAGE_FILES)
    )
    runs = {stage.rpartition("/")[0] for stage in stages}
    reports = [f"{run}/{name}/" for run in sorted(runs) for name in _REPORTS]
    return (*(f"{stage}/" for stage in stages), *reports)


class _Listed(NamedTuple):
    base: str  # the folder in which names begin
    found: dict[str, dict[str, Any]]  # by path
    searched: bool = False  # a folder, of which not everything is to be read


def _named(system: Any, path: str, url: str, own: _Own, left: PassedOver) -> _Listed:
    info = stores.info(system, path, url)
    if info is None:
        return _Listed("", {})
    if info["type"] != "directory":
        return _Listed(path.rpartition("/")[0], {path: info})
    base = path.rstrip("/")

    def enter(folder: str) -> bool:
        name = folder[len(base) + 1 :]
        reason = _OWN if own.holds(folder) else _HIDDEN if _is_hidden(name) else ""
        if reason:
            left.add(reason, name)
        return not reason

    if isinstance(system, LocalFileSystem):
        return _Listed(base, stores.local_tree(path, enter), True)
    return _Listed(base, stores.tree(system, path, url), True)


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))


def _not_read(name: str, info: dict[str, Any], searched: bool, suffixes: tuple[str, ...]) -> str:
    """Return why a found file is skipped; empty if it is read."""
    if info["type"] != "file":
        return _FOLDER if info["type"] == "directory" else _NO_FILE
    if searched and _is_hidden(name):
        return _HIDDEN
    known = without_compression(name).endswith((*READ, *map(str.lower, suffixes)))
    return "" if known or not searched else _UNKNOWN


def _distinct(files: list[InputFile]) -> list[InputFile]:
    """Make names distinct by prefixing parent folders."""
    while True:
        by_name = Counter(file.name for file in files)
        if len(by_name) == len(files):
            return files
        files = [
            replace(file, name=_longer(file)) if by_name[file.name] > 1 else file for file in files
        ]


def _longer(file: InputFile) -> str:
    """Return the name with one more parent folder in front."""
    parts = file.path.split("/")
    return "/".join(parts[-(file.name.count("/") + 2) :])
