"""`curate cancel`: end a run, wherever it was started."""

import argparse
import os
import signal
import time

from curation.errors import ConfigError, WorkerError
from pipelines.commands.options import add_run
from pipelines.process import process_here
from pipelines.run_folder import at_work
from pipelines.runners.slurm import end
from pipelines.storage.files import Folder
from pipelines.terminal import say

#: Seconds that a run has to end.
_PATIENCE = 30.0


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    add_run(parser)


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
