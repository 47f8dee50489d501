"""Run the stages of a recipe, one after the other, in one run folder."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import yaml

from curation.config import parse_yaml
from curation.credentials import redact, redact_all
from curation.errors import AlarmError, ConfigError, InputError
from curation.filters.lists import closest
from curation.filters.settings import default_settings as default_filter_settings
from curation.language.settings import default_settings as default_language_settings
from curation.readers import InputFile, PassedOver, discover
from curation.recipe import STAGES, Recipe, check_order
from curation.schema import DOMAINS
from pipelines.engine.damage import DamagedError
from pipelines.engine.execute import Executor
from pipelines.engine.files import SCRATCH, Folder, fingerprint, room_for
from pipelines.engine.manifest import (
    MANIFEST,
    complete_manifest,
    inner_stages,
    is_stage,
    manifest_sha256,
    read_manifest,
)
from pipelines.engine.own import refuse_foreign, remove_stage, with_inner
from pipelines.engine.stage import Shard, StageRun, stage_inputs

_LOG = logging.getLogger(__name__)

#: The resolved recipe beside the stage folders; `curate report` and `why` read the stages from it.
RECIPE_FILE = "recipe.yaml"
#: What `pipelines.report` writes beside it.
REPORT_PAGE, REPORT_DATA = "report.html", "report.json"
#: SHA-256 of the recipe and of every complete stage's manifest, as `sha256sum --check` takes them.
SUMS = "SHA256SUMS"
#: What stands in these files when a run wrote them.
_KNOWN_BY = {
    REPORT_PAGE: b"<title>Curation report",
    REPORT_DATA: b'"funnel"',
    SUMS: f"  {RECIPE_FILE}\n".encode(),
}
_LOCK = ".lock"
#: What a run, `curate withdraw` and `curate export` may write to a run folder.
_OWN = (*STAGES, "withdrawn", "export", RECIPE_FILE, REPORT_PAGE, REPORT_DATA, SUMS, _LOCK, SCRATCH)
#: So often a run makes a damaged file again, or reads a changed input again.
_TRIES = 3
#: Sections of the recipe that a stage reads besides its own.
_ALSO_READS = {"extract": ("readers",), "mix": ("tokenize",)}


@dataclass(frozen=True)
class Plan:
    """What to run, on what, where to."""

    recipe: Recipe
    stages: tuple[str, ...]
    inputs: tuple[str, ...]
    output: Folder
    facts: dict[str, dict[str, Any]]  # by stage: versions and checksums
    files: tuple[InputFile, ...]  # that `extract` reads
    passed_over: PassedOver  # what lies beside them and is not read


def _also(stage: str, recipe: Recipe) -> dict[str, Any]:
    sections: dict[str, Any] = {"readers": recipe.readers, "tokenize": recipe.tokenize.encoding}
    return {name: sections[name] for name in _ALSO_READS.get(stage, ())}


def plan(
    recipe: Recipe,
    output: str,
    inputs: Sequence[str] = (),
    stages: Sequence[str] = (),
    sync: bool = True,
) -> Plan:
    """Decide stages and inputs, and look at every model and list, before anything runs.

    Without `sync` the run does not wait until what it writes is on the disk.
    Raises ConfigError when they don't fit together, or a file is absent or the wrong one.
    """
    # Imported here, since `why` and `report` need none of it.
    from curation.classify import Classifier
    from curation.mix.plan import check_domains
    from pipelines.facts import stage_facts
    from pipelines.named_files import check_named_files

    chosen = tuple(stages) or recipe.stages
    check_order(chosen)
    for option, value in (("output", output), *(("input", value) for value in inputs)):
        if not value.strip():
            raise ConfigError(f"--{option}: an empty path")
    folder = Folder(output, sync)
    given = tuple(inputs)
    if not given and chosen[0] == "extract":
        if not recipe.inputs:
            raise ConfigError("no input: name files with --input, or in the recipe as inputs:")
    elif not given:
        given = (_complete_before(chosen[0], recipe, folder),)
    for stage in chosen:
        check_named_files(stage, recipe.settings(stage))
    facts = {
        stage: stage_facts(stage, [recipe.settings(stage), *_also(stage, recipe).values()])
        for stage in chosen
    }
    if "identify-language" in chosen:
        _check_languages(recipe, chosen)
    if "classify" in chosen:
        Classifier(recipe.classify).check_topics(
            recipe.classify.drop_topics, "classify.drop_topics"
        )
        Classifier(recipe.classify).check_formats(
            recipe.classify.drop_formats, "classify.drop_formats"
        )
    if "mix" in chosen and "classify" in chosen:
        for mix in ("", *recipe.mixes):
            where = f"mix.mixes.{mix}.domains" if mix else "mix.domains"
            check_domains(recipe.mix.mixture(mix).domains, DOMAINS, where)
    if "mix" in chosen and ("classify" in chosen or not inputs):  # others' topics are not known
        for mix in ("", *recipe.mixes):
            key = f"mix.mixes.{mix}" if mix else "mix"
            mixture, classifier = recipe.mix.mixture(mix), Classifier(recipe.classify)
            classifier.check_topics(mixture.topics, f"{key}.topics")
            classifier.check_formats(mixture.formats, f"{key}.formats")
    over = PassedOver()
    try:
        own = _own_paths(folder)
        found = input_files(recipe, given, own, over) if chosen[0] == "extract" else []
        if chosen[0] != "extract":
            check_current(given)
            stage_inputs(given)
    except InputError as error:
        raise ConfigError(f"--input: {error}") from None
    return Plan(recipe, chosen, given, folder, facts, tuple(found), over)


def check_current(paths: Sequence[str]) -> None:
    """Raise InputError for a stage folder whose own input is not what it was made of any more."""
    for folder in map(Folder, paths):
        if read_manifest(folder) and not complete_manifest(folder):
            raise InputError(
                f"{folder.shown}: not complete: files are missing, or the stage before it has "
                "other documents now; run it again"
            )


def _own_paths(folder: Folder) -> list[str]:
    return [(folder / name).url for name in _OWN]


def _check_languages(recipe: Recipe, stages: Sequence[str]) -> None:
    """Raise ConfigError where a stage names a language that no document can have.

    Languages of the defaults are known with any model: a recipe with another keeps their rules.
    """
    from curation.language import LanguageIdentifier
    from curation.language.identifier import check_known

    known = LanguageIdentifier(recipe.identify_language).languages
    known |= LanguageIdentifier(default_language_settings()).languages
    known |= {language for _, language in default_filter_settings().languages()}
    if "filter" in stages:
        for key, language in recipe.filter.languages():
            # `zh-Hant` has the rules of `zh`, and may have its own under a model that tells it.
            if closest(language, known) is None:
                check_known(f"filter.{key}", [language], known)
    if "classify" in stages:
        check_known("classify.multilingual_excludes", recipe.classify.multilingual_excludes, known)


def input_files(
    recipe: Recipe,
    given: Sequence[str] = (),
    own: Sequence[str] = (),
    passed_over: PassedOver | None = None,
) -> list[InputFile]:
    """Raw files of a run: the recipe's inputs, or `given` in their place; see `discover`.

    Names of files of a named input begin with the input's name as a folder. `given` may say
    `name=GLOB` for a name that the recipe knows. Raises InputError when nothing matches, or a file
    without a name lies in a folder of the name of another input.
    """
    named: dict[str, list[str]] = {}
    plain: list[str] = []
    if not given and isinstance(recipe.inputs, dict):
        named = {name: list(paths) for name, paths in recipe.inputs.items()}
    for pattern in given or (() if named else recipe.inputs):
        name, equals, rest = pattern.partition("=")
        if equals and name in recipe.mix.sources:
            named.setdefault(name, []).append(rest)
        else:
            plain.append(pattern)
    files = discover(plain, own, passed_over)
    for file in files:
        name, folder, _ = file.name.partition("/")
        if folder and name in named:  # it would count as of that input, or even have its files' ids
            raise InputError(
                f"{file.path}: begins with the folder {name!r}, the name of another input; "
                f"write {name}={file.path}, or call that input otherwise"
            )
    for name, patterns in sorted(named.items()):
        found = discover(patterns, own, passed_over)
        files += [replace(f, name=f"{name}/{f.name}") for f in found]
    return _named_safely(files)


def _named_safely(files: Sequence[InputFile]) -> list[InputFile]:
    """Files without secrets in their names, which documents, manifests and shards take on."""
    named: dict[str, InputFile] = {}
    for file in files:
        name = redact(file.name)
        if name in named and name != file.name:
            raise InputError(f"{file.path}: named twice, with other credentials")
        named[name] = replace(file, name=name)
    return list(named.values())


def _complete_before(stage: str, recipe: Recipe, folder: Folder) -> str:
    order = recipe.stages if stage in recipe.stages else STAGES
    for earlier in reversed(order[: order.index(stage)]):
        if complete_manifest(folder / earlier):
            return (folder / earlier).url
    raise ConfigError(
        f"{stage} needs documents: name a stage folder with --input; "
        f"{folder.shown} holds no complete earlier stage"
    )


def run_plan(
    work: Plan, executor: Executor, fresh: bool = False, strict: bool = False
) -> dict[str, dict[str, Any]]:
    """Run every stage of a plan that is not complete; return the manifests by stage.

    A file that turns out to be damaged is made again, which costs its own task; an input that
    changed since it was hashed is read as it is now.

    With `strict`, raises AlarmError after a stage whose manifest holds an alarm; the stage is
    complete all the same.
    """
    with locked(work.output):
        _refuse_foreign(work, fresh)
        if fresh:
            for stage in _existing(work):
                remove_stage(work.output / stage)
        work.output.remove_parts()
        _write_recipe(work)
        for name in _KNOWN_BY:
            work.output.remove(name)  # of what the folder held before
        tries: Counter[str] = Counter()
        while True:
            try:
                manifests = _run_stages(work, executor, strict)
                break
            except DamagedError as error:
                tries.update(list(error.files))
                if max(tries.values()) > _TRIES:
                    raise
                work = _without(error, work)
        stages = load_run(work.output.url)[1]
        work.output.write_bytes(SUMS, sums(work.output, stages))
        return manifests


def _run_stages(work: Plan, executor: Executor, strict: bool) -> dict[str, dict[str, Any]]:
    manifests: dict[str, dict[str, Any]] = {}
    inputs = work.inputs
    for stage in work.stages:
        for mix in mixes_of(stage, work):
            # A mix goes from its own folder of one stage to that of the next.
            own = ((work.output / f"mix/{mix}").url,)
            source = inputs if stage == "mix" else own
            manifests[f"{stage}/{mix}"] = run_stage(stage, work, source, executor, mix)
        manifests[stage] = run_stage(stage, work, inputs, executor)
        if strict:
            _check_alarms(manifests[stage])
        inputs = ((work.output / stage).url,)
    return manifests


def _without(error: DamagedError, work: Plan) -> Plan:
    """Remove damaged files of the stages to run, so that their tasks are done again.

    Inputs that changed are looked for anew, and hashed again by the stage that reads them. Raises
    the error where a file is of a stage that this run does not include.
    """
    for file, detail in error.files.items():
        inside = file.removeprefix(f"{work.output.url}/")
        if inside == file:
            _LOG.warning("%s: %s; read again as it is now", file, detail)
        elif inside.partition("/")[0] in work.stages:
            _LOG.warning("%s: %s; made again", file, detail)
            work.output.remove(inside)
        else:
            raise DamagedError({file: f"{detail}; run that stage again"}) from error
    if work.stages[0] != "extract":
        return work
    found = input_files(work.recipe, work.inputs, _own_paths(work.output))
    return replace(work, files=tuple(found))


def _existing(work: Plan) -> list[str]:
    """Stages that `--fresh` removes: those to run and, with all of a recipe, those not in it."""
    whole = work.stages == work.recipe.stages
    return [s for s in STAGES if s in work.stages or (whole and is_stage(work.output / s))]


def _refuse_foreign(work: Plan, fresh: bool) -> None:
    """Raise ConfigError where a file would be overwritten or removed that no run wrote.

    A stage that is complete is looked at when it turns out that it must be done anew.
    """
    for stage in _existing(work) if fresh else work.stages:
        for folder in with_inner(work.output / stage):
            if fresh or not read_manifest(folder):
                refuse_foreign(folder)
    if any(is_stage(work.output / stage) for stage in STAGES):
        return  # then the files beside them are the run's, too, damaged or not
    for name in (RECIPE_FILE, *_KNOWN_BY):
        if work.output.exists(name) and not _by_a_run(name, work.output.read_bytes(name)):
            raise ConfigError(
                f"{work.output.shown}/{name}: no run wrote this, and a run writes one; "
                "move it away, or give another --output"
            )


def _by_a_run(name: str, data: bytes) -> bool:
    if not data.strip(b"\0"):  # damaged
        return True
    return _KNOWN_BY[name] in data if name in _KNOWN_BY else _whole_recipe(data) is not None


def _check_alarms(manifest: dict[str, Any]) -> None:
    alarms = manifest.get("notes", {}).get("alarms", [])
    if alarms:
        more = f", and {len(alarms) - 1} more" if len(alarms) > 1 else ""
        raise AlarmError(
            f"{manifest['stage']}: {alarms[0]['alarm']}{more} (--strict; the report shows samples)"
        )


def mixes_of(stage: str, work: Plan) -> tuple[str, ...]:
    """Named mixes that a stage works on besides the one without a name.

    They come first: the counts that all share go when the mix without a name is complete.
    `tokenize` takes those that lie in the same run folder.
    """
    if stage == "mix":
        return work.recipe.mixes
    mixed = work.output / "mix"
    if stage == "tokenize" and ("mix" in work.stages or _same(work.inputs, mixed)):
        return tuple(m for m in work.recipe.mixes if complete_manifest(mixed / m))
    return ()


def _same(inputs: Sequence[str], folder: Folder) -> bool:
    return [Folder(path).url for path in inputs] == [folder.url]


def run_stage(
    stage: str, work: Plan, inputs: Sequence[str], executor: Executor, mix: str = ""
) -> dict[str, Any]:
    """Run one stage, or one named mix of it; a complete one costs a look at its manifest."""
    run = stage_run(stage, work, inputs, executor, mix)
    executor.display.stage(run.stage, "started")
    before, started = read_manifest(run.folder).get("key"), time.perf_counter()
    module = importlib.import_module(f"pipelines.{stage.replace('-', '_')}")
    manifest = module.run(run)
    counts = manifest["counts"]
    executor.display.stage(
        run.stage,
        "complete" if before == manifest["key"] else "done",
        documents=counts["documents_in"],
        kept=counts["documents"],
        removed=counts["documents_removed"],
        seconds=round(time.perf_counter() - started, 1),
    )
    return manifest  # type: ignore[no-any-return]


def stage_run(
    stage: str, work: Plan, inputs: Sequence[str], executor: Executor, mix: str = ""
) -> StageRun:
    """What a stage's module needs to run, for the stage or one named mix of it."""
    settings = work.recipe.settings(stage, mix)
    also = _also(stage, work.recipe)
    facts = work.facts[stage]
    key = [s.model_dump(mode="json") for s in (settings, *also.values())]
    recipe = {"name": work.recipe.name, "sha256": work.recipe.sha256, "stages": list(work.stages)}
    shards: list[Shard] = [] if stage == "extract" else stage_inputs(inputs)
    return StageRun(
        f"{stage}/{mix}" if mix else stage,
        work.output / (f"{stage}/{mix}" if mix else stage),
        settings,
        fingerprint([redact_all(key), facts]),
        executor,
        recipe,
        facts,
        shards,
        also,
        work.files if stage == "extract" else (),
        str(work.passed_over.of_others) if stage == "extract" else "",
        _stage_of(inputs, work.output) if shards else "",
    )


def _stage_of(inputs: Sequence[str], output: Folder) -> str:
    """The stage of this run, or its named mix, that is the input; empty for any other input."""
    urls = [Folder(path).url for path in inputs]
    inside = urls[0].removeprefix(f"{output.url}/")
    return inside if len(urls) == 1 and inside != urls[0] and is_stage(Folder(urls[0])) else ""


def _write_recipe(work: Plan) -> None:
    content = work.recipe.model_dump(mode="json", by_alias=True, exclude={"inputs"})
    content["inputs"] = []
    content["stages"] = _stages_of_run(work)
    text = yaml.safe_dump(redact_all(content), sort_keys=False, allow_unicode=True, width=100)
    data = text.encode()
    if not work.output.exists(RECIPE_FILE) or work.output.read_bytes(RECIPE_FILE) != data:
        work.output.write_bytes(RECIPE_FILE, data)
        work.output.remove(".work")


def _stages_of_run(work: Plan) -> list[str]:
    """The recipe's stages, also where only some are run, and any other that is asked for."""
    if set(work.stages) <= set(work.recipe.stages):
        return list(work.recipe.stages)
    if work.stages[0] == STAGES[0]:
        return list(work.stages)
    return [s for s in STAGES if s in work.stages or s in work.recipe.stages]


def make_run_folder(folder: Folder) -> None:
    """Make a local run folder unless it is there. Raises ConfigError where that can't be done."""
    try:
        os.makedirs(folder.path(), exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None


def _not_writable(folder: Folder, error: OSError) -> ConfigError:
    reason = "a file, no folder" if os.path.isfile(folder.path()) else error.strerror
    return ConfigError(f"{folder.shown}: can't be written as a run folder: {reason}")


@contextlib.contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """One run at a time in a local run folder; the lock goes with the process that holds it."""
    if not folder.is_local:
        yield
        return
    path = folder.path(_LOCK)
    with contextlib.ExitStack() as stack:
        while True:
            make_run_folder(folder)
            try:
                file = stack.enter_context(open(path, "a+"))
            except OSError as error:
                raise _not_writable(folder, error) from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise ConfigError(
                    f"{folder.shown}: another run (process {holder}) is at work in this folder"
                ) from None
            if _is_at(file, path):
                break
            # A run that ended removed this file after it was opened here: it locks nothing now.
            stack.close()
        with room_for(path):
            file.truncate(0)
            os.write(file.fileno(), str(os.getpid()).encode())  # past the buffer: fails here only
        try:
            yield
        finally:
            os.unlink(path)


def _is_at(file: IO[str], path: str) -> bool:
    """Whether an open file is still the one at that path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def load_run(directory: str) -> tuple[Folder, list[str]]:
    """A run folder and its complete stages in order; those of named mixes (`mix/annealing`) last.

    The stages and mixes are those of the recipe in the folder: what an earlier run with another one
    left is no part of it. Raises ConfigError when it is no run folder.
    """
    folder = Folder(directory)
    if not directory.strip() or not folder.exists():
        raise ConfigError(f"{directory or 'an empty path'}: no such run folder")
    known: dict[str, dict[str, Any]] = {}
    stages = [s for s in all_stages(folder) if complete_manifest(folder / s, known)]
    if not stages:
        raise ConfigError(f"{directory}: holds no complete stage")
    return folder, stages


def sums(folder: Folder, stages: Sequence[str]) -> bytes:
    """Content of the file of SHA-256 sums: of the recipe, and of each stage's manifest, which has
    those of all that the stage wrote."""
    digests = folder.each(lambda stage: manifest_sha256(folder / stage), stages)
    lines = [f"{d}  {stage}/{MANIFEST}\n" for d, stage in zip(digests, stages, strict=True)]
    if folder.exists(RECIPE_FILE):
        digest = hashlib.sha256(folder.read_bytes(RECIPE_FILE)).hexdigest()
        lines.insert(0, f"{digest}  {RECIPE_FILE}\n")
    return "".join(lines).encode()


def root_hash(folder: Folder, stages: Sequence[str]) -> str:
    """One SHA-256 for all that a run wrote: of its file of sums."""
    return hashlib.sha256(sums(folder, stages)).hexdigest()


def run_recipe(folder: Folder) -> dict[str, Any]:
    """The recipe in a run folder, with every value. Raises ConfigError when it is damaged."""
    recipe = _whole_recipe(folder.read_bytes(RECIPE_FILE))
    if recipe is None:
        raise ConfigError(
            f"{folder.shown}/{RECIPE_FILE}: damaged; the run's command writes it again"
        )
    return recipe


def _whole_recipe(data: bytes) -> dict[str, Any] | None:
    """A recipe with every section, as a run writes it, or None."""
    try:
        recipe = parse_yaml(data.decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    return recipe if isinstance(recipe, dict) and {"stages", *STAGES} <= recipe.keys() else None


def _stages_and_mixes(folder: Folder) -> tuple[Sequence[str], list[str]]:
    """Those of the recipe in a run folder."""
    if not folder.exists(RECIPE_FILE):
        return STAGES, []
    recipe = run_recipe(folder)
    return recipe["stages"], sorted(recipe["mix"].get("mixes", {}))


def all_stages(folder: Folder) -> list[str]:
    """Stages and named mixes of the recipe in a run folder, complete or not."""
    stages, mixes = _stages_and_mixes(folder)
    return [*stages, *_branches(mixes)]


def _branches(mixes: Sequence[str]) -> list[str]:
    return [f"{stage}/{mix}" for mix in mixes for stage in ("mix", "tokenize")]


def stale_stages(folder: Folder, complete: Sequence[str]) -> list[str]:
    """Stages and named mixes in a run folder that are of an earlier run.

    The recipe does not have them, or their documents are not those of the stage before any more.
    `complete` are the stages of `load_run`.
    """
    wanted = all_stages(folder)
    found = [s for s in STAGES if is_stage(folder / s)]
    for stage in ("mix", "tokenize"):
        if stage in wanted or stage not in found:
            found += [f"{stage}/{mix}" for mix in inner_stages(folder / stage)]
    return [
        s for s in found if s not in wanted or (s not in complete and read_manifest(folder / s))
    ]


def stage_before(stage: str, stages: Sequence[str]) -> str | None:
    """The stage of a run whose documents a stage read, among `stages` of `load_run`."""
    name, _, mix = stage.partition("/")
    if mix and name == "tokenize":
        return f"mix/{mix}"
    at = stages.index(name) if name in stages else 0
    return stages[at - 1] if at else None


def dumps(value: Any) -> str:
    """JSON for people and machines."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
