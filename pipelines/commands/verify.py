"""`curate verify` and `curate receipt`: check a run, and let others check what is in it."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from curation.errors import ConfigError
from pipelines.commands.options import (
    add_dry_run,
    add_input,
    add_json,
    add_run,
    end_dry_run,
    read_text,
)
from pipelines.commands.withdraw import hosts_in, near_of
from pipelines.reading.checks import Checked, check, check_receipt, receipt
from pipelines.report.collect import copies_together
from pipelines.run_folder import root_hash
from pipelines.storage.files import Folder
from pipelines.storage.manifest import named_files
from pipelines.terminal import say, say_json


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `verify` or `receipt`."""
    if name == "receipt":
        _add_receipt(parser)
        return
    add_run(parser)
    parser.add_argument(
        "--sample",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="share of the token spans to trace back (default: %(default)s)",
    )
    add_input(parser, "the run's raw input, to trace tokens back to its records")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything and print the problems; return 0 only if there are none."""
    if not 0 <= options.sample <= 1:
        raise ConfigError(f"--sample {options.sample}: expected a share from 0 to 1")
    found = check(options.run, options.sample, options.input)
    _print(options, found)
    return 1 if found.problems else 0


def _print(options: argparse.Namespace, found: Checked) -> None:
    folder, manifests, traced, problems = found
    root = root_hash(folder, list(manifests))
    files = sum(len(named_files(m)) for m in manifests.values())
    if options.json:
        facts = {"root": root, "files": files, "spans": traced, "problems": problems}
        say_json({"stages": list(manifests)} | facts)
        return
    for stage, manifest in manifests.items():
        counts = manifest["counts"]
        say(
            f"{stage}: {len(named_files(manifest)):,} files; {counts['documents_in']:,} documents "
            f"= {counts['documents']:,} kept + {counts['documents_removed']:,} removed"
        )
        for told in copies_together(stage, counts):
            say(told)
    for problem in problems:
        say(f"wrong: {problem}")
    if not problems:
        say(f"{files:,} files are intact; {traced:,} token spans trace back to their records")
    say(f"root: {root}")


def _add_receipt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", metavar="DIR", help="run folder")
    parser.add_argument("--hosts", metavar="FILE", help="whose documents: hosts, one a line")
    parser.add_argument(
        "--text",
        metavar="FILE",
        action="append",
        default=[],
        help="also say whether spans of 20 words or more of this text are in it (repeatable)",
    )
    parser.add_argument(
        "--near",
        type=float,
        metavar="SHARE",
        help="least similarity of a copy (default: rights.follow of the run's recipe, else 0.8)",
    )
    parser.add_argument("--output", metavar="FILE", help="write the receipt here, as JSON")
    parser.add_argument(
        "--verify",
        metavar="FILE",
        help="check a receipt; with --run (or some of its files) also rows, and what is left out",
    )
    parser.add_argument("--root", metavar="HASH", help="with --verify: the run's published root")
    add_json(parser)
    add_dry_run(parser)
    parser.set_defaults(command=_receipt)


def _receipt(options: argparse.Namespace) -> int:
    """Give a receipt, or check one; return 1 if it is wrong."""
    if options.verify:
        return _verify_receipt(options)
    if not options.run or not options.hosts:
        raise ConfigError("--run and --hosts are required, or --verify")
    near = near_of(options.run, options.near)
    texts = {path: read_text(path) for path in options.text}
    end_dry_run(options, options.output, known=b'{\n "SHA256SUMS": ')
    found = receipt(options.run, hosts_in(options.hosts), 0.8 if near is None else near, texts)
    if options.output:
        folder, _, name = options.output.rpartition("/")
        Folder(folder or options.output[: -len(name)] or ".").write_json(name, found)
    say_json(found) if options.json else say("\n".join(_told(found)))
    return 0


def _verify_receipt(options: argparse.Namespace) -> int:
    text, place = read_text(options.verify), Folder(options.run) if options.run else None
    try:
        problems, whole = check_receipt(json.loads(text), options.root, place)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ConfigError(f"{options.verify}: not a receipt of `curate receipt`") from None
    if options.json:
        say_json({"problems": problems, "whole_run": whole})
    else:
        but = "" if whole else "; without the whole run, rows may differ and copies may be left out"
        but += "; what it says of texts is not checked" if json.loads(text)["texts"] else ""
        say("\n".join(f"wrong: {p}" for p in problems) or f"the receipt matches its root{but}")
    return 1 if problems else 0


def _what(said: dict[str, Any]) -> str:
    if "length" in said:
        return f"{said['length']:,} tokens in sequence {said['sequence']}"
    why = [said[name] for name in ("reason", "value_text", "kept_id") if said.get(name)]
    return f"removed by {', '.join(why)}" if why else "kept"


def _told(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a receipt for people."""
    documents = found["documents"]
    for name, some in (
        ("documents", [one for one in documents if "copy_of" not in one]),
        ("copies elsewhere", [one for one in documents if "copy_of" in one]),
    ):
        spans = [s["length"] for one in some for s in one["said"] if "length" in s]
        inside = sum(any("length" in s for s in one["said"]) for one in some)
        yield f"{name}: {len(some):,}, in the tokens: {inside:,} ({sum(spans):,} tokens)"
    if found["near"] is None:
        yield "copies: not known, as no stage of this run compared documents"
    for one in documents:
        copied = f", a copy of {one['copy_of']}" if "copy_of" in one else ""
        yield f"{one['id']} {one['url']}{copied}"
        for said in one["said"]:
            yield f"    {_what(said)}: row {said['row']} of {said['file']}"
    for text in found["texts"]:
        places = ", ".join(f"{one['id']} ({one['decision']})" for one in text["found"])
        yield f"{text['name']}: {places or 'no span of 20 words or more is in any document'}"
    yield from (f"root: {found['root']}", found["proves"], found["does_not_prove"])
