#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# First process of the guest once its root is there: runs /guest/command, leaves its status in /guest/status, ends the machine.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /run/netns
hostname guest
ip link set lo up
ulimit -l unlimited
ulimit -n 65536
ulimit -c 0
# the kernel itself calls /sbin/modprobe, for `rdma link add`
[ -e /sbin/modprobe ] || ln -s /guest/busybox /sbin/modprobe
out=/dev/console
for _ in 1 2 3 4 5 6 7 8 9 10; do
	for port in /dev/vport*p1; do [ -c "$port" ] && out=$port && break 2; done
	sleep 0.1
done
touch /guest/started
cd "$(cat /guest/folder)" 2>/dev/null || cd /
setsid -w bash /guest/command >"$out" 2>&1 </dev/null
status=$?
dmesg >/guest/dmesg 2>&1
echo "$status" >/guest/status.tmp && mv /guest/status.tmp /guest/status
sync
# isa-debug-exit: QEMU ends with 2 * value + 1; 0x10 says "in order, see the status"
printf '\020' | dd of=/dev/port bs=1 seek=244 2>/dev/null
busybox poweroff -f
