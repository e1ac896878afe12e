# To be sourced: a command that takes long, with a sign of life for whoever waits, and that a stop takes with it.
#
# Before: LOG (a file), PLACE (the directory that grows), TAG (in front of each line).  Messages go to standard error,
# so that a script's output can be used by another.

CHILD=""

say() { echo "[$TAG] $*" >&2; }
die() { echo "[$TAG] error: $*" >&2; exit 1; }
stop() { [ -n "$CHILD" ] && kill -- "-$CHILD" 2>/dev/null; echo >&2; die "stopped; run it again to continue"; }
trap stop INT TERM

size() { du -sm "$PLACE" 2>/dev/null | cut -f 1; }

attempt() { # "what it does" command…: quiet, with a line every 20 seconds
  local what="$1" begin=$SECONDS status=0
  shift
  say "$what …"
  set -m  # a process group of its own, so that it can be stopped with its children
  "$@" >"$LOG" 2>&1 &
  CHILD=$!
  set +m
  while kill -0 "$CHILD" 2>/dev/null; do
    for _ in $(seq 200); do
      kill -0 "$CHILD" 2>/dev/null || break
      sleep 0.1
    done
    kill -0 "$CHILD" 2>/dev/null && say "  still at it ($((SECONDS - begin)) s, $PLACE has $(size) MB)"
  done
  wait "$CHILD" || status=$?
  CHILD=""
  [ "$status" -ne 0 ] || say "  done ($((SECONDS - begin)) s)"
  return "$status"
}

run() { # the same; the log's end and no more after a failure
  attempt "$@" && return
  grep -v '^WARNING: Location' "$LOG" 2>/dev/null | tail -n 15 | sed "s/^/[$TAG]   /" >&2 || true
  # pip's own words for it are that the package has no such version.
  grep -q '(from versions: none)' "$LOG" 2>/dev/null && say "pip reached no index that has it: is there a network, and does pip's configuration name an index?"
  die "$1 failed (full log: $LOG)"
}
