"""Running the application."""

from __future__ import annotations

import errno
import logging
import math
import socket

import uvicorn

from .app import create_app
from .protocol import protocol
from .settings import Settings
from .upstream import keep_alive_options


def serve(settings: Settings, *, host: str = "127.0.0.1", port: int = 8100, shutdown_timeout: float = 30.0) -> None:
    """Serve until SIGINT or SIGTERM; open streams then have ``shutdown_timeout`` seconds to end.

    Raises ValueError for settings that cannot be, and OSError, with a sentence, where the address is not to be had.
    """
    server, listener = new_server(settings, host=host, port=port, shutdown_timeout=shutdown_timeout)
    address, number = listener.getsockname()[:2]
    logging.getLogger("lfm2_fixed.proxy").info("listening on http://%s:%d", address, number)
    server.run(sockets=[listener])


def new_server(
    settings: Settings, *, host: str = "127.0.0.1", port: int = 8100, shutdown_timeout: float = 30.0
) -> tuple[uvicorn.Server, socket.socket]:
    """The server, and the socket it is to listen on.  Raises ValueError and OSError as ``serve`` does."""
    config = uvicorn.Config(
        create_app(settings),
        host=host,
        port=port,
        access_log=False,  # ours has no query strings in it
        log_config=None,
        log_level=logging.WARNING,
        server_header=False,  # the upstream's own headers pass
        date_header=False,
        proxy_headers=False,
        ws="none",
        http=protocol(settings.client_timeout),
        lifespan="on",
        timeout_graceful_shutdown=math.ceil(shutdown_timeout) or None,
    )
    listener = _bound(host, port)
    set_listener_options(listener, settings)
    return uvicorn.Server(config), listener


def _bound(host: str, port: int) -> socket.socket:
    """As uvicorn binds one; but that would log a number in brackets and end the program."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(f"Port {port} of {host} is taken by another program: stop it, or choose another.") from None
        raise OSError(f"{host}, port {port}, cannot be listened on: {error.strerror}") from None
    return listener


def set_listener_options(listener: socket.socket, settings: Settings) -> None:
    """Make the kernel drop clients that are gone without a word, or take nothing for too long.

    Accepted connections inherit the options.  Where the kernel cannot do it (Linux can), such a
    client keeps its connection, and its stream waits for it.
    """
    for option in keep_alive_options():
        listener.setsockopt(*option)
    if settings.client_timeout and hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(settings.client_timeout * 1000))
