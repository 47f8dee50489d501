"""The explorer's server: on the local address only, with a secret in its path, read-only."""

import json
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from curation.arrow import plain
from curation.errors import CurationError
from pipelines.reading.explorer import Explorer

_ADDRESS = "127.0.0.1"
#: Files of the page, with their types.
_ASSETS = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "app.css": ("app.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
#: The page loads its own files and asks its own server; documents it shows can add nothing.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
#: A crawled page, in a frame without any right: its own inline styles, and nothing else.
_FRAME_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
#: Names of this machine by which a browser reaches the server, directly or through a tunnel.
_NAMES = (_ADDRESS, "localhost", "::1")


class Server(ThreadingHTTPServer):
    """Serves one explorer at `url`, until it is shut down."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        super().__init__((_ADDRESS, port), _Handler)
        self.explorer = explorer
        self.token = secrets.token_urlsafe(24)
        self.lock = threading.Lock()  # answers share caches

    @property
    def url(self) -> str:
        return f"http://{_ADDRESS}:{self.server_address[1]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that hung up; of the rest, what Python says."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "curate"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name, query = self._asked()
        if name is None:
            return self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")
        if name in _ASSETS:
            asset, kind = _ASSETS[name]
            content = files("pipelines.view").joinpath("static", asset).read_bytes()
            return self._send(HTTPStatus.OK, content, kind)
        if name == "page":
            return self._page(query)
        questions = self.server.explorer.questions
        if not name.startswith("api/") or name[4:] not in questions:
            return self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")
        answer, status = self._ask(questions[name[4:]], query)
        answer = answer if status == HTTPStatus.OK else {"error": answer}
        data = json.dumps(plain(answer), ensure_ascii=False, default=str, allow_nan=False)
        return self._send(status, data.encode("utf-8", "replace"), "application/json")

    def _asked(self) -> tuple[str | None, dict[str, str]]:
        """Return what lies behind the token, or None without it."""
        try:
            parts = urlsplit(self.path)
        except ValueError:
            return None, {}
        _, token, name = (*parts.path.split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return None, {}
        if parts.path.count("/") < 2 or not self._is_ours():
            return None, {}
        return name, dict(parse_qsl(parts.query))

    def _is_ours(self) -> bool:
        """Return whether the browser knows this server by a name of this machine.

        Another name that leads here is another site's, whose scripts could read the answers.
        """
        try:
            hosts = [urlsplit(f"//{self.headers.get('Host', '')}").hostname]
            if origin := self.headers.get("Origin"):
                hosts.append(urlsplit(origin).hostname)
        except ValueError:
            return False
        return all(host in _NAMES for host in hosts)

    def _ask(self, question: Callable[[Mapping[str, str]], Any], query: Any) -> tuple[Any, int]:
        """Return the answer, or what is wrong, and the status that says so."""
        try:
            with self.server.lock:
                return question(query), HTTPStatus.OK
        except CurationError as error:
            return str(error), HTTPStatus.BAD_REQUEST
        except Exception as error:  # the page says so; the server goes on
            return self.server.explorer.trouble(error), HTTPStatus.INTERNAL_SERVER_ERROR

    def _page(self, query: Mapping[str, str]) -> None:
        found, status = self._ask(self.server.explorer.html, query)
        data, kind = (found, "html") if status == HTTPStatus.OK else (found.encode(), "plain")
        self._send(status, data, f"text/{kind}; charset=utf-8", _FRAME_POLICY)

    def _send(self, status: int, data: bytes, kind: str, policy: str | None = None) -> None:
        self.send_response(status)
        headers = {
            **_HEADERS,
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": policy or _POLICY,
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: each line would contain the token."""
