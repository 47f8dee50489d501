"""What a run would cost on Dataflow, reckoned from a measured one.

    python deploy/dataflow/cost.py RUN --pages 2.6e9 [--jobs jobs/jobs.json] [--prices prices.yaml]

Takes CPU seconds per document and the share of documents that reaches each stage from the finished
run RUN, the bytes shuffled from what `translate.py` wrote for the same input, and everything else
from the prices file. Fixed costs of a small run (models loaded once) count as if they grew with the
pages, so that figures from a run of a few thousand pages are upper bounds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from curation.errors import CurationError
from pipelines.run_folder import load_run
from pipelines.storage.manifest import MANIFEST, TIMINGS


@dataclass(frozen=True)
class Stage:
    """What was measured of a stage."""

    name: str
    documents: int
    cpu_seconds: float
    stored_bytes: int
    shuffled_bytes: int


@dataclass(frozen=True)
class Cost:
    """A stage at another number of pages."""

    name: str
    documents: float
    cpu_hours: float
    shuffled_gb: float
    stored_gb: float
    dollars: float


def measured(run: str, jobs: list[dict[str, Any]]) -> list[Stage]:
    """The stages of a finished run. Raises ConfigError when it is none."""
    folder, names = load_run(run)
    stages = []
    for name in names:
        place = folder / name
        manifest, timings = place.read_json(MANIFEST), place.read_json(TIMINGS)
        stages.append(
            Stage(
                name,
                manifest["counts"]["documents_in"],
                sum(step["cpu"] for step in timings["steps"].values()),
                manifest["bytes"],
                sum(j["shuffled"] for j in jobs if j["stage"] == name.partition("/")[0]),
            )
        )
    return stages


def cost(stage: Stage, factor: float, prices: Mapping[str, float], longer: float = 1.0) -> Cost:
    """A stage at `factor` times the pages that were measured.

    Extraction, which alone sees HTML, takes as much longer as the HTML of a page is `longer`.
    """
    hours = stage.cpu_seconds * factor * (longer if stage.name == "extract" else 1) / 3600
    shuffled, stored = stage.shuffled_bytes * factor / 1e9, stage.stored_bytes * factor / 1e9
    worker_hours = hours / prices["busy"] / prices["vcpus"]
    worker = (
        prices["vcpus"] * prices["vcpu_hour"]
        + prices["memory_gb"] * prices["memory_gb_hour"]
        + prices["disk_gb"] * prices["disk_gb_hour"]
    )
    dollars = worker_hours * worker + shuffled * prices["shuffle_gb"]
    return Cost(stage.name, stage.documents * factor, hours, shuffled, stored, dollars)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a finished run folder")
    parser.add_argument("--pages", type=float, required=True, help="pages of the run to reckon")
    parser.add_argument("--jobs", type=Path, help="jobs.json of translate.py, for the shuffle")
    parser.add_argument("--prices", type=Path, default=Path(__file__).with_name("prices.yaml"))
    parser.add_argument(
        "--longer", type=float, default=1.0, help="how many times the HTML of a page is longer"
    )
    options = parser.parse_args()
    prices = yaml.safe_load(options.prices.read_text())
    jobs = json.loads(options.jobs.read_text()) if options.jobs else []
    try:
        stages = measured(options.run, jobs)
    except CurationError as error:
        print(f"cost: error: {error}", file=sys.stderr)
        return error.exit_code
    factor = options.pages / stages[0].documents
    print(
        f"{options.pages:,.0f} pages, from {stages[0].documents:,} measured; prices of "
        f"{prices['region']}, {prices['date']}; {prices['busy']:.0%} of the vCPUs' time ours"
    )
    print(
        f"{'stage':20}{'documents':>15}{'docs/CPU s':>12}{'CPU hours':>12}{'shuffled GB':>13}"
        f"{'stored GB':>11}{'US$':>9}"
    )
    costs = [cost(s, factor, prices, options.longer) for s in stages]
    for stage, one in zip(stages, costs, strict=True):
        speed = stage.documents / stage.cpu_seconds if stage.cpu_seconds else 0
        print(
            f"{one.name:20}{one.documents:15,.0f}{speed:12,.0f}{one.cpu_hours:12,.0f}"
            f"{one.shuffled_gb:13,.0f}{one.stored_gb:11,.0f}{one.dollars:9,.0f}"
        )
    hours, stored = sum(c.cpu_hours for c in costs), sum(c.stored_gb for c in costs)
    print(
        f"{'in all':20}{'':27}{hours:12,.0f}{sum(c.shuffled_gb for c in costs):13,.0f}"
        f"{stored:11,.0f}{sum(c.dollars for c in costs):9,.0f}"
    )
    workers = hours / prices["busy"] / prices["vcpus"] / 24
    print(f"workers of {prices['vcpus']} vCPUs for one day: {max(1, round(workers)):,}")
    print(f"storage of all stages' outputs: US$ {stored * prices['storage_gb_month']:,.0f} a month")
    return 0


if __name__ == "__main__":
    sys.exit(main())
