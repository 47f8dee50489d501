"""Read texts from runs, stages, token shards, tables and text files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation.errors import ConfigError, InputError
from curation.extract.safe import text_of
from curation.readers.discover import discover
from curation.readers.read import read
from curation.readers.records import Page
from curation.readers.settings import ReaderSettings
from curation.recipe import load
from curation.stages import find
from curation.tokenize.reader import TokenShards
from curation.tokenize.tokenizer import AnyTokenizer
from models.ablate.prepare import Text
from pipelines.engine.stage import stage_inputs
from pipelines.run_folder import RECIPE_FILE, load_run
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest

#: Suffixes of files with one text each, besides those that readers know.
_SOURCES = (".txt", ".md", ".tex", ".py", ".c", ".h", ".cc", ".java", ".js", ".ts", ".go", ".rs")
_COLUMNS = ("text", "url", "repeats")


@dataclass(frozen=True)
class Corpora:
    """Reads texts. `stage`: which stage of run folders; None: the last one with documents.

    `one_line`: with a space for all white space.
    """

    stage: str | None
    tokenizer: AnyTokenizer  # tokenizer of token shards
    one_line: bool = False

    def texts(self, path: str) -> list[Text]:
        """Return the texts of a run, stage, shards or files, in their order.

        Raises ConfigError or InputError.
        """
        folder = Folder(path)
        if folder.exists(RECIPE_FILE):
            found = self._run(path)
        elif Path(path).is_dir() and any(Path(path).glob("*.bin")):
            found = self._shards(path)
        elif read_manifest(folder) or folder.exists("documents"):
            found = _stage(path)
        else:
            found = _files(path)
        if texts := list(found):
            return [text.one_line() for text in texts] if self.one_line else texts
        raise InputError(f"{path}: no texts")

    def _run(self, path: str) -> Iterator[Text]:
        folder, stages = load_run(path)
        stages = [name for name in stages if not find(name).is_sink]
        name = self.stage or stages[-1]
        if name not in stages:
            raise ConfigError(f"--stage {name}: {folder.shown} has: {', '.join(stages)}")
        return _stage((folder / name).url)

    def _shards(self, path: str) -> Iterator[Text]:
        """Decode documents; one that continues in the next sequence counts as two."""
        shards = TokenShards(path, batch_size=1, shuffle=False, epochs=1)
        for number in range(shards.samples):
            row = shards.take(np.array([number]))[0]
            special = self.tokenizer.is_special(row)
            ends = np.flatnonzero(special)
            for ids, marks in zip(np.split(row, ends), np.split(special, ends), strict=True):
                text = self.tokenizer.decode(ids[~marks])
                if text.strip():
                    yield Text(text)


def _stage(path: str) -> Iterator[Text]:
    for shard in stage_inputs([path]):
        columns = [name for name in _COLUMNS if name in shard.schema().names]
        for batch in shard.batches(columns):
            for row in batch.to_pylist():
                yield Text(row["text"] or "", row.get("url") or "", row.get("repeats", 1))


def _files(path: str) -> Iterator[Text]:
    settings: ReaderSettings = load("llama3").readers
    for file in discover([path], suffixes=(*settings.formats, *_SOURCES)):
        if file.path.lower().endswith(_SOURCES):
            yield Text(Path(file.path).read_text(encoding="utf-8", errors="replace"))
            continue
        for event in read(file.path, settings, file.name):
            if isinstance(event, Page) and event.kind == "text":
                yield Text(text_of(event), event.url)
