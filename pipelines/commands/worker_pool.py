"""`curate worker-pool`: Python workers for a node of a Flink or Spark cluster."""

from __future__ import annotations

import argparse

from pipelines.engine.worker_pool import serve


def run(options: argparse.Namespace) -> int:
    """Serve until told to end."""
    serve(options.port, options.host, options.trust_network)
    return 0
