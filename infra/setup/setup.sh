#!/usr/bin/env bash
# Makes a fresh Debian 12 or 13 machine with Node, gcc and root ready to run the platform. Repeatable, quick when nothing is to do.
#
#   setup.sh           does what is missing, one line per step
#   setup.sh --quiet   the same, silent unless something fails
#   setup.sh --check   changes nothing; lists what is missing and exits 1 when something is
#
# Does not touch the system beyond `apt-get install`: everything else lies in .cache, node_modules and build.
set -euo pipefail

QUIET=0
CHECK_ONLY=0
for argument in "$@"; do
  case $argument in
    --quiet) QUIET=1 ;;
    --check) CHECK_ONLY=1 ;;
    *) echo "setup: unknown argument $argument; use --quiet or --check" >&2; exit 2 ;;
  esac
done

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=$ROOT/.cache
cd "$ROOT"
for part in lib host-checks packages nats-server project; do . "$ROOT/infra/setup/$part.sh"; done

begun=$(date +%s%N)
check_host
stop_if_missing

if [ "$CHECK_ONLY" = 0 ]; then
  mkdir -p "$CACHE/log" "$CACHE/stamps" "$CACHE/bin"
  # Two set-ups at once (a test beside a demo) would unpack over each other.
  exec 9>"$CACHE/setup.lock"
  flock -n 9 || { say waiting 'another set-up is running'; flock 9; }
fi

install_packages
provide_nats_server
install_dependencies
build_native
bundle
stop_if_missing
say ready "in $(seconds_since "$begun") s"
