"""How kernels, and parts of them, are compiled: once per machine (`curation/kernels.py`)."""

import ast
import contextlib
import functools
import hashlib
import importlib
import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
import numpy.typing as npt
from numba.core import caching, codegen, compiler
from numba.core.runtime import _nrt_python
from numba.core.serialize import dumps
from numba.np import numpy_support

from curation.kernels import OF_WHEEL, SUFFIX, keep, levels, places, read_kept, sources_stamp

types: Any = numba.types  # its stubs lack most of it

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
# What kernels take and return: numba ignores it, mypy checks callers by it. Scalars are Python's or
# NumPy's alike; arrays are C-contiguous.
Int: TypeAlias = int | np.signedinteger[Any] | np.unsignedinteger[Any]
Bool: TypeAlias = bool | np.bool_
Float: TypeAlias = float | np.floating[Any]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Uint16s: TypeAlias = npt.NDArray[np.uint16]
Uint32s: TypeAlias = npt.NDArray[np.uint32]
Uint64s: TypeAlias = npt.NDArray[np.uint64]
Float32s: TypeAlias = npt.NDArray[np.float32]
Float64s: TypeAlias = npt.NDArray[np.float64]
Record: TypeAlias = Any  # a row of a structured array
Records: TypeAlias = npt.NDArray[np.void]

#: Parameters that have bytes of texts. Kernels read them only, which numba checks.
_TEXTS = ("data", "other", "blob")


class KernelCache(caching._Cache):  # type: ignore[misc]
    """The compiled forms of one kernel. Takes the place of numba's own cache in a dispatcher."""

    def __init__(self, function: Any, is_part: bool = False) -> None:
        self.is_part = is_part
        self.name = f"{function.__module__}:{function.__qualname__}"
        self._source = Path(function.__code__.co_filename)

    @property
    def _file_name(self) -> str:
        return self.name.replace(":", ".") + (".part" if self.is_part else "")

    @property
    def cache_path(self) -> str:
        return str(places()[0])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compile result of these argument types, or None."""
        _name_runtime()
        for file in self._files(sig, target_context):
            # A library of the same version may be of another build.
            with contextlib.suppress(Exception):
                if content := read_kept(file):
                    stream = io.BytesIO(content)
                    pickle.load(stream)
                    held = pickle.load(stream)
                    rebuild = _part if self.is_part else compiler.CompileResult._rebuild
                    return rebuild(target_context, *held)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compile result."""
        for env in () if self.is_part else data._find_referenced_environments():
            data.codegen.set_env(env.env_name, env)  # of its parts
        if not data.lifted and not data.library.has_dynamic_globals:
            library, *rest, environments = data._reduce()
            if not self.is_part:
                library = _names_only(library, data.fndesc)
            # Machine code asks environments for constants only; each imports its module.
            rest.append(tuple(env for env in environments if env.consts))
            content = dumps(_arguments(sig)) + dumps((library, *rest))
            keep(next(self._files(sig, data.target_context)), content)

    def signatures(self) -> Iterator[Any]:
        """Argument types of which a compiled form is kept."""
        pattern = f"{self._file_name}-{sources_stamp(self._source)}-*{SUFFIX}"
        for name in sorted(
            {path.name for place in (*places(), OF_WHEEL) for path in place.glob(pattern)}
        ):
            content = read_kept(name)
            with contextlib.suppress(Exception):
                yield pickle.loads(content)  # type: ignore[arg-type]

    def enable(self) -> None:
        """Part of numba's interface."""

    def disable(self) -> None:
        """Part of numba's interface."""

    def flush(self) -> None:
        """Part of numba's interface."""

    def _files(self, sig: Any, target_context: Any) -> Iterator[str]:
        """Names of a form for this processor, then for the levels that it has."""
        triple, *own = target_context.codegen().magic_tuple()
        for processor in (own, *([level, ""] for level in levels())):
            decides = repr((_arguments(sig), self.is_part, (triple, *processor)))
            types = hashlib.sha256(decides.encode()).hexdigest()[:16]
            yield f"{self._file_name}-{sources_stamp(self._source)}-{types}{SUFFIX}"


@functools.cache
def _name_runtime() -> None:
    """Give LLVM the addresses of the functions of numba's runtime that compiled forms call.

    Numba calls `target_context.refresh()` before it loads a form. That compiles further functions,
    which kept forms contain, and imports what only compiling needs: half a second.
    """
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _names_only(library: tuple[str, str, tuple[bytes, bytes]], of: Any) -> tuple[str, str, Any]:
    """Return a serialized library with the names that numba asks it for in place of its functions.

    Numba keeps these to link them into callers, but callers link parts. To parse them is half the
    cost of loading a kernel.
    """
    name, kind, (machine_code, bitcode) = library
    asked = (of.llvm_func_name, of.llvm_cpython_wrapper_name, of.llvm_cfunc_wrapper_name)
    defined = {f.name for f in llvm.parse_bitcode(bitcode).functions if not f.is_declaration}
    lines = [f'@"{each}" = global i8 0' for each in asked if each in defined]
    return name, kind, (machine_code, llvm.parse_assembly("\n".join(lines)).as_bitcode())


class _PartLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """A part's code, which is optimised and becomes machine code in the kernels that call it."""

    def __init__(self, codegen: Any, name: str, bitcode: bytes = b"") -> None:
        super().__init__(codegen, name)
        if bitcode:
            self._final_module, self._finalized = llvm.parse_bitcode(bitcode), True

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: there is no machine code that would have one."""

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        self._ensure_finalized()
        return self.name, "bitcode", self._get_module_for_linking().as_bitcode()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _part(
    context: Any, code: tuple[str, str, bytes], fndesc: Any, env: Any, signature: Any, *_: Any
) -> Any:
    """Return a part's compile result from what is kept of it."""
    library = _PartLibrary(context.codegen(), code[0], code[2])
    return compiler.compile_result(
        typing_context=context.typing_context,
        target_context=context,
        entry_point=context.get_executable(library, fndesc, env),
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=fndesc,
        library=library,
        environment=env,
        reload_init=(),
    )


class _PartCompiler(compiler.Compiler):  # type: ignore[misc]
    def __init__(self, apart: bool, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _PartLibrary(target.codegen(), "part"), *rest)
        self.state.flags.noalias = apart


def _arguments(sig: Any) -> tuple[Any, ...]:
    """The argument types of a signature, or of a tuple of types."""
    return tuple(getattr(sig, "args", sig))


def describe_type(type_: Any) -> Any:
    """Return a type as JSON: the opposite of `type_of`."""
    if isinstance(type_, types.Array):
        shape = f"{type_.ndim}{type_.layout}{'' if type_.mutable else ' read-only'}"
        if isinstance(type_.dtype, types.Record):
            return describe_type(type_.dtype) | {"shape": shape}
        return f"{type_.dtype} {shape}"
    if isinstance(type_, types.Record):
        return {"record": repr(numpy_support.as_dtype(type_).descr)}
    if isinstance(type_, types.BaseNamedTuple):
        of = type_.instance_class
        return {f"{of.__module__}:{of.__qualname__}": [describe_type(item) for item in type_]}
    if isinstance(type_, types.BaseTuple):
        return [describe_type(item) for item in type_]
    return str(type_)


def type_of(described: Any) -> Any:
    """Return the type that `describe_type` has described."""
    if isinstance(described, dict):
        if "record" in described:
            record = numpy_support.from_dtype(np.dtype(ast.literal_eval(described["record"])))
            return _array(record, described["shape"]) if "shape" in described else record
        ((path, items),) = described.items()
        module, _, name = path.partition(":")
        of = getattr(importlib.import_module(module), name)
        members = [type_of(item) for item in items]
        if len(set(members)) == 1:
            return types.NamedUniTuple(members[0], len(members), of)
        return types.NamedTuple(members, of)
    if isinstance(described, list):
        return types.BaseTuple.from_types([type_of(item) for item in described])
    name, _, shape = described.partition(" ")
    scalar = types.boolean if name == "bool" else getattr(types, name)
    return _array(scalar, shape) if shape else scalar


def _array(of: Any, shape: str) -> Any:
    return types.Array(of, int(shape[0]), shape[1], readonly=shape.endswith("read-only"))


class Kernel(Protocol[P, R]):
    """A compiled function."""

    @property
    def py_func(self) -> Callable[P, R]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def _decorator(
    counting: bool = True, inlining: bool = False, apart: bool = False, **others: str
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    def compiled(function: Any) -> Any:
        # Both said always: a kernel that is first called by one of the others would be like it.
        options = {"nogil": True, "_nrt": counting, "forceinline": inlining, **others}

        @functools.cache  # most kernels are loaded, none is compiled
        def part() -> Any:
            bare: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
            bare["pipeline_class"] = functools.partial(_PartCompiler, apart)
            made = numba.njit(**options, **bare)(function)
            made._cache = KernelCache(function, is_part=True)
            return made

        dispatcher = numba.njit(**options)(function)
        dispatcher.py_func = function  # which it is itself under NUMBA_DISABLE_JIT
        dispatcher._cache = KernelCache(function)
        dispatcher.part = part
        dispatcher.get_call_template = functools.partial(_call, part)
        dispatcher.get_overload = lambda sig: part().get_overload(sig)
        return dispatcher

    return compiled


def _call(part: Callable[[], Any], args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    """How a kernel calls another one: as a part, with the usual types of its arguments.

    What turns Python's objects into arguments, and back, is a fifth of what a kernel costs; parts
    are without. And numba would compile the callee once more for each constant among the arguments,
    and for the first value of a variable that begins as one.
    """
    names = inspect.signature(part().py_func).parameters
    general = tuple(_general(name, type_) for name, type_ in zip(names, args, strict=False))
    given = {name: _general(name, type_) for name, type_ in kws.items()}
    return part().get_call_template(general, given)


def _general(name: str, type_: Any) -> Any:
    type_ = types.unliteral(type_)
    if isinstance(type_, types.Integer) and type_.signed:
        return types.int64
    if name in _TEXTS and isinstance(type_, types.Array):
        return type_.copy(readonly=True)
    return type_


#: A function that is compiled when it is first called with arguments of some types.
kernel = _decorator()
#: Functions that read and fill arrays of their callers. Numba would count references: two atomic
#: operations per array and call, which is more than most of them do.
borrowing = _decorator(counting=False)
#: The same, where what is written overlaps nothing else: no loop has to make sure first.
apart = _decorator(counting=False, apart=True)
#: The same, compiled into the caller: parts of one loop.
inlined = _decorator(counting=False, inlining=True)
#: Written into its one caller before that is compiled: as a part, all that it calls would be
#: compiled and kept twice. Not for what is borrowing, as its caller may count references.
merged = _decorator(inline="always")
