#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kernel.sh: prints the folder of the guest's kernel (boot/vmlinux, boot/initrd, lib/modules), fetched and unpacked on first use.
#
# It is Debian's package linux-image-amd64, unpacked into ${XB_CACHE:-tests/cache}/guest and never installed: its rdma_rxe, veth and
# netem modules are what the tests are after. The image is unpacked to its ELF form, which an emulated machine starts twice as fast.
# Exit status: 0, or 77 if the kernel cannot be had here (reason on stderr), or 1.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XB_CACHE:-$here/../cache}/guest
mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || exit 1

absent() {
	echo "kernel.sh: $1" >&2
	exit 77
}

# Newest one that is complete; without a network the cached one goes on serving.
complete() { find "$cache" -mindepth 2 -maxdepth 2 -name complete -printf '%T@ %h\n' 2>/dev/null | sort -rn | sed -n '1s/^[^ ]* //p'; }

fetch() {
	local package folder
	package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
	[ -n "$package" ] || absent "apt knows no linux-image-amd64: apt-get update, on Debian"
	folder=$cache/$package
	rm -rf "$folder.new"
	mkdir -p "$folder.new"
	(cd "$folder.new" && timeout 600 apt-get -qq download "$package" 2>download.log) ||
		absent "$package cannot be downloaded: $(tail -n 1 "$folder.new/download.log")"
	dpkg -x "$folder.new/$package"_*.deb "$folder.new" || exit 1
	rm -f "$folder.new/$package"_*.deb
	/usr/bin/python3 "$here/extract_vmlinux.py" "$folder.new"/boot/vmlinuz-* "$folder.new/boot/vmlinux" || exit 1
	touch "$folder.new/complete"
	rm -rf "$folder"
	mv "$folder.new" "$folder"
	echo "$folder"
}

exec 8>"$cache/lock"
flock -w 900 8 || exit 1
for need in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static dpkg:dpkg; do
	command -v "${need%:*}" >/dev/null || absent "${need%:*} is not installed (package ${need#*:})"
done
folder=$(complete)
[ -n "$folder" ] || folder=$(fetch) || exit $?
initrd=$folder/boot/initrd
if [ ! "$initrd" -nt "$here/init" ] || [ ! "$initrd" -nt "$here/make_initrd.sh" ]; then
	bash "$here/make_initrd.sh" "$folder" "$initrd.tmp" && mv "$initrd.tmp" "$initrd" || exit 1
fi
echo "$folder"
