"""Check a run folder against its manifests, down to the tokens' source records; give receipts.

Every file is hashed. Documents are counted: each one entering a stage is kept or removed there. A
sample of the tokens is traced back: their document's text must encode to these tokens, and every
earlier stage must have kept that document, from the same record. Copies of a document must be in
different sequences.

A receipt says what of some hosts is in a run, and what became of it, row by row of the run's files.
The hashes of these files are in the manifests, whose hashes are in the run's sums, whose hash is
the run's root: whoever has the root and the receipt checks this chain without the corpus, and each
statement with the one file that it names.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.config import read_yaml, settings_of_run
from curation.errors import ConfigError, InputError
from curation.hosts import host_of
from curation.readers.documents import document_id
from curation.readers.read import read_at
from curation.recipe import load
from curation.resources import root
from curation.rights.rights_settings import COMPARES
from curation.schema import aligned
from curation.stages import find
from curation.tokenize.megatron import token_dtype
from curation.tokenize.pack import together
from curation.tokenize.shard import DOCUMENT_INDEX, alike
from curation.tokenize.tokenize_settings import TokenizeSettings
from curation.tokenize.tokenizer import AnyTokenizer, load_tokenizer
from pipelines.plan import input_files
from pipelines.reading.funnel import counts
from pipelines.run_folder import RECIPE_FILE, SUMS, all_stages, load_run, sums
from pipelines.storage.exchange import concatenated
from pipelines.storage.files import Folder
from pipelines.storage.manifest import (
    MANIFEST,
    Manifest,
    files_of,
    is_damaged,
    is_stage,
    named_files,
    read_manifest,
    shard_name,
)
from pipelines.storage.own import unnamed_files
from pipelines.storage.shards import read_batches, read_kinds, read_rows
from pipelines.withdrawals import COPIED, Withdrawn, selected

_SPANS = pa.schema([DOCUMENT_INDEX.field(name) for name in ("sequence", "id", "cluster")])
#: What is said of a document in a receipt, by kind of the file that says so.
_SAID = {
    "removed": ("id", "stage", "reason", "value", "value_text", "threshold", "kept_id"),
    "documents": ("id",),
    "index": ("id", "sequence", "start", "length"),
}
_FOUND = ("id", "url", "stage", "decision")
#: Most documents named in which a text was found.
_MOST_FOUND = 100
#: Files hashed concurrently.
_THREADS = 4


class Checked(NamedTuple):
    """What was checked of a run, and what is wrong with it."""

    folder: Folder
    manifests: dict[str, Manifest]  # by stage
    spans: int  # of tokens, that were traced back
    problems: list[str]


def check(run: str, share: float = 0.01, inputs: Sequence[str] = ()) -> Checked:
    """Check the files and counts of a run, and a share of its tokens.

    Args:
        share: of the token spans to trace back.
        inputs: the run's raw input, to trace tokens back to its records.

    Raises ConfigError for a folder that is no run, or a file that is missing.
    """
    folder, stages = load_run(run)
    manifests = {stage: read_manifest(folder / stage) for stage in stages}
    problems = [*_stages(folder, stages), *_files(folder, manifests)]
    if problems:  # further checks make no sense on damaged files
        return Checked(folder, manifests, 0, problems)
    problems += _counts(run, manifests)
    tracer = _Tracer(folder, manifests, _records(folder, inputs))
    for stage in filter(lambda stage: find(stage).is_sink, stages):
        tracer.trace(stage, share)
        problems += _copies(folder / stage, stage, manifests[stage])
    return Checked(folder, manifests, tracer.spans, [*problems, *tracer.problems])


def receipt(
    run: str, hosts: frozenset[str], near: float | None, texts: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what of some hosts, and which copies of it, is in a run and its tokens, as JSON.

    Args:
        near: least similarity of a copy; null where no stage compared documents.
        texts: passages that are looked for, by name.
    """
    folder, stages = load_run(run)
    asked = Withdrawn([], hosts=hosts, near=near if COMPARES in stages else None)
    rows = [r for batch in selected([(folder, stages)], asked) for r in batch.to_pylist()]
    documents = {r["id"]: {"id": r["id"], "url": r["url"], "said": []} for r in rows}
    for row in rows:
        if row["reason"] == COPIED:
            documents[row["id"]]["copy_of"] = row["value"]
    manifests = {stage: read_manifest(folder / stage) for stage in stages}
    for row in _said(folder, manifests, pa.array(sorted(documents), pa.string())):
        documents[row.pop("id")]["said"].append(row)
    listed = sums(folder, stages)
    own = {s: (folder / s).read_bytes(MANIFEST).decode() for s in stages}
    found = {
        "root": hashlib.sha256(listed).hexdigest(),
        "hosts": sorted(hosts),
        "near": asked.near,
        "documents": [documents[name] for name in sorted(documents)],
        "texts": _passages(folder, stages, texts or {}),
        **_words(),
    }
    return found | {SUMS: listed.decode(), "manifests": own}


def _words() -> dict[str, str]:
    return read_yaml(root() / "configs" / "lists" / "receipt.yaml")  # type: ignore[no-any-return]


def _said(
    folder: Folder, manifests: Mapping[str, Manifest], ids: pa.Array
) -> Iterator[dict[str, Any]]:
    """Yield what files of a run say of documents by id, with file and row."""
    last = [s for s, manifest in manifests.items() if files_of(manifest, "documents")][-1:]
    for stage, manifest in manifests.items():
        kinds = ["removed", "index" if find(stage).is_sink else ""]
        for name in files_of(manifest, *kinds, *(["documents"] if stage in last else [])):
            for row in _rows_of(folder / stage, name, ids):
                found = {k: v for k, v in row.items() if v is not None}
                yield {"file": f"{stage}/{name}", **found}


def _rows_of(place: Folder, name: str, ids: pa.Array) -> Iterator[dict[str, Any]]:
    """Yield what a file says of documents by id, with the number of the row."""
    first, columns = 0, _SAID[name.partition("/")[0]]
    for batch in read_batches(place, name, columns):
        hit = pc.is_in(batch["id"], ids)
        numbers = np.flatnonzero(hit.to_numpy(zero_copy_only=False))
        for number, row in zip(numbers.tolist(), batch.filter(hit).to_pylist(), strict=True):
            yield {"row": first + number, **row}
        first += batch.num_rows


def _passages(
    folder: Folder, stages: Sequence[str], texts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return in which documents spans of 20 words or more of each text are."""
    if not texts:
        return []
    from pipelines.reading.trace import trace  # compiled kernels

    found = []
    for (name, text), answer in zip(
        texts.items(), trace(folder, stages, [*texts.values()], _MOST_FOUND), strict=True
    ):
        facts = [{name: one.facts().get(name) for name in _FOUND} for one in answer.found]
        digest = hashlib.sha256(text.encode()).hexdigest()
        found.append({"name": name, "sha256": digest, "found": facts})
    return found


def check_receipt(
    given: dict[str, Any], published: str | None, place: Folder | None
) -> tuple[list[str], bool]:
    """Return what is wrong with a receipt, and whether it was compared with the whole run.

    Args:
        published: root of the run, as its maker published it; None: as the receipt says.
        place: the run, or a folder with some of its files, at their paths; each is hashed and the
            rows compared. Only the whole run shows which copies are left out.

    Raises KeyError, TypeError or ValueError for what is no receipt.
    """
    problems, files, telling = _chain(given, published)
    stated: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in telling}
    for one in given["documents"]:
        for said in one["said"]:
            stated.setdefault(said["file"], {})[said["row"]] = {"id": one["id"], **said}
    if place is not None and not any(map(place.exists, [SUMS, *stated])):
        raise ConfigError(f"{place.shown}: has no file that the receipt names")
    problems += [f"{k}: not the words of a receipt" for k, v in _words().items() if given[k] != v]
    problems += _not_copies(given["documents"])
    hosts = Withdrawn([], hosts=frozenset(given["hosts"]))
    hosts.ids |= {one["id"] for one in given["documents"]}
    for name, rows in sorted(stated.items()):
        if name not in files or not all(n in range(files[name]["rows"]) for n in rows):
            problems.append(f"{name}: no manifest names it with so many rows")
        elif place is not None and place.exists(name):
            if _digest(place, name) != files[name]["sha256"]:
                problems.append(f"{name}: not the bytes that its manifest names")
            else:
                problems += _other_rows(place, name, rows)
                problems += _left_out(place, name, hosts, rows)
    whole = place is not None and all(map(place.exists, [SUMS, *stated]))
    if place is not None and whole and not problems:
        near = 0.8 if given["near"] is None else given["near"]
        again = receipt(place.url, frozenset(given["hosts"]), near)
        told, now = (
            {name: r[name] for name in (SUMS, "near")} | {d["id"]: d for d in r["documents"]}
            for r in (given, again)
        )
        differ = [n for n in sorted(now.keys() | told) if now.get(n) != told.get(n)]
        problems += [f"{name}: the receipt does not say of it what the run does" for name in differ]
    return problems, whole


def _not_copies(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what a receipt calls copies, but doesn't show to have one document kept in place."""
    kept = {d["id"]: {d["id"], *(s.get("kept_id", d["id"]) for s in d["said"])} for d in documents}
    for one in (d for d in documents if "copy_of" in d):
        if not kept[one["id"]] & kept.get(one["copy_of"], set()):
            yield f"{one['id']}: no row says that it is a copy of {one['copy_of']}"


def _chain(
    given: dict[str, Any], root: str | None
) -> tuple[list[str], dict[str, dict[str, Any]], list[str]]:
    """Return what is wrong with a receipt's hashes, the run's files, and which name documents."""
    listed, problems = given[SUMS], list[str]()
    if hashlib.sha256(listed.encode()).hexdigest() != (root or given["root"]):
        problems.append(f"{SUMS}: its hash is not the root {root or given['root']}")
    files, held, telling = dict[str, dict[str, Any]](), set[str](), list[str]()
    for stage, text in given["manifests"].items():
        held.add(f"{hashlib.sha256(text.encode()).hexdigest()}  {stage}/{MANIFEST}")
        manifest = json.loads(text)
        files |= {f"{stage}/{name}": file for name, file in manifest["files"].items()}
        kinds = "removed", "index" if find(stage).is_sink else "documents"
        telling += [f"{stage}/{name}" for name in files_of(manifest, *kinds)]
    named = {line for line in listed.splitlines() if line.endswith(f"/{MANIFEST}")}
    for line in sorted(held ^ named):
        problems.append(f"{line.split()[-1]}: not the one that {SUMS} names")
    return problems, files, telling


def _other_rows(place: Folder, name: str, rows: Mapping[int, dict[str, Any]]) -> Iterator[str]:
    for number, row in read_rows(place, name, sorted(rows)):
        stated = rows[number]
        if any(row.get(k) != v for k, v in stated.items() if k not in ("file", "row")):
            yield f"{name}: row {number} does not say this of {stated['id']}"


def _left_out(place: Folder, name: str, hosts: Withdrawn, rows: Collection[int]) -> Iterator[str]:
    """Yield rows of documents of hosts that a receipt doesn't state."""
    first = 0
    is_listed = "/removed/" in name or "/index/" in name
    for batch in read_batches(place, name, ["id", "url"]) if is_listed else ():
        here = np.flatnonzero(pc.is_in(batch["id"], hosts.add(batch)["id"]))
        for d in batch.take(here[~np.isin(first + here, [*rows])]).to_pylist():
            yield f"{name}: has {d['id']} of {host_of(str(d['url']))}, which the receipt leaves out"
        first += batch.num_rows


def _stages(folder: Folder, complete: Sequence[str]) -> Iterator[str]:
    """Yield incomplete stages, and manifests that differ from the run's checksums."""
    for stage in all_stages(folder):
        place = folder / stage
        if is_damaged(place):
            yield f"{stage}/{MANIFEST}: damaged; run the stage again"
        elif stage not in complete and is_stage(place):
            yield f"{stage}: incomplete or stale: files are missing or its input has changed"
    given = folder.read_bytes(SUMS) if folder.exists(SUMS) else b""
    # by file: what each line says
    named, found = (
        dict(line.decode("utf-8", "replace").partition("  ")[::-2] for line in lines.splitlines())
        for lines in (given, sums(folder, complete))
    )
    if not named:
        yield f"{SUMS}: missing: the run did not finish"
        return
    for name in named | found:
        if name not in found:
            yield f"{SUMS}: names {name!r}, which is not there or not complete"
        elif found[name] != named.get(name):
            yield f"{name}: differs from {SUMS}"


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
    return {file.name: file.path for file in input_files(load(folder.url_of(RECIPE_FILE)), given)}


_Place = tuple[str, str, int]


def _place(row: dict[str, Any]) -> _Place:
    """Return what no other document has: ids may be numbers of rows in several files."""
    return row["id"], row["source"]["file"], row["source"]["offset"]


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
        documents = [*dict.fromkeys(map(_place, found))]
        before = self._before(stage)
        if before is not None:
            texts = self._documents(before, documents, ["id", "source", "text"])
            self._check_tokens(stage, found, texts)
        while before is not None:
            held = self._documents(before, documents, ["id", "source"])
            for name, file, offset in documents:
                if (name, file, offset) not in held:
                    what = f"{stage}: {name} of {file}, offset {offset}, is not a document of"
                    self.problems.append(f"{what} {before}")
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
        self, stage: str, wanted: Sequence[_Place], columns: list[str]
    ) -> dict[_Place, dict[str, Any]]:
        ids, found = pa.array([w[0] for w in wanted], pa.string()), dict[_Place, dict[str, Any]]()
        kinds = ["documents"] if wanted else []
        for batch in read_kinds(self._folder / stage, kinds, columns):
            rows = batch.filter(pc.is_in(batch["id"], ids)).to_pylist()
            found |= {_place(row): row for row in rows}
        return found

    def _check_tokens(
        self, stage: str, spans: Sequence[dict[str, Any]], texts: dict[_Place, dict[str, Any]]
    ) -> None:
        settings = settings_of_run(TokenizeSettings, self._manifests[stage]["settings"])
        tokenizer = load_tokenizer(settings.tokenizer)
        for span in spans:
            if row := texts.get(_place(span)):
                whole = _encoded(row["text"], tokenizer, settings)
                first = span["document_offset"]
                if whole[first : first + span["length"]] != span["tokens"]:
                    where = f"sequence {span['sequence']}, token {span['start']}"
                    self.problems.append(f"{stage}: {where}: not the tokens of {span['id']}")

    def _check_records(self, stage: str, documents: Sequence[_Place]) -> None:
        readers = load(self._folder.url_of(RECIPE_FILE)).readers
        for name, file, offset in documents:
            try:
                page = read_at(self._records[file], offset, readers)
                own = (page.fields or {}).get("id")
                found = own if isinstance(own, str) and own else document_id(file, page)
            except KeyError:
                self.problems.append(f"{stage}: {file} is not among the given input")
                continue
            except InputError as error:
                self.problems.append(f"{stage}: {name}: {error}")
                continue
            if found != name:
                self.problems.append(f"{stage}: {name} is not the record at offset {offset}")


def _encoded(text: str, tokenizer: AnyTokenizer, settings: TokenizeSettings) -> list[int]:
    """Return the token ids of a document with its begin and end tokens."""
    tokens, _ = tokenizer.encode_batch(pa.array([text], pa.large_string()))
    begin = [tokenizer.bos] if settings.bos else []
    end = [tokenizer.eos] if settings.eos else []
    return [*begin, *tokens.tolist(), *end]
