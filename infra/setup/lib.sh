# What every set-up step shares: progress lines, one-line failures, version comparison. Sourced by setup.sh.
# Needs: ROOT (the project's folder), QUIET (0 or 1), CHECK_ONLY (0 or 1).

MISSING=0

# One line per step that did something: name, what it did, seconds it took.
say() {
  [ "$QUIET" = 1 ] || printf 'setup  %-12s %s\n' "$1" "$2" >&2
}

# A thing that is missing and what to do about it. Set-up lists all of them before it gives up.
missing() {
  printf 'setup  missing      %s\n' "$1" >&2
  MISSING=$((MISSING + 1))
}

stop_if_missing() {
  [ "$MISSING" = 0 ] && return 0
  printf 'setup  stopped: %s above must be mended first.\n' "$([ "$MISSING" = 1 ] && echo 'the line' || echo "the $MISSING lines")" >&2
  exit 1
}

fail() {
  printf 'setup  failed       %s\n' "$1" >&2
  exit 1
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# at_least 2.15.1 2.14 → true. Compares dotted numbers.
at_least() {
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# step NAME WHAT COMMAND…: runs the command with its output in a log, prints one line when it is done.
step() {
  local name=$1 what=$2 started log
  shift 2
  log=$CACHE/log/$name.log
  started=$(date +%s%N)
  say "$name" "$what …"
  if ! "$@" >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    fail "$name: $what. The whole output is in ${log#"$ROOT"/}"
  fi
  say "$name" "done in $(seconds_since "$started") s"
}

seconds_since() {
  local spent_ms=$((($(date +%s%N) - $1) / 1000000))
  printf '%d.%d' $((spent_ms / 1000)) $((spent_ms % 1000 / 100))
}

# Hash of files' names and contents, for stamps.
hash_of() {
  sha256sum -- "$@" 2>/dev/null | sha256sum | cut -c 1-32
}

# is_stamped NAME HASH: the step was last finished with the same inputs.
is_stamped() {
  [ -f "$CACHE/stamps/$1" ] && [ "$(cat "$CACHE/stamps/$1")" = "$2" ]
}

stamp() {
  printf '%s\n' "$2" >"$CACHE/stamps/$1"
}
