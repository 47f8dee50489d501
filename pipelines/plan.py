"""Plan a run: stages, inputs and everything they need, checked before anything runs."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from curation.credentials import redact
from curation.errors import ConfigError, InputError
from curation.readers.discover import InputFile, PassedOver, discover
from curation.readers.raw import RawFile
from curation.readers.suffixes import TABLES, without_compression
from curation.recipe import Recipe, check_order, with_stage
from curation.schema import DOCUMENTS, fits
from curation.stages import find
from curation.stages.base import Stage
from curation.stages.read_tables import made_anew, needs_languages
from pipelines.engine.stage import Shard, as_given, stage_inputs
from pipelines.named_files import check_named_files, stage_facts
from pipelines.run_folder import held_recipe, own_paths, present_stages, refuse_own, run_facts
from pipelines.storage.files import Folder
from pipelines.storage.manifest import PATHS, TIMINGS, complete_manifest, is_stage, read_manifest
from pipelines.storage.shards import open_parquet

#: The stage that comes first if the input is a table.
_READ_TABLES = "read-tables"
#: Records of its first file that are looked at for a page.
_PEEK = 100


@dataclass(frozen=True)
class Plan:
    """A checked plan: the stages to run, on which input, into which folder."""

    recipe: Recipe
    stages: tuple[str, ...]
    inputs: tuple[str, ...]
    output: Folder
    facts: dict[str, dict[str, Any]]  # by stage: versions and checksums
    files: tuple[InputFile, ...]  # that `extract` reads
    passed_over: PassedOver  # files next to them that are not read
    policy: dict[str, Any] | None = None  # the policy that the run applies, for the manifests
    fresh: bool = False  # start over: replace what the folder has

    @cached_property
    def recipe_sha256(self) -> str:
        """The recipe's hash, which the manifest of each stage has."""
        return self.recipe.sha256


def plan(
    recipe: Recipe,
    output: str,
    inputs: Sequence[str] = (),
    stages: Sequence[str] = (),
    sync: bool = True,
    fresh: bool = False,
) -> Plan:
    """Choose stages and inputs, and check every model and list, before anything runs.

    Without `sync` the run does not wait for its files to reach the disk. Raises ConfigError if
    stages and inputs don't fit together, if a file is missing or wrong, or unless `fresh` if the
    folder has stages of another recipe or of other inputs.
    """
    for option, value in (("output", output), *(("input", value) for value in inputs)):
        if not value.strip():
            raise ConfigError(f"--{option}: an empty path")
    chosen = tuple(stages) or recipe.stages
    check_order(recipe, chosen)
    folder = Folder(output, sync)
    chosen, given = _with_input(recipe, folder, chosen, tuple(inputs))
    described = [find(stage) for stage in chosen]
    if chosen[0] == _READ_TABLES:
        there = {*chosen, *([] if fresh else present_stages(folder))} & {*chosen, *recipe.stages}
        recipe = _reading_tables(recipe, [*map(find, there)])
    if recipe.measure and (mixed := [stage.name for stage in described if stage.per_mix]):
        raise ConfigError(
            f"measure: true keeps what rules would remove, so {mixed[0]} can't follow"
        )
    for stage in described:
        check_named_files(stage, recipe.section(stage), folder)
    over, found = PassedOver(), list[InputFile]()
    try:
        if not described[0].is_source:
            check_current(given)
            check_order(recipe, chosen, columns_of(stage_inputs(given)))
        if described[0].is_source or (inputs and given != tuple(inputs)):  # not documents
            found = input_files(recipe, inputs, own_paths(folder, recipe), over)
    except InputError as error:
        raise ConfigError(f"{'--input' if inputs else 'inputs'}: {error}") from None
    facts = {
        stage.name: stage_facts(stage, recipe.section(stage), stage.also(recipe))
        for stage in described
    }
    work = Plan(recipe, chosen, given, folder, facts, tuple(found), over, fresh=fresh)
    if not fresh:
        _refuse_other_run(work)
    if not all(_ran_before(folder / stage, work.recipe_sha256, facts[stage]) for stage in chosen):
        for stage in described:  # so that a mismatch is reported before the run
            stage.load(recipe.section(stage))
        _check_values(recipe, chosen if inputs else {*chosen, *recipe.stages})
        if chosen[0] == _READ_TABLES:
            _refuse_pages(found, recipe)
    unnamed = [f.path for f in found if f.name.partition("/")[0] not in recipe.sources]
    for stage in described if unnamed else ():
        stage.check_unnamed(recipe.section(stage), unnamed[0])
    return work


def _with_input(
    recipe: Recipe, folder: Folder, stages: tuple[str, ...], given: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the stages and their input, which is empty if it is the recipe's own.

    Without a given input, or with the raw one of the run in the folder, a stage continues the
    nearest earlier one. Else tables are read first: those given, or the recipe's own.
    Raises ConfigError if there is no input.
    """
    if find(stages[0]).is_source:
        if not given and not recipe.inputs:
            raise ConfigError("no input: give files with --input, or in the recipe as inputs:")
        return stages, given
    earlier = _stage_before(stages[0], recipe, folder)
    raw = bool(given) and _are_tables([_split(path, recipe)[1] for path in given], recipe)
    if earlier and (not given or (raw and not read_manifest(folder / _READ_TABLES))):
        return stages, (earlier,)
    if given:
        return (_READ_TABLES, *stages) if raw else stages, given
    own = [path for paths in _of_recipe(recipe).values() for path in paths]
    if own and _are_tables(own, recipe, alone=True):
        return (_READ_TABLES, *stages), ()
    raise ConfigError(
        f"{stages[0]} needs documents: give tables or a stage folder with --input; "
        f"{folder.shown}: no earlier stage"
    )


def _refuse_pages(files: Sequence[InputFile], recipe: Recipe) -> None:
    """Raise ConfigError for pages, which have no texts yet, by the first record that is one."""
    from curation.readers.read import read
    from curation.readers.records import Page  # slow, seldom needed

    for event in itertools.islice(read(files[0].path, recipe.readers, files[0].name), _PEEK):
        if isinstance(event, Page):
            if event.kind != "text":
                raise ConfigError(
                    f"--input: {files[0].path}: has pages, not texts: begin with the stage "
                    "`extract`, which makes texts of pages, or name a folder of its documents"
                )
            return


def _reading_tables(recipe: Recipe, stages: Sequence[Stage]) -> Recipe:
    """Return the recipe with what `read-tables` does for the stages that follow it."""
    settled = {
        "add_language": needs_languages(recipe, stages),
        "kept_beside": made_anew(recipe, stages),
    }
    tables = recipe.read_tables.model_copy(update=settled)
    return recipe.model_copy(update={"read_tables": tables})


def _ran_before(stage: Folder, recipe_sha256: str, facts: Mapping[str, Any]) -> bool:
    """Return whether a stage has run with this recipe and models, so they fit together."""
    manifest = read_manifest(stage)
    same = manifest.get("recipe", {}).get("sha256") == recipe_sha256
    return same and all(manifest.get(name) == value for name, value in facts.items())


def _check_values(recipe: Recipe, stages: Collection[str]) -> None:
    """Raise ConfigError if a stage names a value that no document can have."""
    known: dict[str, Collection[str]] = {}
    described = [stage for stage in recipe.sections if stage.name in stages]
    for stage in described:
        known |= stage.values(recipe.section(stage))
    for stage in described:
        stage.check(recipe.section(stage), recipe, known)


def _are_tables(paths: Sequence[str], recipe: Recipe, alone: bool = False) -> bool:
    """Return whether these are tables still to be turned into documents; `alone`: by their names,
    and nothing else is among them."""
    for folder in map(Folder, paths):
        if read_manifest(folder) or folder.exists("documents") or folder.exists("shards"):
            return False
    try:
        files = discover(paths, suffixes=recipe.readers.own_suffixes)
    except InputError as error:
        raise ConfigError(f"{'inputs' if alone else '--input'}: {error}") from None
    if alone:
        suffixes = (*TABLES, *recipe.readers.formats)
        names = (without_compression(file.name) for file in files)
        return bool(files) and all(name.endswith(suffixes) for name in names)
    return not all(_is_documents(file.path) for file in files)


def _is_documents(path: str) -> bool:
    if not path.endswith(".parquet"):
        return False
    try:
        with RawFile.open(path) as raw:
            schema = pq.read_schema(pa.PythonFile(raw.handle, mode="r"))
    except (InputError, OSError, pa.ArrowInvalid):
        return True  # the stage reports damaged ones
    kinds = dict(zip(schema.names, schema.types, strict=True))
    if "fixed_size_list" in str(schema.types):  # pyarrow may not be able to read it as it is
        return False
    return all(name in kinds and fits(name, kinds[name]) for name in DOCUMENTS.names)


def columns_of(shards: Sequence[Shard]) -> list[str] | None:
    """Return the columns of the first shard; None if damaged, which the stage will report."""
    try:
        for shard in shards:
            with open_parquet(shard.folder, shard.file) as parquet:
                return list(parquet.schema_arrow.names)
    except (OSError, pa.ArrowInvalid):
        return None
    return None


def check_current(paths: Sequence[str]) -> None:
    """Raise InputError for a stage folder whose input has changed since it was written."""
    for folder in map(Folder, paths):
        if read_manifest(folder) and not complete_manifest(folder):
            raise InputError(
                f"{folder.shown}: not complete: files are missing, or the documents of the stage "
                "before it have changed; run it again"
            )


def input_files(
    recipe: Recipe,
    given: Sequence[str] = (),
    own: Sequence[str] = (),
    passed_over: PassedOver | None = None,
) -> list[InputFile]:
    """Return a run's raw files: the recipe's inputs, or `given` instead; see `discover`.

    File names of a named input begin with its name as a folder. `given` may say `name=GLOB` for a
    name in the recipe. Raises InputError if nothing matches, or the name of a file of an unnamed
    input begins with the name of another input.
    """
    named = {} if given else _of_recipe(recipe)
    for pattern in given:
        name, path = _split(pattern, recipe)
        named.setdefault(name, []).append(path)
    plain = named.pop("", [])
    files = _found(plain, recipe, own, passed_over)
    for file in files:
        name, folder, _ = file.name.partition("/")
        if folder and name in named:  # it would count as part of that input, or share its ids
            raise InputError(
                f"{file.path}: begins with the folder {name!r}, the name of another input; "
                f"write {name}={file.path}, or rename that input"
            )
    for name, patterns in sorted(named.items()):
        found = _found(patterns, recipe, own, passed_over)
        files += [replace(f, name=f"{name}/{f.name}") for f in found]
    return _named_safely(files)


def _found(
    patterns: Sequence[str], recipe: Recipe, own: Sequence[str], passed_over: PassedOver | None
) -> list[InputFile]:
    found = discover(patterns, own, passed_over, recipe.readers.own_suffixes)
    if any(without_compression(file.name).endswith((".parquet", ".csv")) for file in found):
        from curation.readers.index import with_archives  # compiled kernels

        return with_archives(found, recipe.readers)
    return found


def _of_recipe(recipe: Recipe) -> dict[str, list[str]]:
    """Return the recipe's own inputs by name; those without one by the empty name."""
    if isinstance(recipe.inputs, dict):
        return {name: list(paths) for name, paths in recipe.inputs.items()}
    return {"": list(recipe.inputs)}


def _split(pattern: str, recipe: Recipe) -> tuple[str, str]:
    """Return the input of the recipe that `name=GLOB` names, empty for none, and the glob."""
    name, equals, rest = pattern.partition("=")
    return (name, rest) if equals and name in recipe.sources else ("", pattern)


def _named_safely(files: Sequence[InputFile]) -> list[InputFile]:
    """Return files without secrets in their names, which go into documents and manifests."""
    named: dict[str, InputFile] = {}
    for file in files:
        name = redact(file.name)
        if name in named and name != file.name:
            raise InputError(f"{file.path}: given twice, with different credentials")
        named[name] = replace(file, name=name)
    return list(named.values())


def _stage_before(stage: str, recipe: Recipe, folder: Folder) -> str | None:
    """Return the folder of the nearest earlier stage that there is, complete or not."""
    order = with_stage(recipe.stages, stage)
    for earlier in reversed(order[: order.index(stage)]):
        if is_stage(folder / earlier):
            return (folder / earlier).url
    return None


def _refuse_other_run(work: Plan) -> None:
    """Raise ConfigError if the folder has stages of another recipe, or of other inputs."""
    folder = work.output
    refuse_own(folder)
    found = {s: read_manifest(folder / s) for s in present_stages(folder)}
    held = {s: m for s, m in found.items() if m.get("stage") == s}  # others are damaged
    first = [s for s, m in held.items() if (m.get("after") or {}).get("stage") not in held]
    what = _other_than(work, held, first)
    if not what:
        return
    facts = run_facts(folder)
    name = next((entry["name"] for entry in held[first[0]]["inputs"]), "nothing")
    raise ConfigError(
        f"{folder.shown}: has a run of {facts['recipe']} over {name} (inputs: {facts['inputs']:,}, "
        f"documents: {facts['documents']:,}, tokens: {facts['tokens']:,}), and this is {what}: "
        "give another --output, or --fresh to replace that run"
    )


def _other_than(work: Plan, held: Mapping[str, Mapping[str, Any]], first: Sequence[str]) -> str:
    """Return what the work is that isn't the run with these stages; empty if it goes on with it."""
    recipes = [m["recipe"] for m in held.values()]
    judged = any(find(stage).decides_by for stage in work.stages if stage in held)
    if not held:
        return ""
    if not any(work.recipe.continues(r["name"], r["sha256"]) for r in recipes):
        return f"another recipe, {work.recipe.name}"
    if judged and bool(held_recipe(work.output).get("measure")) != work.recipe.measure:
        return "one that measures" if work.recipe.measure else "one that removes"
    if passed := _passed_over(work, held):
        return passed
    goes_on = stage_of(work.inputs, work.output) and not work.files
    goes_on = goes_on or any(_reads_again(work, s, held[s]) for s in first)
    return "" if goes_on else "a run over other inputs"


def stage_of(inputs: Sequence[str], output: Folder) -> str:
    """Return which stage of this run, or named mix, is the input; empty for any other input."""
    if len(inputs) != 1:
        return ""
    url = Folder(inputs[0]).url
    inside = url.removeprefix(f"{output.url}/")
    return inside if inside != url and is_stage(Folder(url)) else ""


def _passed_over(work: Plan, held: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what a stage of the folder would read in place of what it read; "" if that is right.

    It is right if the recipe no longer has the stage that it read, or now has one behind that.
    """
    now = stage_of(work.inputs, work.output)
    for stage in work.stages:
        then = (held.get(stage, {}).get("after") or {}).get("stage", "")
        order = with_stage(work.recipe.stages, stage)
        first, end = (order.index(now) + 1 if now in order else 0), order.index(stage)
        if stage in held and now != then:
            if not (now and then) or then in order[first:end] or now in order[end:]:
                return f"{stage} over {now or work.inputs[0]}, not {then or 'what it read'}"
        now = stage
    return ""


def _reads_again(work: Plan, stage: str, manifest: Mapping[str, Any]) -> bool:
    """Return whether what a first stage read is among the inputs now, but for what is gone.

    The same is what has the same path, or the same name and content.
    """
    from pipelines.extract.sources import fingerprints_now, source_shards  # slow, seldom needed

    place = work.output / stage
    read_then = {entry["name"]: entry["fingerprint"] for entry in manifest["inputs"]}
    shards = {} if work.files else {shard.name: shard for shard in stage_inputs(work.inputs)}
    if manifest.get("after"):  # the stage before it was deleted: the names of its shards tell
        names = shards.keys() | {shard.name for shard in source_shards(work.files, (), 0)}
        return any({name, name.rpartition("-")[0]} & names for name in read_then)
    known = place.read_own_json(TIMINGS).get(PATHS, {})
    paths = {as_given(file.path) for file in work.files}
    paths |= {as_given(shard.folder.url_of(shard.file)) for shard in shards.values()}
    moved = {name: before for name, before in read_then.items() if known.get(name) not in paths}
    now = {name: shard.fingerprint for name, shard in shards.items()}
    now |= fingerprints_now((f for f in work.files if f.name in moved), place, moved)
    lost = [name for name, before in moved.items() if now.get(name) != before]
    there = (Folder(known[name]).exists() if name in known else not known for name in lost)
    return len(lost) < len(read_then) and not any(there)
