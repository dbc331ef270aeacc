#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make_initrd.sh KERNEL_FOLDER OUT: an initramfs of busybox and the modules that reach the host's files over 9p.
set -e
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1 out=$2
version=$(ls "$kernel/lib/modules")
modules=$kernel/lib/modules/$version
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
[ -e "$modules/modules.dep" ] || busybox depmod -b "$kernel" "$version"
mkdir -p "$root"/{bin,mod,proc,sys,dev}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
declare -A seen

# NAME: the module behind what it depends on
add() {
	local name=$1 line file dependency
	if ! line=$(grep -m 1 -E "/$name\.ko(\.xz|\.zst|\.gz)?:" "$modules/modules.dep"); then
		grep -q "/$name\.ko" "$modules/modules.builtin" || echo "make_initrd.sh: no module $name" >&2
		return 0
	fi
	file=${line%%:*}
	[ -z "${seen[$file]}" ] || return 0
	seen[$file]=1
	for dependency in ${line#*:}; do
		dependency=${dependency##*/}
		add "${dependency%%.ko*}"
	done
	case $file in
	*.xz) xz -dc "$modules/$file" >"$root/mod/$name.ko" ;;
	*.zst) zstd -qdc "$modules/$file" >"$root/mod/$name.ko" ;;
	*) cp "$modules/$file" "$root/mod/$name.ko" ;;
	esac
	echo "$name" >>"$root/modules.load"
}
for module in virtio_pci 9pnet_virtio 9p overlay virtio_console virtio-rng; do add "$module"; done
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) | gzip -1 >"$out"
