"""Remove documents from a finished run.

Documents are withdrawn after a run: a host asks for it, a source loses its licence, a rights policy
changes. Their token shards are rewritten with padding in place of these documents, and the document
index without them.
The run itself does not change. Where rights follow the text, copies are withdrawn, too. Other
documents that had been removed as duplicates are deduplicated again among themselves with the run's
settings, so that one of each set of copies comes back.

Documents in token shards are masked: their tokens become padding, their index rows go. Sequences
keep their places, so a fixed training order remains valid.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, InputError
from curation.hosts import host_of
from curation.recipe import Recipe, load
from curation.rights.policy import COPIES, Policy, Ruling, original_of
from curation.rights.rights_settings import COMPARES
from curation.schema import VERDICT_COLUMNS, aligned
from curation.stages import find, known_stages
from curation.tokenize.megatron import token_dtype
from curation.tokenize.shard import DOCUMENT_INDEX
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import load_tokenizer
from pipelines.dedup.indexes import index_files
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.run_folder import SUMS, WITHDRAWN, load_run, make_run_folder
from pipelines.runners.execute import Executor
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, inner_stages, read_manifest, shard_name
from pipelines.storage.own import remove_stage
from pipelines.storage.runs import read_batches_of
from pipelines.storage.shards import TableWriter, own_ids, read_batches, read_kinds

_CHUNK_TOKENS = 1 << 20


_SPANS = pa.schema([DOCUMENT_INDEX.field(n) for n in "sequence start length id source".split()])


def mask_stage(place: Folder, target: Folder, ids: Collection[str]) -> dict[str, Any]:
    """Write a tokenize stage's shards without the documents of these ids.

    Shards without such documents are not written. Returns the record of each file, the names of the
    other shards, and counts of the documents, their sequences and their tokens.
    """
    settings = TokenizeSettings.model_validate(read_manifest(place)["settings"])
    wanted = pa.array(sorted(ids), pa.string())
    files, found = dict[str, Any](), set[tuple[str, ...]]()
    unchanged, sequences, tokens = list[str](), 0, 0
    for name in files_of(read_manifest(place), "index"):
        shard = shard_name(name)
        spans = _spans(place, name, wanted)
        found.update((row["id"], *row["source"].values()) for row in spans.to_pylist())
        sequences += len(spans["sequence"].unique())
        tokens += pc.sum(spans["length"], min_count=0).as_py()
        if not spans.num_rows:
            unchanged.append(shard)
            continue
        files |= _mask(place, target, shard, spans, settings)
        files[name] = _index_without(place, target, name, wanted)
    counts = {"documents": len(found), "sequences": sequences, "tokens": tokens}
    return {**counts, "unchanged": unchanged, "files": files}


def _spans(place: Folder, name: str, ids: pa.Array) -> pa.Table:
    """Return the rows of a document index that belong to these documents."""
    batches = read_batches(place, name, _SPANS.names)
    return pa.Table.from_batches((b.filter(pc.is_in(b["id"], ids)) for b in batches), _SPANS)


def _mask(
    place: Folder, target: Folder, shard: str, spans: pa.Table, settings: TokenizeSettings
) -> dict[str, Any]:
    tokenizer = load_tokenizer(settings.tokenizer)
    dtype = token_dtype(tokenizer.vocab_size).newbyteorder("<")
    starts = spans["sequence"].to_numpy() * settings.context_length + spans["start"].to_numpy()
    ends = starts + spans["length"].to_numpy()
    with place.open(f"{shard}.bin") as source, target.create(f"{shard}.bin") as sink:
        at = 0
        while data := source.read(_CHUNK_TOKENS * dtype.itemsize):
            tokens = np.frombuffer(data, dtype).copy()
            _fill(tokens, starts - at, ends - at, tokenizer.pad)
            sink.write(tokens.tobytes())
            at += len(tokens)
    rows = read_manifest(place)["files"][f"{shard}.bin"]["rows"]
    masked = {f"{shard}.bin": sink.record(rows)._asdict()}
    index = target.write_bytes(f"{shard}.idx", place.read_bytes(f"{shard}.idx"))
    return masked | {f"{shard}.idx": index._asdict()}


def _fill(
    tokens: npt.NDArray[Any],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    pad: int,
) -> None:
    """Write padding between starts and ends, which may lie outside the array."""
    for start, end in zip(starts.clip(0), ends.clip(0), strict=True):
        tokens[start:end] = pad


def _index_without(place: Folder, target: Folder, name: str, ids: pa.Array) -> dict[str, Any]:
    batches = list(read_batches(place, name))
    with TableWriter(target, name, batches[0].schema) as writer:
        for batch in batches:
            writer.write(batch.filter(pc.invert(pc.is_in(batch["id"], ids))))
    return writer.record._asdict()


#: Reason of a copy of a withdrawn document.
COPIED = "withdrawn.copy"
_WAITING = "waiting"
_REPORT = "withdrawn.json"
_DOCUMENTS, TOKENS = "withdrawn.parquet", "tokens"
#: Table of the withdrawn documents; `value` is the prefix, host or signal.
RECORD = pa.schema([(name, pa.string()) for name in ("id", "url", "reason", "value")])


@dataclass
class Withdrawn:
    """The withdrawn documents: what selects them, and their ids."""

    prefixes: Sequence[str]
    ids: set[str] = field(default_factory=set)
    #: The numbers that tables gave to some of the documents, by id.
    numbers: dict[str, str] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    policy: Policy | None = None
    #: Least similarity of a copy that is withdrawn, too; None: copies come back.
    near: float | None = None

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Collect a batch's withdrawn documents; return their rows of RECORD."""
        names, urls = batch.column("id").to_pylist(), batch.column("url").to_pylist()
        rulings = self.policy.rulings(batch["rights"]) if self.policy else [None] * len(names)
        rows = []
        for name, url, ruling in zip(names, urls, rulings, strict=True):
            if why := self._why(name, url or "", ruling):
                rows.append({"id": name, "url": url} | why)
                self.ids.add(name)
        return pa.RecordBatch.from_pylist(rows, RECORD)

    def _why(self, name: str, url: str, ruling: Ruling | None) -> dict[str, Any] | None:
        if name in self.ids or name in self.numbers:
            return {"reason": "withdrawn.id", "value": self.numbers.get(name, name)}
        if url.startswith(tuple(self.prefixes)):
            return {"reason": "withdrawn.url", "value": url}
        if self.hosts and (host := self._host(url)):
            return {"reason": "withdrawn.host", "value": host}
        if ruling is None:
            return None
        parts = (ruling.signal[n] for n in ("kind", "place", "agent", "value"))
        return {"reason": ruling.reason, "value": " ".join(filter(None, parts))}

    def _host(self, url: str) -> str | None:
        """Return the listed host that a URL's host is, or is a subdomain of."""
        host = host_of(url).rstrip(".")
        while host and host not in self.hosts:
            host = host.partition(".")[2]
        return host or None

    def duplicates(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Select rows removed as duplicates of a withdrawn document, not withdrawn themselves."""
        ids = pa.array(sorted(self.ids), pa.string())
        lost = pc.is_in(batch.column("kept_id"), ids)
        return batch.filter(pc.and_not(lost, pc.is_in(batch.column("id"), ids)))


class Withdrawal:
    """Documents to withdraw from runs, found and not yet withdrawn.

    Args:
        runs: a run, and further ones that used it as an index.
        output: run folder for what comes back; default: `withdrawn` in the first run.
        asked: what selects the documents, for the report.

    Raises InputError where no document is selected, ConfigError for a folder with the withdrawal of
    documents that aren't.
    """

    def __init__(
        self, runs: Sequence[str], gone: Withdrawn, output: str | None, asked: dict[str, Any]
    ) -> None:
        self._runs = list({Folder(path): load_run(path) for path in runs}.values())
        self.output = Folder(output) if output else Folder(runs[0]) / WITHDRAWN
        # The root is as `curate verify` prints it; None: the run has not finished.
        sums = ((f, f.read_bytes(SUMS) if f.exists(SUMS) else None) for f, _ in self._runs)
        named = [{"run": f.shown, "root": s and hashlib.sha256(s).hexdigest()} for f, s in sums]
        self._asked = {"by": asked, "runs": named}
        if gone.near is not None and not any(COMPARES in s for _, s in self._runs):
            raise ConfigError(
                f"{self._runs[0][0].shown}: copies are not known: it has no {COMPARES}"
            )
        named_ids = frozenset(gone.ids)
        self._gone, self._rows = gone, selected(self._runs, gone)
        found = {name for rows in self._rows for name in rows["id"].to_pylist()}
        if any(find(stages[0]).is_sink for _, stages in self._runs):
            found |= gone.ids  # of documents that are gone only their tokens are left
        self.unknown, gone.ids = len(named_ids - found - {*gone.numbers.values()}), found
        if not found:
            raise InputError("the selection matches no document of the run")
        self._refuse_another()
        #: Selected documents that a stage had removed, and those withdrawn now.
        places = (run / stage for run, stages in self._runs for stage in stages if "/" not in stage)
        self.past = _count(places, ["removed"], found)
        every = _count((run / s[0] for run, s in self._runs), ["documents", "removed"], found)
        self.documents = max(every, len(found)) - self.past

    def run(self, executor: Executor) -> dict[str, Any]:
        """Mask the documents, and restore their duplicates.

        Returns the report, as it is written.
        """
        output = self.output
        if output.is_local:
            make_run_folder(output)
        with TableWriter(output, _DOCUMENTS, RECORD) as writer:
            for batch in self._rows:
                writer.write(batch)
        output.remove(_WAITING)
        output.remove(TOKENS)
        report: dict[str, Any] = {"withdrawn": self.documents, **self._asked}
        report |= {"tokens": {}, "given_back": {}, "still_removed": {}, "removed_before": self.past}
        report |= {"ids": len(self._gone.ids), "unknown": self.unknown}
        for number, (run, stages) in enumerate(self._runs):
            inner = f"{number}/" if number else ""
            for stage in filter(lambda stage: find(stage).is_sink, stages):
                name, ids = f"{inner}{stage}", self._gone.ids
                target = output / f"{TOKENS}/{name}"
                report["tokens"][name] = mask_stage(run / stage, target, ids)
        for stage in (name for name, s in known_stages().items() if s.keeps_one):
            if counts := self._given_back(stage, executor):
                report["given_back"][stage] = counts["documents"]
                report["still_removed"][stage] = counts["documents_removed"]
        output.remove(_WAITING)
        output.write_json(_REPORT, report)
        return report

    def _given_back(self, stage: str, executor: Executor) -> dict[str, Any]:
        """Deduplicate again what a stage removed for withdrawn documents; return the counts."""
        output, gone = self.output, self._gone
        remove_stage(output / stage)
        found = [(f / stage, i) for i, (f, s) in enumerate(self._runs) if stage in s]
        if not sum(_collect(output, stage, place, i, gone) for place, i in found):
            return {}
        waiting = (output / _WAITING / stage).url
        recipe = _recipe(stage, found[0][0], gone)
        work = plan(recipe, output.url, [f"{waiting}/*.parquet"], [stage], fresh=True)
        return run_plan(work, executor)[stage]["counts"]  # type: ignore[no-any-return]

    def _refuse_another(self) -> None:
        output = self.output
        if not output.exists(_DOCUMENTS) and (read_manifest(output) or inner_stages(output)):
            raise ConfigError(f"{output.shown}: has a run or is part of one: give another --output")
        if output.exists(_REPORT):
            found = output.read_json(_REPORT)
            held = (b["id"].to_pylist() for b in read_batches(output, _DOCUMENTS, ["id"]))
            lost = set[str]().union(*held) - self._gone.ids
            if lost or found.get("runs") != self._asked["runs"]:
                raise ConfigError(
                    f"{output.shown} has the withdrawal of {found['withdrawn']:,} other documents, "
                    "which this one would replace: write to another --output"
                )


def selected(runs: Sequence[tuple[Folder, list[str]]], gone: Withdrawn) -> list[pa.RecordBatch]:
    """Return the selected documents with reasons, and copies of them: rows of RECORD."""
    wanted, found = ["id", "url", *(["rights"] if gone.policy else [])], list[pa.RecordBatch]()
    for folder, stages in runs:
        first = folder / stages[0]
        gone.numbers |= own_ids(first, gone.ids)
        for batch in read_kinds(first, ["documents", "removed"], wanted):
            if batch.num_columns < len(wanted):
                raise InputError(f"{first.shown}: the documents have no column 'rights'")
            found.append(gone.add(batch))
    if gone.near is not None:
        found.append(_copies(runs, gone, gone.near))
    return [rows for rows in found if rows.num_rows]


def _count(places: Iterable[Folder], kinds: Sequence[str], ids: Collection[str]) -> int:
    """Return how many rows of these stages' files have one of these ids."""
    wanted = pa.array(sorted(ids), pa.string())
    batches = (batch for place in places for batch in read_kinds(place, kinds, ["id"]))
    return sum(pc.is_in(batch["id"], wanted).true_count for batch in batches)


def _copies(runs: Sequence[tuple[Folder, list[str]]], gone: Withdrawn, near: float) -> Any:
    """Add copies of the withdrawn documents to these; return their rows of RECORD.

    Each document of a cluster is at least `near` to the one that was kept. A document that is known
    not to be the copy of a withdrawn one is not added; in doubt a policy decides as its stage does.
    """
    rows, in_doubt = {}, gone.policy.in_doubt if gone.policy else lambda one: True
    for _, members in sorted(_clusters(runs, gone, near).items()):
        asked = sorted((m for m in members if m["id"] in gone.ids), key=lambda m: str(m["id"]))
        others = [m for m in members if m["id"] not in gone.ids]
        for member in others:
            of = original_of(member, asked, others if gone.policy else (), in_doubt)
            if of is not None:
                named = {"id": member["id"], "url": member["url"]}
                rows[member["id"]] = named | {"reason": COPIED, "value": of["id"]}
    gone.ids |= rows.keys()
    return pa.RecordBatch.from_pylist([rows[name] for name in sorted(rows)], RECORD)


def _clusters(
    runs: Sequence[tuple[Folder, list[str]]], gone: Withdrawn, near: float
) -> dict[str, list[dict[str, Any]]]:
    """Return clusters with a withdrawn document by the kept one's id: rows of COPIES."""
    ids = pa.array(sorted(gone.ids), pa.string())
    clusters: dict[str, list[dict[str, Any]]] = {}
    for batch in _compared(runs, "removed", near):
        hit = pc.or_(pc.is_in(batch["id"], ids), pc.is_in(batch["kept_id"], ids))
        clusters |= {name: [] for name in batch["kept_id"].filter(hit).to_pylist()}
    wanted = pa.array(sorted(clusters), pa.string())
    for kind, key in (("removed", "kept_id"), ("documents", "id")):
        for batch in _compared(runs, kind, near):
            for row in batch.filter(pc.is_in(batch[key], wanted)).to_pylist():
                clusters[row[key]].append(row)
    return clusters


def _compared(
    runs: Sequence[tuple[Folder, list[str]]], kind: str, near: float
) -> Iterator[pa.RecordBatch]:
    """Yield what was kept, or removed as so similar, with what tells a copy: COPIES."""
    for place in (folder / COMPARES for folder, stages in runs if COMPARES in stages):
        for batch in read_kinds(place, [kind], COPIES.names):
            batch = aligned(batch, COPIES)
            near_to = pc.greater_equal(batch["value"], near)
            yield batch if kind == "documents" else batch.filter(near_to)


def _collect(output: Folder, stage: str, place: Folder, run: int, gone: Withdrawn) -> int:
    """Write the duplicates of withdrawn documents, shard by shard; return their number."""
    total = 0
    for name in files_of(read_manifest(place), "removed"):
        batches = [b for b in map(gone.duplicates, read_batches(place, name)) if b.num_rows]
        if batches:
            columns = [n for n in batches[0].schema.names if n not in VERDICT_COLUMNS]
            kept = [b.select(columns) for b in batches]
            shard = f"{_WAITING}/{stage}/{run}-{name.removeprefix('removed/')}"
            with TableWriter(output, shard, kept[0].schema) as writer:
                for batch in kept:
                    writer.write(batch)
            total += sum(b.num_rows for b in kept)
    return total


def _recipe(stage: str, place: Folder, gone: Withdrawn) -> Recipe:
    """Return the run's settings of the stage, without indexes that have withdrawn documents."""
    manifest = read_manifest(place)
    settings = find(stage).settings.model_validate(manifest["settings"])
    against = [p for p in settings.index.against if not _holds(p, stage, gone)]
    index = settings.index.model_copy(update={"against": tuple(against), "write": False})
    settings = settings.model_copy(update={"index": index})
    return load("llama3").model_copy(
        update={stage.replace("-", "_"): settings, "name": manifest["recipe"]["name"]}
    )


def _holds(path: str, stage: str, gone: Withdrawn) -> bool:
    ids = pa.array(sorted(gone.ids), pa.string())
    files = index_files(path, stage, 0)
    batches = (batch for file in files for batch in read_batches_of(file.folder, file.file))
    return any(pc.is_in(batch["id"], ids).true_count for batch in batches)
