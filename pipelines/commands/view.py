"""`curate view`: explore a run in a browser."""

import argparse
import contextlib
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Mapping
from pathlib import Path

from curation.errors import ConfigError
from pipelines.commands.options import add_dry_run, add_flag, add_run, end_dry_run, port
from pipelines.process import leave
from pipelines.run_folder import load_run
from pipelines.storage.files import Folder
from pipelines.terminal import say

#: Suffix of the folder next to a run's, for data about the run that is not part of it.
PREPARED = ".view"
#: Number of documents above which `--prepare` is advised.
_MANY = 1_000_000
#: Seconds that the first view has the machine for itself.
_FIRST_PAINT = 2.0


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)
    parser.add_argument(
        "--compare", metavar="RUN2", help="show what changed between this run and another"
    )
    parser.add_argument(
        "--input",
        nargs="+",
        default=[],
        metavar="PATH",
        help="the run's input, to show the pages that documents come from",
    )
    parser.add_argument("--port", type=port, default=0, metavar="N", help="default: any free one")
    add_flag(parser, "--no-browser", "print the address, and open no browser")
    text = "precompute the data for a run of millions of documents into DIR.view, and exit"
    add_flag(parser, "--prepare", text)
    parser.add_argument(
        "--prepared", metavar="FOLDER", help=f"folder for --prepare (default: DIR{PREPARED})"
    )
    add_dry_run(parser)


def run(options: argparse.Namespace) -> int:
    """Serve the explorer until the process is stopped."""
    from pipelines.reading.explorer import Explorer, prepare
    from pipelines.view.server import Server

    prepared = next_to(options.run, options.prepared, PREPARED)
    if options.prepare:
        if options.compare or options.input:
            raise ConfigError("--prepare is for --run alone, not with --compare or --input")
        if prepared is None:
            raise ConfigError(f"{options.run}: in an object store; name a folder with --prepared")
        end_dry_run(options, prepared)
        say(f"{prepared}: {prepare(options.run, prepared):,} bytes")
        return 0
    end_dry_run(options)
    load_run(options.compare or options.run)
    other = next_to(options.compare, None, PREPARED) if options.compare else None
    explorer = Explorer(options.run, options.compare, options.input, prepared, other_prepared=other)
    documents = len(explorer.ledger)
    if documents > _MANY and explorer.ledger.prepared is None:
        say(f"{documents:,} documents: run with --prepare first for instant answers")
    warming = threading.Timer(_FIRST_PAINT, explorer.warm)
    warming.daemon = True
    warming.start()
    with Server(explorer, options.port) as server, contextlib.suppress(KeyboardInterrupt):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        say(f"{server.url}")
        if not options.no_browser and has_desktop(sys.platform, os.environ):
            webbrowser.open(server.url)
        say("Open this address in a browser on this machine (or through a tunnel). Ctrl-C ends it.")
        server.serve_forever()
    leave(0)


def has_desktop(platform: str, environment: Mapping[str, str]) -> bool:
    """Return whether a browser would open in front of whoever types the command.

    Not over SSH, in a container or in a cloud shell: there `webbrowser` finds none, or one that
    takes over the terminal.
    """
    if "SSH_CONNECTION" in environment or "SSH_TTY" in environment:
        return False
    if platform in ("darwin", "win32", "cygwin"):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def next_to(run: str, named: str | None, suffix: str) -> Path | None:
    """Return the given path, or one next to a local run's folder; None for a remote run."""
    if named is not None:
        return Path(named)
    folder = Folder(run)
    return Path(folder.path() + suffix) if folder.is_local else None
