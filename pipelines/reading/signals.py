"""The signals of a run's documents, column by column, and what each threshold decides alone."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.config import settings_of_run
from curation.filters.filter_settings import FilterSettings
from curation.filters.margins import Bits, Judges, Margin, fixed
from curation.schema import column_of
from curation.stages import find
from pipelines.reading.ledger import Ledger, Source, read_column
from pipelines.run_folder import run_settings
from pipelines.storage.files import Folder
from pipelines.storage.shards import open_parquet

_BATCH = 1 << 16
_BYTE = 8
#: Columns of signals that stay in memory, and bytes of more columns.
_COLUMNS, _COLUMN_BYTES = 3, 32 << 20
#: The signal that weighs a document: the length of its text.
_WEIGHT = "c4_characters"


class Signals:
    """Signals of the documents that reached the stage which measures them.

    Arrays have one entry per document with signals, in the order of the ledger; `rows` are their
    numbers there.
    """

    def __init__(self, folder: Folder, ledger: Ledger, stage: str) -> None:
        self.folder, self.ledger, self.stage = folder, ledger, stage
        self.settings = settings_of_run(FilterSettings, run_settings(folder, stage))
        self.judges = Judges(self.settings)
        self._prepared = ledger.prepared
        self._columns: OrderedDict[str, npt.NDArray[np.float64]] = OrderedDict()
        self._decided: Decided | None = None
        self._reading = threading.RLock()  # what is found out ahead is waited for, not read twice
        at = ledger.stages.index(stage)
        later = [s for s in ledger.sources if ledger.stages.index(s.stage) >= at]
        kinds = {_kind(s): s for s in later}
        measured = {kind for kind, s in kinds.items() if self._signals_of(s)}
        self._sources = [s for s in later if _kind(s) in measured]

    @functools.cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Numbers in the ledger of the documents with signals -> [documents with signals]."""
        parts = [np.arange(s.first, s.first + s.rows, dtype=np.int32) for s in self._sources]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    @functools.cached_property
    def kept(self) -> Bits:
        """Kept by the stage, whatever later stages did -> [documents with signals]."""
        at = self.ledger.stages.index(self.stage)
        return (self.ledger.stage_of_fate > at)[self.of(self.ledger.numbers["fate"])]

    @functools.cached_property
    def heard(self) -> list[list[str]]:
        """For each limit, the languages of the run's documents that it judges."""
        return self.judges.languages(self.ledger.values["language"])

    @functools.cached_property
    def _places(self) -> npt.NDArray[Any] | slice:
        """The rows; without a gap, as a slice, whose entries needn't be copied."""
        rows = self.rows
        if not len(rows) or int(rows[-1]) - int(rows[0]) + 1 != len(rows):
            return rows
        return slice(int(rows[0]), int(rows[-1]) + 1)

    def of(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The entries of a column of the ledger for the documents with signals."""
        return column[self._places]

    def _signals_of(self, source: Source) -> list[str]:
        """Signals in a file; none where a later stage, run alone, read other documents."""
        with open_parquet(self.folder / source.stage, source.name) as parquet:
            found = [field for field in parquet.schema_arrow if field.name == "signals"]
            return [signal.name for field in found for signal in field.type]

    @functools.cached_property
    def names(self) -> list[str]:
        """All signals of the run."""
        return self._signals_of(self._sources[0]) if self._sources else []

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Values of a signal -> float64 [documents with signals]; NaN where it wasn't measured."""
        with self._reading:
            if name not in self._columns:
                most = max(_COLUMNS, _COLUMN_BYTES // (8 * len(self.rows) + 1))
                self._columns |= self._read(name, most)
                while len(self._columns) > most:
                    self._columns.popitem(last=False)
            self._columns.move_to_end(name)
            return self._columns[name]

    def _read(self, name: str, most: int) -> dict[str, npt.NDArray[np.float64]]:
        """Read a signal, and with it as many of the others: opening a file costs more."""
        if self._prepared is not None:
            return {name: read_column(self._prepared, f"signal.{name}")}
        names = [*[n for n in self.names if n != name][: most - 1], name]
        parts = [batch.column("signals") for batch, _ in self._batches(names)]
        if not parts:
            return {name: np.empty(0)}
        signals = pa.concat_arrays(parts)
        return {n: signals.field(n).to_numpy(zero_copy_only=False) for n in names}

    def _batches(
        self, signals: Sequence[str], others: Sequence[str] = ()
    ) -> Iterator[tuple[pa.RecordBatch, str]]:
        """Yield batches, and the stage whose file each is from."""
        for source in self._sources:
            with open_parquet(self.folder / source.stage, source.name) as parquet:
                held = set(parquet.schema_arrow.names)
                columns = [f"signals.{n}" for n in signals] + [n for n in others if n in held]
                for batch in parquet.iter_batches(_BATCH, columns=columns):
                    yield batch, source.stage

    @property
    def decided(self) -> Decided:
        """What each limit decides about each document; found out once, by whoever asks first."""
        with self._reading:
            if self._decided is None and self._prepared is not None:
                columns = (read_column(self._prepared, name) for name in Decided._fields)
                self._decided = Decided(*columns)
            self._decided = self._decided or self.decide()
            return self._decided

    def decide(self, also: Callable[[slice, pa.StructArray], None] | None = None) -> Decided:
        """Judge every document by every limit, from the run's files.

        `also` is given all signals, batch by batch, and the places of their documents.
        """
        heard = self.heard
        limits = [number for number, languages in enumerate(heard) if languages]
        size = len(self.rows)
        fails, could = (np.zeros((len(heard), -(-size // _BYTE)), np.uint8) for _ in range(2))
        failing = np.zeros(size, np.int16)
        for first, batch in self._judged(self.names if also else self.judges.signals()):
            signals, languages = batch.column("signals"), batch.column("language")
            here = slice(first, first + batch.num_rows)
            failing[here] += fixed(batch.column("reason"))
            packed = slice(first // _BYTE, -(-here.stop // _BYTE))
            for i in limits:
                gone, would = self.judges.fails(i, signals, languages)
                failing[here] += gone
                fails[i, packed], could[i, packed] = np.packbits(gone), np.packbits(would)
            if also:
                also(here, signals)
        return Decided(failing, fails, could)

    def _judged(self, signals: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of many documents with signals, language and the reason of this stage.

        All but the last have whole bytes of bits.
        """
        waiting: list[pa.RecordBatch] = []
        first = rows = 0
        for batch, stage in self._batches(signals, ("language", "reason")):
            nothing = pa.nulls(batch.num_rows, pa.string())
            columns = {name: column_of(batch, name) for name in ("signals", "language", "reason")}
            columns |= {} if stage == self.stage else {"reason": nothing}
            waiting.append(pa.record_batch(columns))
            rows += batch.num_rows
            if rows >= _BATCH:
                whole = pa.concat_batches(waiting)
                most = rows - rows % _BYTE
                yield first, whole.slice(0, most)
                first, rows, waiting = first + most, rows - most, [whole.slice(most)]
        if rows:
            yield first, pa.concat_batches(waiting)

    def margin(self, limit: int, mask: Bits | None) -> Margin:
        """The documents, of those of a mask of the ledger, over which a limit decides alone."""
        of = self.judges.limits[limit]
        alone = self.decided.alone(limit)
        if mask is not None:
            alone &= self.of(mask)
        places = np.flatnonzero(alone)
        return Margin(
            of.side,
            self.column(of.signal)[places],
            self.rows[places],
            self.kept[places],
            np.nan_to_num(self.column(_WEIGHT)[places]).astype(np.int32),
        )

    def write(self, place: Path) -> None:
        """Write all columns and decisions to a folder, for a later start."""
        columns = {
            name: np.lib.format.open_memmap(
                place / f"signal.{name}.npy", "w+", np.float64, (len(self.rows),)
            )
            for name in self.names
        }

        def keep(here: slice, signals: pa.StructArray) -> None:
            for name, column in columns.items():
                column[here] = signals.field(name).to_numpy(zero_copy_only=False)

        for name, column in self.decide(keep)._asdict().items():
            np.save(place / f"{name}.npy", column)


class Decided(NamedTuple):
    """Which documents fail which limit. Of the last two there are eight documents in a byte."""

    failing: npt.NDArray[np.int16]  # [documents] how many limits each fails as they ran
    failed: npt.NDArray[np.uint8]  # [limits, bytes]
    could: npt.NDArray[np.uint8]  # [limits, bytes] whether it would at some threshold

    def fails(self, limit: int) -> Bits:
        """Documents that fail a limit as it ran."""
        return self._unpacked(self.failed[limit])

    def alone(self, limit: int) -> Bits:
        """Documents that nothing else removes, and that this limit would at some threshold."""
        others = self.failing - self.fails(limit)
        return (others == 0) & self._unpacked(self.could[limit])

    def _unpacked(self, packed: npt.NDArray[np.uint8]) -> Bits:
        return np.unpackbits(packed, count=len(self.failing)).view(bool)


def measuring_stage(stages: Sequence[str]) -> str | None:
    """The stage of a run that measures documents by signals, if it has one."""
    return next((s for s in stages if find(s).has_signals), None)


def _kind(source: Source) -> tuple[str, str]:
    """Stage and folder of a file. Those of one kind have the same columns."""
    return source.stage, source.name.partition("/")[0]
