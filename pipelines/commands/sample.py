"""`curate sample`: draw a random sample of the documents that a rule removed."""

import argparse

from curation.schema import VALUE_TEXT
from pipelines.commands.options import add_json, add_run, count
from pipelines.run_folder import load_run
from pipelines.terminal import say, say_json, snippet, value_text

_SNIPPET = 400


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--rule", default="kept", metavar="R", help="the rule, or `kept` (default: kept)"
    )
    parser.add_argument("-n", type=count, default=50, metavar="N", help="sample size (default: 50)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Draw and print documents: the same for the same seed."""
    from pipelines.reading.ledger import build, main_stages
    from pipelines.reading.search import draw

    folder, stages = load_run(options.run)
    ledger = build(folder, main_stages(stages))
    rows = draw(ledger, options.rule, options.n, options.seed).tolist()
    columns = ["id", "url", "title", "text", "reason", "value", VALUE_TEXT, "threshold"]
    found = ledger.read(folder, rows, columns)
    if options.json:
        say_json(found)
        return 0
    for row in found:
        value = row[VALUE_TEXT] or value_text(row["reason"], row["value"])
        value = f"  value {value}" if value else ""
        say(f"{row['id']}  {row['url']}{value}\n    {snippet(row['text'], _SNIPPET)}")
    return 0
