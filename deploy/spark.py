"""A Spark cluster on this machine: master, workers, Beam's job server, Python workers."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from cluster import (
    Cluster,
    Settings,
    free_port,
    java,
    listens,
    main,
    start_job_server,
    start_worker_pool,
)
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


def _registered(web: int) -> int:
    """Workers that the master knows and that live."""
    try:
        with urllib.request.urlopen(f"http://localhost:{web}/json/", timeout=2) as answer:
            text: str = answer.read().decode()
            return text.count('"state" : "ALIVE"')
    except (urllib.error.URLError, OSError):
        return 0


def start(cluster: Cluster, settings: Settings) -> dict[str, Any]:
    server = job_server(settings.job_server, lambda _: _RUNNER, settings.cache)
    home = pip_folder(_SPARK, settings.cache) / "pyspark"
    port, web, slots = free_port(), free_port(), settings.processes
    env = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.12"}
    master = f"spark://localhost:{port}"
    deploy = "org.apache.spark.deploy"
    command = [*_spark_java(home, "-Xmx512m"), f"{deploy}.master.Master", "--host", "localhost"]
    cluster.start("master", [*command, "--port", str(port), "--webui-port", str(web)], env)
    cluster.wait("the master", lambda: listens(port) and listens(web))
    for i in range(settings.workers):
        folder = cluster.folder / f"worker-{i}"
        folder.mkdir()
        command = [*_spark_java(home, "-Xmx512m"), f"{deploy}.worker.Worker", master]
        command += ["--host", "localhost", "--cores", str(slots), "--memory", "2g"]
        command += ["--work-dir", str(folder), "--webui-port", str(free_port())]
        cluster.start(f"worker-{i}", command, env)
    cluster.wait("workers", lambda: _registered(web) >= settings.workers)
    pool = start_worker_pool(cluster)
    properties = {
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
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
    endpoint = start_job_server(cluster, command, [f"--spark-master-url={master}"], env)
    return {
        "web": f"http://localhost:{web}",
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
