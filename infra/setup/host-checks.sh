# What the machine must bring itself: nothing here is installed by set-up. Every line names the thing and the next step.

# Lowers are idmapped under overlay and EROFS: Linux 5.19. Older kernels cannot run a sandbox at all.
MIN_KERNEL=5.19
MIN_NODE=20.19

check_host() {
  check_user
  check_distribution
  check_node
  check_compiler
  check_kernel
}

check_user() {
  [ "$(id -u)" = 0 ] || missing 'not root: run it as root, the platform mounts file systems and makes cgroups and namespaces'
}

check_distribution() {
  have apt-get && have dpkg && return 0
  missing "not a Debian system (no apt-get): install yourself $(packages_for_people), and nats-server >= $MIN_NATS on PATH"
}

check_node() {
  if ! have node; then
    missing "Node.js is not on PATH: install Node >= $MIN_NODE with npm"
    return 0
  fi
  local version
  version=$(node --version 2>/dev/null || true)
  version=${version#v}
  at_least "${version:-0}" $MIN_NODE || missing "Node ${version:-that does not start} is too old: install Node >= $MIN_NODE"
  have npm || missing 'npm is not on PATH: install the npm that belongs to Node'
}

check_compiler() {
  if ! have gcc; then
    missing 'no gcc: apt-get install gcc libc6-dev make'
    return 0
  fi
  have make || missing 'no make: apt-get install make'
  echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1 || missing 'gcc finds no C headers: apt-get install libc6-dev'
}

check_kernel() {
  local release
  release=$(uname -r)
  at_least "${release%%[-+]*}" $MIN_KERNEL || missing "kernel $release is too old: boot Linux >= $MIN_KERNEL (idmapped layers under overlay)"
  kernel_has_filesystem erofs || missing 'kernel without EROFS: boot one with CONFIG_EROFS_FS (Debian: modprobe erofs)'
  kernel_has_filesystem overlay || missing 'kernel without overlay: boot one with CONFIG_OVERLAY_FS (Debian: modprobe overlay)'
  [ -e /proc/self/ns/user ] && [ "$(cat /proc/sys/user/max_user_namespaces 2>/dev/null || echo 1)" != 0 ] ||
    missing 'no user namespaces: boot a kernel with CONFIG_USER_NS and set user.max_user_namespaces above 0'
  [ -e /proc/self/ns/net ] || missing 'no network namespaces: boot a kernel with CONFIG_NET_NS'
  grep -qE ' cgroup2? ' /proc/self/mounts || missing 'no cgroup tree is mounted: mount cgroup2 on /sys/fs/cgroup'
}

# A file system may be built in or come as a module that nobody has loaded yet.
kernel_has_filesystem() {
  grep -qw "$1" /proc/filesystems && return 0
  modprobe "$1" 2>/dev/null && grep -qw "$1" /proc/filesystems
}
