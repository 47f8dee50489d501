"""The explorer of runs: a local server of queries over a run folder, and its page."""
