"""`curate filter --what-if`: try other thresholds on a run's signals, without its texts."""

from __future__ import annotations

import argparse
import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from curation.config import assign, nearest, validate
from curation.errors import ConfigError, InputError
from curation.filters.filter_settings import FilterSettings, default_tree
from curation.filters.margins import Judges
from curation.filters.redecide import Flips, WhatIf
from curation.filters.rules import RuleBook
from curation.schema import column_of
from curation.tokenize.tokenize_settings import TokenizeSettings
from pipelines.commands.options import count
from pipelines.console import PlainConsole
from pipelines.reading.values import snippet
from pipelines.run_folder import load_run, run_recipe, run_settings
from pipelines.storage.files import Folder
from pipelines.storage.manifest import MANIFEST, files_of, read_manifest
from pipelines.storage.shards import open_parquet, read_rows
from pipelines.terminal import say_json

T = TypeVar("T")

_STAGE = "filter"
#: Sections of the settings that hold thresholds; all others decide what is measured.
_DECIDING = ("rules", "by_language", "exempt")
_BATCH = 1 << 16
_SNIPPET = 200
_AS_RUN = "as run"
#: Documents tokenized to estimate tokens per character, and from how many files.
_COUNTED_ROWS, _COUNTED_FILES = 1024, 32
_NOTE = (
    "chars: of the text that rules judge, before personal data is replaced; the funnel counts "
    "after that. ~tokens: estimated from up to {rows:,} documents. Documents shown are those "
    "nearest to the threshold, with their values."
)


class Variant(NamedTuple):
    """Settings to try, and how they differ from the run's: KEY=VALUE."""

    changes: Sequence[str]
    settings: FilterSettings


class Source(NamedTuple):
    """A file of the stage whose documents are numbered from `first`."""

    name: str
    first: int
    rows: int


def extend(parser: argparse.ArgumentParser) -> None:
    """Declare `--what-if` and its options on the command of the stage."""
    group = parser.add_argument_group(
        "try other thresholds on a finished run",
        "curate filter --what-if --run out --sweep filter.rules.fineweb.line_punct.min=0.05,0.1",
    )
    group.add_argument(
        "--what-if",
        action="store_true",
        help="show what --set and --sweep would change, from the signals alone; nothing is written",
    )
    group.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="KEY=V1,V2,...",
        help="try each value; several sweeps try every combination (repeatable)",
    )
    group.add_argument(
        "--samples",
        type=count,
        default=2,
        metavar="N",
        help="documents shown per change (default: 2)",
    )
    parser.set_defaults(command=_filter, otherwise=parser.get_default("command"))


def _filter(options: argparse.Namespace) -> int:
    if options.what_if:
        return what_if(options)
    if options.sweep:
        raise ConfigError("--sweep goes with --what-if")
    return int(options.otherwise(options))


def what_if(options: argparse.Namespace) -> int:
    """Judge the run again under every variant and print what changes."""
    if options.run is None:
        raise ConfigError("--what-if needs --run DIR, the folder of a finished run")
    folder, stages = load_run(options.run)
    if _STAGE not in stages:
        raise ConfigError(f"{options.run}: no complete stage {_STAGE!r}")
    place = folder / _STAGE
    tree = run_settings(folder, _STAGE)
    tried = list(variants(tree, options.assignments, options.sweep))
    samples = max(0, options.samples)
    tallies = [WhatIf(RuleBook(variant.settings), samples) for variant in tried]
    sources = _sources(place)
    for batch, recorded, languages, first in _signals(place, sources, tallies):
        for tally in tallies:
            tally.add(batch, languages, recorded, first)
    per_character = _tokens_per_character(folder, place, sources)
    facts = [
        _facts(variant, tally, per_character) for variant, tally in zip(tried, tallies, strict=True)
    ]
    shown = _texts(place, sources, tallies)
    for fact, tally in zip(facts, tallies, strict=True):
        fact["flips"] = [_flip(pair, flips, shown) for pair, flips in tally.ranked()]
    if options.json:
        say_json(facts)
    else:
        _print([variant.changes for variant in tried], facts, folder.shown)
    return 0


def variants(
    tree: dict[str, Any], assignments: Sequence[str], sweeps: Sequence[str]
) -> Iterator[Variant]:
    """Yield the run's own settings, then these changed by `assignments` and each sweep value.

    Raises ConfigError for an unknown key, or one that needs the texts.
    """
    yield Variant((), validate(FilterSettings, tree, f"{_STAGE}/{MANIFEST}"))
    choices = [_values(sweep) for sweep in sweeps]
    for chosen in itertools.product(*choices):
        changes = [*assignments, *chosen]
        if not changes:
            continue
        whole = {_STAGE: copy.deepcopy(tree)}
        for change in changes:
            check_key(change, tree)
            assign(whole, change)
        settings = validate(FilterSettings, whole[_STAGE], "--set")
        if problem := settings.unmeasured():
            raise ConfigError(f"--set: {problem}, and run the stage again")
        yield Variant(chosen or assignments, settings)


def _values(sweep: str) -> list[str]:
    key, equals, values = sweep.partition("=")
    if not equals or not values:
        raise ConfigError(f"--sweep {sweep}: expected key.path=value,value,...")
    return [f"{key}={value}" for value in values.split(",")]


def check_key(assignment: str, tree: Mapping[str, Any]) -> None:
    """Raise ConfigError with the nearest name for an unknown key."""
    path = assignment.partition("=")[0].strip()
    keys = path.split(".")
    if keys[0] != _STAGE or len(keys) < 2:
        hint = (
            f"; did you mean '{_STAGE}.{path}'?" if keys[0] in tree else nearest(keys[0], [_STAGE])
        )
        raise ConfigError(f"--set {path}: --what-if takes keys below {_STAGE}{hint}")
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


def _sources(place: Folder) -> list[Source]:
    sources: list[Source] = []
    first = 0
    for name, held in files_of(read_manifest(place), "documents", "removed").items():
        sources.append(Source(name, first, held["rows"]))
        first += held["rows"]
    return sources


def _signals(
    place: Folder, sources: Sequence[Source], tallies: Sequence[WhatIf]
) -> Iterator[tuple[pa.StructArray, pa.Array, pa.Array | None, int]]:
    """Yield (signals, recorded reasons, languages, number of the first document) by batch."""
    needed = dict.fromkeys(name for tally in tallies for name in tally.signals)
    for source in sources:
        if not source.rows:
            continue
        with open_parquet(place, source.name) as parquet:
            names = parquet.schema_arrow.names
            held = {f.name for f in parquet.schema_arrow.field("signals").type}
            absent = [name for name in needed if name not in held]
            if absent:
                raise InputError(
                    f"{place.shown}/{source.name}: no signal {absent[0]!r}: the run is of an "
                    "earlier version; run the stage again"
                )
            columns = [f"signals.{name}" for name in needed]
            columns += [name for name in ("language", "reason") if name in names]
            row = source.first
            for batch in parquet.iter_batches(_BATCH, columns=columns):
                languages = batch.column("language") if "language" in names else None
                yield batch.column("signals"), column_of(batch, "reason"), languages, row
                row += batch.num_rows


def _tokens_per_character(folder: Folder, place: Folder, sources: Sequence[Source]) -> float:
    """Estimate tokens per character with the recipe's tokenizer on documents spread over the files.

    Each file is weighted by its number of documents.
    """
    from curation.tokenize.shard import count_tokens  # compiled kernels

    kept = [s for s in sources if s.name.startswith("documents/") and s.rows]
    settings = TokenizeSettings.model_validate(run_recipe(folder)["tokenize"])
    chosen = _spread(kept, _COUNTED_FILES)
    tokens = characters = 0.0
    for number, source in enumerate(chosen):
        texts = _some_texts(place, source, number, -(-_COUNTED_ROWS // len(chosen)))
        weight = source.rows / len(texts)
        tokens += weight * int(count_tokens(texts, settings).sum())
        characters += weight * pc.sum(pc.utf8_length(texts)).as_py()
    return tokens / characters if characters else 0.0


def _spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of the items, evenly spaced."""
    count = min(most, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def _some_texts(place: Folder, source: Source, number: int, most: int) -> pa.Array:
    """Return evenly spaced texts of one row group of a file, chosen by `number`."""
    with open_parquet(place, source.name) as parquet:
        group = parquet.read_row_group(number % parquet.num_row_groups, columns=["text"])
    texts = group.column("text").combine_chunks()
    return texts.take(pa.array(_spread(range(len(texts)), most)))


def _facts(variant: Variant, tally: WhatIf, per_character: float) -> dict[str, Any]:
    return {
        "variant": " ".join(variant.changes) or _AS_RUN,
        "documents_in": tally.counts.total(),
        "documents": tally.kept,
        "characters": tally.characters,
        "words": tally.words,
        "tokens_estimated": round(tally.characters * per_character),
        "newly_kept": tally.gained(),
        "newly_removed": tally.lost(),
        "removed": dict(sorted(tally.removed.items())),
        "own_thresholds": list(_own_thresholds(variant, tally)),
    }


def _own_thresholds(variant: Variant, tally: WhatIf) -> Iterator[dict[str, Any]]:
    """Yield the thresholds that languages of the run have in place of those that were changed."""
    changed = tuple(f"{_short(change.partition('=')[0])}." for change in variant.changes)
    judges = Judges(variant.settings)
    languages = judges.languages({language for _, language in tally.counts})
    for limit, present in zip(judges.limits, languages, strict=True):
        if present and limit.language and f"{limit.reason}.{limit.side}.".startswith(changed):
            yield {
                "rule": limit.reason,
                "language": limit.language,
                "side": limit.side,
                "threshold": limit.threshold,
                "removed": sum(tally.counts[limit.reason, name] for name in present),
            }


def _flip(pair: tuple[str, str], flips: Flips, shown: Mapping[int, Any]) -> dict[str, Any]:
    return {
        "was": pair[0],
        "now": pair[1],
        "documents": flips.documents,
        "samples": [
            shown[place] | {"value": None if math.isnan(value) else value}
            for _, place, value in flips.samples
        ],
    }


def _texts(
    place: Folder, sources: Sequence[Source], tallies: Sequence[WhatIf]
) -> dict[int, dict[str, Any]]:
    """Return URL and beginning of the documents to show, by number; reads no other texts."""
    wanted = sorted({n for t in tallies for _, f in t.ranked() for _, n, _ in f.samples})
    shown: dict[int, dict[str, Any]] = {}
    for source in sources:
        mine = [n - source.first for n in wanted if 0 <= n - source.first < source.rows]
        for row, held in read_rows(place, source.name, mine, ["url", "text"]):
            text = snippet(held["text"], _SNIPPET)
            shown[source.first + row] = {"url": held["url"], "text": text}
    return shown


def _print(changes: Sequence[Sequence[str]], facts: Sequence[Mapping[str, Any]], run: str) -> None:
    """Print the table, whose title names the keys and whose rows their values, and the flips."""
    console = PlainConsole()
    keys = dict.fromkeys(_short(c.partition("=")[0]) for some in changes for c in some)
    other = f" under other values of {', '.join(keys)}" if keys else ""
    console.print(f"filter of {run}{other}", soft_wrap=True)
    table = Table("value")
    for name in ("kept", "share", "chars", "~tokens", "gained", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for some, fact in zip(changes, facts, strict=True):
        share = fact["documents"] / max(fact["documents_in"], 1)
        table.add_row(
            ", ".join(change.partition("=")[2] for change in some) or _AS_RUN,
            f"{fact['documents']:,}",
            f"{share:.1%}",
            f"{fact['characters']:,}",
            f"{fact['tokens_estimated']:,}",
            f"{fact['newly_kept']:,}",
            f"{fact['newly_removed']:,}",
        )
    console.print(table)
    console.print(_NOTE.format(rows=_COUNTED_ROWS))
    own: dict[str, list[str]] = {}
    for held in facts[-1]["own_thresholds"]:
        shown = f"{held['language']} {held['threshold']:.6g} ({held['removed']:,} removed)"
        own.setdefault(f"{held['rule']}.{held['side']}", []).append(shown)
    for key, languages in own.items():
        told = f"not for languages with their own in filter.by_language: {', '.join(languages)}"
        console.print(f"{key}: {told}", soft_wrap=True)
    for fact in facts:
        for flip in fact["flips"]:
            console.print(
                f"{_short(fact['variant'])}: {flip['was']} -> {flip['now']}, "
                f"documents {flip['documents']:,}",
                soft_wrap=True,
            )
            for sample in flip["samples"]:
                value = "" if sample["value"] is None else f"  {sample['value']:.6g}"
                console.print(f"    {sample['url']}{value}", soft_wrap=True)
                console.print(f"      {sample['text']}", soft_wrap=True)


def _short(variant: str) -> str:
    return variant.replace(f"{_STAGE}.rules.", "")
