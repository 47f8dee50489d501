"""How a stage runs: tasks with commit records, on a local pool of processes or any Beam runner."""
