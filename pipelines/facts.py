"""Everything that decides a stage's outputs besides its input: models, lists, code, software."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import Any

import curation
from curation.config import Settings
from curation.errors import missing
from curation.golden import golden_digest
from curation.judging import check_opens
from curation.resources import NamedPath
from curation.stages import Stage
from curation.user_code import UserCode, walk
from pipelines.named_files import checksums


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
