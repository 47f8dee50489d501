"""Compile the kernels that stages use, on all cores, each kernel once."""

import contextlib
import logging
import multiprocessing
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from curation.errors import first_line
from curation.golden import is_right
from curation.kernels import refuse
from curation.warm_up import (
    are_brought,
    are_compiled,
    compile_kernel,
    known_kernels,
    mark_compiled,
    needed_kernels,
    unlike_the_wheel,
)
from pipelines.process import end_with_parent, uninterrupted_children

#: Called with the number of compiled kernels and their total.
Told = Callable[[int, int], None]

_LOG = logging.getLogger(__name__)


def compile_kernels(stages: Collection[str], processes: int, told: Told) -> bool:
    """Compile the stages' kernels that are not compiled yet; return whether all succeeded.

    Those that a wheel brings are used if they give the right answers on this machine. A kernel is
    compiled after all kernels it calls, so no two processes compile the same one. Failures are
    logged; such a kernel is compiled, or fails, when it is called.
    """
    numbers = [] if are_compiled(stages) else needed_kernels(stages)
    if not numbers:
        return True
    failed = 0
    try:
        if not (are_brought(stages) and _are_right(stages, processes)):
            if differences := unlike_the_wheel():
                _LOG.warning("compiling kernels: those in the wheel are for %s", differences)
            with _processes(processes) as pool:
                failed = _compile_all(pool, numbers, processes, told)
    except BrokenProcessPool:
        _LOG.warning(
            "a process compiling kernels died; kernels will be compiled when they are called"
        )
        return False
    if not failed:
        mark_compiled(stages)
    return not failed


@contextlib.contextmanager
def _processes(number: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, context, initializer=end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list((pool._processes or {}).values()):
            process.terminate()


def _are_right(stages: Collection[str], processes: int) -> bool:
    """Return whether a wheel's kernels give the expected answers; they are not used again if not.

    Other processes call them, which may die of an instruction that this one doesn't have.
    """
    with _processes(processes) as pool, contextlib.suppress(BrokenProcessPool):
        with uninterrupted_children():
            answers = [pool.submit(is_right, stage) for stage in stages]
        if all(answer.result() for answer in answers):
            return True
    refuse()
    _LOG.warning("compiling kernels: those in the wheel give wrong results on this processor")
    return False


def _compile_all(pool: ProcessPoolExecutor, numbers: list[int], slots: int, told: Told) -> int:
    """Compile kernels, each after those that it calls; return the number of failures."""
    calls = {number: set(known_kernels()[number].calls) for number in numbers}
    waiting = sorted(numbers, key=_heights(numbers).__getitem__, reverse=True)
    running: dict[Future[None], int] = {}
    done: set[int] = set()
    failed = 0
    told(0, len(numbers))
    while waiting or running:
        for number in [n for n in waiting if calls[n] <= done][: slots - len(running)]:
            waiting.remove(number)
            with uninterrupted_children():
                running[pool.submit(compile_kernel, number)] = number
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            number = running.pop(future)
            done.add(number)
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                raise error
            if error is not None:
                failed += 1
                _LOG.warning("%s: %s", known_kernels()[number].kernel, first_line(error))
        told(len(done), len(numbers))
    return failed


def _heights(numbers: list[int]) -> dict[int, int]:
    """Return for each kernel the length of the longest chain of kernels waiting for it."""
    heights = dict.fromkeys(numbers, 0)
    for number in reversed(numbers):
        for called in known_kernels()[number].calls:
            heights[called] = max(heights[called], heights[number] + 1)
    return heights
