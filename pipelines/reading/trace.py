"""Find passages in the texts of a run: what it tokenized, removed and cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from curation.config import settings_of_run
from curation.decontaminate.passages import Passage, Span, grams_of
from curation.hosts import host_of
from curation.stages import find
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest, shard_name
from pipelines.storage.shards import read_batches

#: Kinds of files whose texts are searched.
_KINDS = ("documents", "removed", "edits")
_IDENTITY = ("id", "url", "date", "language", "source", "rights")
_VERDICT = ("reason", "value", "value_text", "threshold", "kept_id")
_COLUMNS = (*_IDENTITY, "text", "stage", *_VERDICT)
_PLACE = ("sequence", "start", "length", "document_offset", "repeat")
#: Bytes of files between progress messages.
_TELL_BYTES = 100 << 20


class Part(NamedTuple):
    """A file of a stage."""

    stage: str
    file: str
    bytes: int

    @property
    def kind(self) -> str:
        return self.file.split("/", 1)[0]


@dataclass
class Found:
    """A document, or lines cut out of one, with spans of the passage."""

    row: dict[str, Any]
    part: Part
    spans: list[Span]
    sequences: list[dict[str, Any]] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Return what became of the document, why, and its spans with their texts."""
        row, text = self.row, self.row["text"].encode()
        facts = {name: row.get(name) for name in _IDENTITY if name in row}
        facts["host"] = host_of(row.get("url") or "") or None
        kept = "tokenised" if self.sequences else "kept"
        decision = {"edits": "cut", "removed": "removed"}.get(self.part.kind, kept)
        facts |= {"decision": decision, "stage": self.part.stage}
        facts |= {name: row[name] for name in _VERDICT if row.get(name) is not None}
        spans = [
            {"verbatim": s.verbatim, **s._asdict(), "text": text[s.start : s.end].decode()}
            for s in self.spans
        ]
        return facts | {"spans": spans, "sequences": self.sequences}


class Answer(NamedTuple):
    """The documents with the largest parts of a passage, and how many texts have any."""

    found: list[Found]
    matches: int

    def with_more(self, more: Answer, limit: int) -> Answer:
        """Return this answer with those of further documents."""
        found = sorted(
            [*self.found, *more.found],
            key=lambda f: (-sum(span.words for span in f.spans), f.row["id"]),
        )
        return Answer(found[:limit], self.matches + more.matches)


def trace(
    folder: Folder,
    stages: Sequence[str],
    texts: Sequence[str],
    limit: int,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Answer]:
    """Return in which documents of a run each passage is, on all cores; at most `limit` of each.

    Raises ConfigError for a passage that is too short or too long.
    """
    answers = [Answer([], 0) for _ in map(Passage, texts)]
    parts, indexes = _parts(folder, stages)
    read = told = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        each = pool.map(partial(_in_part, folder, texts, limit), parts)
        for k, (part, more) in enumerate(zip(parts, each, strict=True), 1):
            answers = [a.with_more(b, limit) for a, b in zip(answers, more, strict=True)]
            read += part.bytes
            if read >= told + _TELL_BYTES:
                told = read
                tell(f"trace: {k:,} of {len(parts):,} files")
    _add_sequences(folder, indexes, [found for answer in answers for found in answer.found])
    return answers


def _parts(folder: Folder, stages: Sequence[str]) -> tuple[list[Part], list[Part]]:
    """Return the files with kept, removed and cut texts, and the token indexes.

    Named mixes draw from the same documents, so their tokens are found by the documents' ids.
    """
    chain = [stage for stage in stages if "/" not in stage]
    last = next((stage for stage in reversed(chain) if not find(stage).is_sink), "")
    texts, indexes = list[Part](), list[Part]()
    for stage in stages:
        for name, facts in sorted(read_manifest(folder / stage)["files"].items()):
            part = Part(stage, name, facts["bytes"])
            if find(stage).is_sink and part.kind == "index" and name.endswith(".parquet"):
                indexes.append(part)
            elif stage in chain and part.kind in _KINDS and facts["rows"]:
                if part.kind != "documents" or stage == last:
                    texts.append(part)
    return texts, indexes


def _in_part(folder: Folder, texts: Sequence[str], limit: int, part: Part) -> list[Answer]:
    passages = [Passage(text) for text in texts]  # one each: they have buffers
    answers = [Answer([], 0) for _ in passages]
    for batch in read_batches(folder / part.stage, part.file, _COLUMNS):
        grams = grams_of(batch["text"])
        for i, passage in enumerate(passages):
            own = batch.take(pa.array(passage.candidates(grams)))
            for row in own.to_pylist():
                if spans := passage.spans(row["text"]):
                    answers[i] = answers[i].with_more(Answer([Found(row, part, spans)], 1), limit)
    return answers


def _add_sequences(folder: Folder, indexes: Sequence[Part], found: Sequence[Found]) -> None:
    """Add where each document's spans are in the token shards of all mixes."""
    ids = pa.array({one.row["id"] for one in found}, pa.string())
    places: dict[str, list[tuple[Part, dict[str, Any]]]] = {}
    for part in indexes if found else ():
        for batch in read_batches(folder / part.stage, part.file, ("id", "url", "source", *_PLACE)):
            for row in batch.filter(pc.is_in(batch["id"], ids)).to_pylist():
                places.setdefault(row["id"], []).append((part, row))
    for one in found:
        source = one.row.get("source")  # ids may be numbers of rows in several files
        own = [(p, r) for p, r in places.get(one.row["id"], []) if source in (None, r["source"])]
        if one.part.kind != "edits":  # cut lines are in no sequence
            one.sequences = list(_touched(folder, one, own))
        for _, row in own[:1]:
            one.row.setdefault("url", row.get("url"))


def _touched(
    folder: Folder, found: Found, places: Sequence[tuple[Part, dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yield the token spans that contain a part of the passage."""
    is_cut = any(row["document_offset"] for _, row in places)
    for part, row in places:
        if not is_cut or _overlaps(folder / part.stage, found, row):
            shard = {"stage": part.stage, "shard": shard_name(part.file)}
            yield shard | {name: row[name] for name in _PLACE}


def _overlaps(place: Folder, found: Found, row: dict[str, Any]) -> bool:
    """Return whether a span of a document's tokens contains a part of the passage."""
    settings = settings_of_run(TokenizeSettings, read_manifest(place)["settings"])
    ends = load_tokenizer(settings.tokenizer).token_ends(found.row["text"])
    first = row["document_offset"] - bool(settings.bos)
    last = min(first + row["length"], len(ends))
    start = int(ends[first - 1]) if first > 0 else 0
    end = int(ends[last - 1]) if last > 0 else 0
    return any(span.start < end and start < span.end for span in found.spans)
