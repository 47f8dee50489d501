"""How kernels, and parts of them, are compiled: once per machine (`curation/kernels.py`)."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, compiler, types
from numba.core.serialize import dumps

from curation.kernels import SUFFIX, keep, places, read_kept, sources_stamp


#: The parameter that has the bytes of a text. Kernels read it only, which numba checks.
_TEXT = "data"


class KernelCache(caching._Cache):  # type: ignore[misc]
    """The compiled forms of one kernel. Takes the place of numba's own cache in a dispatcher."""

    def __init__(self, function: Any) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._source = Path(function.__code__.co_filename)

    @property
    def cache_path(self) -> str:
        return str(places()[0])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compile result of these argument types, or None."""
        target_context.refresh()
        content = read_kept(self._file(sig, target_context))
        if content is None:
            return None
        try:
            pickle.load(content)
            return compiler.CompileResult._rebuild(target_context, *pickle.load(content))
        except Exception:  # by another build of a library of the same version
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compile result."""
        if not data.lifted and not data.library.has_dynamic_globals:
            content = dumps(_arguments(sig)) + dumps(data._reduce())
            keep(self._file(sig, data.target_context), content)

    def signatures(self) -> Iterator[Any]:
        """Argument types of which a compiled form is kept."""
        pattern = f"{self._name}-{sources_stamp(self._source)}-*{SUFFIX}"
        for name in sorted({path.name for place in places() for path in place.glob(pattern)}):
            content = read_kept(name)
            with contextlib.suppress(Exception):
                yield pickle.load(content)  # type: ignore[arg-type]

    def enable(self) -> None:
        """Part of numba's interface."""

    def disable(self) -> None:
        """Part of numba's interface."""

    def flush(self) -> None:
        """Part of numba's interface."""

    def _file(self, sig: Any, target_context: Any) -> str:
        processor = target_context.codegen().magic_tuple()
        types = hashlib.sha256(repr((_arguments(sig), processor)).encode()).hexdigest()[:16]
        return f"{self._name}-{sources_stamp(self._source)}-{types}{SUFFIX}"


def _arguments(sig: Any) -> tuple[Any, ...]:
    """The argument types of a signature, or of a tuple of types."""
    return tuple(getattr(sig, "args", sig))


def _decorator(**options: bool) -> Callable[[Any], Any]:
    def compiled(function: Any) -> Any:
        dispatcher = numba.njit(nogil=True, **options)(function)
        dispatcher._cache = KernelCache(function)
        dispatcher.get_call_template = functools.partial(_call, dispatcher)
        return dispatcher

    return compiled


def _call(dispatcher: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    """How a kernel calls another one: with the usual types of its arguments.

    Numba would compile the callee once more for each constant among the arguments, and for the
    first value of a variable that begins as one.
    """
    names = inspect.signature(dispatcher.py_func).parameters
    general = tuple(_general(name, type_) for name, type_ in zip(names, args, strict=False))
    given = {name: _general(name, type_) for name, type_ in kws.items()}
    return type(dispatcher).get_call_template(dispatcher, general, given)


def _general(name: str, type_: Any) -> Any:
    type_ = types.unliteral(type_)
    if isinstance(type_, types.Integer) and type_.signed:
        return types.int64
    if name == _TEXT and isinstance(type_, types.Array):
        return type_.copy(readonly=True)
    return type_


#: A function that is compiled when it is first called with arguments of some types.
kernel = _decorator()
#: Functions that read and fill arrays of their callers. Numba would count references: two atomic
#: operations per array and call, which is more than most of them do.
borrowing = _decorator(_nrt=False)
#: The same, compiled into the caller: parts of one loop.
inlined = _decorator(_nrt=False, forceinline=True)
