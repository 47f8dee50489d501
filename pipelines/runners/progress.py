"""Progress displays of a run."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from curation.credentials import redact
from pipelines.console import PlainConsole
from pipelines.terminal import Warnings, tell

#: Seconds of work, and share of the whole, before which a guess is worth nothing.
_LEAST_SECONDS, _LEAST_SHARE = 5.0, 0.01


def duration(seconds: float) -> str:
    """Format seconds as `40 s`, `3 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


_LOGGERS = ("curation", "pipelines")
#: Seconds of silence after which plain lines say something.
_SILENCE = 30.0

#: The share at which the bar of a stage waits for its end.
_UNFINISHED = 0.99

#: The part of it that a line says nothing while kernels are compiled: some take longer.
_COMPILING = 3

Mode = Literal["auto", "bar", "plain", "quiet"]


class Quiet(AbstractContextManager["Quiet"]):
    """Shows only warnings; base of all other displays."""

    def __init__(self) -> None:
        self._warnings = Warnings(self.message, logging.lastResort)

    def __enter__(self) -> Quiet:
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._warnings)
        return self

    def __exit__(self, *exception: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._warnings)

    def plan(self, costs: Mapping[str, float]) -> None:
        """The stages to come, each with what a document costs in it."""

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        """A stage is `started`, `done`, or was `complete` already."""

    def resumed(self, stage: str, done: int, total: int) -> None:
        """Of a step's tasks some were done by an earlier run."""

    def step(self, stage: str, step: str, done: float, total: int, read: int, kept: int) -> None:
        """Of a step's tasks or documents some are done; documents read and kept, where known."""

    def compiling(self, done: int, total: int) -> None:
        """Of the kernels to be compiled some are done."""

    def message(self, text: str) -> None:
        tell(text)


class Paced(Quiet):
    """A display that estimates how long the run will still take.

    By work done and left, in documents times what a document costs in each stage. What an earlier
    run completed counts as no work, be it a stage or a part of one. Of stages to come, as many
    documents are expected as those before them keep.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clock = time.monotonic
        Paced.plan(self, {})

    def plan(self, costs: Mapping[str, float]) -> None:
        """The stages to come; what was done for others before says nothing of these."""
        self._costs = dict(costs)
        self._documents: dict[str, int] = {}  # that a stage reads, where known
        self._done: dict[str, float] = {}  # share of a stage
        self._before: dict[str, float] = {}  # the part of it that an earlier run did
        self._complete: set[str] = set()
        self._seconds, self._started = 0.0, 0.0
        self._stage = ""  # under way

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        if state == "started":
            self._begin(stage)
            return
        if state == "complete":
            self._complete.add(stage)
        else:
            self._seconds += self._clock() - self._started
        self._stage, self._done[stage] = "", 1.0
        self._documents[stage] = facts.get("documents", 0)
        names = list(self._costs)
        for name in names[names.index(stage) + 1 :] if stage in names else []:
            self._documents[name] = facts.get("kept", 0)

    def _begin(self, stage: str) -> None:
        self._stage, self._started = stage, self._clock()
        self._done[stage] = self._before.get(stage, 0.0)

    def resumed(self, stage: str, done: int, total: int) -> None:
        if not self._done.get(stage):
            self._before[stage] = self._done[stage] = done / max(1, total)

    def step(self, stage: str, step: str, done: float, total: int, read: int, kept: int) -> None:
        share = min(done / max(1, total), 1.0)
        self._done[stage] = max(self._done.get(stage, 0.0), share)
        if self._stage and self._done[stage] == self._before.get(stage, 0.0):
            self._started = self._clock()  # until now code and models were loaded

    def compiling(self, done: int, total: int) -> None:
        if done == total and self._stage:  # it says nothing of how long the stage takes
            self._begin(self._stage)

    def remaining(self) -> float | None:
        """Return the seconds left for the whole run; None if there is no estimate yet."""
        done = whole = 0.0
        for stage, cost in self._costs.items():
            if stage not in self._complete:
                work = cost * self._documents.get(stage, 1)
                before = self._before.get(stage, 0.0)
                whole += work * (1 - before)
                done += work * (self._done.get(stage, 0.0) - before)
        spent = self._seconds + (self._clock() - self._started if self._stage else 0.0)
        if not whole or done < _LEAST_SHARE * whole or spent < _LEAST_SECONDS:
            return None
        return spent * (whole - done) / done

    @property
    def left(self) -> str:
        """The estimated time left, as text; empty if unknown, and in the last second."""
        seconds = self.remaining()
        return "" if seconds is None or seconds < 1 else f"about {duration(seconds)} left"


class Lines(Paced):
    """Lines on stderr for logs: one when a stage ends, and one every half minute until then."""

    def __init__(self, pause: float = _SILENCE) -> None:
        super().__init__()
        self._pause, self._ended = pause, threading.Event()
        self._lock = threading.Lock()
        self._now, self._begun, self._compiles = "", False, False
        self._since = self._told = time.monotonic()

    def __enter__(self) -> Lines:
        super().__enter__()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        super().__exit__(*exception)

    def _watch(self) -> None:
        while not self._ended.wait(self._pause / 10):
            with self._lock:
                if not self._is_due(time.monotonic()):
                    continue
                if self._compiles:
                    seconds = time.monotonic() - self._since
                    self._tell(f"{self._now}, {duration(seconds)} so far")
                else:
                    self._tell(f"{self._now}{f'; {self.left}' if self.left else ''}")

    def _is_due(self, now: float) -> bool:
        """Return whether the silence would be too long at the next look."""
        return bool(self._now) and now + self._pause / 10 > self._told + self._longest

    @property
    def _longest(self) -> float:
        return self._pause / _COMPILING if self._compiles else self._pause

    def _tell(self, text: str) -> None:
        self._told = time.monotonic()
        tell(text)

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        with self._lock:
            super().stage(stage, state, **facts)
            if state == "started":
                self._now, self._since = f"{stage}: under way", time.monotonic()
                if not self._begun:  # show a first line early
                    self._begun = True
                    self._tell(self._now)
                return
            self._now = ""
            tail = ", ".join(f"{k} {v:,}" for k, v in facts.items())
            left = f"; {self.left}" if self.left and state == "done" else ""
            self._tell(f"{stage}: {state}{': ' + tail if tail else ''}{left}")

    def step(self, stage: str, step: str, done: float, total: int, read: int, kept: int) -> None:
        with self._lock:
            super().step(stage, step, done, total, read, kept)
            seconds = time.monotonic() - self._since
            rate = f", {read / seconds:,.0f} documents/s" if read and seconds > 1 else ""
            part = f" ({step})" if step != "shards" else ""
            self._now = f"{stage}{part}: {int(done):,} of {total:,}{rate}"

    def compiling(self, done: int, total: int) -> None:
        with self._lock:
            super().compiling(done, total)
            self._now = f"compiling kernels {done}/{total} (once per machine)"
            self._compiles = done < total
            if done == 0:
                self._since = time.monotonic()
            if done in (0, total) or time.monotonic() - self._told >= self._longest:
                self._tell(self._now)
            if done == total:
                self._now, self._since = "", time.monotonic()


class _Documents(ProgressColumn):
    def render(self, task: Task) -> Text:
        read, kept = task.fields["read"], task.fields["kept"]
        if not read:
            return Text(task.fields["note"], style="dim")
        seconds = task.finished_time or task.elapsed or 0.0
        rate = f"{read / seconds:>6,.0f}/s" if seconds and not task.fields["note"] else " " * 8
        text = f"{read:>7,} docs {rate} {kept / read:>4.0%} kept"
        return Text(text, style="green", no_wrap=True)


class Bars(Paced):
    """A live table of stages on a terminal: documents, rate, kept share, time left of the run."""

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<17}"),
            BarColumn(bar_width=8),
            TextColumn("{task.percentage:>3.0f}%"),
            _Documents(),
            TextColumn("[dim]{task.fields[step]}"),
            console=PlainConsole(stderr=True),
        )
        self._rows: dict[str, Any] = {}
        self._resumed: set[str] = set()

    def __enter__(self) -> Bars:
        super().__enter__()
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()
        super().__exit__(*exception)

    def _row(self, stage: str) -> Any:
        if stage not in self._rows:
            self._rows[stage] = self._progress.add_task(
                stage, total=1, read=0, kept=0, step="", note=""
            )
        return self._rows[stage]

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        super().stage(stage, state, **facts)
        row = self._row(stage)
        if state == "started":
            self._progress.reset(row, total=1)
        else:
            read, kept = facts.get("documents", 0), facts.get("kept", 0)
            note = "resumed" if stage in self._resumed else ""  # its rate would be too high
            note = "already complete" if state == "complete" else note
            self._progress.update(
                row, completed=1, total=1, read=read, kept=kept, step=note, note=note
            )

    def resumed(self, stage: str, done: int, total: int) -> None:
        super().resumed(stage, done, total)
        self._resumed.add(stage)

    def step(self, stage: str, step: str, done: float, total: int, read: int, kept: int) -> None:
        super().step(stage, step, done, total, read, kept)
        self._progress.update(
            self._row(stage),
            completed=min(done, _UNFINISHED * max(1, total)),
            total=max(1, total),
            read=read,
            kept=kept,
            step=self.left.removeprefix("about ") or ("" if step == "shards" else step),
        )

    def compiling(self, done: int, total: int) -> None:
        super().compiling(done, total)
        self._progress.update(
            self._row("compiling kernels"),
            completed=done,
            total=total,
            step=f"{done}/{total}  once per machine",
        )
        if done == total and self._stage:  # its rate leaves out the time until then
            self._progress.reset(self._row(self._stage))

    def message(self, text: str) -> None:
        self._progress.console.print(redact(text))


def open_display(mode: Mode) -> Quiet:
    """The display for a mode; `auto` is live bars on a terminal, else plain lines."""
    if mode == "auto":
        mode = "bar" if sys.stderr.isatty() else "plain"
    if mode == "quiet":
        return Quiet()
    return Bars() if mode == "bar" else Lines()
