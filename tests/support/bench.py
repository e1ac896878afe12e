"""``lfm2-fixed check`` on files in a directory of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from lfm2_fixed.cli.check import check
from tests.support.answers import TOOLS, sse

REQUEST = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "x"}], "tools": TOOLS}


class Bench:
    """The files, and the command run on them.  ``request.json`` holds the request that the tools are read from."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked(REQUEST)

    def asked(self, request: Any) -> str:
        """Let this be the request; the path of its file."""
        return self.file("request.json", request)

    def file(self, name: str, content: Any) -> str:
        """A file of these bytes, or of this document as JSON; its path."""
        path = self.directory / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    def run(self, *arguments: str, tools: str = "request.json", stdin: bytes = b"") -> Result:
        """The command with these arguments; anything but an exit status is a fault of the command's."""
        result = CliRunner().invoke(check, [*arguments, "--tools", str(self.directory / tools)], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def capture(self, content: bytes | list[Any], *arguments: str) -> Result:
        """The command on a captured stream, given as its bytes or as its events."""
        if not isinstance(content, bytes):
            content = sse(content, names=bool(content) and isinstance(content[0], dict) and "choices" not in content[0])
        return self.run(self.file("capture.sse", content), *arguments)

    def said(self, content: bytes | list[Any], *arguments: str) -> dict[str, Any]:
        """What the command says of a captured stream, as JSON."""
        document: dict[str, Any] = json.loads(self.capture(content, *arguments, "--json").stdout)
        return document
