"""Run stages as tasks with commit records, on a local process pool or any Beam runner."""

import logging

# Importing Beam warns on the root logger that its Google Cloud extras are missing. That is normal
# for installations that do not use them, and users can't act on it.
logging.getLogger().addFilter(lambda record: "apitools not found" not in str(record.msg))
