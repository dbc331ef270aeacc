#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A machine without any fabric library: the core builds, says what it left out, and works.
# xb-sanitize: no
# xb-timeout: 600
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

expect() { # NAME COMMAND…
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1 </dev/null; then
		echo "ok - $name"
	else
		tail -n 40 "$work/log" | sed 's/^/  | /'
		echo "not ok - $name"
		failed=1
	fi
}

here() { (cd "$work/tree" && env -u MAKEFLAGS -u BUILD "$@"); }

mkdir "$work/tree"
tar -c --exclude='*.o' Makefile core transports | tar -x -C "$work/tree"
# Variables on make's command line hide the libraries that this machine may have.
if ! here make -j"$(nproc)" CFLAGS=-O1 ofi_OK= ucx_OK= mpi_OK= verbs_OK= >"$work/build" 2>&1; then
	sed 's/^/  | /' "$work/build"
	echo 'not ok - the core builds without a fabric library'
	exit 1
fi
echo 'ok - the core builds without a fabric library'

expect 'make says which backends it left out' grep -E 'left out.*: ofi ucx mpi' "$work/build"
expect 'no plugin of theirs is there' sh -c "! ls '$work'/tree/build/plugins/libxb-ofi* '$work'/tree/build/plugins/libxb-mpi*"
expect 'neither the program nor a plugin needs a fabric library' \
	sh -c "! ldd '$work'/tree/build/xportbench '$work'/tree/build/plugins/*.so | grep -E 'libfabric|libuc[pst]|libmpi|libibverbs'"
here ./xportbench list >"$work/list" 2>&1
expect 'list succeeds' here ./xportbench list
for backend in ofi ucx mpi; do
	expect "list says that $backend was not built, and why" sh -c "sed -n '/^$backend\$/,/^[a-z]/p' '$work/list' | grep 'not built.*headers'"
done
expect 'tcp and null are measured' here timeout 100 ./xportbench -t null,tcp -s 8 -n 10 --launches 1:1 -q

here timeout 100 ./xportbench -t tcp,ofi:tcp -s 8 -n 10 --launches 1:1 -q >"$work/out" 2>"$work/err"
status=$?
expect 'asked for one that was not built, it says so' grep -E 'ofi' "$work/err"
expect 'and exits with a status that tells it' test $status -eq 2 -o $status -eq 4

expect 'a missing core library is named, and make stops' \
	sh -c "cd '$work/tree' && ! make CORE_MISSING=sodium.h >'$work/said' 2>&1 && grep 'not found: sodium.h' '$work/said'"
expect 'make help and make clean need no library' here make CORE_MISSING=sodium.h help clean
expect 'make help lists every target' \
	sh -c "cd '$work/tree' && for t in all unit check lint install uninstall clean dist-clean help; do make help | grep -q \"^  \$t \" || exit 1; done"
exit $failed
