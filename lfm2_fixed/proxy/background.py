"""The proxy in a thread, for programs that want one of their own for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from .serve import new_server
from .settings import Settings


@contextmanager
def running(settings: Settings) -> Iterator[str]:
    """Serve on a free port of the loopback interface; the URL.  Raises ValueError for settings that cannot be."""
    server, listener = new_server(settings, port=0, shutdown_timeout=1)
    thread = threading.Thread(target=_run, args=(server, listener), name="lfm2-fixed proxy", daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()


def _run(server: uvicorn.Server, listener: object) -> None:
    server.run(sockets=[listener])  # type: ignore[list-item]
