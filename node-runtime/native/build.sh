#!/bin/sh
# Builds the native programs. Needs only a C compiler.
#
#   build.sh         static dsec-launcher, dsec-aether and dsec-pack into build/native, skipping what is up to date
#   build.sh test    C unit tests of them and of the shared helpers, with address and undefined-behaviour sanitizers
#
# CC names the compiler (default gcc). Aether is linked against musl when musl-gcc is there: a third of glibc's memory per sandbox.
set -eu

runtime=$(cd "$(dirname "$0")/.." && pwd)
out=$(dirname "$runtime")/build/native
cc=${CC:-gcc}
flags="-std=c17 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -iquote $runtime/native"
mkdir -p "$out/test"

command -v "$cc" >/dev/null || { echo "build.sh: no C compiler '$cc'; install gcc or set CC" >&2; exit 1; }

# up_to_date TARGET FILE…: no file is newer than the target. The script itself counts as a source.
up_to_date() {
	target=$1; shift
	[ -e "$target" ] || return 1
	[ -z "$(find "$@" "$runtime/native/build.sh" -newer "$target")" ]
}

# link NAME COMPILER DIR: every .c of DIR and of native/ into one static program. Written aside, then renamed: a running copy keeps its file.
link() {
	target=$out/$1 compiler=$2 dir=$3
	up_to_date "$target" "$dir"/*.[ch] "$runtime"/native/*.[ch] && return 0
	# musl-gcc hides the system's include path; the kernel's own headers are all that is wanted from there
	kernel_headers="-idirafter /usr/include -idirafter /usr/include/$($cc -dumpmachine)"
	case $compiler in musl-gcc) ;; *) kernel_headers= ;; esac
	# shellcheck disable=SC2086
	"$compiler" $flags $kernel_headers -static -o "$target.$$" "$dir"/*.c "$runtime"/native/*.c
	mv "$target.$$" "$target"
	echo "built $target"
}

# run_test FILE: a test is one .c beside the sources it tests, linked with them (their main.c excepted).
run_test() {
	test_file=$1 dir=$(dirname "$(dirname "$1")")
	name=$(basename "$dir")-$(basename "$1" .c)
	sources=$(find "$dir" "$runtime/native" -maxdepth 1 -name '*.c' ! -name main.c | sort -u)
	# shellcheck disable=SC2086
	if ! up_to_date "$out/test/$name" "$test_file" $sources "$dir"/*.h "$runtime"/native/*.h "$runtime"/native/test/*.h; then
		"$cc" $flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -iquote "$runtime/native/test" -iquote "$dir" \
			-o "$out/test/$name.$$" "$test_file" $sources
		mv "$out/test/$name.$$" "$out/test/$name"
	fi
	"$out/test/$name"
}

case ${1:-build} in
build)
	link dsec-launcher "$cc" "$runtime/launcher"
	link dsec-pack "$cc" "$runtime/packer"
	link dsec-aether "$(command -v musl-gcc >/dev/null && echo musl-gcc || echo "$cc")" "$runtime/aether"
	;;
test)
	for file in "$runtime"/native/test/*.c "$runtime"/launcher/test/*.c "$runtime"/aether/test/*.c "$runtime"/packer/test/*.c; do
		run_test "$file"
	done
	;;
*)
	echo "usage: build.sh [build|test]" >&2
	exit 2
	;;
esac
