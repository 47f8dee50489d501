"""Check a run folder against its manifests, down to the tokens' source records.

Every file is hashed. Documents are counted: each one entering a stage is kept or removed there. A
sample of the tokens is traced back: their document's text must encode to these tokens, and every
earlier stage must have kept that document, from the same record. Copies of a document must be in
different sequences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.config import settings_of_run
from curation.errors import ConfigError, InputError
from curation.readers.documents import document_id
from curation.readers.read import read_at
from curation.recipe import load
from curation.schema import aligned
from curation.stages import find
from curation.summary.bom import differences
from curation.summary.statements import is_signed
from curation.tokenize.megatron import token_dtype
from curation.tokenize.pack import together
from curation.tokenize.shard import DOCUMENT_INDEX, alike
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import AnyTokenizer, load_tokenizer
from pipelines.plan import input_files
from pipelines.reading.funnel import counts
from pipelines.reading.summary import BILL, bill_of_materials
from pipelines.run_folder import RECIPE_FILE, SUMMARY, SUMS, all_stages, load_run, sums
from pipelines.storage.exchange import concatenated
from pipelines.storage.files import Folder
from pipelines.storage.manifest import (
    Manifest,
    damaged_copies,
    files_of,
    is_stage,
    named_files,
    read_manifest,
    shard_name,
)
from pipelines.storage.own import unnamed_files
from pipelines.storage.shards import read_batches, read_kinds

_SPANS = pa.schema([DOCUMENT_INDEX.field(name) for name in ("sequence", "id", "cluster")])
#: Files hashed concurrently.
_THREADS = 4


class Checked(NamedTuple):
    """What was checked of a run, and what is wrong with it."""

    folder: Folder
    manifests: dict[str, Manifest]  # by stage
    spans: int  # of tokens, that were traced back
    problems: list[str]


def check(
    run: str,
    share: float = 0.01,
    inputs: Sequence[str] = (),
    bill: str | None = None,
    key: str | None = None,
) -> Checked:
    """Check the files and counts of a run, its bill of materials, and a share of its tokens.

    Args:
        share: of the token spans to trace back.
        inputs: the run's raw input, to trace tokens back to its records.
        bill: path of a bill of materials, if not the run's own.
        key: path of the public key to check the bill's signature with.

    Raises ConfigError for a folder that is no run, or a file that is missing.
    """
    folder, stages = load_run(run)
    manifests = {stage: read_manifest(folder / stage) for stage in stages}
    problems = [*_stages(folder, stages), *_files(folder, manifests), *_bill(folder, bill, key)]
    if problems:  # further checks make no sense on damaged files
        return Checked(folder, manifests, 0, problems)
    problems += _counts(run, manifests)
    tracer = _Tracer(folder, manifests, _records(folder, inputs))
    for stage in filter(lambda stage: find(stage).is_sink, stages):
        tracer.trace(stage, share)
        problems += _copies(folder / stage, stage, manifests[stage])
    return Checked(folder, manifests, tracer.spans, [*problems, *tracer.problems])


def _stages(folder: Folder, complete: Sequence[str]) -> Iterator[str]:
    """Yield incomplete stages, and manifests that differ from the run's checksums."""
    for stage in all_stages(folder):
        if stage not in complete and is_stage(folder / stage):
            yield f"{stage}: incomplete or stale: files are missing or its input has changed"
        for name in damaged_copies(folder / stage) if stage in complete else ():
            yield f"{stage}/{name}: damaged or missing"
    named = folder.read_bytes(SUMS).splitlines() if folder.exists(SUMS) else []
    found = sums(folder, complete).splitlines()
    if not named:
        yield f"{SUMS}: missing: the run did not finish"
    elif len(named) != len(found):
        yield f"{SUMS}: damaged, or from another run"
    for one, other in zip(named, found, strict=False):
        if one != other:
            yield f"{other.split()[-1].decode()}: differs from {SUMS}"


def _files(folder: Folder, manifests: dict[str, Manifest]) -> Iterator[str]:
    """Yield files that are missing, differ from their manifest, or are in no manifest."""
    for stage, manifest in manifests.items():
        place, named = folder / stage, named_files(manifest)
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(lambda name, place=place: _digest(place, name), named)
            for name, digest in zip(named, found, strict=True):
                if digest != named[name]["sha256"]:
                    what = "missing" if digest is None else "not the bytes that were written"
                    yield f"{stage}/{name}: {what}"
        yield from (f"{stage}/{name}: not in any manifest" for name in unnamed_files(place))


def _digest(place: Folder, name: str) -> str | None:
    try:
        with place.open(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except FileNotFoundError:
        return None


def _bill(run: Folder, bill: str | None, key: str | None) -> Iterator[str]:
    """Yield differences from the bill of materials, and an invalid signature."""
    name = bill or f"{SUMMARY}/{BILL}"
    above, _, file = bill.rpartition("/") if bill else ("", "", name)
    place = Folder(above or ".") if bill else run
    if not place.exists(file):
        if bill or key:
            raise ConfigError(f"{name}: no such bill of materials; `curate summary` writes it")
        return
    data = place.read_bytes(file)
    try:
        yield from (
            f"{name}: {d}" for d in differences(json.loads(data), bill_of_materials(run.url))
        )
    except (ValueError, KeyError, TypeError):
        yield f"{name}: damaged"
    if key:
        yield from _signature(place, file, data, key)


def _signature(place: Folder, file: str, data: bytes, key: str) -> Iterator[str]:
    signature = f"{file}.sig"
    try:
        pem = Path(key).read_bytes()
    except OSError as error:
        raise ConfigError(f"{key}: {error.strerror}") from None
    if not place.exists(signature):
        yield f"{signature}: missing: the bill is not signed"
    elif not is_signed(data, place.read_bytes(signature), pem, key):
        yield f"{signature}: not the signature of this bill by {key}"


def _counts(run: str, manifests: dict[str, Manifest]) -> Iterator[str]:
    """Yield stages whose kept and removed documents do not add up to their input."""
    yield from counts(run)["problems"]
    for stage, manifest in manifests.items():
        for kind, count in (("documents", "documents"), ("removed", "documents_removed")):
            rows = [file["rows"] for file in files_of(manifest, kind).values()]
            if rows and sum(rows) != manifest["counts"][count]:
                yield f"{stage}: {sum(rows)} rows in {kind}, {manifest['counts'][count]} counted"


def _copies(place: Folder, stage: str, manifest: Manifest) -> Iterator[str]:
    """Yield shards where copies share a sequence, although there is one for each of them."""
    for name in files_of(manifest, "index"):
        rows = concatenated([aligned(b, _SPANS) for b in read_batches(place, name)], _SPANS)
        sequences, groups = rows.column("sequence").to_numpy(), alike(rows)
        found = together(sequences, groups)
        found = found[np.bincount(groups)[groups[found]] <= sequences.max(initial=-1) + 1]
        for one in found[:1].tolist():
            yield (
                f"{stage}: {shard_name(name)}, sequence {sequences[one]}: more than one copy of "
                f"{rows.column('id')[one]}; make it again with --fresh"
            )


def _records(folder: Folder, given: Sequence[str]) -> dict[str, str]:
    """Return the paths of the raw input files by name; None if they are not given."""
    if not given:
        return {}
    recipe = load(folder.url_of(RECIPE_FILE))
    return {file.name: file.path for file in input_files(recipe, given)}


class _Tracer:
    """Traces tokens back to their documents, and these through the stages to their records."""

    def __init__(
        self, folder: Folder, manifests: dict[str, Manifest], records: dict[str, str]
    ) -> None:
        self._folder, self._manifests, self._records = folder, manifests, records
        self.problems: list[str] = []
        self.spans = 0

    def trace(self, stage: str, share: float) -> None:
        """Trace a share of the spans of a tokenize stage."""
        found = [span for spans in self._sampled(stage, share) for span in spans]
        self.spans += len(found)
        documents = {span["id"]: span["source"] for span in found}
        before = self._before(stage)
        if before is not None:
            texts = self._documents(before, documents, ["id", "source", "text"])
            self._check_tokens(stage, found, texts)
        while before is not None:
            held = self._documents(before, documents, ["id", "source"])
            for name, source in documents.items():
                if name not in held:
                    self.problems.append(f"{stage}: {name} is not a document of {before}")
                elif held[name]["source"] != source:
                    self.problems.append(f"{stage}: {name} comes from another record in {before}")
            before = self._before(before)
        if self._records:
            self._check_records(stage, documents)

    def _before(self, stage: str) -> str | None:
        name: str | None = self._manifests[stage].get("after", {}).get("stage")
        return name if name in self._manifests else None

    def _sampled(self, stage: str, share: float) -> Iterator[list[dict[str, Any]]]:
        """Yield every n-th row of the document index with its `tokens`, to meet the share."""
        place, step, row = self._folder / stage, round(1 / share) if share else 0, 0
        settings = settings_of_run(TokenizeSettings, self._manifests[stage]["settings"])
        dtype = token_dtype(load_tokenizer(settings.tokenizer).vocab_size).newbyteorder("<")
        for name in files_of(self._manifests[stage], "index") if step else ():
            shard = shard_name(name)
            for batch in read_batches(place, name):
                chosen = np.arange(-row % step, batch.num_rows, step)
                spans = batch.take(pa.array(chosen)).to_pylist()
                for span in spans:
                    first = span["sequence"] * settings.context_length + span["start"]
                    start, end = (n * dtype.itemsize for n in (first, first + span["length"]))
                    data = place.read_bytes(f"{shard}.bin", start, end)
                    span["tokens"] = np.frombuffer(data, dtype).tolist()
                row += batch.num_rows
                yield spans

    def _documents(
        self, stage: str, wanted: dict[str, Any], columns: list[str]
    ) -> dict[str, dict[str, Any]]:
        ids, found = pa.array(sorted(wanted), pa.string()), dict[str, dict[str, Any]]()
        kinds = ["documents"] if wanted else []
        for batch in read_kinds(self._folder / stage, kinds, columns):
            rows = batch.filter(pc.is_in(batch["id"], ids)).to_pylist()
            found |= {row["id"]: row for row in rows}
        return found

    def _check_tokens(
        self, stage: str, spans: Sequence[dict[str, Any]], texts: dict[str, dict[str, Any]]
    ) -> None:
        settings = settings_of_run(TokenizeSettings, self._manifests[stage]["settings"])
        tokenizer = load_tokenizer(settings.tokenizer)
        for span in spans:
            if span["id"] in texts:
                whole = _encoded(texts[span["id"]]["text"], tokenizer, settings)
                first = span["document_offset"]
                if whole[first : first + span["length"]] != span["tokens"]:
                    where = f"sequence {span['sequence']}, token {span['start']}"
                    self.problems.append(f"{stage}: {where}: not the tokens of {span['id']}")

    def _check_records(self, stage: str, documents: dict[str, Any]) -> None:
        readers = load(self._folder.url_of(RECIPE_FILE)).readers
        for name, source in documents.items():
            file = source["file"]
            try:
                page = read_at(self._records[file], source["offset"], readers)
                own = (page.fields or {}).get("id")
                found = own if isinstance(own, str) and own else document_id(file, page)
            except KeyError:
                self.problems.append(f"{stage}: {file} is not among the given input")
                continue
            except InputError as error:
                self.problems.append(f"{stage}: {name}: {error}")
                continue
            if found != name:
                self.problems.append(
                    f"{stage}: {name} is not the record at offset {source['offset']}"
                )


def _encoded(text: str, tokenizer: AnyTokenizer, settings: TokenizeSettings) -> list[int]:
    """Return the token ids of a document with its begin and end tokens."""
    tokens, _ = tokenizer.encode_batch(pa.array([text], pa.large_string()))
    begin = [tokenizer.bos] if settings.bos else []
    end = [tokenizer.eos] if settings.eos else []
    return [*begin, *tokens.tolist(), *end]
