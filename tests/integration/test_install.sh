#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make install and uninstall: below a staging folder and below a real prefix, with spaces in the path.
# xb-sanitize: no
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${XB_BUILD:-$PWD/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect NAME COMMAND…: a case that passes if the command does.
expect() {
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1 </dev/null; then
		echo "ok - $name"
	else
		sed 's/^/  | /' "$work/log"
		echo "not ok - $name"
		failed=1
	fi
}

make_it() { env -u MAKEFLAGS make -s BUILD="$build" "$@"; }

installed_files() { (cd "$1" && find . -type f | sort); }

# What is expected below a prefix that installs this build.
expected_files() {
	local file
	{
		printf './%s\n' bin/xportbench share/man/man1/xportbench.1 share/doc/xportbench/{LICENSE,README.md}
		for file in "$build"/plugins/*.so; do echo "./lib/xportbench/${file##*/}"; done
		for file in docs/*.md; do echo "./share/doc/xportbench/${file##*/}"; done
		for file in share/profiles/*.ini; do echo "./share/xportbench/profiles/${file##*/}"; done
		for file in share/references/*; do echo "./share/xportbench/references/${file##*/}"; done
		for file in docs/schema/*.json; do echo "./share/xportbench/${file##*/}"; done
	} | sort
}

same_files() { diff <(expected_files) <(installed_files "$1"); }

# Runs the installed program where the build tree cannot be seen, if this user may hide it.
away_from_the_build() {
	if unshare -m true 2>/dev/null; then
		unshare -m sh -c 'mount -t tmpfs none "$0" && cd / && exec "$@"' "$build" "$@"
	else
		(cd / && "$@")
	fi
}

lists_the_plugins() {
	local name listed
	listed=$(away_from_the_build "$1" list) || return
	for name in "$build"/plugins/libxb-*.so; do
		name=${name##*/libxb-}
		[ "$name" = fault.so ] || grep "^${name%.so} " <<<"$listed" || { echo "not listed: $name" && return 1; }
	done
}

measures() { away_from_the_build timeout 100 "$1" -t null,null,label=again,fault.delay=1us -s 8 -n 10 --launches 1:1 -q; }

staging="$work/a staging folder"
expect 'install below DESTDIR' make_it install DESTDIR="$staging" PREFIX=/opt/xb
expect 'the staging folder has the files it should have, below PREFIX only' same_files "$staging/opt/xb"
expect 'nothing is staged elsewhere' test "$(cd "$staging" && echo ./*/*)" = ./opt/xb
expect 'the staged program finds its plugins' lists_the_plugins "$staging/opt/xb/bin/xportbench"

prefix="$work/a prefix"
expect 'install below PREFIX' make_it install PREFIX="$prefix"
expect 'the installed program lists every transport' lists_the_plugins "$prefix/bin/xportbench"
expect 'the installed program measures, with the fault plugin too' measures "$prefix/bin/xportbench"
expect 'the program may be executed and nothing may be written by others' \
	test -z "$(find "$prefix" -perm /022 -o -path '*/bin/*' ! -perm 755)"
expect 'the man page has content' sh -c 'grep -q "^\.Sh OPTIONS\|^\.SH OPTIONS\|^\.Sh DESCRIPTION" "$0"' "$prefix/share/man/man1/xportbench.1"
expect 'the schema is installed' sh -c 'ls "$0"/share/xportbench/*.json' "$prefix"

touch "$prefix/lib/xportbench/somebody-elses.so" "$prefix/bin/other"
expect 'uninstall below PREFIX' make_it uninstall PREFIX="$prefix"
expect 'uninstall removes exactly what was installed' \
	test "$(installed_files "$prefix" | xargs)" = './bin/other ./lib/xportbench/somebody-elses.so'
expect 'uninstall below DESTDIR' make_it uninstall DESTDIR="$staging" PREFIX=/opt/xb
expect 'uninstall leaves no file and no folder of its own' \
	test -z "$(find "$staging" -type f -o -name xportbench)"
exit $failed
