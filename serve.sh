#!/bin/bash
# Serve a model with vLLM and the fixed tool parsers; without a model, a tiny scripted one on the CPU.
set -u
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
PLUGIN="$HERE/lfm2_fixed/parser.py"

usage() {
  cat <<'END'
usage: ./serve.sh MODEL [flags…]         serve a model, e.g. ./serve.sh LiquidAI/LFM2.5-2.6B --port 8080
       ./serve.sh [options] [-- flags…]  serve a tiny scripted model on the CPU
       ./serve.sh --demo [options]       stock parser and fixed parser in two real servers, side by side
       ./serve.sh --help

MODEL  a name on the Hub or a directory. Needs vLLM 0.26.0 or newer: the `vllm` command on the PATH (or VLLM=/path/to/vllm),
       e.g. in vLLM's container, or after `pip install vllm` in an active venv. The --tool-call-parser is chosen by the
       directory's config.json, or by the name: llama4_pythonic_fixed for Llama 4, pythonic_fixed for Llama 3.2 and ToolACE,
       olmo3_fixed for OLMo 3; all others get lfm2_fixed and --reasoning-parser lfm2_fixed, which is right for models that
       reason and for those that do not. --reasoning-parser NAME chooses another (OLMo 3 Think: olmo3), --no-reasoning none.
flags  are handed to vLLM and come last, so they win. (With --tool-parser-plugin of your own: vLLM 0.30 and newer die with
       a TypeError where the path begins with ./ or ../; write lfm2_fixed/parser.py or an absolute path.)

Without a MODEL nothing but Linux and Python 3.11 to 3.14 with venv is needed, no GPU: vLLM's CPU build is installed into
.venv-serve, once, and serves a model of two tiny layers that says back what the last user message says, so you can send
it any model output and see what a client gets. Where a request constrains the calls (tool_choice "required", a named
function, strict tools), what the constraint forbids is left out of it, or said otherwise.
  --port N        default: 8000 (with --demo: a free one)
  --parser NAME   lfm2_fixed (default), llama4_pythonic_fixed, pythonic_fixed, olmo3_fixed, or lfm2: vLLM's own parser, with
                  your own payload
  --log FILE      the server's log
  --brief         of the demo, only the table and the sums
The demo sends the payloads of `lfm2-fixed repro` through vLLM's own parser and this one, streamed and whole, prints the
table and stops. Exit status 0: this one is right everywhere; 1: it is not; anything else: it could not run.

What is installed takes 2 GB of disk where pip finds PyTorch's CPU build (200 MB), and 5.7 GB, 3 GB of them downloads, where
it finds PyPI's alone, which is the CUDA build on x86 Linux and works on a CPU, too. To have the CPU build, let pip see PyTorch's
CPU index (PIP_EXTRA_INDEX_URL; see "Get started" on PyTorch's site) or a local wheel (PIP_FIND_LINKS). It takes 2 minutes on an
idle machine of two cores, besides the downloads; a server starts in 20 s there.
  LFM2_FIXED_SERVE_VENV   where it is (default: .venv-serve beside this script)
  PYTHON                  the interpreter it is made with
  LFM2_FIXED_TORCH        the PyTorch to install (default: torch==2.13.0)
END
}

say() { echo "[serve] $*"; }
die() { echo "[serve] error: $*" >&2; exit 2; }

no_model() {
  command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU &&
    say "there is a GPU here: ./serve.sh LiquidAI/LFM2.5-2.6B serves a real model. Without a model:"
  say "no model was named: serving the tiny scripted one on the CPU (--help says more)"
}

tiny() { # script of serve/, its arguments…
  local script="$1" argument kind=serve venv="${LFM2_FIXED_SERVE_VENV:-$HERE/.venv-serve}"
  shift
  [ "$script" = demo.py ] && kind=demo
  for argument in "$@"; do
    case "$argument" in --) break ;; -h | --help) usage; exit 0 ;; esac
  done
  # What is wrong is said before anything is installed. (Without a Python, setup_venv.sh says what is missing.)
  if command -v python3 >/dev/null; then python3 "$HERE/serve/serve_options.py" "$kind" "$@" || exit 2; fi
  [ "$kind" = demo ] || no_model
  "$HERE/serve/setup_venv.sh" "$venv" || exit 2
  # Exec: signals reach the script, which stops the server it started.
  LFM2_FIXED_SERVE_VENV="$venv" PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 \
    exec "$venv/bin/python" "$HERE/serve/$script" "$@"
}

parser_for() { # MODEL: by its configuration if it is a directory, else by its name
  local about="${1,,}"
  [ -f "$1/config.json" ] && about="$(tr -d '[:space:]' <"$1/config.json" | tr '[:upper:]' '[:lower:]')"
  case "$about" in
    *lfm2*) echo lfm2_fixed ;; # first: a fine-tuned one may be named after somebody else's data
    *llama-4* | *llama4*) echo llama4_pythonic_fixed ;;
    *olmo-3* | *olmo3*) echo olmo3_fixed ;;
    *llama-3.2* | *llama3.2* | *toolace*) echo pythonic_fixed ;;
    # A configuration does not tell the versions of Llama 3 apart; its models' tokenizers have no markers of LFM2's.
    *'"model_type":"llama"'* | *'"model_type":"mllama"'*) echo pythonic_fixed ;;
    *) echo lfm2_fixed ;;
  esac
}

serve() {
  local model="$1" vllm version python parser flags=() reasoning=auto argument
  shift
  vllm="$(command -v "${VLLM:-vllm}")" || die "there is no \`vllm\` command here: activate the venv that has it, run this in vLLM's container, or \`pip install vllm\` (0.26.0 or newer)"
  python="$(dirname "$(readlink -f "$vllm")")/python3"
  [ -x "$python" ] || python=python3
  version="$("$python" -c 'import importlib.metadata as m; print(m.version("vllm"))' 2>/dev/null)"
  if [ -n "$version" ] && [ "$(printf '%s\n' 0.26.0 "${version%%+*}" | sort -V | head -n 1)" != 0.26.0 ]; then
    die "vLLM $version is too old: the parsers need 0.26.0 or newer (pip install -U vllm)"
  fi
  [ -f "$PLUGIN" ] || die "$PLUGIN is missing: run this script from a complete checkout"

  for argument in "$@"; do
    case "$argument" in
      --no-reasoning) reasoning=no ;;
      --reasoning-parser | --reasoning-parser=*) reasoning=given; flags+=("$argument") ;;
      *) flags+=("$argument") ;;
    esac
  done
  parser="$(parser_for "$model")"
  set -- --enable-auto-tool-choice --tool-parser-plugin "$PLUGIN" --tool-call-parser "$parser"
  if [ "$reasoning" = auto ] && [ "$parser" = lfm2_fixed ]; then
    reasoning=ours
    set -- "$@" --reasoning-parser lfm2_fixed
  fi
  # The engine's process loads no tool parser's plugin, but asks the reasoning parser where a grammar begins to hold.
  case "$reasoning" in ours | given) set -- "$@" --reasoning-parser-plugin "$PLUGIN" ;; esac
  say "vLLM ${version:-(unknown version)}: vllm serve $model $* ${flags[*]-}"
  exec "$vllm" serve "$model" "$@" ${flags[@]+"${flags[@]}"}
}

case "${1:-}" in
  -h | --help) usage ;;
  --demo)
    shift
    tiny demo.py "$@"
    ;;
  "" | -*) tiny rig.py "$@" ;;
  *) serve "$@" ;;
esac
