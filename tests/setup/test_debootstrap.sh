#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A clean Debian 12 with nothing but git and this checkout: ./quickstart, again, and ./quickstart check; as root and as a user
# with sudo. The system is made by debootstrap from this machine's own package source and kept in ${XB_CACHE:-tests/cache}.
# xb-timeout: 2700
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XB_CACHE:-$top/tests/cache}
archives=$cache/archives # packages fetched by apt-get, kept for the next system
release=bookworm
base=$cache/$release.tar
failed=0

skip_all() {
	echo "skip - quickstart in a clean Debian: $*"
	exit 0
}

[ "$(id -u)" = 0 ] || skip_all 'needs root, for debootstrap and chroot'
command -v debootstrap >/dev/null || skip_all 'no debootstrap here'
unshare -mpf true 2>/dev/null || skip_all 'no right to make namespaces'
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
	awk -v release=$release '$2 == release { print $1; exit }')
[ -n "$mirror" ] || skip_all "the package sources of this machine have no $release"
mkdir -p "$archives/partial"
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 143' TERM

# result NAME STATUS LOG WHY: WHY is empty if all is well, and otherwise the log is shown.
result() {
	if [ -z "$4" ]; then
		echo "ok - $1"
	else
		tail -n 60 "$3" | sed 's/^/  | /'
		echo "not ok - $1: $4 (exit status $2)"
		failed=1
	fi
}

make_base() {
	local made=$work/base
	if ! debootstrap --variant=minbase --include=git $release "$made" "$mirror" >"$work/debootstrap.log" 2>&1; then
		grep -q 'Failed getting release file' "$work/debootstrap.log" && skip_all 'the package source cannot be reached'
		result 'debootstrap makes a clean Debian' 1 "$work/debootstrap.log" 'it failed'
		exit 1
	fi
	rm -f "$made"/var/cache/apt/archives/*.deb
	tar -C "$made" -cf "$base.tmp" . && mv "$base.tmp" "$base"
	rm -rf "$made"
}

# new_root ROOT FOLDER: a fresh system there, with the checkout as it stands in FOLDER, and apt-get's calls noted.
new_root() {
	mkdir "$1" && tar -C "$1" -xpf "$base"
	printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(hostname)" >"$1/etc/hosts" # as the installer of Debian does
	printf '#!/bin/sh\necho "$*" >>/var/log/apt-calls\nexec /usr/bin/apt-get "$@"\n' >"$1/usr/local/bin/apt-get"
	chmod +x "$1/usr/local/bin/apt-get"
	mkdir -p "$1$2"
	(cd "$top" && git -c safe.directory="$top" ls-files -z -co --exclude-standard | while IFS= read -rd '' file; do
		[ ! -e "$file" ] || printf '%s\0' "$file"
	done | tar --null -T - -c) | tar -xC "$1$2"
	[ -x "$1$2/quickstart" ] && ! ls "$1"/usr/bin/{gcc,make,python3} 2>/dev/null
}

# inside ROOT USER COMMAND…: runs it in the system, with namespaces that end every process with it; ROOT's apt-calls begin anew.
inside() {
	local root=$1 user=$2 home=/root
	shift 2
	[ "$user" = root ] || home=/home/$user
	install -m 666 /dev/null "$root/var/log/apt-calls"
	unshare -mpf --kill-child sh -ec '
		root=$1 archives=$2 user=$3 home=$4
		shift 4
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/dev/shm" && chmod 1777 "$root/dev/shm"
		mount --bind "$archives" "$root/var/cache/apt/archives"
		cd "$root" && pivot_root . mnt # chroot alone would not do for ip netns and nsenter
		exec chroot . sh -c "umount -l /mnt && exec \"\$@\"" sh runuser -u "$user" -- env -i HOME="$home" USER="$user" \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
		inside "$root" "$archives" "$user" "$home" "$@" </dev/null
}

# with_packages COMMAND…: runs it, and again after a minute if it failed because packages could not be fetched. It writes $log.
with_packages() {
	local status
	"$@" && return 0
	status=$?
	grep -qE 'Failed to fetch|Temporary failure resolving' "$log" || return $status
	sleep 60
	"$@"
}

said() { grep -qE -- "$1" "$2" || echo "it did not say '$1'"; } # PATTERN LOG

# The report on stdout, and run.json with four transports measured. 3 is "measured but not valid": a noisy machine, not a fault.
reported() { # STATUS LOG FOLDER
	[ "$1" = 0 ] || [ "$1" = 3 ] || echo "it failed"
	said 'mpi:tcp' "$2"
	python3 - "$3/run.json" <<-'PYTHON'
		import json, sys
		document = json.load(open(sys.argv[1]))
		wanted = ["tcp", "ofi:tcp", "ucx:tcp", "mpi:tcp"]
		status = {t["label"]: t["status"] for t in document["transports"]}
		if [label for label in wanted if status.get(label) != "ok"]:
		    print("status in run.json:", status)
		sizes = {label: len({r["size"] for r in document["results"] if r["label"] == label}) for label in wanted}
		if set(sizes.values()) != {23}:
		    print("sizes in run.json, 23 wanted of each:", sizes)
	PYTHON
}

no_apt_calls() { [ ! -s "$1/var/log/apt-calls" ] || echo "apt-get was called: $(head -n 3 "$1/var/log/apt-calls")"; }

[ -s "$base" ] || make_base
as_root=$work/as-root
if new_root "$as_root" /root/xportbench; then
	echo 'ok - a clean Debian 12 has the checkout and neither compiler nor make'
else
	echo 'not ok - a clean Debian 12 has the checkout and neither compiler nor make'
	exit 1
fi

log=$work/log
run_quickstart() { inside "$as_root" root timeout "$1" sh -c 'cd /root/xportbench && exec "$@"' sh "${@:2}" >"$log" 2>&1; }

mkdir -p "$work/no-archives/partial"
archives=$work/no-archives inside "$as_root" root timeout 120 unshare -n sh -c 'cd /root/xportbench && ./quickstart' >"$log" 2>&1
status=$?
result 'without a network it says so' $status "$log" "$([ $status = 1 ] || echo 'not refused'; said 'quickstart: .*no network' "$log")"

chmod 755 "$as_root/root"
inside "$as_root" nobody timeout 60 sh -c 'cd /root/xportbench && ./quickstart' >"$log" 2>&1
status=$?
result 'an ordinary user without sudo is told what root has to install' $status "$log" \
	"$([ $status = 1 ] || echo 'not refused'; said 'needs root.*apt-get install gcc' "$log"; no_apt_calls "$as_root")"

with_packages run_quickstart 900 ./quickstart
status=$?
result 'quickstart installs, builds, prints the report and keeps run.json' $status "$log" \
	"$(reported $status "$log" "$as_root/root/xportbench")"

rm -f "$as_root/root/xportbench/run.json"
run_quickstart 600 ./quickstart
status=$?
result 'a second quickstart installs nothing' $status "$log" \
	"$(no_apt_calls "$as_root"; reported $status "$log" "$as_root/root/xportbench")"

# The whole check runs outside; here it must find its packages, build, and run what is quick and needs them. A package that is
# missing would be a skip.
quick='lint,unit/*,contract/*'
for program in bad_input.py faults.py formats.py install.sh psm2.sh schema.py tcp_paths.sh trace.py ucx.sh; do
	quick+=,integration/test_$program
done
quick+=,netns/test_mpirun_hosts.py
with_packages run_quickstart 1500 env XB_CHECK_SKIP_SETUP=1 XB_CHECK_FAST=1 XB_CHECK_SKIPS=.ci/skips XB_CHECK_ONLY="$quick" ./quickstart check
status=$?
result 'quickstart check installs what the tests need and passes' $status "$log" \
	"$([ $status = 0 ] || echo 'it failed'; tail -n 1 "$log" | grep -qE '^[0-9]+ passed, 0 failed, [0-9]+ skipped$' || echo 'no such closing line')"
rm -rf --one-file-system "$as_root"

as_user=$work/as-user
new_root "$as_user" /home/user/xportbench >/dev/null
as_ordinary_user() {
	inside "$as_user" root sh -ec 'apt-get -q update && apt-get -qy install --no-install-recommends sudo
		id user >/dev/null 2>&1 || useradd -s /bin/bash user
		chown -R user:user /home/user
		echo "user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/user' &&
		inside "$as_user" user timeout 900 sh -c 'cd ~/xportbench && ./quickstart'
} >"$log" 2>&1
with_packages as_ordinary_user
status=$?
result 'an ordinary user installs through sudo and measures without it' $status "$log" \
	"$(reported $status "$log" "$as_user/home/user/xportbench"
	[ -s "$as_user/var/log/apt-calls" ] || echo 'apt-get was not called'
	find "$as_user/home/user" -user root | sed 's/^/owned by root: /' | head -n 3)"
exit $failed
