# nats-server: an adequate one on PATH wins; else Debian's unstable package, unpacked into the project's cache.
# Nothing of the system changes: apt runs with its own sources, lists and cache, and checks the signature with Debian's keyring.

# Fast ingest (allow_batched) came with 2.14.
MIN_NATS=2.14

provide_nats_server() {
  nats_is_adequate "$(command -v nats-server || true)" && return 0
  nats_is_adequate "$CACHE/bin/nats-server" && return 0
  if [ "$CHECK_ONLY" = 1 ]; then
    missing "nats-server >= $MIN_NATS: npm run setup unpacks one into .cache/bin"
    return 0
  fi
  step nats-server "fetching >= $MIN_NATS from Debian unstable into .cache" fetch_nats_server
  nats_is_adequate "$CACHE/bin/nats-server" || fail "nats-server: what Debian unstable has is older than $MIN_NATS; put a newer one on PATH"
}

nats_is_adequate() {
  [ -n "$1" ] && [ -x "$1" ] || return 1
  local version
  version=$("$1" --version 2>/dev/null | sed -n 's/.*v\([0-9][0-9.]*\).*/\1/p')
  [ -n "$version" ] && at_least "$version" $MIN_NATS
}

fetch_nats_server() {
  local keyring base program work=$CACHE/apt
  keyring=$(ls /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp 2>/dev/null | head -n 1)
  [ -n "$keyring" ] || { echo 'no Debian keyring in /usr/share/keyrings: apt-get install debian-archive-keyring'; return 1; }
  base=$(debian_base_uri)
  [ -n "$base" ] || { apt-get update && base=$(debian_base_uri); }
  [ -n "$base" ] || { echo 'apt has no source for the Debian archive, component main'; return 1; }

  rm -rf "$work"
  mkdir -p "$work/sources" "$work/lists/partial" "$work/archives/partial" "$work/download"
  printf 'Types: deb\nURIs: %s\nSuites: unstable\nComponents: main\nSigned-By: %s\n' "$base" "$keyring" >"$work/sources/unstable.sources"
  private_apt update || return 1
  (cd "$work/download" && private_apt download nats-server) || return 1
  dpkg-deb -x "$work"/download/nats-server_*.deb "$work/root" || return 1
  mkdir -p "$CACHE/bin"
  # A running server keeps its file: the new one takes the name in one step.
  program=$(find "$work/root/usr" -name nats-server -type f -perm -u+x | head -n 1)
  [ -n "$program" ] || { echo "the package holds no program named nats-server"; return 1; }
  cp "$program" "$CACHE/bin/.nats-server.$$" && mv "$CACHE/bin/.nats-server.$$" "$CACHE/bin/nats-server" || return 1
  rm -rf "$work"
}

# Where this host gets Debian's main archive from: a mirror, a proxy or the archive itself. Never written down here.
debian_base_uri() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
    awk '$3 == "main" && $4 == "Debian" && $2 !~ /-/ { print $1; exit }'
}

private_apt() {
  apt-get -q \
    -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$CACHE/apt/sources" \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State::lists="$CACHE/apt/lists" -o Dir::Cache="$CACHE/apt" -o Dir::Cache::archives="$CACHE/apt/archives" \
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    -o Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled=false -o Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled=false \
    -o Acquire::IndexTargets::deb::CNF::DefaultEnabled=false -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
    -o APT::Get::List-Cleanup=false -o APT::Sandbox::User=root -o Debug::NoLocking=true "$@"
}
