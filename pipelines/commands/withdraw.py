"""`curate withdraw`: give back documents that were removed only as duplicates of withdrawn ones.

Documents are withdrawn after a run: a host asks for it, a source loses its licence. What had been
removed as their duplicates, and is not withdrawn itself, is deduplicated again on its own, with the
settings of the run: of copies of one another one comes back.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, InputError
from curation.recipe import Recipe, load
from curation.schema import REMOVED_FIELDS
from curation.stages import find, known_stages
from pipelines.commands.options import workers
from pipelines.dedup.indexes import index_files
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.run_folder import WITHDRAWN, load_run, make_run_folder
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.storage.manifest import read_manifest
from pipelines.storage.own import remove_stage
from pipelines.storage.runs import read_batches_of
from pipelines.storage.shards import TableWriter, read_batches
from pipelines.terminal import say

_WAITING = "waiting"
_REPORT = "withdrawn.json"


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument(
        "--run",
        required=True,
        nargs="+",
        metavar="DIR",
        help="run folder, and further ones that had it as an index",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--url-prefix",
        action="append",
        metavar="PREFIX",
        help="documents whose URL starts like this are withdrawn (repeatable)",
    )
    what.add_argument("--ids", metavar="FILE", help="so are those with these ids, one a line")
    parser.add_argument(
        "--output", metavar="DIR", help="run folder of what comes back (default: RUN/withdrawn)"
    )
    parser.add_argument(
        "--workers", type=workers, default=None, metavar="N", help="local processes"
    )
    parser.set_defaults(command=withdraw)


@dataclass
class Withdrawn:
    """Ids of the withdrawn documents, by URL prefix or by id."""

    prefixes: Sequence[str]
    ids: set[str] = field(default_factory=set)

    def add_by_url(self, batch: pa.RecordBatch) -> None:
        for prefix in self.prefixes:
            match = pc.fill_null(pc.starts_with(batch.column("url"), prefix), False)
            self.ids.update(batch.column("id").filter(match).to_pylist())

    def duplicates(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that one of these was kept in place of, and that stay themselves."""
        ids = pa.array(sorted(self.ids), pa.string())
        lost = pc.is_in(batch.column("kept_id"), ids)
        return batch.filter(pc.and_not(lost, pc.is_in(batch.column("id"), ids)))


def withdraw(options: argparse.Namespace) -> int:
    """Find the duplicates of what is withdrawn, and deduplicate them among themselves."""
    runs = [load_run(path) for path in options.run]
    output = Folder(options.output) if options.output else Folder(options.run[0]) / WITHDRAWN
    if output.is_local:
        make_run_folder(output)
    gone = _withdrawn(options, runs)
    report: dict[str, Any] = {"withdrawn": len(gone.ids), "given_back": {}, "still_removed": {}}
    output.remove(_WAITING)
    runner = parse_beam_args(options.beam_args, options.workers)
    with open_display("quiet") as display, Executor(runner, display) as executor:
        for stage in (name for name, s in known_stages().items() if s.keeps_one):
            remove_stage(output / stage)
            found = [(f / stage, i) for i, (f, s) in enumerate(runs) if stage in s]
            if not sum(_collect(output, stage, place, i, gone) for place, i in found):
                continue
            recipe = _recipe(stage, found[0][0], gone)
            waiting = (output / _WAITING / stage).url
            work = plan(recipe, output.url, [f"{waiting}/*.parquet"], [stage])
            counts = run_plan(work, executor)[stage]["counts"]
            report["given_back"][stage] = counts["documents"]
            report["still_removed"][stage] = counts["documents_removed"]
    output.remove(_WAITING)
    output.write_json(_REPORT, report)
    _print(output, report)
    return 0


def _withdrawn(options: argparse.Namespace, runs: Sequence[tuple[Folder, list[str]]]) -> Withdrawn:
    gone = Withdrawn(options.url_prefix or [])
    if options.ids:
        try:
            with open(options.ids, encoding="utf-8") as file:
                gone.ids.update(line.strip() for line in file if line.strip())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--ids {options.ids}: {error}") from error
    if gone.prefixes:
        for folder, stages in runs:
            for batch in _rows(folder / stages[0], ("documents/", "removed/"), ["id", "url"]):
                gone.add_by_url(batch)
    if not gone.ids:
        where = f"URL prefix {', '.join(gone.prefixes)}" if gone.prefixes else f"{options.ids}"
        raise InputError(f"{where}: names no document")
    return gone


def _rows(
    place: Folder, kinds: tuple[str, ...], columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    for name in sorted(read_manifest(place)["files"]):
        if name.startswith(kinds):
            yield from read_batches(place, name, columns)


def _collect(output: Folder, stage: str, place: Folder, run: int, gone: Withdrawn) -> int:
    """Write the duplicates of withdrawn documents, shard by shard; return how many there are."""
    verdict = {f.name for f in REMOVED_FIELDS} | {"cluster_size"}
    total = 0
    for name in sorted(read_manifest(place)["files"]):
        if not name.startswith("removed/"):
            continue
        batches = [b for b in map(gone.duplicates, read_batches(place, name)) if b.num_rows]
        if batches:
            columns = [n for n in batches[0].schema.names if n not in verdict]
            kept = [b.select(columns) for b in batches]
            shard = f"{_WAITING}/{stage}/{run}-{name.removeprefix('removed/')}"
            with TableWriter(output, shard, kept[0].schema) as writer:
                for batch in kept:
                    writer.write(batch)
            total += sum(b.num_rows for b in kept)
    return total


def _recipe(stage: str, place: Folder, gone: Withdrawn) -> Recipe:
    """The run's settings of the stage, without the indexes that hold withdrawn documents."""
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
    for stage, count in report["given_back"].items():
        rest = report["still_removed"][stage]
        say(f"{stage}: {count:,} given back, {rest:,} stay removed as duplicates of these")
        say(f"  {output.shown}/{stage} is input for the stages that follow")
    if not report["given_back"]:
        say("nothing had been removed as their duplicate")
