"""An S3 server in this process, and before it a proxy that fails as networks and stores do.

    python -m tests.faulty_store ADDRESS PORT [RATE]

serves other machines with it; RATE is the share of requests that go wrong.
"""

from __future__ import annotations

import contextlib
import datetime
import http.client
import logging
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ERRORS = {
    "slow_down": (503, "SlowDown", "Please reduce your request rate."),
    "internal": (500, "InternalError", "We encountered an internal error. Please try again."),
}
_LATE = (
    *(403, "RequestTimeTooSkewed"),
    "The difference between the request time and the current time is too large.",
)
#: All that can go wrong with one request: refused, cut off before or after it was carried out,
#: answered in part, answered late. One more, "silent", is for clients of little patience.
KINDS = (*_ERRORS, "reset", "lost", "truncated", "slow")
#: By so many seconds S3 lets the clocks of clients be off.
_SKEW = 900.0


class Proxy(ThreadingHTTPServer):
    """Passes requests on to `target` (host, port), failing at the given rates by kind.

    `requests` and `faults` count by method and by kind, `sent` and `received` bytes of bodies.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        target: tuple[str, int],
        rates: Mapping[str, float],
        seed: int = 0,
        own: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        super().__init__(own, _Handler)
        self.target, self.rates = target, dict(rates)
        self.requests: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.received = self.sent = 0
        self._random, self._lock = random.Random(seed), threading.Lock()

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def draw(self, method: str) -> str:
        """The fault of one request, or nothing."""
        with self._lock:
            self.requests[method] += 1
            at = self._random.random()
            for kind, rate in self.rates.items():
                if at < rate:
                    self.faults[kind] += 1
                    return kind
                at -= rate
        return ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may leave."""


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its headers

    def _pass(self) -> None:
        body = self._body()
        fault = self.server.draw(self.command)
        self.server.received += len(body)
        if self._is_late():
            self._refuse(*_LATE)
            return
        if fault in _ERRORS:
            self._refuse(*_ERRORS[fault])
            return
        if fault == "reset":
            self._hang_up()
            return
        if fault == "slow":
            time.sleep(0.2)
        if fault == "silent":  # longer than a client of the tests waits
            time.sleep(3)
            self._hang_up()
            return
        upstream = http.client.HTTPConnection(*self.server.target, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            content = answer.read()
        finally:
            upstream.close()
        if fault == "lost":
            self._hang_up()
            return
        self.server.sent += len(content)
        dropped = _HOP if self.command == "HEAD" else _HOP | {"content-length"}
        kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in dropped]
        if fault == "truncated" and len(content) > 1:
            self._answer(answer.status, kept, content, len(content) // 2)
            self._hang_up()
            return
        self._answer(answer.status, kept, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

    def _is_late(self) -> bool:
        """Whether the client's clock is off."""
        date = self.headers.get("x-amz-date")
        if not date:
            return False
        sent = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC)
        return abs(sent.timestamp() - time.time()) > _SKEW

    def _refuse(self, status: int, code: str, message: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        self._answer(status, [("Content-Type", "application/xml")], text)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], content: bytes, cut: int | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        # The answer to HEAD tells the length of what GET would give.
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut])

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            linger = struct.pack("ii", 1, 0)  # close with a reset
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.wfile.flush()
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "expect"}


@contextlib.contextmanager
def faulty_store(
    rates: Mapping[str, float], seed: int = 0, own: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[Proxy]:
    """A fresh S3 server behind a failing proxy, which has the address `own`."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem
    from werkzeug.serving import WSGIRequestHandler

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    WSGIRequestHandler.disable_nagle_algorithm = True

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    proxy = Proxy((host, port), rates, seed, own)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    S3FileSystem.clear_instance_cache()
    try:
        yield proxy
    finally:
        S3FileSystem.clear_instance_cache()  # file systems of this process know its address
        proxy.shutdown()
        proxy.server_close()
        server.stop()


def environment(proxy: Proxy) -> dict[str, str]:
    """Variables with which every process finds the proxy, in the way users name a store."""
    return environment_of(proxy.url)


def environment_of(url: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


if __name__ == "__main__":
    address, port, *more = sys.argv[1:]
    rates = dict.fromkeys(KINDS, float(more[0] if more else 0) / len(KINDS))
    with faulty_store(rates, own=(address, int(port))):
        threading.Event().wait()
