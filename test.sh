#!/usr/bin/env bash
# usage: ./test.sh [--quick] [--help]: every check of the project, as CI runs it.  See scripts/checks.py.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || {
    echo "test.sh needs Python 3.10 or newer, and $python is $("$python" -V 2>&1 || true): set PYTHON=/path/to/python3" >&2
    exit 2
}
exec "$python" scripts/checks.py "$@"
