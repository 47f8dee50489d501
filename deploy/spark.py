"""A Spark cluster on this machine: master, workers, Beam's job server, Python workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from cluster import Cluster, Settings, fetched, free_port, java, main
from jobserver import Runner, job_server, pip_folder

_RUNNER = Runner("beam-runners-spark-3", "org.apache.beam.runners.spark.SparkJobServerDriver")
#: Beam's job server is made for Spark 3.5; master, workers and job server must be of one version.
_SPARK = "pyspark==3.5.9"
_OPENS = [
    f"--add-opens=java.base/{p}=ALL-UNNAMED"
    for p in (
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
        "sun.util.calendar",
    )
]
_MEMORY = "1536m"


def _spark_java(home: Path, *more: str) -> list[str]:
    return java([*_OPENS, *more, "-cp", f"{home}/jars/*"])


def start(cluster: Cluster, settings: Settings) -> dict[str, Any]:
    server = job_server(settings.job_server, lambda _: _RUNNER, settings.cache)
    home = pip_folder(_SPARK, settings.cache) / "pyspark"
    port, page, slots = free_port(), free_port(), settings.processes
    head, *nodes = settings.hosts
    web = f"http://{head.address}:{page}"
    env = {"SPARK_LOCAL_IP": head.address, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.12"}
    master = f"spark://{head.address}:{port}"
    deploy = "org.apache.spark.deploy"
    command = [*_spark_java(home, "-Xmx512m"), f"{deploy}.master.Master", "--host", head.address]
    cluster.start("master", [*command, "--port", str(port), "--webui-port", str(page)], env)
    cluster.wait("the master", lambda: bool(fetched(f"{web}/json/")))
    for i, node in enumerate(nodes):
        folder = cluster.folder / f"worker-{i}"
        folder.mkdir()
        command = [*node.enter, *_spark_java(home, "-Xmx512m"), f"{deploy}.worker.Worker", master]
        command += ["--host", node.address, "--cores", str(slots), "--memory", "2g"]
        command += ["--work-dir", str(folder), "--webui-port", str(free_port())]
        cluster.start(f"worker-{i}", command, env | {"SPARK_LOCAL_IP": node.address})
    alive = '"state" : "ALIVE"'
    cluster.wait("workers", lambda: fetched(f"{web}/json/").count(alive) >= len(nodes))
    pool = cluster.start_worker_pools(nodes)
    properties = {
        "spark.driver.host": head.address,
        "spark.driver.bindAddress": head.address,
        "spark.executor.memory": _MEMORY,
        "spark.executor.extraJavaOptions": " ".join(_OPENS),
        # The runner lies where the workers are: nothing is sent for every job.
        "spark.executor.extraClassPath": str(server.jar),
        "spark.ui.enabled": "false",
        # Else every job of a run starts its executors anew: two JVMs, some twenty CPU seconds.
        "beam.spark.test.reuseSparkContext": "true",
        "spark.local.dir": str(cluster.folder / "local"),
    }
    path = os.pathsep.join([str(server.jar), f"{home}/jars/*"])
    own = [f"-D{k}={v}" for k, v in properties.items()]
    command = [*java([*_OPENS, *own, "-Xmx1g", "-cp", path]), server.runner.main_class]
    endpoint = cluster.start_job_server(command, [f"--spark-master-url={master}"], env)
    return {
        "web": web,
        "beam": server.beam_version,
        "version": _SPARK.rpartition("=")[2],
        "options": [
            "--runner=PortableRunner",
            f"--job_endpoint=localhost:{endpoint}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{pool}",
            f"--sdk_worker_parallelism={slots}",
        ],
    }


if __name__ == "__main__":
    sys.exit(main("spark", start, __doc__))
