#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# boot.sh COMMAND: runs a shell command as root in a throw-away machine (QEMU, software emulation, about 6 s to start) with Debian's kernel.
#
# The guest sees the host's / as a snapshot (its writes go to memory and vanish), and reads and writes $GUEST_SHARE as /guest.
# Do not change files that it uses while it runs: copy them into the share first. Needs no root and no /dev/kvm.
#   GUEST_CPUS (4: two that poll and two for the kernel)  GUEST_MEMORY MB (1024)  GUEST_TIMEOUT s (300)
#   GUEST_SHARE folder, kept (default: a temporary one)  GUEST_QEMU further arguments  GUEST_VERBOSE=1
# Exit status: the command's; 124 the time is up; 125 the machine ended without a status (panic, power-off, QEMU's own error);
# 77 there is no QEMU or no kernel here. For 124 and 125 the reason and the console's end are on stderr.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$("$here/kernel.sh") || exit $?
limit=${GUEST_TIMEOUT:-300}
share=${GUEST_SHARE:-}
if [ -z "$share" ]; then
	share=$(mktemp -d "${TMPDIR:-/tmp}/xb-guest.XXXXXX") || exit 125
	trap 'rm -rf "$share"' EXIT
fi
rm -f "$share"/{status,started,dmesg,console}
cp "$here/stage2.sh" "$(command -v busybox)" "$share/" || exit 125
printf '%s\n' "$1" >"$share/command"
pwd >"$share/folder"
append="console=ttyS0,115200 quiet panic=-1 oops=panic nokaslr mitigations=off init_on_alloc=0 no_timer_check tsc=reliable nowatchdog \
rcupdate.rcu_cpu_stall_timeout=300 net.ifnames=0 random.trust_cpu=on apparmor=0 audit=0 numa_balancing=disable"
machine=(-M q35 -accel "tcg,thread=multi" -cpu max -smp "${GUEST_CPUS:-4}" -m "${GUEST_MEMORY:-1024}"
	-nodefaults -no-user-config -display none -no-reboot
	-kernel "$kernel/boot/vmlinux" -initrd "$kernel/boot/initrd" -append "$append"
	-serial "file:$share/console" -device "isa-debug-exit,iobase=0xf4,iosize=0x01"
	-fsdev "local,id=f0,path=/,security_model=none,readonly=on,multidevs=remap"
	-device "virtio-9p-pci,fsdev=f0,mount_tag=hostroot"
	-fsdev "local,id=f1,path=$share,security_model=none,multidevs=remap" -device "virtio-9p-pci,fsdev=f1,mount_tag=share"
	-fsdev "local,id=f2,path=$kernel/lib/modules,security_model=none,readonly=on,multidevs=remap"
	-device "virtio-9p-pci,fsdev=f2,mount_tag=modules"
	# our output by descriptor: a stdio port whose input has ended would count as closed, and block the guest's first write
	-device virtio-serial-pci -add-fd "fd=9,set=1" -chardev "file,id=out,path=/dev/fdset/1,append=on"
	-device "virtserialport,chardev=out,name=out" -device virtio-rng-pci)
# shellcheck disable=SC2206 # further arguments are words
machine+=(${GUEST_QEMU:-})

exec 9> >(cat)
writer=$!
SECONDS=0
# timeout makes a process group of its own: it is what has to be ended
timeout -k 5 "$limit" qemu-system-x86_64 "${machine[@]}" </dev/null 2>"$share/qemu.log" &
guest=$!
trap 'kill "$guest" 2>/dev/null; wait "$guest"; [ -n "${GUEST_SHARE:-}" ] || rm -rf "$share"; exit 125' TERM INT HUP
wait "$guest"
ended=$?
trap - TERM INT HUP
exec 9>&-
wait "$writer"

why=
if [ "$ended" = 124 ] || [ "$ended" = 137 ]; then
	status=124 why="ended after $limit s, its limit"
elif [ "$ended" = 33 ] && [ -s "$share/status" ]; then
	status=$(cat "$share/status")
else
	status=125 why="ended without a status (QEMU exit status $ended)"
fi
grep -hE 'Oops|BUG:|WARNING:|Call Trace|Kernel panic' "$share/console" "$share/dmesg" 2>/dev/null | sort -u | head -n 5 |
	sed 's/^/boot.sh: kernel: /' >&2
[ -z "$why" ] || {
	echo "boot.sh: the guest $why"
	tail -n 30 "$share/console"
	cat "$share/qemu.log"
} >&2
[ -z "${GUEST_VERBOSE:-}" ] || echo "boot.sh: $SECONDS s, status $status" >&2
exit "$status"
