"""Packages that are imported on first use: the toolkit's own, so that loading only settings is
fast, and those that extras install.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from curation.errors import ConfigError

#: The extra that installs a package, by the package's or its module's name in lower case.
EXTRAS = {
    "aiohttp": "http",
    "apache_beam": "dataflow",  # the modules that its own extra brings
    "cryptography": "sign",
    "datasets": "huggingface",
    "gcsfs": "gcs",
    "huggingface_hub": "hf",
    "justext": "engines",
    "onnxruntime": "onnx",
    "rapidfuzz": "train-extractor",
    "resiliparse": "engines",
    "s3fs": "s3",
    "streaming": "mds",
    "tokenizers": "tokenizers",
    "torch": "torch",
}


def require(module: str, user: str) -> Any:
    """Import and return a module that an extra installs.

    Raises ConfigError, with what needs it (`user`, an option or a file) and what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing(module, user, error) from None


def missing(package: str, user: str, error: ImportError | None = None) -> ConfigError:
    """Return the error for a package that is absent or, by `error`, can't be imported."""
    extra = EXTRAS.get(package.partition(".")[0].lower())
    wanted = f"curation[{extra}]" if extra else "curation"
    absent = error is None or isinstance(error, ModuleNotFoundError)
    name = (error and error.name) or package
    return ConfigError(
        f"{user}: needs {name}: pip install '{wanted}'{'' if absent else f' ({error})'}"
    )


class _Package(ModuleType):
    """A package that knows which of its modules defines each public name."""

    _defined_in: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__["_defined_in"]
        if name not in modules:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule sets an attribute of its name: for `decide.decide` the package must
        # keep the function, whichever was imported first.
        if isinstance(value, ModuleType) and self._defined_in.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> None:
    """Import the public names of a package on first use.

    Args:
        package: its name.
        names: for each module of the package the public names that it defines.
    """
    held = sys.modules[package]
    held.__dict__["_defined_in"] = {n: f"{package}.{m}" for m, own in names.items() for n in own}
    held.__class__ = _Package
