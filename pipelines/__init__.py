import os

# Read by Arrow when it is first asked for memory. Its own pool keeps what was freed; blocks of the
# C library go back to the system (`pipelines/runners/tasks.py`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
