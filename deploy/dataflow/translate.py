"""Translate every job of a recipe for Dataflow, without the cloud.

    python deploy/dataflow/translate.py sample --output out --jobs jobs -- \\
        --project=my-project --region=europe-west4 --temp_location=gs://my-bucket/tmp \\
        --sdk_container_image=europe-west4-docker.pkg.dev/my-project/curation/curation:0.2.0

Runs the recipe on this machine (each job's input is the output of those before it) and, before
each step, checks the options and writes the job that Dataflow would get: `jobs/NAME/job.json` and
the staged pipeline. Prints their sizes, and the bytes that each sends through Dataflow's shuffle;
`jobs/jobs.json` has the same for `cost.py`. Exit code 1 when a job is larger than Dataflow takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from curation.errors import CurationError
from curation.recipe import load
from pipelines.plan import plan
from pipelines.run import run_plan
from pipelines.runners.chain import Gathers, Pass, write_chain
from pipelines.runners.execute import Executor, parse_beam_args
from pipelines.runners.jobs import Jobs
from pipelines.runners.tasks import records_of

#: Dataflow refuses a job request that is larger
#: (https://cloud.google.com/dataflow/quotas, "maximum size of a job creation request").
MOST_REQUEST_BYTES = 10 << 20


@dataclass(frozen=True)
class Translation:
    """The job that would be sent: its description and the pipeline that is staged beside it."""

    name: str
    request: dict[str, Any]
    request_bytes: int
    pipeline_bytes: int
    transforms: tuple[str, ...]  # names of the steps that do something, in order


def translate(pipeline: beam.Pipeline, folder: Path) -> Translation:
    """Translate a pipeline of the Dataflow runner, with --dry_run, into the job that it would send.

    Everything that would be staged in Cloud Storage is written to `folder`. No request leaves the
    machine and no credentials are looked for.
    """
    from apache_beam.runners.dataflow.internal import apiclient

    options = pipeline.options
    cloud = options.view_as(GoogleCloudOptions)
    cloud.no_auth = True
    job = pipeline.run().job
    staging = cloud.staging_location
    job.google_cloud_options.staging_location = str(folder)
    job.options.view_as(GoogleCloudOptions).staging_location = str(folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        client = apiclient.DataflowApplicationClient(job.options, str(folder))
        client.create_job_description(job)
    finally:
        cloud.staging_location = staging
    text = job.json()
    transforms = job.proto_pipeline.components.transforms
    working = [t.unique_name for t in transforms.values() if t.spec.payload and not t.subtransforms]
    return Translation(
        cloud.job_name, json.loads(text), len(text), job.proto_pipeline.ByteSize(), tuple(working)
    )


class TranslatingExecutor(Executor):
    """Runs steps here, and translates each for Dataflow first."""

    def __init__(self, jobs: Jobs, place: Path, workers: int | None = None) -> None:
        super().__init__(parse_beam_args(["--runner=DirectRunner"], workers))
        self.dataflow, self.place = jobs, place
        self.translated: list[Translation] = []
        self.shuffled: list[tuple[str, int]] = []  # stage, bytes; one for each job

    def run_chain(self, stage: str, passes: Sequence[Pass]) -> int:
        self._translate(stage, passes)
        done = super().run_chain(stage, passes)
        self._add_shuffled(stage, passes)
        return done

    def _translate(self, stage: str, passes: Sequence[Pass]) -> None:
        chain = write_chain(passes)
        name = f"{stage}-{chain.step.name}".replace("/", "-")
        job = translate(self.dataflow.pipeline(chain, name), self.place / name)
        (self.place / name / "job.json").write_text(json.dumps(job.request, indent=1))
        self.translated.append(job)

    def _add_shuffled(self, stage: str, passes: Sequence[Pass]) -> None:
        sizes = passes[-1].place.tree()  # of runs that an earlier job left
        for p in passes:
            for record in records_of(p.place, p.step, p.tasks):
                sizes |= {name: file["bytes"] for name, file in record["files"].items()}
        gathering = [p.step for p in passes if isinstance(p.step, Gathers)]
        shuffled = sum(sizes[run] for step in gathering for run in step.runs())
        self.shuffled.append((stage.partition("/")[0], shuffled))


def main() -> int:
    """Translate, and print a line for each job."""
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe")
    parser.add_argument("--input", nargs="*", default=[])
    parser.add_argument("--output", required=True, help="of the run on this machine")
    parser.add_argument("--jobs", required=True, type=Path, help="folder for the jobs")
    options = parser.parse_args(arguments[:at])
    try:
        jobs = Jobs("DataflowRunner", [*arguments[at + 1 :], "--dry_run=True"])
        work = plan(load(options.recipe), options.output, options.input)
        with TranslatingExecutor(jobs, options.jobs) as executor:
            run_plan(work, executor)
    except CurationError as error:
        print(f"translate: error: {error}", file=sys.stderr)
        return error.exit_code
    table = []
    for job, (stage, shuffled) in zip(executor.translated, executor.shuffled, strict=True):
        print(
            f"{job.name:32}{job.request_bytes:8} bytes{job.pipeline_bytes:8} in the pipeline"
            f"{shuffled:12} shuffled"
        )
        table.append({"job": job.name, "stage": stage, "shuffled": shuffled})
    (options.jobs / "jobs.json").write_text(json.dumps(table, indent=1))
    largest = max(max(j.request_bytes, j.pipeline_bytes) for j in executor.translated)
    print(f"{len(executor.translated)} jobs; Dataflow takes up to {MOST_REQUEST_BYTES} bytes")
    return int(largest > MOST_REQUEST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
