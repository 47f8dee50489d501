"""Files, folders and indexes that a recipe names: checked before the first stage runs, hashed for
its fingerprint, and copied to where workers on other machines find them.

Model files are checked with their checksums (`pipelines.named_files`).

Everything that decides a stage's outputs besides its input: models, lists, code, software.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import curation
from curation import stores
from curation.config import Settings
from curation.credentials import redact
from curation.errors import ConfigError, first_line, missing
from curation.golden import golden_digest
from curation.judging import check_opens
from curation.resources import NamedPath, files_below, resolve, sha256_of
from curation.stages import Stage
from curation.user_code import UserCode, walk
from pipelines.storage.files import SCRATCH, Folder


def check_named_files(stage: Stage[Any], settings: Settings, output: Folder | None = None) -> None:
    """Raise ConfigError, with key and path, for a missing or unusable file of a stage.

    So it does for the run in `output`, or its stage, as an earlier one: it would find itself.
    """
    for key, path, _ in walk(settings, stage.name, (NamedPath,)):
        try:
            _check(path)
            if output and Folder(resolve(path)) in (output, output / stage.name):
                raise ConfigError(f"{path}: the run that is written can't be an earlier one")
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
    index: Any = getattr(settings, "index", None)
    if stage.is_indexed and index.against:
        try:
            importlib.import_module(stage.module).check_indexes(settings)
        except ConfigError as error:
            raise ConfigError(f"{stage.name}.index.against: {error}") from None


def _check(path: NamedPath) -> None:
    place = resolve(path.witness)
    is_local = {"file": os.path.isfile, "folder": os.path.isdir}.get(path.kind)
    if path.kind and not (is_local(place) if is_local else Folder(place).exists()):
        looked = ", ".join([*path.folders, "the working directory"])
        raise ConfigError(f"{path}: no such {path.kind} (looked in {looked})")
    if path.suffix and not any(Path(place).glob(f"*{path.suffix}")):
        raise ConfigError(f"{path}: no <language>{path.suffix}")


def checksums(path: NamedPath) -> dict[str, str]:
    """Return the SHA-256 of a file, of each file in a folder, or of a URL's content, by name.

    Models and indexes have none here: manifests list them elsewhere. Raises ConfigError.
    """
    name = path.witness
    place = resolve(name)
    if not name:
        return {}
    try:
        if stores.is_url(place):
            return {redact(name): _url_sha256(place)}
        names = {
            file: f"{name.rstrip('/')}/{file}" if file else name for file in files_below(place)
        }
        return {n: sha256_of(os.path.join(place, f) if f else place) for f, n in names.items()}
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file or folder") from None
    except Exception as error:  # every file system raises its own exceptions
        raise ConfigError(f"{path}: can't be read: {first_line(error)}") from None


@functools.cache
def _url_sha256(url: str) -> str:
    with stores.open_url(url) as content:
        return hashlib.file_digest(cast(Any, content), "sha256").hexdigest()


def send(step: Any, folder: Folder) -> None:
    """Copy the files that a step's settings name to the stage's scratch folder.

    Workers on other machines read them there (`NamedPath.local`), unless they have them.
    """
    for path in (p for _, p, _ in walk(step, "", (NamedPath,)) if p.sha256):
        copy = f"{SCRATCH}/files/{path.sha256}"
        path.store = folder.url_of(copy)
        for file in files_below(path.place):
            parts = [p for p in (os.path.basename(path.place), file) if p]
            source, target = os.path.join(path.place, file).rstrip("/"), "/".join([copy, *parts])
            if folder.size(target) != os.path.getsize(source):
                folder.add(target, source)


def stage_facts(
    stage: Stage[Any], settings: Settings, also: Mapping[str, Settings]
) -> dict[str, Any]:
    """Return software versions and checksums of models, lists and code, for key and manifest.

    `also` are other sections that the stage reads. Raises ConfigError if a model, list or code is
    missing, or a package not installed.
    """
    code, lists = dict[str, str](), dict[str, str]()
    for section, part in {stage.name: settings, **also}.items():
        for _, path, _ in walk(part, section, (NamedPath,)):
            lists |= checksums(path)
        for key, named, given in walk(part, section, (UserCode,)):
            check_opens(named, given, key, named.positional)
            code[named.reference] = named.found.sha256
    packages = {"pyarrow", *stage.packages_of(settings, also)}
    versions = {name: _version(name, stage.name) for name in sorted(packages)}
    golden = golden_digest(stage.name)
    if golden:  # instead of numba's version: the same whenever kernels give the same results
        versions["kernels"] = golden
    facts = {
        "software": {"curation": curation.__version__, **versions},
        "models": stage.models(settings, also),
        "lists": lists,
    }
    return facts | {"code": code} if code else facts


@functools.cache
def _version(package: str, stage: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise missing(package, stage) from None
