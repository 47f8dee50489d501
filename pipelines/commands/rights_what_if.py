"""`curate rights --what-if`: show how many documents each policy would remove from a run."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from curation.config import assign, validate
from curation.errors import ConfigError, InputError
from curation.rights.policy import Policy
from curation.rights.rights_settings import Honoured, RightsSettings, default_settings
from pipelines.console import PlainConsole
from pipelines.run_folder import load_run, run_recipe
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, read_manifest
from pipelines.storage.shards import open_parquet
from pipelines.terminal import say_json

_STAGE = "rights"
_BATCH = 1 << 14


def extend(parser: argparse.ArgumentParser) -> None:
    """Declare `--what-if` and its options on the command of the stage."""
    group = parser.add_argument_group(
        "show what a policy would remove from a finished run",
        "curate rights --what-if --run out --set rights.honour=[robots,tdm]",
    )
    group.add_argument(
        "--what-if",
        action="store_true",
        help="show what each signal, or the policy of --set, would remove; nothing is written",
    )
    parser.set_defaults(command=_rights, otherwise=parser.get_default("command"))


def _rights(options: argparse.Namespace) -> int:
    return what_if(options) if options.what_if else int(options.otherwise(options))


@dataclass
class Cost:
    """What a policy removes from a run."""

    name: str
    policy: Policy
    documents: int = 0
    size: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, column: pa.Array, sizes: Sequence[int]) -> None:
        """Judge a batch, given its column `rights` and the size of each document."""
        for ruling, size in zip(self.policy.rulings(column), sizes, strict=True):
            if ruling is not None:
                self.documents += 1
                self.size += size
                self.reasons[ruling.reason] = self.reasons.get(ruling.reason, 0) + 1


def what_if(options: argparse.Namespace) -> int:
    """Judge the documents of a run by every policy and print what each would remove."""
    if options.run is None:
        raise ConfigError("--what-if needs --run DIR, the folder of a finished run")
    folder, stages = load_run(options.run)
    costs = [Cost(name, Policy(s)) for name, s in policies(folder, options.assignments)]
    stage = _judged(folder, stages)
    documents = size = 0
    unit = "characters"
    for column, sizes, counted in _documents(folder / stage):
        documents, size, unit = documents + len(column), size + sum(sizes), counted
        for cost in costs:
            cost.add(column, sizes)
    facts = {
        "stage": stage,
        "documents": documents,
        unit: size,
        "policies": [
            {"policy": c.name, "documents": c.documents, unit: c.size, "removed": c.reasons}
            for c in costs
        ],
    }
    if options.json:
        say_json(facts)
    else:
        _print(facts, unit, folder.shown)
    return 0


def policies(folder: Folder, assignments: Sequence[str]) -> Iterator[tuple[str, RightsSettings]]:
    """Yield policies by name: that of --set, or else each signal alone, then the run's own."""
    recipe = run_recipe(folder)
    tree = recipe.get(_STAGE) or default_settings().model_dump(mode="json")
    whole = {_STAGE: copy.deepcopy(tree)}
    for change in assignments:
        if not change.startswith(f"{_STAGE}."):
            raise ConfigError(f"--set {change}: --what-if takes keys below {_STAGE}")
        assign(whole, change)
    own = validate(RightsSettings, whole[_STAGE], "--set")
    if not assignments:
        nothing = {"honour": [], "unknown": "keep", "licences": {"require": []}}
        alone: dict[str, dict[str, Any]] = {name: {"honour": [name]} for name in get_args(Honoured)}
        alone["licences: open"] = {"licences": {"require": ["open"]}}
        alone["robots, unknown: remove"] = {"honour": ["robots"], "unknown": "remove"}
        for name, choice in alone.items():
            yield name, validate(RightsSettings, {**tree, **nothing, **choice}, _STAGE)
    yield " ".join(assignments) or "the recipe's policy", own


def _judged(folder: Folder, stages: Sequence[str]) -> str:
    """Return the stage whose documents are judged: the last, or `rights` itself if it ran."""
    if _STAGE in stages:
        return _STAGE
    for stage in reversed(stages):
        if files_of(read_manifest(folder / stage), "documents"):
            return stage
    raise InputError(f"{folder.shown}: no stage with documents")


def _documents(place: Folder) -> Iterator[tuple[pa.Array, list[int], str]]:
    """Yield (rights, sizes, unit of the sizes) of every batch."""
    kinds = ["documents", *(["removed"] if place.url.endswith(f"/{_STAGE}") else [])]
    for name in files_of(read_manifest(place), *kinds):
        with open_parquet(place, name) as parquet:
            names = parquet.schema_arrow.names
            if _STAGE not in names:
                raise InputError(
                    f"{place.shown}/{name}: no column 'rights': the run is of an earlier version, "
                    "or its input had none"
                )
            drawn = {"tokens", "repeats"} <= {*names}
            columns = [_STAGE, *(("tokens", "repeats") if drawn else ("text",))]
            for batch in parquet.iter_batches(_BATCH if drawn else _BATCH >> 4, columns=columns):
                if drawn:
                    sizes = pc.multiply(batch["tokens"], batch["repeats"].cast(pa.int64()))
                else:
                    sizes = pc.utf8_length(batch["text"])
                yield batch[_STAGE], sizes.to_pylist(), "tokens" if drawn else "characters"


def _print(facts: dict[str, Any], unit: str, run: str) -> None:
    console = PlainConsole()
    table = Table(title=f"what policies would remove from {run}, stage {facts['stage']}")
    table.add_column("policy", overflow="fold", min_width=12)
    for name in ("documents", "share", unit, "share "):
        table.add_column(name, justify="right", no_wrap=True)
    for cost in facts["policies"]:
        table.add_row(
            cost["policy"],
            f"{cost['documents']:,}",
            f"{cost['documents'] / max(1, facts['documents']):.1%}",
            f"{cost[unit]:,}",
            f"{cost[unit] / max(1, facts[unit]):.1%}",
        )
    console.print(table)
    console.print(f"of {facts['documents']:,} documents, {facts[unit]:,} {unit}")
