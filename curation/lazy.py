"""Packages whose public names are imported on first use, so that loading only settings is fast."""

import importlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any


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
        # Importing a submodule sets an attribute of its name: for `preferences.preferences` the
        # package must keep the function, whichever was imported first.
        if isinstance(value, ModuleType) and self._defined_in.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


#: How a package imports a public name for type checkers.
_IMPORT = re.compile(r"^    from (curation\.\S+) import (\w+) as", re.MULTILINE)


def lazily(package: str) -> None:
    """Import the public names of a package on first use: those that its `__init__.py` imports for
    type checkers, indented and each on a line."""
    held = sys.modules[package]
    source = Path(str(held.__file__)).read_text(encoding="utf-8")
    held.__dict__["_defined_in"] = {name: module for module, name in _IMPORT.findall(source)}
    held.__dict__["__all__"] = list(held.__dict__["_defined_in"])
    held.__class__ = _Package
