"""The manifests for Kubernetes name what there is: commands, ports, slots, the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from apache_beam.options.pipeline_options import FlinkRunnerOptions

from pipelines.cli import build_parser

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return found


def worker_of(cluster: dict[str, Any]) -> dict[str, Any]:
    containers = cluster["spec"]["taskManager"]["podTemplate"]["spec"]["containers"]
    return next(each for each in containers if each["name"] == "workers")


def driver_of(job: dict[str, Any]) -> dict[str, Any]:
    (driver,) = job["spec"]["template"]["spec"]["containers"]
    return dict(driver)


def test_the_run_is_for_the_cluster() -> None:
    cluster, job = manifest("flink.yaml"), manifest("run.yaml")
    spec = cluster["spec"]
    workers, driver = worker_of(cluster), driver_of(job)
    begin = driver["args"].index("--")
    given = dict(each.removeprefix("--").split("=", 1) for each in driver["args"][begin + 1 :])
    slots = int(spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert given["flink_master"] == f"{cluster['metadata']['name']}-rest:8081"
    assert given["flink_version"] in FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS
    assert given["flink_version"] in spec["image"]
    assert spec["flinkVersion"] == "v" + given["flink_version"].replace(".", "_")
    assert int(given["sdk_worker_parallelism"]) == slots
    assert int(given["parallelism"]) == slots * spec["taskManager"]["replicas"]
    port = workers["args"][workers["args"].index("--port") + 1]
    assert given["environment_config"] == f"localhost:{port}"
    assert workers["image"] == driver["image"] == "IMAGE"
    assert workers["envFrom"] == driver["envFrom"]


def test_the_commands_are_those_of_the_image() -> None:
    workers, driver = worker_of(manifest("flink.yaml")), driver_of(manifest("run.yaml"))
    before = driver["args"][: driver["args"].index("--")]
    for arguments in (workers["args"], before):
        options = build_parser([arguments[0]]).parse_args(arguments)
        assert callable(options.command)
