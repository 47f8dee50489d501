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

from curation.errors import ConfigError


def is_dataflow(runner: str) -> bool:
    return runner.lower() in ("dataflowrunner", "dataflow")


#: What every job needs that nobody should have to know. Threads of one process share its memory and
#: its interpreter: one task at a time, and a process for each vCPU.
_DEFAULTS = {"--sdk_location": "container", "--number_of_worker_harness_threads": "1"}


def with_defaults(arguments: Sequence[str]) -> list[str]:
    """The options with those that Dataflow needs, where they aren't given."""
    given = {a.partition("=")[0] for a in arguments}
    return [*arguments, *(f"{k}={v}" for k, v in _DEFAULTS.items() if k not in given)]


def check_options(arguments: Sequence[str]) -> None:
    """Raise ConfigError with one line that tells what is wrong with the options of a job."""
    unknown = _unknown_options(arguments)
    if unknown:
        raise ConfigError(f"{unknown[0]}: no option of Beam or of its Dataflow runner")
    # A dry run: otherwise Beam asks the cloud for the settings of buckets.
    options = PipelineOptions([*arguments, "--dry_run=True"], pipeline_type_check=False)
    cloud = options.view_as(GoogleCloudOptions)
    for name in ("temp_location", "staging_location"):  # Beam would make a bucket of its own
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
    try:
        import apache_beam.runners.dataflow.internal.apiclient  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"Dataflow needs further packages: pip install 'curation[dataflow]' ({error})"
        ) from error
    return create_runner("DataflowRunner")


def _unknown_options(arguments: Sequence[str]) -> list[str]:
    """Beam passes over options that it doesn't know; a misspelt one would cost a night."""
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
    """A name as Dataflow wants it: lower-case letters, digits and hyphens, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(p for p in parts if p).lower()).strip("-")
    return name if name[:1].isalpha() else f"job-{name}"
