"""Translate every job of a recipe for Dataflow, without the cloud.

    python deploy/dataflow/translate.py sample --output out --jobs jobs -- \\
        --project=my-project --region=europe-west4 --temp_location=gs://my-bucket/tmp \\
        --sdk_container_image=europe-west4-docker.pkg.dev/my-project/curation/curation:0.1.0

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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from curation.errors import CurationError
from curation.recipe import load
from pipelines.engine.dataflow import MOST_REQUEST_BYTES, Translation, translate
from pipelines.engine.execute import Executor, parse_beam_args
from pipelines.engine.files import Folder
from pipelines.engine.jobs import Jobs
from pipelines.engine.shuffle import Gathers
from pipelines.engine.tasklist import write_task_list
from pipelines.engine.tasks import Step, Task
from pipelines.plan import plan
from pipelines.run import run_plan


class TranslatingExecutor(Executor):
    """Runs steps here, and translates each for Dataflow first."""

    def __init__(self, jobs: Jobs, place: Path, workers: int | None = None) -> None:
        super().__init__(parse_beam_args([], workers))
        self.dataflow, self.place = jobs, place
        self.translated: list[Translation] = []
        self.shuffled: list[tuple[str, int]] = []  # stage, bytes; one for each job

    def run(
        self, stage: str, step: Step, folder: Folder, tasks: Sequence[Task], documents: int = 0
    ) -> int:
        work = write_task_list(folder, step, tasks)
        pipeline = self.dataflow.pipeline(work, isinstance(step, Gathers), f"{stage}-{step.name}")
        name, bytes_shuffled = f"{stage}-{step.name}".replace("/", "-"), 0
        if isinstance(step, Gathers):
            sizes = folder.tree()
            bytes_shuffled = sum(sizes[run] for run in step.runs())
        self.shuffled.append((stage.partition("/")[0], bytes_shuffled))
        job = translate(pipeline, self.place / name)
        (self.place / name / "job.json").write_text(json.dumps(job.request, indent=1))
        self.translated.append(job)
        return super().run(stage, step, folder, tasks, documents)


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
