"""The report of a run: collected from manifests and timings, shown on a terminal, JSON or HTML."""
