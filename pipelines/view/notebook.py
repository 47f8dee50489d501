"""A run in a notebook's cell: the page in a frame, its server in a thread of the kernel."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pipelines.reading.explorer import Explorer
from pipelines.view.server import Server

#: Notebooks on this machine, or reached through a tunnel.
_LOCAL = "'self' http://localhost:* http://127.0.0.1:*"


class View:
    """What a cell shows: a frame with the page. It is served until `close` or the kernel's end."""

    def __init__(self, server: Server, address: str, height: int) -> None:
        self.server, self.url, self.height = server, address, height
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="Explorer of a run" src="{self.url}" width="100%" '
            f'height="{self.height}" style="border:0"></iframe>'
        )

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()


def show(
    run: str,
    compare: str | None = None,
    inputs: Sequence[str] = (),
    height: int = 800,
    proxy: str | None = None,
) -> View:
    """Show a run folder or URL in the cell, as `curate view --run RUN` does in a browser.

    Args:
        run: the folder of a run.
        compare: another run to compare it with.
        inputs: the run's inputs, to show the pages that documents come from.
        height: of the frame, in pixels.
        proxy: where the kernel is on another machine, the path of jupyter-server-proxy there, such
            as `/proxy` or `/user/NAME/proxy`. Without it the browser must reach this machine.

    Raises:
        ConfigError: no run is there.
    """
    proxied = proxy is not None  # a proxy passes on the name that it is reached by
    server = Server(Explorer(run, compare, list(inputs)), framed_by=_LOCAL, any_name=proxied)
    port = server.server_address[1]
    address = server.url if proxy is None else f"{proxy.rstrip('/')}/{port}/{server.token}/"
    return View(server, address, height)
