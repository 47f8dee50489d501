"""`curate withdraw`: remove documents from a finished run."""

import argparse
import re
from pathlib import Path
from typing import Any

import yaml

from curation.config import merge, parse_yaml, read_yaml, validate
from curation.errors import ConfigError, first_line
from curation.hosts import host_of
from curation.rights.policy import Policy
from curation.rights.rights_settings import RightsSettings, default_settings
from pipelines.commands.options import add_dry_run, add_workers, end_dry_run, read_text
from pipelines.run_folder import RECIPE_FILE, run_recipe
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.progress import open_display
from pipelines.storage.files import Folder
from pipelines.terminal import say
from pipelines.withdrawals import TOKENS, Withdrawal, Withdrawn


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument(
        "--run",
        required=True,
        nargs="+",
        metavar="DIR",
        help="run folder, and further runs that used it as an index",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--url-prefix",
        action="append",
        metavar="PREFIX",
        help="withdraw documents whose URL starts with this (repeatable)",
    )
    what.add_argument(
        "--ids", metavar="FILE", help="withdraw the documents with these ids, one per line"
    )
    what.add_argument(
        "--hosts",
        metavar="FILE",
        help="withdraw the documents of these hosts and their subdomains, one per line",
    )
    what.add_argument(
        "--rights",
        metavar="POLICY",
        help="withdraw what a rights policy removes: a file with the keys of `rights:`, or the "
        "keys themselves, such as '{honour: [tdm]}'; other keys have their defaults",
    )
    parser.add_argument(
        "--near",
        type=float,
        metavar="SHARE",
        help="withdraw copies at least this similar, too (default: what the policy or the run's "
        "recipe says in rights.follow; else they come back)",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="run folder for what comes back (default: RUN/withdrawn)"
    )
    add_workers(parser, "local processes")
    parser.set_defaults(beam_args=[])
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Mask the withdrawn documents and restore their duplicates, deduplicated."""
    work = Withdrawal(options.run, _withdrawn(options), options.output, _asked(options))
    end_dry_run(options, work.output, documents=work.documents)
    runner = parse_beam_args(options.beam_args, options.workers)
    with open_display("quiet") as display, Executor(runner, display, work.output) as executor:
        report = work.run(executor)
    _print(work.output, report)
    return 0


def _withdrawn(options: argparse.Namespace) -> Withdrawn:
    """Return the selection in the options. Raises ConfigError."""
    if any(not prefix.strip() for prefix in options.url_prefix or ()):
        raise ConfigError("--url-prefix: an empty prefix would withdraw every document")
    gone = Withdrawn(options.url_prefix or [])
    if options.ids:
        gone.ids.update(_lines("--ids", options.ids))
    elif options.hosts:
        gone = Withdrawn([], hosts=hosts_in(options.hosts))
    elif options.rights:
        gone = Withdrawn([], policy=Policy(_policy(options.rights)))
    followed = _policy(options.rights).follow if options.rights else None
    near = (followed or {}).get("near") if options.near is None else options.near
    gone.near = near_of(options.run[0], near)
    return gone


def near_of(run: str, given: float | None) -> float | None:
    """Return the least similarity of a copy: the given one, else that of a run's `rights`.

    Raises ConfigError.
    """
    if given is not None and not 0 <= given <= 1:
        raise ConfigError(f"--near {given}: expected a share from 0 to 1")
    folder = Folder(run)
    held = run_recipe(folder) if given is None and folder.exists(RECIPE_FILE) else {}
    follow = held["rights"].get("follow") if "rights" in held.get("stages", ()) else None
    return given if given is not None else (follow or {}).get("near")


def hosts_in(path: str) -> frozenset[str]:
    """Return the hosts in a file, one a line. Raises ConfigError for a line that is none."""
    names = [re.sub(r"^(?:https?://)?\.*|[/.]+$", "", n.lower()) for n in _lines("--hosts", path)]
    for name in names or [""]:
        if re.search(r"[\s*#/]", name) or not host_of(f"//{name}"):
            raise ConfigError(f"--hosts {path}: {name!r}: not a host; each line has one")
    return frozenset(host_of(f"//{name}") for name in names)


def _lines(option: str, path: str) -> list[str]:
    return [line.strip() for line in read_text(path, option).split("\n") if line.strip()]


def _policy(given: str) -> RightsSettings:
    """Read a policy, from a file or the command line, over the defaults."""
    try:
        tree = read_yaml(Path(given)) if Path(given).is_file() else parse_yaml(given)
    except yaml.YAMLError as error:
        raise ConfigError(f"--rights {given}: {first_line(error)}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"--rights {given}: neither a file nor keys such as {{honour: [tdm]}}")
    defaults = default_settings().model_dump(mode="json")
    return validate(RightsSettings, merge(defaults, tree.get("rights", tree)), "--rights")


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    names = ("url_prefix", "ids", "hosts", "rights", "near")
    return {n: getattr(options, n) for n in names if getattr(options, n)}


def _print(output: Folder, report: dict[str, Any]) -> None:
    past, ids = report["removed_before"], report["ids"]
    say(f"{report['withdrawn']:,} documents withdrawn, {past:,} removed before ({ids:,} ids)")
    if report["unknown"]:
        say(f"{report['unknown']:,} ids are of no document of the run")
    for stage, facts in report["tokens"].items():
        say(
            f"{stage}: {facts['tokens']:,} tokens of {facts['documents']:,} documents in "
            f"{facts['sequences']:,} sequences are now padding in {output.shown}/{TOKENS}/{stage}"
        )
    for stage, count in report["given_back"].items():
        rest = report["still_removed"][stage]
        say(f"{stage}: {count:,} restored, {rest:,} remain removed as their duplicates")
        say(f"  {output.shown}/{stage} is input for the following stages")
    if not report["given_back"]:
        say("no document had been removed as their duplicate")
