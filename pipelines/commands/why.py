"""`curate why`: show every decision that a run took on one document.

`curate sample`: draw a random sample of the documents that a rule removed, or of the records that
an index names.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq
from rich.text import Text

from curation import stores
from curation.errors import ConfigError, InputError
from curation.readers.records import Page
from curation.recipe import load
from curation.schema import VALUE_TEXT
from curation.stages import find
from pipelines.commands.options import add_dry_run, add_json, add_run, add_set, count, end_dry_run
from pipelines.console import PlainConsole
from pipelines.reading.decisions import FACTS
from pipelines.reading.decisions import why as stories_of
from pipelines.run_folder import load_run
from pipelines.terminal import say, say_json, snippet, tell, value_text

_SNIPPET = 400


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `why` or `sample`."""
    if name == "sample":
        _add_sample(parser)
        return
    parser.add_argument("document", metavar="ID_OR_URL")
    add_run(parser)
    add_json(parser)


def _add_sample(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", metavar="DIR", help="run folder")
    source.add_argument("--input", nargs="+", metavar="INDEX", help="indexes of archives")
    parser.add_argument("--rule", metavar="R", help="the rule, or `kept` (default: kept)")
    parser.add_argument("-n", type=count, default=50, metavar="N", help="sample size (default: 50)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument("--recipe", default="llama3", metavar="RECIPE", help="default: llama3")
    add_set(parser, "the recipe", "\"readers.index.where=url_host_tld = 'is'\"")
    parser.add_argument(
        "--output", metavar="FILE", help="with --input: write an index of the sample, in Parquet"
    )
    add_json(parser)
    add_dry_run(parser)
    parser.set_defaults(command=sample)


def run(options: argparse.Namespace) -> int:
    """Find the document by id or URL and print its path through the stages."""
    if not options.document.strip():
        raise ConfigError("ID_OR_URL is empty: give a document's id or URL")
    stories = stories_of(options.run, options.document)
    if options.json:
        say_json(stories)
    else:
        console = PlainConsole()
        for number, story in enumerate(stories):
            if number:
                console.print()
            console.print(*_text(story), sep="\n", soft_wrap=True)
    return 0


def sample(options: argparse.Namespace) -> int:
    """Draw and print documents: the same for the same seed."""
    if options.rule if options.input else options.output or options.assignments:
        raise ConfigError("--rule is for --run; --set and --output are for --input")
    end_dry_run(options, options.output, known=None)
    found = _records(options) if options.input else _documents(options)
    if options.json:
        say_json(found)
        return 0
    for row in found:
        value = row.get(VALUE_TEXT) or value_text(row["reason"], row.get("value"))
        note = f"value {value}" if value else row["reason"] or "kept"
        say(f"{row['id']}  {row['url']}  {note}\n    {snippet(row['text'], _SNIPPET)}")
    return 0


def _documents(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return documents that a rule of a run removed."""
    from pipelines.reading.ledger import build, main_stages
    from pipelines.reading.search import draw

    folder, stages = load_run(options.run)
    ledger = build(folder, main_stages(stages))
    rows = draw(ledger, options.rule or "kept", options.n, options.seed).tolist()
    columns = ["id", "url", "title", "text", "reason", "value", VALUE_TEXT, "threshold"]
    return ledger.read(folder, rows, columns)


def _records(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return records that indexes name, as `extract` makes documents of them, or write an index."""
    from curation.extract.safe import Refused
    from curation.readers.index import as_table, draw, read_records
    from pipelines.extract import JudgePages, PageBatch, PagesBeside
    from pipelines.plan import input_files

    recipe = load(options.recipe, options.assignments)
    try:
        files = draw(input_files(recipe, options.input), options.n, options.seed)
    except InputError as error:
        raise ConfigError(f"--input: {error}") from None
    if options.output:
        pq.write_table(as_table(files), options.output)
        tell(f"index of the sample: {options.output}")
        return []
    read = stores.each(lambda f: [*read_records(f.path, f.name, recipe.readers, f.records)], files)
    judge, batch = JudgePages(recipe.extract, recipe.readers, ""), PageBatch()
    for file, events in zip(files, read, strict=True):
        answers = iter(judge.answers([event for event in events if isinstance(event, Page)]))
        for (offset, _, url), event in zip(json.loads(file.records), events, strict=True):
            if isinstance(event, Page):
                judge.add(file.name, event, next(answers), batch, PagesBeside())
            else:
                place = {"file": file.name, "offset": offset}
                row = {"id": "", "url": url, "text": "", "source": place}
                batch.add(row, {}, Refused(event.reason))
    found = zip(batch.rows, batch.refused, strict=True)
    return [row | {"reason": refused and refused.reason} for row, refused in found]


def _text(story: dict[str, Any]) -> Iterator[str | Text]:
    source = story["source"]
    yield from [
        f"document {story['id']}" if story["id"] is not None else "a record without a document",
        f"  url     {story['url']}",
        f"  date    {story['date']}",
        f"  source  {source['file']} at offset {source['offset']}",
    ]
    known: dict[str, Any] = {}
    for decision in story["decisions"]:
        yield from _decision_text(decision, known)
        known |= decision


def _decision_text(decision: dict[str, Any], known: Mapping[str, Any]) -> Iterator[str | Text]:
    """Yield the lines of a decision, without facts that are `known` from stages before it."""
    head = f"{decision['stage']}: {decision['decision']}"
    if "reason" in decision:
        head += f" by {decision['reason']}"
    if "value" in decision:
        head += f", value {value_text(decision['reason'], decision['value'])}"
    if VALUE_TEXT in decision:
        head += f", value {decision[VALUE_TEXT]}"
    if "threshold" in decision:
        head += f", threshold {value_text(decision['reason'], decision['threshold'])}"
    yield Text(head, "red" if "reason" in decision else "green")
    if "means" in decision:
        yield f"    {decision['means']}"
    if "detail" in decision:
        broken = f"{decision['mended']}: " if "mended" in decision else ""
        yield f"    {broken}{decision['detail']}"
    fresh = (k for k in FACTS if k in decision and decision[k] != known.get(k))
    facts = [f"{k} {_short(decision[k])}" for k in fresh]
    facts += [f"{k} {_short(v)}" for k, v in decision.get("columns", {}).items()]
    if facts:
        yield "    " + ", ".join(facts)
    yield from (f"    {line}" for line in decision.get("rights", []))
    if "kept_id" in decision:
        place = f" of {decision['kept_in']}" if "kept_in" in decision else ""
        kept_url = decision.get("kept_url", "")
        what = "kept in its place" if find(decision["stage"]).keeps_one else "copy of"
        yield f"    {what}: {decision['kept_id']} {kept_url}{place}"
    if "cluster_size" in decision:
        size = f"    cluster of {decision['cluster_size']} documents"
        if decision["reason"] == "document.near" and decision["value"] < decision["threshold"]:
            size += ": linked to the kept one through other documents"
        yield size
    yield from (f"    | {line}" for line in decision.get("difference", []))
    yield from _rules_text(decision)
    yield from (f"    {line}" for line in find(decision["stage"]).tell(decision.get("beside", [])))
    for cut in decision.get("cut", []):
        kept = f" (a copy stays in {cut['kept_id']})" if "kept_id" in cut else ""
        what = f"cut by {cut['reason']} at byte {cut['position']}{kept}"
        yield f"    {what}: {cut['text'].strip()}"
    for span in decision.get("spans", []):
        yield "    " + ", ".join(f"{k} {v}" for k, v in span.items() if k != "id")


def _rules_text(decision: dict[str, Any]) -> Iterator[str | Text]:
    """Yield the limits, the one that decided marked, and those without a value on one line."""
    unmeasured = []
    for rule in decision.get("rules", []):
        if rule["value"] is None:
            unmeasured.append(rule["rule"])
            continue
        limits = ", ".join(f"{k} {rule[k]:.10g}" for k in ("min", "max") if k in rule)
        line = f"{rule['rule']:<36} {_short(rule['value']):>12}  ({limits})"
        decided = rule["rule"] == decision.get("reason")
        yield Text(f"  > {line}", "bold red") if decided else f"    {line}"
    if unmeasured:
        yield f"    not measured: {', '.join(unmeasured)}"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
