"""What a person, or a program, sees of a run while it goes on."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import AbstractContextManager
from typing import Any, Literal

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from curation.credentials import redact
from pipelines.terminal import PlainConsole, Warnings, tell

_LOGGERS = ("curation", "pipelines")
#: Seconds between two lines about one step.
_PAUSE = 2.0

Mode = Literal["auto", "bar", "plain", "json", "quiet"]


class Quiet(AbstractContextManager["Quiet"]):
    """Says nothing but warnings; those that say something are made of it."""

    def __init__(self) -> None:
        self._warnings = Warnings(self.message)

    def __enter__(self) -> Quiet:
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self._warnings)
        return self

    def __exit__(self, *exception: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self._warnings)

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        pass

    def step(self, stage: str, step: str, done: int, total: int, read: int, kept: int) -> None:
        pass

    def message(self, text: str) -> None:
        tell(text)


class Lines(Quiet):
    """One line per stage on stderr, for logs; as JSON, for machines, also of steps under way."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._json = as_json
        self._step, self._told = ("", ""), 0.0  # the last step told of, and when

    def stage(self, stage: str, state: str, **facts: Any) -> None:
        if self._json:
            event = {"event": "stage", "stage": stage, "state": state, "time": time.time(), **facts}
            tell(json.dumps(event))
        elif state != "started":
            tail = ", ".join(
                f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in facts.items()
            )
            tell(f"{stage}: {state}{': ' + tail if tail else ''}")

    def step(self, stage: str, step: str, done: int, total: int, read: int, kept: int) -> None:
        now = time.time()
        same = (stage, step) == self._step
        if not self._json or (same and now < self._told + _PAUSE and done < total):
            return
        self._step, self._told = (stage, step), now
        event = {"event": "step", "stage": stage, "step": step, "time": now}
        facts = {"done": done, "total": total, "documents": read, "kept": kept}
        tell(json.dumps(event | facts))

    def message(self, text: str) -> None:
        tell(json.dumps({"event": "message", "text": text}) if self._json else text)


class _Documents(ProgressColumn):
    def render(self, task: Task) -> Text:
        read, kept = task.fields["read"], task.fields["kept"]
        if not read:
            return Text(task.fields["note"], style="dim")
        rate = read / task.elapsed if task.elapsed else 0.0
        text = f"{read:>9,} docs {rate:>6,.0f}/s {kept / read:>4.0%} kept"
        return Text(text, style="green", no_wrap=True)


class Bars(Quiet):
    """A live table of stages on a terminal: documents, rate, kept share, time left."""

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<17}"),
            BarColumn(bar_width=8),
            TextColumn("{task.percentage:>3.0f}%"),
            _Documents(),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[step]}"),
            console=PlainConsole(stderr=True),
        )
        self._rows: dict[str, Any] = {}

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
        row = self._row(stage)
        if state == "started":
            self._progress.reset(row, total=1)
        else:
            read, kept = facts.get("documents", 0), facts.get("kept", 0)
            note = "already complete" if state == "complete" else ""
            self._progress.update(row, completed=1, total=1, read=read, kept=kept, step=note)

    def step(self, stage: str, step: str, done: int, total: int, read: int, kept: int) -> None:
        self._progress.update(
            self._row(stage), completed=done, total=max(1, total), read=read, kept=kept, step=step
        )

    def message(self, text: str) -> None:
        self._progress.console.print(redact(text))


def open_display(mode: Mode) -> Quiet:
    """The display for a mode; `auto` is live bars on a terminal, else nothing."""
    if mode == "auto":
        mode = "bar" if sys.stderr.isatty() else "quiet"
    if mode == "quiet":
        return Quiet()
    return Bars() if mode == "bar" else Lines(as_json=mode == "json")
