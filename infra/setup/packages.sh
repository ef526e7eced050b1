# Debian packages: found by the program they bring, installed only when that is missing, so an offline machine that has them all is fine.

# program:package. Without these nothing runs.
REQUIRED="mmdebstrap:mmdebstrap mkfs.erofs:erofs-utils setpriv:util-linux flock:util-linux ip:iproute2"
# Static busybox: the small root of kernel tests. crun: reference of the benchmarks. mkfs.xfs: a file system
# that shares blocks, for kernel tests. musl-gcc: a third of the memory per Aether.
OPTIONAL="busybox:busybox-static crun:crun mkfs.xfs:xfsprogs musl-gcc:musl-tools"

packages_for_people() {
  packages_of "$REQUIRED" everything | paste -sd ' '
}

# packages_of LIST missing|everything
packages_of() {
  local entry
  for entry in $1; do
    [ "$2" = missing ] && have "${entry%%:*}" || printf '%s\n' "${entry#*:}"
  done | sort -u
}

install_packages() {
  local required optional
  required=$(packages_of "$REQUIRED" missing | paste -sd ' ')
  optional=$(packages_of "$OPTIONAL" missing | paste -sd ' ')
  # What could not be had once is not asked for again at every start.
  is_stamped optional-packages "$OPTIONAL" && optional=
  if [ "$CHECK_ONLY" = 1 ]; then
    [ -z "$required" ] || missing "packages $required: npm run setup installs them"
    [ -z "$optional" ] || say packages "would also install $optional"
    return 0
  fi
  [ -z "$required$optional" ] && return 0
  # shellcheck disable=SC2086
  if [ -n "$required" ]; then step packages "installing $required" apt_install $required; fi
  if [ -n "$optional" ]; then install_optional $optional; fi
}

install_optional() {
  local started
  started=$(date +%s%N)
  say packages "installing $* …"
  if apt_install "$@" >"$CACHE/log/optional-packages.log" 2>&1; then
    say packages "done in $(seconds_since "$started") s"
  else
    say packages "without $*: some kernel tests or benchmarks will say so (see .cache/log/optional-packages.log)"
  fi
  stamp optional-packages "$OPTIONAL"
}

# The lists may be old or absent: refreshed only when the first try does not find what it needs.
apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y --no-install-recommends "$@" </dev/null && return 0
  apt-get update && apt-get install -y --no-install-recommends "$@" </dev/null
}
