# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# To be sourced in a guest. two_devices: soft-RoCE devices rxe0 (10.8.0.1) and rxe1 (10.8.0.2) on the ends v0 and v1 of a veth pair. What
# one sends to the other crosses the pair, since soft-RoCE routes by its own interface; TCP between the addresses does not.
two_devices() {
	local interface i pair
	modprobe rdma_rxe && modprobe rdma_ucm && ip link add v0 type veth peer name v1 || return 1
	for interface in all v0 v1; do
		for pair in accept_local:1 rp_filter:0 arp_ignore:1 arp_announce:2; do
			echo "${pair#*:}" >"/proc/sys/net/ipv4/conf/$interface/${pair%:*}"
		done
	done
	for i in 0 1; do
		ip link set "v$i" mtu 4200 up && ip address add "10.8.0.$((i + 1))/24" dev "v$i" || return 1
	done
	for i in 0 1; do rdma link add "rxe$i" type rxe netdev "v$i" || return 1; done
	two_devices_ready
}
# the addresses take a moment to appear as GIDs
two_devices_ready() {
	for _ in $(seq 100); do
		[ "$(rdma link | grep -c 'state ACTIVE')" = 2 ] && grep -q 0a08:0001 /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null &&
			grep -q 0a08:0002 /sys/class/infiniband/rxe1/ports/1/gids/* 2>/dev/null && return 0
		sleep 0.1
	done
	rdma link
	return 1
}
# DEVICE COUNTER
rdma_counter() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"; }
