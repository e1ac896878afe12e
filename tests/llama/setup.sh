#!/bin/bash
# usage: tests/llama/setup.sh [DIR]    (default: $LFM2_FIXED_LLAMA, or .llama in the checkout)
# Puts two versions of llama.cpp's server there, out of the xllamacpp wheels, and makes the tiny model
# that repeats what a prompt scripts.  100 MB a version; the wheels run on any x86-64 or arm64 processor.
# 2026.7.10068 (llama.cpp b10068) has the "Invalid diff" bug; 2026.10.11549 (b11549) is a newer one.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
dir="${1:-${LFM2_FIXED_LLAMA:-$here/../../.llama}}"
mkdir -p "$dir"
[ -x "$dir/venv/bin/python" ] || python3 -m venv "$dir/venv"
python="$dir/venv/bin/python"
"$python" -c "import gguf, numpy" 2>/dev/null || "$python" -m pip install --no-compile --quiet --disable-pip-version-check gguf numpy
for version in 2026.7.10068 2026.10.11549; do
    # The wheel's metadata is written last: an install that was interrupted is done again.
    [ -e "$dir/$version/xllamacpp-$version.dist-info/RECORD" ] ||
        "$python" -m pip install --no-compile --quiet --disable-pip-version-check --no-deps --upgrade --target "$dir/$version" \
            "xllamacpp==$version"
done
"$python" "$here/build_model.py" "$dir"
