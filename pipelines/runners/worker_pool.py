"""A pool of Python workers for engines that request them (`--environment_type=EXTERNAL`).

One pool runs on each node of a cluster; Flink and Spark ask it for workers, some for every job.
Beam has such a pool, too, which starts a new `python` for each worker of each job and never reads
its output. Here workers are forked from a process that has done all imports, so that a job doesn't
cost seconds per process.
"""

import logging
import multiprocessing
import signal
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc

from curation.errors import ConfigError
from pipelines.process import await_ends, end_with_parent
from pipelines.terminal import say

#: How often a worker that never received work is started.
_STARTS = 4

_log = logging.getLogger(__name__)


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Starts and stops workers as processes. Beam's BeamFnExternalWorkerPool service."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["pipelines.runners.preload"])
        self._workers: list[Any] = []
        self._lock = threading.Lock()
        self._stopped = False

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        try:
            self.start_worker(request.control_endpoint.url, request.worker_id, _STARTS)
            return beam_fn_api_pb2.StartWorkerResponse()
        except Exception:
            return beam_fn_api_pb2.StartWorkerResponse(error=traceback.format_exc())

    def start_worker(self, endpoint: str, name: str, starts: int) -> None:
        """Fork a worker. One that dies before its first bundle is replaced, up to `starts` times.

        An engine waits forever for a requested worker that never connects.
        """
        begun = self._context.Event()
        process = self._context.Process(target=_work, args=(endpoint, name, begun), name=name)
        with self._lock:
            if self._stopped:
                return
            process.start()
            self._workers = [p for p in self._workers if p.is_alive()] + [process]
        _log.info("worker %s: process %s", name, process.pid)

        def watch() -> None:
            process.join()
            if process.exitcode and not begun.is_set() and starts > 1:
                self.start_worker(endpoint, name, starts - 1)

        threading.Thread(target=watch, daemon=True).start()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        # A worker ends by itself when the connection to its job does. The name can't say which is
        # meant: each job and each node counts from one, and this word may come late.
        return beam_fn_api_pb2.StopWorkerResponse()

    def stop(self) -> None:
        """End all workers."""
        with self._lock:
            self._stopped = True
            processes, self._workers = self._workers, []
        for process in processes:
            process.terminate()
        await_ends(processes)


def _work(control_endpoint: str, worker_id: str, begun: Any) -> None:
    """One worker, until its job ends or the pool does. Sets `begun` when it gets work."""
    from apache_beam.runners.worker.sdk_worker import SdkHarness

    class Harness(SdkHarness):
        def _request_process_bundle(self, request: Any) -> None:
            begun.set()
            super()._request_process_bundle(request)

    end_with_parent()
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    Harness(control_endpoint, worker_id=worker_id).run()


#: Addresses that no other machine can reach.
_HERE = {"localhost", "127.0.0.1", "::1", "[::1]"}


def serve(port: int, host: str = "localhost", trust_network: bool = False) -> None:
    """Serve until the process is asked to end.

    Who can reach the port can run any code as the pool's user: Beam's protocol knows no passwords.
    Raises ConfigError when the port is taken, and for a host that others reach unless
    `trust_network` says that they may.
    """
    if host not in _HERE and not trust_network:
        raise ConfigError(
            f"--host {host}: anyone who can reach this address can run any code here, without a "
            "password; if only your cluster can, confirm with --trust-network"
        )
    server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
    pool = WorkerPool()
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise ConfigError(f"--port {port}: {error}") from None
    server.start()
    say(f"serving workers at {host}:{bound}")
    done = threading.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, lambda *_: done.set())
    done.wait()
    server.stop(0)
    pool.stop()
