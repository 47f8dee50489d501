"""Options of jobs for Google Cloud Dataflow, checked without the cloud."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    WorkerOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.runners.runner import PipelineRunner, create_runner

from curation.errors import ConfigError, require


def is_dataflow(runner: str) -> bool:
    return runner.lower() in ("dataflowrunner", "dataflow")


#: Options that every job needs. Threads of a process share its memory and interpreter, so each
#: process runs one task at a time, with one process per vCPU.
_DEFAULTS = {"--sdk_location": "container", "--number_of_worker_harness_threads": "1"}


def with_defaults(arguments: Sequence[str]) -> list[str]:
    """Return the options with Dataflow's required ones added if missing."""
    given = {a.partition("=")[0] for a in arguments}
    return [*arguments, *(f"{k}={v}" for k, v in _DEFAULTS.items() if k not in given)]


def check_options(arguments: Sequence[str]) -> None:
    """Raise ConfigError, in one line, for invalid options of a job."""
    unknown = _unknown_options(arguments)
    if unknown:
        raise ConfigError(f"{unknown[0]}: unknown option of Beam and its Dataflow runner")
    # A dry run: otherwise Beam queries the settings of buckets in the cloud.
    options = PipelineOptions([*arguments, "--dry_run=True"], pipeline_type_check=False)
    cloud = options.view_as(GoogleCloudOptions)
    for name in ("temp_location", "staging_location"):  # otherwise Beam would create a bucket
        place = getattr(cloud, name) or cloud.temp_location or ""
        if not place.startswith("gs://"):
            raise ConfigError(f"options for Dataflow: --{name}={place}: not a gs:// folder")
    errors = PipelineOptionsValidator(options, _runner()).validate()
    if errors:
        raise ConfigError(f"options for Dataflow: {errors[0]}")
    if not options.view_as(WorkerOptions).sdk_container_image:
        raise ConfigError(
            "options for Dataflow: no --sdk_container_image: workers need an image with this "
            "package (deploy/dataflow/README.md)"
        )


def _runner() -> PipelineRunner:
    require("apache_beam.runners.dataflow.internal.apiclient", "--runner=DataflowRunner")
    return create_runner("DataflowRunner")


def _unknown_options(arguments: Sequence[str]) -> list[str]:
    """Return options unknown to Beam, which ignores them: a misspelt one could waste a night."""
    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, conflict_handler="resolve", exit_on_error=False
    )
    kinds = list(PipelineOptions.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
        if "_add_argparse_args" in vars(kind):
            kind._add_argparse_args(parser)
    try:
        return parser.parse_known_args(list(arguments))[1]
    except (argparse.ArgumentError, SystemExit) as error:
        raise ConfigError(f"options for Dataflow: {error}") from error


def job_name(*parts: str) -> str:
    """Return a valid Dataflow job name: lower-case letters, digits and hyphens, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(p for p in parts if p).lower()).strip("-")
    return name if name[:1].isalpha() else f"job-{name}"
