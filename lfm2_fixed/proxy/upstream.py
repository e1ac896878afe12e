"""The server behind the proxy: connections to it, and what kind it is."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast
from urllib.parse import SplitResult, quote, urlsplit

import anyio
import httpx

from ..grammar import marks
from .errors import ProxyError
from .settings import Mode, Settings

log = logging.getLogger("lfm2_fixed.proxy")

Headers = list[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_DETECTION_TIMEOUT = 10.0
"""Seconds for each of the questions what the upstream is: they are answered from memory by those that know them."""

_PATIENCE = 2.0
"""Seconds that a request waits for the answer if it can do without: a question is a round trip or two."""

_MOST_OF_AN_ANSWER = 2**20
"""Bytes of an answer to such a question: llama.cpp's ``/props`` has the chat template in it, some 10 to 100 KB."""


@dataclass(frozen=True)
class Kind:
    """What the upstream is: ``name`` is ``llama.cpp``, ``vllm`` or ``unknown``; ``mode`` what suits it.

    ``certain``: False while the upstream has not said it: a gateway may have answered in its place.
    ``rust``: a vLLM whose HTTP server is the one written in Rust.  ``token_ids``: what of :func:`~..grammar.marks` is
    one token there; asked only where grammars need it, None where it was not said.
    """

    name: str
    version: str
    mode: Mode
    certain: bool = True
    rust: bool = False
    token_ids: Mapping[str, int] | None = None


UNKNOWN = Kind("unknown", "", "buffer")
UNCERTAIN = Kind("unknown", "", "buffer", certain=False)


@dataclass(eq=False)
class _Question:
    """A question under way.  ``answer`` and ``error`` are None if nobody waits for it any more."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Kind | None = None
    error: ProxyError | None = None


def end_to_end(headers: Iterable[tuple[bytes, bytes]], *also: bytes) -> Headers:
    """The headers without those for one connection only, and without ``also``.  Names become lower case."""
    pairs = [(name.lower(), value) for name, value in headers]
    named = {token.strip().lower() for name, value in pairs if name == b"connection" for token in value.split(b",")}
    dropped = HOP_BY_HOP | named | set(also)
    return [(name, value) for name, value in pairs if name not in dropped]


class Upstream:
    """Sends requests; an async context manager that owns the connections."""

    def __init__(self, settings: Settings) -> None:
        parts = _checked(settings.upstream)
        # Clients' paths begin with /v1 already: a base URL as clients take it means the same server.
        self._prefix = quote(parts.path.rstrip("/").removesuffix("/v1"), safe="/%:@!$&'()*+,;=~")
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self.url = self._origin + self._prefix
        self._settings = settings
        self._kind: Kind | None = None
        self._question: _Question | None = None
        self._told = ""  # the last line about it in the log
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
        except httpx.LocalProtocolError as error:
            message = f"The request cannot be sent on as it is ({error})."
            raise ProxyError(400, message, kind="invalid_request_error") from error
        except httpx.TransportError as error:
            self._kind = None  # what comes back may be another server
            raise self._failure(error) from error
        try:
            yield response
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def pieces(self, response: httpx.Response, *, decoded: bool = False) -> AsyncIterator[bytes]:
        """The response's body as it comes.  Raises ProxyError where it breaks off.

        ``decoded``: without its content encoding, for what is read here.
        """
        try:
            if decoded and "content-encoding" in response.headers:
                async for piece in response.aiter_bytes():
                    yield piece
            else:  # not by aiter_raw(), which passes each piece through two generators more
                async for piece in cast(AsyncIterator[bytes], response.stream):
                    yield piece
        except httpx.TransportError as error:
            raise self._failure(error, begun=True) from error
        except httpx.DecodingError:
            raise ProxyError(502, "The upstream's answer is compressed and damaged.", kind="upstream_error") from None

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

    async def kind(self, authorization: Headers | None = None) -> Kind:
        """What the upstream is: remembered once it has said so, until a connection fails.

        ``authorization``: the header, if any, that the client sent for the upstream, which may answer nobody
        without it.  However many requests wait, one of them asks.  In the mode ``auto`` raises ProxyError (502
        or 504) where the upstream cannot be reached; an explicit mode needs no answer, and gets ``UNCERTAIN``.
        """
        if self._settings.mode == "buffer":
            return self._kind or UNCERTAIN  # nothing depends on it
        if self._settings.mode == "auto":
            return await self._asked(authorization)
        with anyio.move_on_after(_PATIENCE):
            try:
                return await self._asked(authorization)
            except ProxyError:
                pass  # the request itself will say it better
        return UNCERTAIN

    async def _asked(self, authorization: Headers | None) -> Kind:
        while self._kind is None:
            question = self._question
            if question is not None:
                await question.answered.wait()
            else:
                question = self._question = _Question()
                try:
                    kind = question.answer = await self._ask(authorization or [])
                    if kind.certain:
                        self._kind = kind
                    self._tell(f"upstream {self.url}: {describe(kind)}, mode {self.mode(kind)}")
                except ProxyError as error:
                    question.error = error
                finally:  # also when the client of this request goes: then another of those who wait asks
                    self._question = None
                    question.answered.set()
            if question.error is not None:
                said = question.error
                raise ProxyError(said.status, said.message, kind=said.kind)  # each its own: they keep tracebacks
            if question.answer is not None:
                return question.answer
        return self._kind

    def _tell(self, line: str) -> None:
        if line != self._told:  # a gateway that stands in for it would make a line for each request
            self._told = line
            log.info("%s", line)

    def mode(self, kind: Kind) -> Mode:
        """The mode for this kind of upstream."""
        return kind.mode if self._settings.mode == "auto" else self._settings.mode

    async def _ask(self, authorization: Headers) -> Kind:
        """Ask ``/props`` (llama.cpp), then ``/version`` (vLLM).

        Only 200 and 404 say what a server has.  Anything else (401, 429, 5xx) may be a gateway's word, or that
        of a server which is not up yet.
        """
        status, server, props = await self._get("/props", authorization)
        # llama.cpp names itself in all its answers, also while it loads a model (503) or wants a key (401).
        if server == "llama.cpp" or (status == 200 and "build_info" in props):
            return Kind("llama.cpp", str(props.get("build_info") or ""), "parse")
        certain = status in (200, 404)
        status, _, version = await self._get("/version", authorization)
        if status == 200 and isinstance(version.get("version"), str):
            kind = Kind("vllm", str(version["version"]), "parse", rust="rust_frontend_version" in version)
            constrain = self._settings.constrain != "off"
            return await self._with_tokens(kind, authorization) if kind.rust and constrain else kind
        return UNKNOWN if certain and status in (200, 404) else UNCERTAIN

    async def _with_tokens(self, kind: Kind, authorization: Headers) -> Kind:
        """The kind, with what ``/tokenize`` says."""
        found: dict[str, int] = {}
        for mark in marks(self._settings.dialect):
            question = {"prompt": mark, "add_special_tokens": False}
            status, _, answer = await self._get("/tokenize", authorization, question)
            tokens = answer.get("tokens")
            if status != 200 or not isinstance(tokens, list):
                return replace(kind, certain=status in (200, 404))
            if len(tokens) == 1 and isinstance(tokens[0], int):
                found[mark] = tokens[0]
        return replace(kind, token_ids=found)

    async def _get(
        self, path: str, authorization: Headers, question: Mapping[str, object] | None = None
    ) -> tuple[int, str, dict[str, object]]:
        """Status, ``Server`` header, and the JSON object answered, if any; to a POST where there is a ``question``."""
        headers = [(b"accept", b"application/json"), (b"accept-encoding", b"identity"), *authorization]
        method, content = "GET", None
        if question is not None:
            method, content = "POST", json.dumps(question).encode()
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        body = bytearray()
        try:
            with anyio.fail_after(_DETECTION_TIMEOUT):
                async with self.send(method, path.encode(), headers, content) as response:
                    async for piece in self.pieces(response, decoded=True):
                        body += piece
                        if len(body) > _MOST_OF_AN_ANSWER:
                            break
        except TimeoutError:
            raise ProxyError(504, f"The upstream {self.url} does not answer.", kind="upstream_timeout") from None
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
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
    if not kind.certain:
        return "not known yet (it will be asked again)"
    vllm = f"vLLM {kind.version}" + (" (Rust front end)" if kind.rust else "")
    return {"llama.cpp": f"llama.cpp {kind.version}", "vllm": vllm}.get(kind.name, "a server of unknown kind").strip()


def _checked(url: str) -> SplitResult:
    """The upstream's URL, in parts.  Raises ValueError with a sentence for the user."""
    try:
        parts = urlsplit(url)
        port = parts.port  # raises for what is no number, and beyond 65535
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
        usable = usable and url.isprintable() and " " not in url  # urlsplit takes line ends out in silence
        if usable:
            httpx.URL(f"{parts.scheme}://{parts.netloc}")  # raises for hosts that cannot be
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise ValueError(f"The upstream must be a URL such as http://127.0.0.1:8080, not {url!r}.")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError("The upstream's URL must not have a query, a fragment or a user.")
    return parts


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
