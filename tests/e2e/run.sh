#!/bin/bash
# Run the end-to-end tests: real vLLM servers on the CPU, with a tiny model that says what each test scripts.
# usage: tests/e2e/run.sh [pytest arguments…]; the venv: see serve/setup_venv.sh
set -eu
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
V="${LFM2_FIXED_SERVE_VENV:-$ROOT/.venv-serve}"
"$ROOT/serve/setup_venv.sh" "$V"
cd "$ROOT"
# Without the conftest of the other tests, whose requirements this venv has not.
LFM2_FIXED_SERVE_VENV="$V" exec "$V/bin/python" -m pytest --confcutdir="$HERE" "$HERE" "$@"
