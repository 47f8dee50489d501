"""Jobs of a named runner: one job server for all of a run."""

from __future__ import annotations

from typing import Any

import pytest
from apache_beam.options.pipeline_options import JobServerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import FlinkRunner

from curation.errors import ConfigError
from pipelines.runners.jobs import Jobs


class Server:
    """Stands for Beam's job server."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def start(self) -> None:
        self.events.append("start")

    def stop(self) -> None:
        self.events.append("stop")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    one = Server()

    def make(self: Any, options: PipelineOptions) -> Server:
        one.events.append(f"port {options.view_as(JobServerOptions).job_port > 0}")
        return one

    monkeypatch.setattr(FlinkRunner, "default_job_server", make)
    return one


def test_one_job_server_serves_a_run(server: Server) -> None:
    jobs = Jobs("FlinkRunner", ["--flink_master=host:8081"])
    first, second = jobs.endpoint(), jobs.endpoint()
    assert first == second and first[0].startswith("--job_endpoint=localhost:")
    jobs.close()
    jobs.close()
    assert server.events == ["port True", "start", "stop"]


@pytest.mark.parametrize(
    ("runner", "arguments"),
    [
        ("FlinkRunner", ["--job_endpoint=host:8099"]),
        ("FlinkRunner", ["--flink_submit_uber_jar", "--flink_master=host:8081"]),
        ("PortableRunner", ["--job_endpoint=embed"]),
    ],
)
def test_none_where_none_is_needed(server: Server, runner: str, arguments: list[str]) -> None:
    jobs = Jobs(runner, arguments)
    assert jobs.endpoint() == []
    jobs.close()
    assert server.events == []


def test_a_job_server_that_is_not_to_be_had_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(self: Any, options: PipelineOptions) -> None:
        raise RuntimeError("Unable to fetch remote job server jar at https://m.example/x.jar: 404")

    monkeypatch.setattr(FlinkRunner, "default_job_server", absent)
    jobs = Jobs("FlinkRunner", ["--flink_master=host:8081"])
    with pytest.raises(ConfigError, match=r"x.jar: 404; .*--flink_job_server_jar=FILE.*--job_end"):
        jobs.endpoint()
    jobs.close()
