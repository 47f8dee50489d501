"""Packages whose public names are imported on first use, so that loading only settings is fast."""

import importlib
import sys
from collections.abc import Mapping
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


def lazily(package: str, **public: str) -> None:
    """Import the public names of a package on first use. Each of its modules is given with those
    that it defines; for type checkers `__init__.py` imports them, too."""
    held = sys.modules[package]
    found = {name: f"{package}.{module}" for module in public for name in public[module].split()}
    held.__dict__["_defined_in"] = found
    held.__dict__["__all__"] = list(found)
    held.__class__ = _Package
