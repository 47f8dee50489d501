import gc
import os

# Read by Arrow when it is first asked for memory. Its own pool keeps what was freed; blocks of the
# C library go back to the system (`pipelines/runners/tasks.py`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
# Hundreds of thousands of objects are made by imports, and stay: looking through them for cycles at
# Python's usual pace is a twentieth of a short run. A run's arrays and texts are in no cycles.
gc.set_threshold(500_000, *gc.get_threshold()[1:])
