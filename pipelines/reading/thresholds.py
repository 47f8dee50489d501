"""Other thresholds for a run's filter, and what other policies would do to its documents."""

import copy
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from curation.config import assign, nearest, validate
from curation.errors import ConfigError, InputError
from curation.filters.filter_settings import FilterSettings, default_tree
from curation.hosts import host_of
from curation.readers.settings import ReaderSettings
from curation.rights.policy import COPIES, Policy
from curation.rights.rights_settings import COMPARES, Honoured, RightsSettings, default_settings
from curation.rights.sites import SiteIndex, build_index, read_site_files
from curation.schema import RIGHTS as RIGHTS_TYPE
from curation.schema import column_of, with_column
from pipelines.run_folder import load_run, run_recipe
from pipelines.storage.exchange import concatenated
from pipelines.storage.files import Folder
from pipelines.storage.manifest import files_of, is_stage, read_manifest
from pipelines.storage.shards import open_parquet, read_kinds

FILTER, RIGHTS = "filter", "rights"
#: Sections of the filter's settings that hold thresholds; all others decide what is measured.
_DECIDING = ("rules", "by_language", "exempt")
#: Documents read at a time: rights alone, and rights with the texts.
_BATCH_OF_RIGHTS, _BATCH_OF_TEXTS = 1 << 14, 1 << 10


def changed_settings(tree: dict[str, Any], assignments: Sequence[str]) -> FilterSettings:
    """Return the filter's settings after the assignments.

    Raises ConfigError for an unknown key, or one that needs the texts.
    """
    whole: dict[str, Any] = {FILTER: copy.deepcopy(tree)}
    for change in assignments:
        check_key(change, tree)
        assign(whole, change)
    settings = validate(FilterSettings, whole[FILTER], f"--set {FILTER}")
    if problem := settings.unmeasured():
        raise ConfigError(f"--set: {problem}, and run the stage again")
    return settings


def check_key(assignment: str, tree: Mapping[str, Any]) -> None:
    """Raise ConfigError with the nearest name for an unknown key."""
    path = assignment.partition("=")[0].strip()
    keys = path.split(".")
    if keys[0] != FILTER or len(keys) < 2:
        hint = (
            f"; did you mean '{FILTER}.{path}'?" if keys[0] in tree else nearest(keys[0], [FILTER])
        )
        raise ConfigError(f"--set {path}: expected a key below {FILTER}{hint}")
    default, ours = default_tree()["rules"], tree["rules"]
    rules = {f: {**(default.get(f) or {}), **(ours.get(f) or {})} for f in {**default, **ours}}
    known: Any = {**tree, "rules": rules}
    for name in ["rules", *keys[3:5]] if keys[1] == "by_language" else keys[1:4]:
        if name not in (known or {}):
            raise ConfigError(f"--set {path}: unknown key{nearest(name, known or {})}")
        known = known[name]
    if keys[1] not in _DECIDING or "python" in keys[-1:] or "settings" in keys[3:]:
        what = "" if keys[1] in _DECIDING else f"{keys[1]} "
        raise ConfigError(
            f"--set {path}: {what}decides what is measured: run the stage again instead"
        )


def other_policies(run: str, assignments: Sequence[str] = ()) -> dict[str, Any]:
    """Judge the documents of a run by every policy, and return what each would remove.

    Documents are those that `rights` judged, or else those of the last stage. Sizes are `tokens`
    where these are counted, else `characters`. Raises ConfigError for a key of another section.
    """
    folder, stages = load_run(run)
    tried = {n: _policy(folder, each) for n, each in policies(folder, stages, assignments)}
    removed: dict[str, Counter[str]] = {name: Counter() for name in tried}
    lost, total = Counter[str](), Counter[str]()
    stage = RIGHTS if RIGHTS in stages else _last(folder, stages)
    unit = "characters"
    kinds = ("documents", *(["removed"] if stage == RIGHTS else []))
    for batch, sizes, counted in _documents(folder, stage, kinds):
        unit = counted
        total.update({"documents": batch.num_rows, "size": sum(sizes)})
        for name, policy in tried.items():
            for ruling, size in zip(policy.judge(batch)[1], sizes, strict=True):
                if ruling is not None:
                    removed[name][ruling.reason] += 1
                    lost[name] += size
    costs = [
        {"policy": n, "documents": r.total(), unit: lost[n], "removed": dict(r)}
        for n, r in removed.items()
    ]
    every = {"documents": total["documents"], unit: total["size"]}
    return {"stage": stage, **every, "policies": costs}


def _policy(folder: Folder, settings: RightsSettings, sites: SiteIndex | None = None) -> Policy:
    """Return a policy with the duplicates of the documents that it follows."""
    policy = Policy(settings)
    if not settings.follow:
        return policy
    if not is_stage(folder / COMPARES):
        raise ConfigError(f"rights.follow: {folder.shown} has no {COMPARES}, which finds copies")
    removed = read_kinds(folder / COMPARES, ["removed"], COPIES.names)
    renewed = (_renewed(batch, sites) if sites else batch for batch in removed)
    return Policy(settings, concatenated([policy.copies(batch) for batch in renewed], COPIES))


def _renewed(batch: pa.RecordBatch, sites: SiteIndex) -> pa.RecordBatch:
    """Return documents with what newer files of their sites say in place of what these said."""
    rights = zip(column_of(batch, RIGHTS).to_pylist(), batch["url"].to_pylist(), strict=True)
    found = [sites.renewed(one, url or "") for one, url in rights]
    return with_column(batch, RIGHTS, pa.array(found, RIGHTS_TYPE))


def newer_signals(
    run: str, paths: Sequence[str], assignments: Sequence[str] = ()
) -> dict[str, Any]:
    """Judge a run's last documents by what files of sites say now, and return what would go.

    Sites without a newer file keep what they said. What the policy would have removed before does
    not count. Documents and sizes are by reason, kind of signal and host, the largest first. Raises
    as `other_policies` does, and InputError for files without signals.
    """
    folder, stages = load_run(run)
    *_, (_, settings) = policies(folder, stages, assignments)
    before = _policy(folder, settings)
    stage, unit = _last(folder, stages), "characters"
    found: dict[tuple[str, str | None, str], Counter[str]] = {}
    total = Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "sites.sqlite"
        readers = ReaderSettings.model_validate(run_recipe(folder)["readers"])
        build_index(read_site_files(paths, readers), settings.agents, path)
        sites = SiteIndex(path)
        now = _policy(folder, settings, sites)
        for batch, sizes, unit in _documents(folder, stage, ["documents"]):
            total.update({"documents": batch.num_rows, "size": sum(sizes)})
            rulings = before.judge(batch)[1], now.judge(_renewed(batch, sites))[1]
            for was, ruling, url, size in zip(
                *rulings, batch["url"].to_pylist(), sizes, strict=True
            ):
                if ruling is not None and was is None:
                    key = ruling.reason, ruling.signal["kind"], host_of(url or "")
                    found.setdefault(key, Counter()).update({"documents": 1, unit: size})
    order = sorted(found, key=lambda key: (-found[key][unit], key))
    names = "reason", "signal", "host"
    rows: list[dict[str, Any]] = [{**dict(zip(names, k, strict=True)), **found[k]} for k in order]
    sums = {name: sum(row[name] for row in rows) for name in ("documents", unit)}
    every = {"documents": total["documents"], unit: total["size"]}
    return {"stage": stage, **every, "would_go": sums, "by_host": rows}


def policies(
    folder: Folder, stages: Sequence[str], assignments: Sequence[str]
) -> Iterator[tuple[str, RightsSettings]]:
    """Yield policies by name: that of --set, or else each signal alone, then the run's own."""
    recipe = run_recipe(folder)
    tree = recipe.get(RIGHTS) or default_settings().model_dump(mode="json")
    whole = {RIGHTS: copy.deepcopy(tree)}
    for change in assignments:
        if not change.startswith(f"{RIGHTS}."):
            raise ConfigError(f"--set {change}: --what-if takes keys below {RIGHTS}")
        assign(whole, change)
    own = validate(RightsSettings, whole[RIGHTS], f"--set {RIGHTS}")
    if not assignments:
        nothing: dict[str, Any] = {"honour": [], "unknown": "keep", "licences": {}, "follow": None}
        alone: dict[str, dict[str, Any]] = {name: {"honour": [name]} for name in get_args(Honoured)}
        alone["licences: open"] = {"licences": {"require": ["open"]}}
        alone["robots, unknown: remove"] = {"honour": ["robots"], "unknown": "remove"}
        if COMPARES in stages:
            follow = {"honour": ["train"], "follow": {"near": 0.8}}
            alone["train, follow: {near: 0.8}"] = follow
        for name, choice in alone.items():
            yield name, validate(RightsSettings, {**tree, **nothing, **choice}, RIGHTS)
    yield " ".join(assignments) or "the recipe's policy", own


def _last(folder: Folder, stages: Sequence[str]) -> str:
    """Return the last stage that wrote documents. Raises InputError."""
    for stage in reversed(stages):
        if files_of(read_manifest(folder / stage), "documents"):
            return stage
    raise InputError(f"{folder.shown}: no stage with documents")


def _documents(
    folder: Folder, stage: str, kinds: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, list[int], str]]:
    """Yield (documents with their rights, sizes, unit of the sizes) of every batch."""
    place = folder / stage
    for name in files_of(read_manifest(place), *kinds):
        with open_parquet(place, name) as parquet:
            names = parquet.schema_arrow.names
            if RIGHTS not in names:
                raise InputError(
                    f"{place.shown}/{name}: no column 'rights': the run is of an earlier version, "
                    "or its input had none"
                )
            drawn = {"tokens", "repeats"} <= {*names}
            columns = ["id", "url", "date", RIGHTS]
            columns += ["tokens", "repeats"] if drawn else ["text"]
            for batch in parquet.iter_batches(
                _BATCH_OF_RIGHTS if drawn else _BATCH_OF_TEXTS, columns=columns
            ):
                if drawn:
                    sizes = pc.multiply(batch["tokens"], batch["repeats"].cast(pa.int64()))
                else:
                    sizes = pc.utf8_length(batch["text"])
                yield batch, sizes.to_pylist(), "tokens" if drawn else "characters"
