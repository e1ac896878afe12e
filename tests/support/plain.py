"""A server that parses nothing: what its model says is the content of its answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def served(say: Callable[[str], str]) -> Iterator[str]:
    """Such a server: the message is what ``say`` makes of the user's.  Its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("application/json", b'{"data": [{"id": "m"}]}' if self.path == "/v1/models" else b"{}")

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = say(request["messages"][-1]["content"])
            part = "delta" if request["stream"] else "message"
            choice = {"index": 0, part: {"role": "assistant", "content": text}, "finish_reason": "stop"}
            kind = "chat.completion" + (".chunk" if request["stream"] else "")
            document = json.dumps({"id": "c", "object": kind, "created": 1, "model": "m", "choices": [choice]})
            if request["stream"]:
                self._answer("text/event-stream", f"data: {document}\n\ndata: [DONE]\n\n".encode())
            else:
                self._answer("application/json", document.encode())

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
