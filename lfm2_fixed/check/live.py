"""The same request sent to a server twice, streamed and not, and what came back kept as it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..extras import install
from .capture import UnusableInput

if TYPE_CHECKING:
    import httpx

_ENDPOINTS = ("/chat/completions", "/responses", "/messages")


@dataclass(frozen=True)
class Answers:
    """``stream``: the bytes of the streamed answer.  ``cut``: why it broke off, in words, else None.

    ``whole``: the body of the other answer, ``whole_error``: one sentence if the server failed on that, and
    ``whole_status``: its HTTP status, None if no answer came at all.
    """

    stream: bytes
    cut: str | None
    whole: bytes | None
    whole_error: str | None
    whole_status: int | None = None


def endpoint(url: str, request: Mapping[str, Any]) -> str:
    """The address to post to: ``url`` itself if it names an endpoint, else the one that the request is made for."""
    base = url.rstrip("/")
    if not base.startswith(("http://", "https://")):
        raise UnusableInput(f"{url!r} is no address: it must begin with http:// or https://.")
    if base.endswith(_ENDPOINTS):
        return base
    if "input" in request:
        kind = "/responses"
    elif any("input_schema" in tool for tool in request.get("tools") or () if isinstance(tool, Mapping)):
        kind = "/messages"
    else:
        kind = "/chat/completions"
    return base + (kind if base.endswith("/v1") else "/v1" + kind)


def prepared(request: Mapping[str, Any], model: str | None, *, address: str) -> dict[str, Any]:
    """The body to send: the request with the model named, and nothing left to chance unless it says so."""
    body = dict(request)
    if model is not None:
        body["model"] = model
    if not body.get("model"):
        raise UnusableInput("The request names no model: give --model.")
    if "messages" not in body and "input" not in body:
        raise UnusableInput("For --live the file given with --tools must be a whole request, with its messages.")
    body.setdefault("temperature", 0)
    if address.endswith("/messages"):
        body.setdefault("max_tokens", 4096)  # required there
    return body


def ask(
    address: str, body: Mapping[str, Any], *, headers: Mapping[str, str], timeout: float, logprobs: bool = False
) -> Answers:
    """Send both requests.  ``timeout``: seconds without a byte.  Raises UnusableInput with a sentence.

    ``logprobs``: ask for them, since they tell what the model wrote, token by token (Chat Completions only), in the
    request that does not stream: llama.cpp refuses them together with tools and streaming.
    """
    try:
        import httpx
    except ImportError as error:
        raise UnusableInput(f"--live needs the package httpx; {install('tools')}") from error
    limits = httpx.Timeout(timeout, connect=min(timeout, 10.0))
    with httpx.Client(timeout=limits, headers={**headers, "Accept-Encoding": "identity"}) as client:
        stream, cut = _streamed(client, address, body, timeout)
        whole_body = {key: value for key, value in body.items() if key != "stream_options"} | {"stream": False}
        if logprobs and address.endswith("/chat/completions"):
            whole_body["logprobs"] = True
        try:
            answer = client.post(address, json=whole_body)
        except httpx.HTTPError as error:
            return Answers(stream, cut, None, _sentence(error, address, timeout))
        if answer.status_code >= 400:
            return Answers(stream, cut, None, _refusal(answer.status_code, answer.text), answer.status_code)
        return Answers(stream, cut, answer.content, None)


def _streamed(client: httpx.Client, address: str, body: Mapping[str, Any], timeout: float) -> tuple[bytes, str | None]:
    import httpx

    received = bytearray()
    try:
        with client.stream("POST", address, json={**body, "stream": True}) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise UnusableInput(_refusal(answer.status_code, answer.text))
            for piece in answer.iter_bytes():
                received += piece
    except httpx.HTTPError as error:
        sentence = _sentence(error, address, timeout)
        if not received:
            raise UnusableInput(sentence) from error
        return bytes(received), sentence[:1].lower() + sentence[1:].rstrip(".")
    except httpx.InvalidURL as error:
        raise UnusableInput(f"{address!r} is no address ({error}).") from error
    return bytes(received), None


def _sentence(error: httpx.HTTPError, address: str, timeout: float) -> str:
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return f"No connection to {address} within {min(timeout, 10.0):g} s: is the host right, and reachable?"
    if isinstance(error, httpx.ConnectError):
        return f"Nothing answers at {address}: is the server running, and the port right? ({error})"
    if isinstance(error, httpx.TimeoutException):
        return f"The server sent nothing for {timeout:g} s (--timeout sets how long to wait)."
    if isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError)):
        return f"The connection broke before the answer was complete ({error or type(error).__name__})."
    return f"The request to {address} failed ({type(error).__name__}: {error})."


_HINTS = {
    401: "give --api-key, or set OPENAI_API_KEY",
    403: "the key may not use this model",
    404: "is the path right, and does the server know this model?",
    429: "too many requests: try again later",
}


def _refusal(status: int, text: str) -> str:
    """One sentence about an HTTP error."""
    said = text
    try:
        document = json.loads(text)
        error = document.get("error", document) if isinstance(document, dict) else document
        said = str(error.get("message") or error) if isinstance(error, dict) else str(error)
    except (ValueError, RecursionError):
        pass
    said = " ".join(said.split())
    said = said if len(said) <= 300 else said[:300] + "…"
    hint = _HINTS.get(status) or ("the request was refused" if status < 500 else "the server failed; its log says more")
    return f"The server answered with HTTP status {status} ({hint}): {said or 'no text'}"
