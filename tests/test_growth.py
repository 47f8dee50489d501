"""Costs grow with the size of the input and no faster, whatever it is made of.

Each shape is measured at four sizes, each double the one before, the smallest chosen so that the
largest takes about 6 ms of CPU. One that is more than 2.3 times as dear per doubling fails, after
it was measured again and again: other load only ever adds time.
"""

from __future__ import annotations

import functools
import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from curation.config import read_values
from curation.decontaminate import align
from curation.decontaminate.decontaminate_settings import Rules
from curation.decontaminate.decontaminate_settings import default_settings as evals_settings
from curation.dedup.dedup_settings import UrlDedupSettings
from curation.dedup.dedup_settings import defaults as dedup_settings
from curation.dedup.urls import canonical_urls
from curation.extract import Extractor, PageTooLargeError
from curation.extract.extractor import default_settings as extract_settings
from curation.readers.charset import decode_html, decode_text
from curation.readers.documents import (
    ROWS,
    batched,
    document_row,
    documents_batch,
    joined,
    others_of,
)
from curation.readers.read import read
from curation.readers.records import Page
from tests import shapes
from tests.hostile_pages import CASES
from tests.readers.archives import default_settings
from tests.shapes import ENCODED, FILES, READ_RIGHTS, RIGHTS, TEXTS, URLS

MOST = 2.3  # per doubling
ENOUGH = 0.0008  # CPU seconds of the smallest size
LEAST, LARGEST = 1 << 11, 1 << 17  # smallest size: the largest is eight times as much
ATTEMPTS = 10
_SCALES = (1, 4, 16)
_PAUSES = 2, 5, 15  # seconds before what failed is measured again
_HANGS = 180  # seconds
_COMPILES = 600  # seconds: kernels that were not used before are compiled

Run = Callable[[int], Callable[[], object]]  # from a size to what is timed


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer, if it is Python or a pattern.

    Timers of CPU time would make the clock of CPU time coarse.
    """

    def end(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def timed(run: Callable[[], object], times: int = 1) -> float:
    """CPU seconds of one run, the mean of several in a row."""
    gc.collect(0)
    gc.disable()
    try:
        start = time.process_time()
        for _ in range(times):
            run()
        return (time.process_time() - start) / times
    finally:
        gc.enable()


def growth(run: Run) -> float:
    """Factor per doubling. What is only a cache that overflows is gone at a larger size."""
    size = LEAST
    while timed(run(size)) < ENOUGH and size < LARGEST:
        size *= 2
    factor = float("inf")
    for scale in _SCALES:
        attempts = ATTEMPTS if scale == _SCALES[-1] else ATTEMPTS // 3
        factor = min(factor, doubling(run, scale * size, attempts))
        if factor <= MOST:
            break
    return factor


def doubling(run: Run, size: int, attempts: int) -> float:
    """Factor per doubling, over the larger two of three doublings.

    Four runs of the small size are one measurement: it lasts as long as one of the large size, so
    other load on the machine is as likely to disturb it. The first time two must do: it is mostly
    the last.
    """
    small, large = run(2 * size), run(8 * size)
    least_small = least_large = float("inf")
    for attempt in range(attempts):
        least_small = min(least_small, timed(small, times=4 if attempt else 2))
        least_large = min(least_large, timed(large))
        factor = (least_large / max(least_small, ENOUGH)) ** 0.5
        if factor <= MOST:
            break
    return float(factor)


_EXTRACTOR = Extractor(extract_settings())


def extracted(html: bytes | str) -> None:
    with suppress(PageTooLargeError):
        _EXTRACTOR.extract(html)


@functools.cache
def stages() -> dict[str, Callable[[pa.Array], object]]:
    """What is done to the texts of documents, and to a page of the text alone."""
    page = {"extract": lambda texts: extracted("<p>" + texts[0].as_py())}
    return page | shapes.stages()


def column(text: str) -> pa.Array:
    return pa.array([text], pa.large_string())


def check(runs: dict[str, Run]) -> None:
    with ended_after(_COMPILES):
        for run in runs.values():
            run(LEAST)()
    with ended_after(_HANGS):
        found = {name: growth(run) for name, run in runs.items()}
        for pause in _PAUSES:
            for name in [name for name, factor in found.items() if factor > MOST]:
                time.sleep(pause)  # what else ran on this machine may have ended
                found[name] = min(found[name], growth(runs[name]))
    assert {name: round(factor, 2) for name, factor in found.items() if factor > MOST} == {}


@pytest.mark.parametrize("name", FILES)
def test_reading(name: str, tmp_path: Path) -> None:
    shape = FILES[name]
    settings = default_settings(**({"max_record_bytes": 1 << 16} if shape.small_records else {}))

    def run(size: int) -> Callable[[], object]:
        path = tmp_path / str(size) / shape.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(shape.make(size))
        return lambda: sum(1 for _ in read(str(path), settings))

    check({"read": run})


@pytest.mark.parametrize("name", [n for n in FILES if n.split(":")[0] in ("jsonl", "csv")])
def test_columns_of_tables(name: str, tmp_path: Path) -> None:
    shape, settings = FILES[name], default_settings()

    def documents(path: Path) -> None:
        others = joined([others_of(str(path), path.name, settings)])
        events = (e for e in read(str(path), settings) if isinstance(e, Page))
        for batch in batched((document_row(path.name, e) for e in events), ROWS):
            documents_batch([row for row, _ in batch], [own for _, own in batch], others)

    def run(size: int) -> Callable[[], object]:
        path = tmp_path / str(size) / shape.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(shape.make(size))
        return functools.partial(documents, path)

    check({"documents": run})


@pytest.mark.parametrize("name", RIGHTS)
def test_rights(name: str) -> None:
    function = READ_RIGHTS[name.split(":")[0]]

    def run(size: int) -> Callable[[], object]:
        return functools.partial(function, RIGHTS[name](size))

    check({"read": run})


@pytest.mark.parametrize("name", ENCODED)
def test_encodings(name: str) -> None:
    def run(decode: Callable[[bytes, None], object]) -> Run:
        return lambda size: functools.partial(decode, ENCODED[name](size), None)

    check({"html": run(decode_html), "text": run(decode_text)})


@pytest.mark.parametrize("name", CASES)
def test_pages(name: str) -> None:
    full = len(CASES[name](0.02)) / 0.02

    def run(size: int) -> Callable[[], object]:
        return functools.partial(extracted, CASES[name](size / full))

    check({"extract": run})


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    texts = functools.cache(lambda size: column(TEXTS[name](size)))

    def run(stage: Callable[[pa.Array], object]) -> Run:
        return lambda size: functools.partial(stage, texts(size))

    check({what: run(stage) for what, stage in stages().items()})


@pytest.mark.parametrize("name", URLS)
def test_addresses(name: str) -> None:
    rules = dedup_settings(UrlDedupSettings).canonical

    def run(size: int) -> Callable[[], object]:
        return functools.partial(canonical_urls, [URLS[name](size)], rules)

    check({"canonical": run})


_CODE: dict[str, Callable[[int], tuple[str, str]]] = {
    "the same": lambda n: ("a + b\n" * n, "a + b\n" * n),
    "all other": lambda n: ("a + b\n" * n, "c - d\n" * n),
    "each other": lambda n: (
        "".join(f"a{k} + b\n" for k in range(n)),
        "".join(f"a{k} - b\n" for k in range(n)),
    ),
    "in another order": lambda n: ("a + b\n" * n + "c - d\n" * n, "c - d\n" * n + "a + b\n" * n),
}


@pytest.mark.parametrize("name", _CODE)
def test_functions_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In small pieces: costs are linear in their number, and that of one is bounded."""
    monkeypatch.setattr(align, "PIECE", 64)
    rules = read_values(evals_settings().rules, Rules).code

    def run(size: int) -> Callable[[], object]:
        return functools.partial(align.is_other_code, *_CODE[name](size // 8), rules)

    check({"compare": run})


def test_there_are_many_shapes() -> None:
    assert sum(map(len, (FILES, ENCODED, CASES, TEXTS, URLS, RIGHTS))) > 200
