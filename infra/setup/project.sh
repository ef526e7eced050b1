# The project's own parts: Node's dependencies, native programs, bundles. Each is stamped with the hash of its inputs, and a stamp
# counts only while what it stands for is really there.

NATIVE_FOLDERS="node-runtime/native node-runtime/launcher node-runtime/aether node-runtime/packer"
NATIVE_PROGRAMS="dsec-launcher dsec-aether dsec-pack"

install_dependencies() {
  local inputs
  inputs=$(hash_of package-lock.json <(node --version))
  is_stamped dependencies "$inputs" && [ -f node_modules/.package-lock.json ] && return 0
  if ! node infra/setup/dependencies-match.mjs; then
    [ "$CHECK_ONLY" = 1 ] && { missing 'node_modules is missing or stale: npm run setup installs it'; return 0; }
    step dependencies 'npm ci (compiles native modules where no ready-made build fits)' npm_ci
  fi
  [ "$CHECK_ONLY" = 1 ] || stamp dependencies "$inputs"
}

# Native modules are compiled where no ready-made build fits. node-gyp then wants Node's headers: those beside the installed Node serve.
npm_ci() {
  local beside
  beside=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
  if [ -z "${npm_config_nodedir:-}" ] && [ "$(npm config get nodedir)" = undefined ] && [ -f "$beside/include/node/node.h" ]; then
    export npm_config_nodedir=$beside
  fi
  npm ci --no-audit --no-fund
}

# build.sh knows what is up to date; the stamp only saves starting it.
build_native() {
  local inputs program complete=1
  inputs=$(hash_of $(find $NATIVE_FOLDERS -type f -name '*.[chs]*' | sort))
  for program in $NATIVE_PROGRAMS; do [ -x "build/native/$program" ] || complete=0; done
  [ $complete = 1 ] && is_stamped native "$inputs" && return 0
  [ "$CHECK_ONLY" = 1 ] && { missing 'native programs are not built: npm run setup builds them'; return 0; }
  step native 'building launcher and Aether' sh node-runtime/native/build.sh
  stamp native "$inputs"
}

# Always asked: it knows its own inputs and does nothing when they are unchanged.
bundle() {
  [ "$CHECK_ONLY" = 1 ] && return 0
  node infra/tools/bundle.mjs --if-stale || fail 'bundle: see the lines above'
}
