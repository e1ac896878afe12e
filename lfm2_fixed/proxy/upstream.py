"""The server behind the proxy: connections to it, and what kind it is."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import httpx

from .errors import ProxyError
from .settings import Mode, Settings

log = logging.getLogger("lfm2_fixed.proxy")

Headers = list[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_DETECTION_TIMEOUT = 10.0


@dataclass(frozen=True)
class Kind:
    """What the upstream is: ``name`` is ``llama.cpp``, ``vllm`` or ``unknown``; ``mode`` what suits it."""

    name: str
    version: str
    mode: Mode


UNKNOWN = Kind("unknown", "", "buffer")


def end_to_end(headers: Iterable[tuple[bytes, bytes]], *also: bytes) -> Headers:
    """The headers without those for one connection only, and without ``also``.  Names become lower case."""
    pairs = [(name.lower(), value) for name, value in headers]
    named = {token.strip().lower() for name, value in pairs if name == b"connection" for token in value.split(b",")}
    dropped = HOP_BY_HOP | named | set(also)
    return [(name, value) for name, value in pairs if name not in dropped]


class Upstream:
    """Sends requests; an async context manager that owns the connections."""

    def __init__(self, settings: Settings) -> None:
        parts = urlsplit(settings.upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"The upstream must be a URL such as http://127.0.0.1:8080, not {settings.upstream!r}.")
        if parts.query or parts.fragment or parts.username is not None:
            raise ValueError("The upstream's URL must not have a query, a fragment or a user.")
        # Clients' paths begin with /v1 already: a base URL as clients take it means the same server.
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self.url = self._origin + self._prefix
        self._settings = settings
        self._kind: Kind | None = None
        self._lock = anyio.Lock()
        # Transports alone: no cookies kept, no redirects followed, no proxy from the environment.
        context = _trust(settings) if parts.scheme == "https" else False
        self._pooled, self._single = (
            httpx.AsyncHTTPTransport(
                verify=context,
                # Servers close idle connections after some 5 s: ours must be the shorter patience.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=kept, keepalive_expiry=2.0),
                socket_options=keep_alive_options(),
            )
            for kept in (100, 0)
        )
        self._timeout = {
            "connect": settings.connect_timeout or None,
            "read": settings.read_timeout or None,
            "write": settings.read_timeout or None,
            "pool": None,
        }

    async def __aenter__(self) -> Upstream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pooled.aclose()
        await self._single.aclose()

    @asynccontextmanager
    async def send(
        self,
        method: str,
        target: bytes,
        headers: Headers,
        content: bytes | AsyncIterator[bytes] | None,
        *,
        fresh: bool = False,
    ) -> AsyncIterator[httpx.Response]:
        """The response, its body not read yet; leaving the context closes it, which stops the upstream.

        ``target``: path and query, as bytes of the wire.  ``fresh``: on a connection of its own, which
        cannot turn out to have been closed meanwhile; the others may be used again.  Raises ProxyError
        (502 or 504) where there is no response.
        """
        request = httpx.Request(
            method,
            self._origin,
            headers=end_to_end(headers, b"host", b"expect"),
            content=content,
            extensions={"target": self._prefix.encode() + target, "timeout": self._timeout},
        )
        try:
            response = await (self._single if fresh else self._pooled).handle_async_request(request)
        except httpx.TransportError as error:
            self._kind = None  # what comes back may be another server
            raise self._failure(error) from error
        try:
            yield response
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def pieces(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """The response's body as it comes, undecoded.  Raises ProxyError where it breaks off."""
        try:
            async for piece in response.aiter_raw():
                yield piece
        except httpx.TransportError as error:
            raise self._failure(error, begun=True) from error

    def _failure(self, error: httpx.TransportError, *, begun: bool = False) -> ProxyError:
        if isinstance(error, httpx.ConnectTimeout):
            return ProxyError(
                504, f"The upstream {self.url} did not accept a connection in time.", kind="upstream_timeout"
            )
        if isinstance(error, httpx.TimeoutException):
            return ProxyError(
                504,
                f"The upstream was silent for {self._settings.read_timeout:g} s.",
                kind="upstream_timeout",
            )
        if isinstance(error, httpx.ConnectError):
            return ProxyError(502, f"The upstream {self.url} cannot be reached ({error}).", kind="upstream_unreachable")
        when = "in the middle of its answer" if begun else "without an answer"
        return ProxyError(502, f"The upstream closed the connection {when}.", kind="upstream_error")

    async def kind(self) -> Kind:
        """What the upstream is, asked once and again after it was lost.

        Raises ProxyError (502 or 504) where it cannot be reached.
        """
        if self._kind is None:
            async with self._lock:
                if self._kind is None:
                    kind = await self._ask()
                    self._kind = kind
                    log.info("upstream %s: %s, mode %s", self.url, describe(kind), self.mode(kind))
        return self._kind or UNKNOWN

    def mode(self, kind: Kind) -> Mode:
        """The mode for this kind of upstream."""
        return kind.mode if self._settings.mode == "auto" else self._settings.mode

    async def _ask(self) -> Kind:
        """Ask ``/props`` (llama.cpp), then ``/version`` (vLLM)."""
        status, server, answer = await self._get("/props")
        if server == "llama.cpp" or (status == 200 and "build_info" in answer):
            return Kind("llama.cpp", str(answer.get("build_info") or ""), "parse")
        status, _, answer = await self._get("/version")
        if status == 200 and isinstance(answer.get("version"), str):
            return Kind("vllm", str(answer["version"]), "parse")
        return UNKNOWN

    async def _get(self, path: str) -> tuple[int, str, dict[str, object]]:
        """Status, ``Server`` header, and the JSON object answered, if any."""
        try:
            with anyio.fail_after(_DETECTION_TIMEOUT):
                async with self.send("GET", path.encode(), [(b"accept", b"application/json")], None) as response:
                    body = b"".join([piece async for piece in self.pieces(response)])
        except TimeoutError:
            raise ProxyError(504, f"The upstream {self.url} does not answer.", kind="upstream_timeout") from None
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        return (
            response.status_code,
            response.headers.get("server", ""),
            answer if isinstance(answer, dict) else {},
        )

    async def healthy(self) -> bool:
        """Whether the upstream's own ``/health`` says 200 (a server without one: whether it answers)."""
        try:
            with anyio.fail_after(_DETECTION_TIMEOUT):
                async with self.send("GET", b"/health", [], None) as response:
                    return response.status_code in (200, 404, 405)
        except (ProxyError, TimeoutError):
            return False


def describe(kind: Kind) -> str:
    """A kind in words."""
    return {"llama.cpp": f"llama.cpp {kind.version}", "vllm": f"vLLM {kind.version}"}.get(
        kind.name, "a server of unknown kind"
    ).strip()


def keep_alive_options() -> list[tuple[int, int, int]]:
    """Socket options that make the kernel notice peers that are gone without a word."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _trust(settings: Settings) -> ssl.SSLContext:
    """The system's certificates, or those of a file; always verified."""
    return ssl.create_default_context(cafile=settings.ca_file)
