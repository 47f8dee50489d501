"""`curate trace`: find a passage in the documents that a run tokenized or removed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipelines.commands.options import add_json, add_run, count
from pipelines.terminal import say, say_json, tell, value_text

if TYPE_CHECKING:  # loads kernels
    from pipelines.reading.trace import Answer

#: Characters shown of a span.
_SHOWN = 300


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument("passage", metavar="TEXT", help="20 words or more; -: standard input")
    add_run(parser)
    parser.add_argument(
        "--limit", type=count, default=20, metavar="N", help="documents (default: %(default)s)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Look the passage up in all texts, and print the answer."""
    from pipelines.reading.trace import trace
    from pipelines.run_folder import load_run

    passage = sys.stdin.read() if options.passage == "-" else options.passage
    (answer,) = trace(*load_run(options.run), [passage], options.limit, tell)
    if options.json:
        say_json({"found": [one.facts() for one in answer.found], "matches": answer.matches})
    else:
        say("\n".join(_lines(answer)))
    return 0


def _lines(answer: Answer) -> Iterator[str]:
    for found in answer.found:
        yield from _document(found.facts())
    if not answer.found:
        yield "no span of 20 words or more found in tokenized or removed documents"
    if left := answer.matches - len(answer.found):
        yield f"{left:,} more texts have a part of it: raise --limit to see them"


def _document(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['decision']} {facts['id']} {facts.get('url') or ''}".rstrip()
    if facts.get("source"):
        yield f"    host {facts['host']}, {facts['source']['file']}@{facts['source']['offset']}"
    if facts.get("rights"):
        yield f"    rights {_rights(facts['rights'])}"
    if "reason" in facts:
        yield f"    by {facts['stage']}: {_verdict(facts)}"
    for span in facts["spans"]:
        how = "verbatim" if span["verbatim"] else f"{span['similarity']:.0%} alike"
        shown = " ".join(span["text"].split())
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        yield f"    {span['words']} words, {how}, bytes {span['start']}-{span['end']}: {shown}"
    for place in facts["sequences"]:
        yield (
            f"    {place['stage']} {place['shard']}: sequence {place['sequence']}, tokens "
            f"{place['start']}-{place['start'] + place['length']}, repeat {place['repeat']}"
        )


def _verdict(facts: dict[str, Any]) -> str:
    words = [facts["reason"]]
    if "value_text" in facts:
        words.append(f"value {facts['value_text']}")
    for name in ("value", "threshold"):
        if name in facts:
            words.append(f"{name} {value_text(facts['reason'], facts[name])}")
    return ", ".join([*words, *([f"kept {facts['kept_id']}"] if "kept_id" in facts else [])])


def _rights(rights: dict[str, Any]) -> str:
    """Format licence and signals: kind, place, agent, and the value as found."""
    signals = [
        " ".join(str(s[name]) for name in ("kind", "place", "agent", "value") if s.get(name))
        for s in rights.get("signals") or ()
    ]
    return "; ".join([rights.get("licence") or "no licence", *signals])
