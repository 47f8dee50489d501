"""A Flink cluster on this machine: JobManager, TaskManagers, Beam's job server, Python workers."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster import Cluster, Settings, fetched, free_port, java, main
from jobserver import Runner, job_server, pip_folder

#: Flink's release by the version of Beam's runner.
_RELEASES = {"2.2": "2.2.1", "1.19": "1.19.3"}
_OPENS = [
    *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in (
        "java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect",
        "java.text", "java.time", "java.util", "java.util.concurrent",
        "java.util.concurrent.atomic", "java.util.concurrent.locks",
    )),
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
]  # fmt: skip
#: Megabytes of a TaskManager by purpose. A range of keys (128 MB) is one message to Python: it is
#: in the heap, and in buffers outside of it more than once.
_HEAP, _DIRECT, _MANAGED, _NETWORK = 1536, 1024, 128, 128


def _config(folder: Path, head: str, rpc: int, rest: int, slots: int) -> str:
    return f"""process.working-dir: {folder}/work
io.tmp.dirs: {folder}/tmp
jobmanager.rpc.address: {head}
jobmanager.rpc.port: {rpc}
jobmanager.bind-host: {head}
jobmanager.memory.process.size: 1600m
rest.address: {head}
rest.bind-address: {head}
rest.port: {rest}
taskmanager.numberOfTaskSlots: {slots}
blob.service.cleanup.interval: 30
classloader.resolve-order: parent-first
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 3
restart-strategy.fixed-delay.delay: 3 s
parallelism.default: {slots}
execution.batch-shuffle-mode: ALL_EXCHANGES_PIPELINED
"""


def _memory(slots: int) -> list[str]:
    sizes = {
        "cpu.cores": slots,
        "memory.task.heap.size": f"{_HEAP}m",
        "memory.task.off-heap.size": f"{_DIRECT}m",
        "memory.framework.heap.size": "128mb",
        "memory.framework.off-heap.size": "128mb",
        "memory.managed.size": f"{_MANAGED}m",
        "memory.network.min": f"{_NETWORK}m",
        "memory.network.max": f"{_NETWORK}m",
        "memory.jvm-metaspace.size": "512mb",
        "memory.jvm-overhead.min": "192mb",
        "memory.jvm-overhead.max": "192mb",
    }
    total = _HEAP + _DIRECT + _MANAGED + _NETWORK + 2 * 128 + 512 + 192
    sizes["memory.process.size"] = f"{total}m"
    return [part for k, v in sizes.items() for part in ("-D", f"taskmanager.{k}={v}")]


def _overview(web: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(fetched(f"{web}/overview") or "{}")
    return found


def _flink_of(beam: str) -> str:
    """The newest version of Flink that a version of Beam's runner is for."""
    return "2.2" if tuple(map(int, beam.split(".")[:2])) >= (2, 75) else "1.19"


def _runner_of(beam: str) -> Runner:
    return Runner(
        f"beam-runners-flink-{_flink_of(beam)}",
        "org.apache.beam.runners.flink.FlinkJobServerDriver",
    )


def _unsent(folder: Path, jars: Sequence[Path]) -> list[Path]:
    """The jars under paths that Beam doesn't stage.

    A job server sends what is on its class path to the cluster with every job: 230 MB that the
    nodes have on their own class path. Beam has no option against it, but leaves out paths with
    the folder of Gradle's wrapper. Were that to change, jobs would only be dearer.
    """
    unsent = folder / "gradle/wrapper"
    unsent.mkdir(parents=True)
    for jar in jars:
        try:
            (unsent / jar.name).hardlink_to(jar)
        except OSError:  # another file system
            shutil.copyfile(jar, unsent / jar.name)
    return sorted(unsent.iterdir())


def start(cluster: Cluster, settings: Settings) -> dict[str, Any]:
    server = job_server(settings.job_server, _runner_of, settings.cache)
    release = _RELEASES[_flink_of(server.beam_version)]
    home = pip_folder(f"apache-flink-libraries=={release}", settings.cache)
    rpc, rest, slots = free_port(), free_port(), settings.processes
    head, *nodes = settings.hosts
    web = f"http://{head.address}:{rest}"
    conf = cluster.folder / "conf"
    for folder in (conf, cluster.folder / "tmp", cluster.folder / "work"):
        folder.mkdir()
    for name in ("flink-conf.yaml", "config.yaml"):  # before and from 2.0
        (conf / name).write_text(_config(cluster.folder, head.address, rpc, rest, slots))
    # The runner stands on the nodes' own class path, so that its classes are loaded and compiled
    # once, and not for every job.
    jars = f"{home}/pyflink/lib/*:{server.jar}"
    flink_java = java([*_OPENS, f"-Djava.io.tmpdir={cluster.folder}/tmp", "-cp", jars])
    entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
    cluster.start("jobmanager", [*flink_java, "-Xmx1g", entry, "--configDir", str(conf)])
    cluster.wait("the JobManager", lambda: bool(_overview(web)))
    task_manager = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
    heap = [f"-Xmx{_HEAP + 128}m", f"-XX:MaxDirectMemorySize={_DIRECT + _NETWORK + 128}m"]
    command = [*flink_java, *heap, task_manager, "--configDir", str(conf), *_memory(slots)]
    for i, node in enumerate(nodes):
        own = {"resource-id": f"taskmanager-{i}", "host": node.address, "bind-host": node.address}
        identity = [part for k, v in own.items() for part in ("-D", f"taskmanager.{k}={v}")]
        cluster.start(f"taskmanager-{i}", [*node.enter, *command, *identity])
    cluster.wait("TaskManagers", lambda: _overview(web).get("taskmanagers", 0) >= len(nodes))
    pool = cluster.start_worker_pools(nodes)
    unsent = _unsent(cluster.folder, [*home.glob("pyflink/lib/*.jar"), server.jar])
    path = ":".join(map(str, unsent))
    command = [*java([*_OPENS, "-Xmx1g", "-cp", path]), server.runner.main_class]
    endpoint = cluster.start_job_server(command, [f"--flink-master={head.address}:{rest}"])
    return {
        "web": web,
        "beam": server.beam_version,
        "version": release,
        "options": [
            "--runner=PortableRunner",
            f"--job_endpoint=localhost:{endpoint}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{pool}",
            f"--sdk_worker_parallelism={slots}",
            f"--parallelism={len(nodes) * slots}",
        ],
    }


if __name__ == "__main__":
    sys.exit(main("flink", start, __doc__))
