"""The manifest of a stage: the hashes of what it read and wrote, which decide completeness.

A stage is complete if its files match the manifest, and if its input is what the manifest of the
stage before it records now. So a stage whose input has been rewritten is recognized as stale
without any change to it.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

from curation.errors import StoreError
from pipelines.storage.files import SCRATCH, Folder, fingerprint, unsealed

MANIFEST = "manifest.json"
TIMINGS = "timings.json"
#: In the timings of a run's first stage: where its inputs are, by name.
PATHS = "paths"

Manifest = dict[str, Any]


def read_manifest(folder: Folder) -> Manifest:
    """Return the manifest of a stage; empty if there is none, or a damaged one."""
    return folder.read_own_json(MANIFEST)


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Write the manifest, if it is missing, damaged or different."""
    if read_manifest(folder) != manifest:
        folder.write_own_json(MANIFEST, manifest)


def manifest_sha256(folder: Folder) -> str:
    """Return the SHA-256 of the file. Raises StoreError unless it is intact.

    It hashes the bytes that were checked: a second read might be cut short.
    """
    with contextlib.suppress(FileNotFoundError):
        data = folder.read_bytes(MANIFEST)
        if unsealed(data) is not None:
            return hashlib.sha256(data).hexdigest()
    raise StoreError(f"{folder.shown}/{MANIFEST}: damaged, or can't be read")


def is_damaged(folder: Folder) -> bool:
    """Return whether there is a manifest, but not as it was written."""
    return folder.exists(MANIFEST) and not read_manifest(folder)


def has_manifest(folder: Folder) -> bool:
    """Return whether there is a manifest that a run wrote; of a damaged one the records tell."""
    if folder.exists(MANIFEST) and not unsealed(folder.read_bytes(MANIFEST)):
        records = [f"shards/{name}" for name in (folder / "shards").tree()]
        return any(unsealed(folder.read_bytes(name)) for name in records[:1])
    return folder.exists(MANIFEST)


def remove_manifest(folder: Folder) -> None:
    """Remove the manifest: the stage no longer exists for others."""
    for name in (MANIFEST, TIMINGS):
        folder.remove(name)


def named_files(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """Return every file in a manifest, including commit records, with bytes and SHA-256."""
    return {**manifest.get("files", {}), **manifest.get("records", {})}


def documents_of(manifest: Manifest) -> list[tuple[str, str]]:
    """Return the document shards that a stage wrote: name and SHA-256, sorted."""
    return sorted((shard_name(n), f["sha256"]) for n, f in files_of(manifest, "documents").items())


def files_of(manifest: Manifest, *kinds: str) -> dict[str, dict[str, Any]]:
    """Return the files of these kinds, such as `documents` or `removed`, sorted by name."""
    return {n: f for n, f in sorted(manifest["files"].items()) if n.partition("/")[0] in kinds}


def shard_name(file: str) -> str:
    """Return the name of a file's shard: the file's own without its kind and `.parquet`."""
    return file.partition("/")[2].removesuffix(".parquet")


def after(stage: str, documents: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return a manifest's entry on the preceding stage of the same run."""
    return {"stage": stage, "documents": fingerprint(sorted(map(list, documents)))}


def complete_manifest(folder: Folder, known: dict[str, Manifest] | None = None) -> Manifest:
    """Return the manifest of a complete stage; empty if the stage is not complete.

    It is incomplete if a file is missing or of another size, or if the preceding stage is running
    again or has other documents now. A preceding stage is not checked if its folder was removed or
    its manifest is damaged.
    `known` caches the answers, by folder.
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
    if not is_stage(before) or is_damaged(before):
        return True
    earlier = complete_manifest(before, known)
    return bool(earlier) and after(follows["stage"], documents_of(earlier)) == follows


def is_stage(folder: Folder) -> bool:
    """Return whether a run has worked on a stage in this folder."""
    return any(folder.exists(name) for name in (MANIFEST, "shards", SCRATCH))


def inner_stages(folder: Folder) -> list[str]:
    """Return the stages inside a stage's folder: those of named mixes."""
    return [name for name in folder.folders() if is_stage(folder / name)]
