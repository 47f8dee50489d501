"""The list of kernels that stages use, so that they can be compiled before they are called.

`configs/kernels.jsonl` has a line for each kernel and its argument types, callees first. It is
written by `python benchmarks/compilation.py --write`. A kernel not in the list, or called with
other types, is compiled when it is called.
"""

import functools
import hashlib
import importlib
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from curation import kernels
from curation.resources import root


class Known(NamedTuple):
    """A kernel for some argument types."""

    kernel: str  # module:name
    types: Any
    is_part: bool  # called by other kernels, not by Python
    calls: list[int]  # numbers of the kernels linked into this one
    stages: list[str]  # stages that call it from Python


@functools.cache
def known_kernels() -> tuple[Known, ...]:
    """Return the listed kernels, each after those that it calls."""
    lines = _list().read_text(encoding="utf-8").splitlines()
    return tuple(Known(**json.loads(line)) for line in lines)


def needed_kernels(stages: Collection[str]) -> list[int]:
    """Return the numbers of all kernels that stages use, in order."""
    listed, wanted = known_kernels(), set[int]()
    for number in reversed(range(len(listed))):
        if number in wanted or not set(stages).isdisjoint(listed[number].stages):
            wanted |= {number, *listed[number].calls}
    return sorted(wanted)


def compile_kernel(number: int) -> None:
    """Compile a listed kernel, or load it if it is already compiled."""
    from curation.compiled import type_of

    known = known_kernels()[number]
    module, _, name = known.kernel.partition(":")
    dispatcher = getattr(importlib.import_module(module), name)
    (dispatcher.part() if known.is_part else dispatcher).compile(
        tuple(type_of(described) for described in known.types)
    )


def are_compiled(stages: Collection[str]) -> bool:
    """Return whether `mark_compiled` was called for these stages, and nothing has changed since."""
    return all(kernels.read_kept(_mark(stage)) for stage in stages)


def are_brought(stages: Collection[str]) -> bool:
    """Return whether a wheel brings all kernels of these stages, for a level of this processor."""
    return any(
        all(kernels.read_kept(_mark(s, level)) for s in stages) for level in kernels.levels()
    )


def mark_compiled(stages: Collection[str]) -> None:
    """Record that all kernels of these stages are compiled, and what for."""
    decides = {"processor": kernels.processor()} | kernels.software()
    for stage in stages:
        kernels.keep(_mark(stage), json.dumps(decides).encode())


def unlike_the_wheel() -> str:
    """Return how this machine differs from what a wheel's kernels were compiled for."""
    for mark in kernels.OF_WHEEL.glob("compiled.*"):
        brought = json.loads(bytes(kernels.read_kept(mark.name) or b"{}"))
        here = {"processor": kernels.processor()} | kernels.software()
        if brought.get("processor") in kernels.levels():
            here["processor"] = brought["processor"]
        names = [name for name in brought | here if brought.get(name) != here.get(name)]
        return ", ".join(f"{n} {brought.get(n)} (here {here.get(n)})" for n in names)
    return ""


def _mark(stage: str, level: str = "") -> str:
    of = (level or os.environ.get("NUMBA_CPU_NAME", "all")).replace("-", "_")
    return f"compiled.{stage.replace('-', '_')}-{_stamp()}-{of}{kernels.SUFFIX}"


@functools.cache
def _stamp() -> str:
    """Return a digest of the list and of the sources of its kernels."""
    digest = hashlib.sha256(_list().read_bytes())
    for module in sorted({known.kernel.partition(":")[0] for known in known_kernels()}):
        source = kernels.source_of(module)
        digest.update(kernels.sources_stamp(source).encode() if source else b"")
    return digest.hexdigest()[:16]


def _list() -> Path:
    return root() / "configs" / "kernels.jsonl"
