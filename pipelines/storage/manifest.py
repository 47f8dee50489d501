"""The manifest of a stage: what it read and what it wrote, by hash. It alone says what is complete.

A stage is complete when its files are there as the manifest names them, and when what it read are
the documents that the stage before it names now. So a stage whose input was made again is
stale for whoever looks at it, without anything being done to it.

The manifest lies in the folder twice, so that a damaged one is replaced and not the stage redone.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

from curation.errors import StoreError
from pipelines.storage.files import SCRATCH, Folder, fingerprint, unsealed

MANIFEST = "manifest.json"
TIMINGS = "timings.json"
_SPARE = f".{MANIFEST}"

Manifest = dict[str, Any]


def read_manifest(folder: Folder) -> Manifest:
    """The manifest of a stage, from either copy; empty where there is none."""
    return folder.read_own_json(MANIFEST) or folder.read_own_json(_SPARE)


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Write it where it, or a copy of it, is absent, damaged or another."""
    for name in (_SPARE, MANIFEST):
        if folder.read_own_json(name) != manifest:
            folder.write_own_json(name, manifest)


def manifest_sha256(folder: Folder) -> str:
    """Of the file, or, where it is damaged, of its copy. Raises StoreError where neither is sound.

    What is hashed is what was looked at: a second reading might be cut short.
    """
    for name in (MANIFEST, _SPARE):
        with contextlib.suppress(FileNotFoundError):
            data = folder.read_bytes(name)
            if unsealed(data) is not None:
                return hashlib.sha256(data).hexdigest()
    raise StoreError(f"{folder.shown}/{MANIFEST}: could not be read as it was written")


def damaged_copies(folder: Folder) -> list[str]:
    """Names of the copies of a manifest that are absent or damaged."""
    manifest = read_manifest(folder)
    return [name for name in (MANIFEST, _SPARE) if folder.read_own_json(name) != manifest]


def remove_manifest(folder: Folder) -> None:
    """From here on the stage does not exist for others."""
    for name in (_SPARE, MANIFEST, TIMINGS):
        folder.remove(name)


def named_files(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """Every file that a manifest names, commit records too, with bytes and SHA-256."""
    return {**manifest.get("files", {}), **manifest.get("records", {})}


def is_whole(folder: Folder, manifest: Manifest) -> bool:
    """Whether every file is there as named, as far as can be seen cheaply: see `Folder.holds`."""
    witness = MANIFEST if folder.exists(MANIFEST) else _SPARE
    return folder.holds(named_files(manifest), witness, None)


def documents_of(manifest: Manifest) -> list[tuple[str, str]]:
    """Shards of documents that a stage leaves for the next: name and SHA-256, sorted."""
    found = {n: f["sha256"] for n, f in manifest["files"].items() if n.startswith("documents/")}
    return sorted((_shard(name), sha256) for name, sha256 in found.items())


def _shard(file: str) -> str:
    return file.removeprefix("documents/").removesuffix(".parquet")


def after(stage: str, documents: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What a manifest says of the stage of the same run that it follows."""
    return {"stage": stage, "documents": fingerprint(sorted(map(list, documents)))}


def complete_manifest(folder: Folder, known: dict[str, Manifest] | None = None) -> Manifest:
    """The manifest of a stage that is complete; empty where it is not.

    It is not where a file is missing or of another size, or where the stage that it follows is
    being done again or has other documents now. Of one that was taken away, nothing is known, and
    the manifest counts. `known` remembers the answers, by folder.
    """
    known = {} if known is None else known
    if folder.url not in known:
        manifest = read_manifest(folder)
        known[folder.url] = manifest if manifest and _counts(folder, manifest, known) else {}
    return known[folder.url]


def _counts(folder: Folder, manifest: Manifest, known: dict[str, Manifest]) -> bool:
    sizes = folder.tree()
    if any(sizes.get(name) != file["bytes"] for name, file in manifest["files"].items()):
        return False
    follows = manifest.get("after")
    if follows is None:
        return True
    before = Folder(folder.url.removesuffix(f"/{manifest['stage']}")) / follows["stage"]
    if not is_stage(before):
        return True
    earlier = complete_manifest(before, known)
    return bool(earlier) and after(follows["stage"], documents_of(earlier)) == follows


def is_stage(folder: Folder) -> bool:
    """Whether a run has been at work on a stage here."""
    return any(folder.exists(name) for name in (MANIFEST, _SPARE, "shards", SCRATCH))


def inner_stages(folder: Folder) -> list[str]:
    """Stages inside the folder of a stage: those of named mixes."""
    return [name for name in folder.folders() if is_stage(folder / name)]
