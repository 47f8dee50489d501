"""How a stage runs: tasks with commit records, on a local pool of processes or any Beam runner."""

import logging


def _not_about_gcp(record: logging.LogRecord) -> bool:
    return "apitools not found" not in str(record.msg)


# Importing Beam warns on the root logger that its Google Cloud extras are absent: true of every
# installation that does not use them, and nothing a user could act on.
logging.getLogger().addFilter(_not_about_gcp)
