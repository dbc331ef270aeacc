#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What quickstart decides, with every tool that it calls replaced by a stand-in: nothing is installed, built or measured.
# test_debootstrap.sh does it for real.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

result() { # NAME WHY; WHY is empty if all is well
	if [ -z "$2" ]; then
		echo "ok - $1"
	else
		sed 's/^/  | /' "$work/output" "$work/calls"
		echo "not ok - $1: $2"
		failed=1
	fi
}

# A fresh checkout and a machine that has only the tools of a minimal system; the stand-ins note their calls.
fresh() {
	local tool
	rm -rf "${work:?}"/{tree,bin} && mkdir -p "$work/tree/tests" "$work/bin"
	cp "$top/quickstart" "$work/tree"
	rm -f "$work/installed" && touch "$work/installed" "$work/calls"
	for tool in bash cat cp dirname env grep mkdir mktemp nproc rm sed touch tr; do ln -s "$(command -v $tool)" "$work/bin"; done
	stand_in id 'echo "${FAKE_UID-0}"'
	stand_in apt-get 'case $* in
		*update*) exit "${FAKE_UPDATE-0}" ;;
		*install*) [ "${FAKE_INSTALL-0}" = 0 ] || exit "$FAKE_INSTALL"
			for word; do case $word in -*|*=*|install) ;; *) echo "$word=installed" >>"$work/installed" ;; esac; done ;;
		esac' apt-get
	stand_in dpkg-query 'for package; do if grep -qx "$package=installed" "$work/installed"; then printf "$package=installed "; fi; done'
	stand_in make 'echo "${FAKE_MAKE_SAYS-}"; [ "${FAKE_MAKE-0}" = 0 ] || exit "$FAKE_MAKE"
		mkdir -p build/plugins; for backend in ${FAKE_BACKENDS-ofi ucx mpi}; do touch build/plugins/libxb-$backend.so; done
		cp "$work/bin/compare" xportbench; cp "$work/bin/compare" tests/run' make
	stand_in compare 'echo "the report" >&3; exit "${FAKE_STATUS-0}"' "\${0##*/}"
}

stand_in() { # NAME SCRIPT [NOTED-AS]
	printf '#!/bin/bash\nwork=%q\nexec 3>&1\n%s\n%s\n' "$work" "${3:+echo \"$3 \$*\" >>\"\$work/calls\"}" "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# quickstart [ARGUMENT]: runs it there; afterwards $status, $work/output and $work/calls tell what happened.
quickstart() {
	: >"$work/calls"
	(cd / && PATH=$work/bin exec "$work/tree/quickstart" "$@") >"$work/output" 2>&1 </dev/null
	status=$?
}

said() { grep -qE -- "$1" "$work/output" || echo "did not say '$1'"; }
called() { grep -qE -- "$1" "$work/calls" || echo "did not call '$1'"; }
not_called() { ! grep -qE -- "$1" "$work/calls" || echo "called '$1'"; }
exited() { [ "$status" = "$1" ] || echo "exit status $status, not $1"; }

fresh
quickstart
result 'a first run installs without asking, builds and compares the transports' "$(exited 0
	called '^apt-get .*update'
	called '^apt-get .*install -y --no-install-recommends gcc .*libopenmpi-dev'
	not_called 'cmocka'
	called '^make -j'
	called '^xportbench -t tcp,ofi:tcp,ucx:tcp,mpi:tcp -s 1:4M -o run.json'
	said '^the report')"

quickstart
result 'a second run does not call apt-get' "$(exited 0; not_called '^apt-get'; called '^xportbench')"

sed -i '/libucx-dev/d' "$work/installed"
quickstart
result 'only what is missing is installed' "$(exited 0; called 'no-install-recommends libucx-dev$')"

quickstart check
result 'check installs what the tests need and runs them' "$(exited 0; called 'install .*libcmocka-dev'; called '^run '; not_called '^xportbench')"

FAKE_STATUS=3 quickstart
result 'the exit status of the comparison is passed on' "$(exited 3)"

fresh
FAKE_UPDATE=100 quickstart
result 'a package list that could not be fetched does not matter when the packages install' "$(exited 0; called '^xportbench')"

fresh
FAKE_UPDATE=100 FAKE_INSTALL=100 quickstart
result 'no network: it says so and what is missing' "$(exited 1; said 'no network'; said 'libsodium-dev'; not_called '^make')"

fresh
FAKE_INSTALL=100 quickstart
result 'a failed installation names the packages' "$(exited 1; said 'could not install.*libsodium-dev'; not_called '^make')"

fresh
FAKE_UID=1000 quickstart
result 'neither root nor sudo: it says what root has to install' "$(exited 1; said 'needs root.*apt-get install gcc'; not_called '^apt-get')"

fresh
stand_in sudo 'exec "$@"' sudo
FAKE_UID=1000 quickstart
result 'an ordinary user installs through sudo' "$(exited 0; called '^sudo env DEBIAN_FRONTEND=noninteractive apt-get'; called '^xportbench')"

fresh
FAKE_MAKE=2 FAKE_MAKE_SAYS='error: no such thing' quickstart
result 'a failed build is shown' "$(exited 1; said 'no such thing'; said 'build failed'; not_called '^xportbench')"

fresh
FAKE_MAKE_SAYS='left out (headers not found): mpi' quickstart
result 'a backend left out is mentioned' "$(said 'left out .*mpi')"

quickstart bogus
result 'an unknown argument is refused with the usage' "$(exited 2; said 'quickstart check')"

# Not Debian: no apt-get, no dpkg-query; pkg-config knows the modules in FAKE_MODULES.
not_debian() {
	fresh
	rm "$work/bin/apt-get" "$work/bin/dpkg-query"
	stand_in cc 'exit 1'
	stand_in pkg-config 'case " $FAKE_MODULES " in *" ${!#} "*) ;; *) exit 1 ;; esac'
}

not_debian
FAKE_BACKENDS='ofi ucx' FAKE_MODULES='jansson libsodium hwloc inih libfabric ucx' quickstart
result 'not Debian: it goes on with the libraries that are there, and names the others' "$(exited 0
	said 'found .*libsodium'
	said 'left out .*MPI'
	called '^xportbench -t tcp,ofi:tcp,ucx:tcp -s')"

FAKE_MODULES='jansson hwloc inih' quickstart
result 'not Debian: it stops and names a library that it cannot do without' "$(exited 1; said 'MISSING .*libsodium'; said 'install these.*libsodium'; not_called '^make')"

FAKE_MODULES='jansson libsodium hwloc inih' quickstart check
result 'not Debian: check looks for what the tests need too' "$(exited 1; said 'MISSING .*cmocka')"

# Another release: /etc/os-release is replaced in a mount namespace of its own.
release() { # TEXT ARGUMENT…
	printf '%s\n' "$1" >"$work/os-release"
	: >"$work/calls"
	work=$work unshare -m sh -c 'mount --bind "$work/os-release" /etc/os-release && PATH=$work/bin exec "$work/tree/quickstart"' \
		>"$work/output" 2>&1 </dev/null
	status=$?
}

if unshare -m mount --bind /etc/os-release /etc/os-release 2>/dev/null; then
	fresh
	release $'ID=debian\nVERSION_ID="11"\nPRETTY_NAME="Debian GNU/Linux 11 (bullseye)"'
	result 'a Debian that is too old is named and refused' "$(exited 1; said 'Debian GNU/Linux 11 .*too old'; not_called '^apt-get')"
	release $'ID=debian\nVERSION_ID="13"\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"'
	result 'a newer Debian is noted and tried' "$(exited 0; said 'note: .*13'; called '^xportbench')"
	fresh
	release $'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"'
	result 'a relative of Debian is noted and tried' "$(exited 0; said 'note: Ubuntu'; called '^apt-get')"
else
	echo 'skip - another Debian release: needs the right to mount'
fi
exit $failed
