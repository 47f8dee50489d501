"""`curate withdraw`: remove documents from a finished run.

Documents are withdrawn after a run: a host asks for it, a source loses its licence, a rights policy
changes. Their token shards are rewritten with padding in place of these documents, and the document
index without them; with `--repack` all other documents are packed again (`pipelines.repacking`).
The run itself does not change. Documents that had been removed as their duplicates, and are not
withdrawn themselves, are deduplicated again among themselves with the run's settings, so that one
of each set of copies comes back.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from curation.config import merge, parse_yaml, validate
from curation.errors import ConfigError, InputError, first_line
from curation.hosts import ascii_host, host_of
from curation.recipe import Recipe, load
from curation.rights.policy import Policy
from curation.rights.rights_settings import RightsSettings, default_settings
from curation.schema import VERDICT_COLUMNS
from curation.stages import find, known_stages
from pipelines.commands.options import add_dry_run, end_dry_run, workers
from pipelines.dedup.indexes import index_files
from pipelines.masking import count_spans, mask_stage
from pipelines.plan import plan
from pipelines.repacking import repack
from pipelines.run import run_plan
from pipelines.run_folder import RECIPE_FILE, SUMS, WITHDRAWN, load_run, make_run_folder
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest
from pipelines.storage.own import remove_stage
from pipelines.storage.runs import read_batches_of
from pipelines.storage.shards import TableWriter, read_batches, read_kinds
from pipelines.terminal import say

_WAITING = "waiting"
_REPORT = "withdrawn.json"
_DOCUMENTS, _TOKENS = "withdrawn.parquet", "tokens"
#: Table of the withdrawn documents.
RECORD = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("reason", pa.string()),
        ("value", pa.string()),  # the prefix, host or signal
    ]
)


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument(
        "--run",
        required=True,
        nargs="+",
        metavar="DIR",
        help="run folder, and further runs that used it as an index",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--url-prefix",
        action="append",
        metavar="PREFIX",
        help="withdraw documents whose URL starts with this (repeatable)",
    )
    what.add_argument(
        "--ids", metavar="FILE", help="withdraw the documents with these ids, one per line"
    )
    what.add_argument(
        "--hosts",
        metavar="FILE",
        help="withdraw the documents of these hosts and their subdomains, one per line",
    )
    what.add_argument(
        "--rights",
        metavar="POLICY",
        help="withdraw what a rights policy removes: a file with the keys of `rights:`, or the "
        "keys themselves, such as '{honour: [tdm]}'; other keys have their defaults",
    )
    parser.add_argument(
        "--repack",
        action="store_true",
        help="pack all other documents into new shards, as tokenizing them without these would; "
        "else padding takes their place",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="run folder for what comes back (default: RUN/withdrawn)"
    )
    parser.add_argument(
        "--workers", type=workers, default=None, metavar="N", help="local processes"
    )
    add_dry_run(parser)
    parser.set_defaults(command=withdraw)


@dataclass
class Withdrawn:
    """The withdrawn documents: what selects them, and their ids."""

    prefixes: Sequence[str]
    ids: set[str] = field(default_factory=set)
    hosts: frozenset[str] = frozenset()
    policy: Policy | None = None
    #: Columns needed besides `id` and `url`.
    columns: Sequence[str] = ()

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Collect a batch's withdrawn documents; return their rows of RECORD."""
        names, urls = batch.column("id").to_pylist(), batch.column("url").to_pylist()
        rights = batch.column("rights").to_pylist() if self.policy else [None] * len(names)
        rows = []
        for name, url, said in zip(names, urls, rights, strict=True):
            if why := self._why(name, url or "", said):
                rows.append({"id": name, "url": url} | why)
                self.ids.add(name)
        return pa.RecordBatch.from_pylist(rows, RECORD)

    def _why(self, name: str, url: str, rights: dict[str, Any] | None) -> dict[str, Any] | None:
        if name in self.ids:
            return {"reason": "withdrawn.id", "value": name}
        if url.startswith(tuple(self.prefixes)):
            return {"reason": "withdrawn.url", "value": url}
        if self.hosts and (host := self._host(url)):
            return {"reason": "withdrawn.host", "value": host}
        ruling = self.policy.ruling(rights) if self.policy else None
        if ruling is None:
            return None
        parts = (ruling.signal[n] for n in ("kind", "place", "agent", "value"))
        return {"reason": ruling.reason, "value": " ".join(filter(None, parts))}

    def _host(self, url: str) -> str | None:
        """Return the listed host that a URL's host is, or is a subdomain of."""
        host = host_of(url)
        while host and host not in self.hosts:
            host = host.partition(".")[2]
        return host or None

    def duplicates(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Select rows removed as duplicates of a withdrawn document, not withdrawn themselves."""
        ids = pa.array(sorted(self.ids), pa.string())
        lost = pc.is_in(batch.column("kept_id"), ids)
        return batch.filter(pc.and_not(lost, pc.is_in(batch.column("id"), ids)))


def withdraw(options: argparse.Namespace) -> int:
    """Mask the withdrawn documents and restore their duplicates, deduplicated."""
    runs = [load_run(path) for path in options.run]
    output = Folder(options.output) if options.output else Folder(options.run[0]) / WITHDRAWN
    asked = {
        "by": _asked(options),
        "runs": [{"run": f.shown, "root": _root(f)} for f, _ in runs],
    }
    gone = _withdrawn(options, runs)
    rows = _found(runs, gone)
    _refuse_another(output, asked)
    end_dry_run(options, output, documents=len(gone.ids))
    if output.is_local:
        make_run_folder(output)
    with TableWriter(output, _DOCUMENTS, RECORD) as writer:
        for batch in rows:
            writer.write(batch)
    report: dict[str, Any] = {
        "withdrawn": len(gone.ids),
        **asked,
        "tokens": {},
        "given_back": {},
        "still_removed": {},
    }
    output.remove(_WAITING)
    if not options.repack or not (output / _TOKENS).exists(RECIPE_FILE):
        output.remove(_TOKENS)
    runner = parse_beam_args(options.beam_args, options.workers)
    with open_display("quiet") as display, Executor(runner, display, output) as executor:
        table = (output / _DOCUMENTS).url if options.repack else None
        for number, (run, complete) in enumerate(runs):
            inner = f"/{number}" if number else ""
            place = output / f"{_TOKENS}{inner}"
            for stage, facts in _without(place, run, complete, gone, table, executor).items():
                report["tokens"][f"{inner}/{stage}".lstrip("/")] = facts
        for stage in (name for name, s in known_stages().items() if s.keeps_one):
            remove_stage(output / stage)
            found = [(f / stage, i) for i, (f, s) in enumerate(runs) if stage in s]
            if not sum(_collect(output, stage, place, i, gone) for place, i in found):
                continue
            recipe = _recipe(stage, found[0][0], gone)
            waiting = (output / _WAITING / stage).url
            work = plan(recipe, output.url, [f"{waiting}/*.parquet"], [stage], fresh=True)
            counts = run_plan(work, executor)[stage]["counts"]
            report["given_back"][stage] = counts["documents"]
            report["still_removed"][stage] = counts["documents_removed"]
    output.remove(_WAITING)
    output.write_json(_REPORT, report)
    _print(output, report)
    return 0


def _refuse_another(output: Folder, asked: dict[str, Any]) -> None:
    """Raise ConfigError if the folder has a withdrawal of another selection or other runs."""
    if output.exists(_REPORT):
        found = output.read_json(_REPORT)
        if any(found.get(key) != value for key, value in asked.items()):
            raise ConfigError(
                f"{output.shown} has the withdrawal of {found['withdrawn']:,} other documents, "
                "which this one would replace: write to another --output, or withdraw from "
                f"{output.shown}/{_TOKENS} (made with --repack) to go on from it"
            )


def _withdrawn(options: argparse.Namespace, runs: Sequence[tuple[Folder, list[str]]]) -> Withdrawn:
    """Return the selection in the options. Raises ConfigError."""
    if any(not prefix.strip() for prefix in options.url_prefix or ()):
        raise ConfigError("--url-prefix: an empty prefix would withdraw every document")
    gone = Withdrawn(options.url_prefix or [])
    if options.ids:
        gone.ids.update(_lines("--ids", options.ids))
    elif options.hosts:
        hosts = {ascii_host(line.lower().rstrip(".")) for line in _lines("--hosts", options.hosts)}
        gone = Withdrawn([], hosts=frozenset(hosts))
    elif options.rights:
        policy = Policy(_policy(options.rights))
        gone = Withdrawn([], policy=policy, columns=("rights",))
    return gone


def _lines(option: str, path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return [line.strip() for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option} {path}: {error}") from error


def _policy(given: str) -> RightsSettings:
    """Read a policy, from a file or the command line, over the defaults."""
    named = Path(given).is_file()
    try:
        tree = parse_yaml(Path(given).read_text("utf-8") if named else given)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"--rights {given}: {first_line(error)}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"--rights {given}: neither a file nor keys such as {{honour: [tdm]}}")
    defaults = default_settings().model_dump(mode="json")
    return validate(RightsSettings, merge(defaults, tree.get("rights", tree)), "--rights")


def _found(runs: Sequence[tuple[Folder, list[str]]], gone: Withdrawn) -> list[pa.RecordBatch]:
    """Return the withdrawn documents with reasons. Raises InputError if there are none."""
    wanted, found = ["id", "url", *gone.columns], list[pa.RecordBatch]()
    for folder, stages in runs:
        first = folder / stages[0]
        for batch in read_kinds(first, ["documents", "removed"], wanted):
            if absent := [n for n in gone.columns if n not in batch.schema.names]:
                raise InputError(f"{first.shown}: the documents have no column {absent[0]!r}")
            found.append(gone.add(batch))
    if not gone.ids:
        raise InputError("the selection matches no document of the run")
    return [rows for rows in found if rows.num_rows]


def _without(
    place: Folder,
    run: Folder,
    stages: Sequence[str],
    gone: Withdrawn,
    table: str | None,
    executor: Executor,
) -> dict[str, dict[str, Any]]:
    """Write a run's token shards without the withdrawn documents; return facts by stage.

    Shards are packed again with a `table` of these documents, else masked.
    """
    sinks = [stage for stage in stages if find(stage).is_sink]
    if table is not None and sinks:
        written = repack(run, sinks, place, table, executor)
    else:
        written = {s: mask_stage(run / s, place / s, gone.ids) for s in sinks}
    return {sink: count_spans(run / sink, gone.ids) | written[sink] for sink in sinks}


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    names = ("url_prefix", "ids", "hosts", "rights")
    return {n: getattr(options, n) for n in names if getattr(options, n)}


def _root(folder: Folder) -> str | None:
    """Return the root hash of a run, as `curate verify` prints it."""
    return hashlib.sha256(folder.read_bytes(SUMS)).hexdigest() if folder.exists(SUMS) else None


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
    for file in index_files(path, stage, 0):
        for batch in read_batches_of(file.folder, file.file):
            if pc.any(pc.is_in(batch.column("id"), ids)).as_py():
                return True
    return False


def _print(output: Folder, report: dict[str, Any]) -> None:
    say(f"{report['withdrawn']:,} documents withdrawn")
    for stage, facts in report["tokens"].items():
        became = "are now padding"
        if "packed" in facts:
            became = f"are left out, {facts['packed']:,} sequences packed again,"
        say(
            f"{stage}: {facts['tokens']:,} tokens of {facts['documents']:,} documents in "
            f"{facts['sequences']:,} sequences {became} in {output.shown}/{_TOKENS}/{stage}"
        )
    for stage, count in report["given_back"].items():
        rest = report["still_removed"][stage]
        say(f"{stage}: {count:,} restored, {rest:,} remain removed as their duplicates")
        say(f"  {output.shown}/{stage} is input for the following stages")
    if not report["given_back"]:
        say("no document had been removed as their duplicate")
