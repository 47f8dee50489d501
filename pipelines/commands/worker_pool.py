"""`curate worker-pool`: Python workers for a node of a Flink or Spark cluster."""

import argparse

from pipelines.commands.options import port
from pipelines.runners.worker_pool import serve


def add(parser: argparse.ArgumentParser, name: str) -> None:
    """Declare the options."""
    parser.add_argument("--port", type=port, default=50000, help="(default: %(default)s)")
    parser.add_argument(
        "--host", default="localhost", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--trust-network",
        action="store_true",
        help="listen on an address that other machines can reach: any of them can run code here",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until the process is stopped."""
    serve(options.port, options.host, options.trust_network)
    return 0
