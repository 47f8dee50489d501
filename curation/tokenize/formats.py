"""Formats of other libraries for packed sequences, and the packages that write them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from curation.errors import ConfigError, missing
from curation.tokenize.tokenize_settings import CustomFormat

#: Package and module of each format; the extra has the format's name.
_LIBRARIES = {"mds": ("mosaicml-streaming", "streaming"), "huggingface": ("datasets", "datasets")}


#: Folders of a stage that have other files.
_TAKEN = ("documents", "index", "removed", "shards", *_LIBRARIES)


def format_packages(formats: Sequence[str | CustomFormat]) -> list[str]:
    """Packages that write the formats.

    Raises ConfigError where one is absent, or a format's folder, named like its function, is
    another's.
    """
    folders = list(_TAKEN)
    for own in (f.python.reference for f in formats if not isinstance(f, str)):
        folder = own.rpartition(":")[2]
        if folder in folders:
            raise ConfigError(f"tokenize.formats: {own}: there is a folder {folder!r} already")
        folders.append(folder)
    names = [name for name in formats if isinstance(name, str)]
    for name in names:
        _, module = _LIBRARIES[name]
        if importlib.util.find_spec(module) is None:
            raise missing(module, f"tokenize.formats: {name}")
    return [_LIBRARIES[name][0] for name in names]
