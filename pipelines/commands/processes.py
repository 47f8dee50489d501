"""`curate cancel`: end a run, wherever it was started.

`curate worker-pool`: Python workers for a node of a Flink or Spark cluster.
"""

import argparse
import os
import signal
import time

from curation.errors import ConfigError, WorkerError
from pipelines.commands.options import add_flag, add_run, port
from pipelines.process import process_here
from pipelines.run_folder import at_work
from pipelines.runners.slurm import end
from pipelines.storage.files import Folder
from pipelines.terminal import say

#: Seconds that a run has to end.
_PATIENCE = 30.0


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options of `cancel` or `worker-pool`."""
    if name == "cancel":
        add_run(parser)
        return
    parser.set_defaults(command=_serve)
    parser.add_argument("--port", type=port, default=50000, help="(default: %(default)s)")
    parser.add_argument(
        "--host", default="localhost", help="address to listen on (default: %(default)s)"
    )
    text = "listen on an address that other machines can reach: any of them can run code here"
    add_flag(parser, "--trust-network", text)


def run(options: argparse.Namespace) -> int:
    """End the run at work in a folder, or the jobs of one that died; what is committed stays.

    Raises ConfigError if there is none, and WorkerError if it doesn't end.
    """
    folder = Folder(options.run)
    holder, until = at_work(folder), time.monotonic() + _PATIENCE
    if process := process_here(holder):
        os.kill(process, signal.SIGTERM)
    elif not end(folder):
        why = f"{holder} is at work there; end it there" if holder else "no run is at work there"
        raise ConfigError(f"{folder.shown}: {why}")
    while holder and at_work(folder) == holder:
        if time.monotonic() > until:
            raise WorkerError(f"{folder.shown}: {holder} was asked to stop but is still running")
        time.sleep(0.1)
    say(f"{folder.shown}: cancelled ({holder or 'jobs of a run that had died'})")
    return 0


def _serve(options: argparse.Namespace) -> int:
    """Serve until the process is stopped."""
    from pipelines.runners.worker_pool import serve  # slow

    serve(options.port, options.host, options.trust_network)
    return 0
