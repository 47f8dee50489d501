"""Run steps as jobs of a Beam runner.

Options of jobs for Google Cloud Dataflow, checked without the cloud.
"""

import argparse
import contextlib
import io
import logging
import re
import shutil
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
    TestOptions,
    WorkerOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.prism_runner import PrismJobServer, PrismRunner
from apache_beam.runners.portability.spark_runner import SparkRunner
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.utils.subprocess_server import JavaHelper, pick_port

from curation.errors import ConfigError, CurationError, WorkerError, first_line, raising, require
from pipelines.runners.chain import Chain
from pipelines.runners.shuffle import build_chain
from pipelines.runners.tasks import OURS, cause
from pipelines.storage.files import Folder


def is_dataflow(runner: str) -> bool:
    return runner.lower() in ("dataflowrunner", "dataflow")


#: Options that every job needs. Threads of a process share its memory and interpreter, so each
#: process runs one task at a time, with one process per vCPU.
_DEFAULTS = {"--sdk_location": "container", "--number_of_worker_harness_threads": "1"}


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


#: Beam runs `pip freeze` for every job, which takes seconds; manifests have the versions anyway.
_QUICK = "--experiments=disable_logging_submission_environment"

_log = logging.getLogger(__name__)


def check_runner(name: str, arguments: Sequence[str]) -> None:
    """Raise ConfigError unless Beam knows this runner and it can be used with these options."""
    try:
        with contextlib.redirect_stderr(io.StringIO()) as usage:  # argparse prints it
            kind = type(beam.runners.create_runner(name))
            options = PipelineOptions(arguments)
            options.view_as(FlinkRunnerOptions)
            if kind is beam.runners.DirectRunner or kind is FnApiRunner:
                parser = argparse.ArgumentParser(allow_abbrev=False)
                DirectOptions._add_argparse_args(parser)
                if (parser.parse_args(arguments).direct_num_workers or 0) < 0:
                    raise ValueError("--direct_num_workers must be 0 or more (0: one per CPU)")
            endpoint = options.view_as(PortableOptions).job_endpoint
            if kind in (FlinkRunner, SparkRunner) and not endpoint:
                _require_java()
            if kind is PrismRunner:
                PrismJobServer(options)._get_executable_path()
    except SystemExit:
        message = usage.getvalue().strip().rpartition("error: ")[2]
        raise ConfigError(f"--runner={name}: {message}") from None
    except (ValueError, ImportError, AttributeError, OSError, RuntimeError) as error:
        said = first_line(error).replace("Valid values are", "Valid values are local, slurm,")
        raise ConfigError(f"--runner={name}: {said}") from None


def _end_of(pipeline: beam.Pipeline) -> tuple[str, Exception | None, bool]:
    """Run a job; return why it failed, empty if it didn't, and if another attempt would, too."""
    submitted = False
    try:
        result = pipeline.run()
        submitted = True
        state = result.wait_until_finish()
    except Exception as error:
        text = str(error)
        ours = isinstance(error, CurationError) or OURS in text
        return cause(text), error, not submitted or ours
    return "" if state in (None, "DONE") else f"ended as {state}", None, False


def _require_java() -> None:
    """Raise ValueError without Java, in which the job servers of Flink and Spark run."""
    if shutil.which(java := JavaHelper.get_java()) is None:
        raise ValueError(f"its job server needs Java, but `{java}` was not found")


class Jobs:
    """Runs jobs one after another; shared services are started once.

    Beam starts a job server (a JVM) for every job of its Flink runner. Here one serves a whole run.
    """

    def __init__(self, runner: str, arguments: Sequence[str]) -> None:
        self._runner, self.arguments = runner, [f"--runner={runner}", *arguments]
        self._server: Any = None
        if is_dataflow(runner):
            check_options(self.arguments)
            given = {a.partition("=")[0] for a in self.arguments}
            self.arguments += [f"{k}={v}" for k, v in _DEFAULTS.items() if k not in given]

    def check(self, folder: Folder) -> None:
        """Raise ConfigError if jobs with these options can't work on a folder."""
        if is_dataflow(self._runner) and folder.is_local:
            raise ConfigError(
                f"--output {folder.url}: Dataflow workers can't reach local files; give a "
                "folder in Cloud Storage (gs://...)"
            )
        if PipelineOptions(self.arguments).view_as(TestOptions).dry_run:
            raise ConfigError(
                "--dry_run: not possible, since jobs read the output of earlier ones; "
                "deploy/dataflow/translate.py translates all jobs of a recipe"
            )

    def run(self, work: Chain, name: str) -> None:
        """Run all tasks of all steps. Raises WorkerError when the job fails.

        A job that lost its workers is submitted once more, guarded, for the uncommitted tasks.
        """
        self.check(work.folder)
        for guarded in (False, True):
            said, error, is_final = _end_of(self.pipeline(work, name, guarded))
            if not said:
                return
            if guarded or is_final:
                raise WorkerError(f"{name} on {self._runner}: {said}") from error
            words = (name, self._runner, said)
            _log.warning("%s on %s: %s; retrying with guarded processes", *words)

    def pipeline(self, work: Chain, name: str, guarded: bool = False) -> beam.Pipeline:
        """Return the pipeline of a chain with this runner's options; `name` ends the job's name."""
        given = PipelineOptions(self.arguments).view_as(GoogleCloudOptions).job_name
        options = PipelineOptions(
            [
                *self.arguments,
                *self.endpoint(),
                f"--job_name={job_name(given or '', name)}",
                _QUICK,
            ],
            pipeline_type_check=False,
        )
        pipeline = beam.Pipeline(options=options)
        build_chain(pipeline, work, guarded)
        return pipeline

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def endpoint(self) -> list[str]:
        """Return the job server's option; start the server for the first job that needs it."""
        options = PipelineOptions(self.arguments)
        runner = {"flinkrunner": FlinkRunner, "sparkrunner": SparkRunner}.get(self._runner.lower())
        submits = (
            options.view_as(FlinkRunnerOptions).flink_submit_uber_jar
            or options.view_as(SparkRunnerOptions).spark_submit_uber_jar
        )
        if runner is None or submits or options.view_as(PortableOptions).job_endpoint:
            return []
        if self._server is None:
            (self._port,) = pick_port(None)
            options = PipelineOptions([*self.arguments, f"--job_port={self._port}"])
            with raising(self._no_server, ConfigError):
                server = runner().default_job_server(options)
                server.start()
            self._server = server
        return [f"--job_endpoint=localhost:{self._port}"]

    def _no_server(self, error: BaseException) -> ConfigError:
        jar = f"--{self._runner.lower().removesuffix('runner')}_job_server_jar"
        return ConfigError(
            f"--runner={self._runner}: Beam can't start its job server: {first_line(error)}; name "
            f"a file with {jar}=FILE, or a server with --job_endpoint=HOST:PORT"
        )
