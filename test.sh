#!/usr/bin/env bash
# usage: ./test.sh: every check of the project, as CI runs it (2 cores, under 20 minutes once the
# downloads are there: 4 GB, kept in .venv-test, .venv-serve, .llama and ~/.cache/lfm2-fixed).
#
#   lint and types; the engine-free tests; the plugin through the serving layer of the oldest and the
#   newest vLLM; real servers.  Every vLLM and every Python: scripts/matrix.
set -euo pipefail
cd "$(dirname "$0")"
OLDEST=0.26.0
NEWEST=0.33.0

say() { printf '\n== %s\n' "$*"; }

# Downloads and unpacking wait for each other least when they run side by side.
serve_venv=${LFM2_FIXED_SERVE_VENV:-$PWD/.venv-serve}
tests/e2e/setup_venv.sh "$serve_venv" >&2 &
serving=$!
tests/llama/setup.sh "$PWD/.llama" >&2 &
llama=$!
python=$(scripts/test-venv)
wait $llama
wait $serving

say "lint and types"
"$python" -m ruff check .
"$python" -m mypy

say "engine-free tests"
"$python" -m pytest -q -n 2 --dist worksteal tests

for version in $OLDEST $NEWEST; do
    sources=$(PYTHON=$python scripts/vllm-sources "$version")
    say "the serving layer of vLLM $version"
    PYTHONPATH=$sources "$python" -m pytest -q -n 2 --dist worksteal tests/serving
done

say "real servers"
tests/e2e/run.sh -q
