#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Test hosts: network namespaces with a host name, /dev/shm, IPC and /etc/hosts of their own on a common bridge or joined
# by veth pairs; and an sshd in each, with keys made for the test. Names and addresses are unique to the folder.
#   hosts.sh up DIR NET HOST...     NET: 10.88.NET.0/24 and fd00:88:NET::/64; interface sx0 in every host
#   hosts.sh link DIR NET IF        one more network for the first two hosts: interface IF, 10.89.NET.0/24
#   hosts.sh sshd DIR HOST...       ssh -F DIR/ssh/config HOST works afterwards
#   hosts.sh on DIR HOST COMMAND... inside a host
#   hosts.sh down DIR               ends and removes everything
# Inside, HOST resolves to its address; HOST6 to the IPv6 one. The file system is shared, but for /dev/shm and /etc/hosts.
# Nothing is sent outside: every sender runs in a host.
set -eu
here=$(dirname "$(readlink -f "$0")")

die() {
	echo "hosts.sh: $*" >&2
	exit 1
}

wait_for() { # WHAT COMMAND...
	local what=$1 i
	shift
	for i in $(seq 200); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	die "$what: not within $((i / 20)) s"
}

pid_of() { cat "$1/$2.pid" 2>/dev/null; }
# each host's namespace is called by the folder's tag and the host
ns_of() { echo "$(cat "$1/tag")-$2"; }

on() { # DIR HOST COMMAND...
	local dir=$1 host=$2
	shift 2
	exec nsenter -t "$(pid_of "$dir" "$host")" -n -u -i -m --wd="$PWD" -- "$@"
}

holder() { # the process that keeps a host's namespaces; its end is the end of the host
	local dir=$1 host=$2
	setsid ip netns exec "$(ns_of "$dir" "$host")" unshare --uts --mount --ipc --propagation private sh -c '
		hostname "$2"
		mount -t tmpfs -o size=2g tmpfs /dev/shm
		mount --bind "$1/hosts" /etc/hosts
		echo $$ >"$1/$2.pid.new"
		mv "$1/$2.pid.new" "$1/$2.pid"
		exec sleep infinity' sh "$dir" "$host" </dev/null >/dev/null 2>&1 &
}

up() { # DIR NET HOST...
	local dir=$1 net=$2 i=0 host ns bridge
	shift 2
	mkdir -p "$dir"
	chmod 755 "$dir"
	echo "xt$$" >"$dir/tag"
	printf '%s\n' "$@" >"$dir/names"
	bridge=$(ns_of "$dir" net)
	ip netns add "$bridge"
	ip -n "$bridge" link add br0 type bridge forward_delay 0
	ip -n "$bridge" link set br0 up
	printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' >"$dir/hosts"
	for host; do
		i=$((i + 1))
		ns=$(ns_of "$dir" "$host")
		ip netns add "$ns"
		ip link add sx0 netns "$ns" type veth peer name "p$i" netns "$bridge"
		ip netns exec "$ns" sysctl -qw net.ipv6.conf.sx0.accept_dad=0 net.ipv6.conf.sx0.accept_ra=0 || true
		ip -n "$ns" link set lo up
		ip -n "$ns" addr add "10.88.$net.$i/24" dev sx0
		ip -n "$ns" addr add "fd00:88:$net::$i/64" dev sx0 nodad
		ip -n "$bridge" link set "p$i" master br0
		ip -n "$bridge" link set "p$i" up
		ip -n "$ns" link set sx0 up
		printf '10.88.%s.%s %s\nfd00:88:%s::%s %s6\n' "$net" "$i" "$host" "$net" "$i" "$host" >>"$dir/hosts"
	done
	for host; do holder "$dir" "$host"; done
	for host; do wait_for "host $host" test -s "$dir/$host.pid"; done
	# the first neighbour solicitation after link-up is often lost: wait for it here, not in a test
	for host; do
		wait_for "$host over IPv4" "$here/hosts.sh" on "$dir" "$1" ping -q -c1 -W1 "$host"
		wait_for "$host over IPv6" "$here/hosts.sh" on "$dir" "$1" ping -6 -q -c1 -W1 "${host}6"
	done
}

link() { # DIR NET IF
	local dir=$1 net=$2 name=$3 a b host
	{ read -r a && read -r b; } <"$dir/names"
	ip link add "$name" netns "$(ns_of "$dir" "$a")" type veth peer name "$name" netns "$(ns_of "$dir" "$b")"
	ip -n "$(ns_of "$dir" "$a")" addr add "10.89.$net.1/24" dev "$name"
	ip -n "$(ns_of "$dir" "$b")" addr add "10.89.$net.2/24" dev "$name"
	ip -n "$(ns_of "$dir" "$a")" link set "$name" up
	ip -n "$(ns_of "$dir" "$b")" link set "$name" up
	wait_for "$name" "$here/hosts.sh" on "$dir" "$a" ping -q -c1 -W1 "10.89.$net.2"
	# the kernel tells of a carrier up to a second after packets go through
	for host in "$a" "$b"; do wait_for "the carrier of $name" running "$(ns_of "$dir" "$host")" "$name"; done
}
running() { ip -n "$1" -o link show "$2" | grep -q ' state UP '; }

start_sshd() { # DIR HOST...
	local dir=$1 ssh=$1/ssh host
	shift
	mkdir -p "$ssh/home" /run/sshd
	chmod 700 "$ssh"
	# compiled into sshd; a package makes it only where systemd runs. Left there: others may use it meanwhile.
	chmod 755 /run/sshd
	[ -s "$ssh/id" ] || ssh-keygen -q -t ed25519 -N '' -C xportbench-test -f "$ssh/id"
	[ -s "$ssh/hostkey" ] || ssh-keygen -q -t ed25519 -N '' -C xportbench-test -f "$ssh/hostkey"
	cp "$ssh/id.pub" "$ssh/authorized_keys"
	# a home of their own: this user's shell start-up files are not what is tested, and may take a second of CPU time
	cat >"$ssh/sshd_config" <<-END
		Port 2222
		AddressFamily any
		HostKey $ssh/hostkey
		PidFile none
		AuthorizedKeysFile $ssh/authorized_keys
		StrictModes no
		PermitRootLogin prohibit-password
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		UsePAM no
		UseDNS no
		PrintMotd no
		PrintLastLog no
		MaxStartups 200
		MaxSessions 200
		Banner ${XB_SSH_BANNER:-none}
		SetEnv HOME=$ssh/home
	END
	echo "xb $(cut -d' ' -f1,2 "$ssh/hostkey.pub")" >"$ssh/known_hosts"
	cat >"$ssh/config" <<-END
		Host *
			HostKeyAlias xb
			Port 2222
			User root
			IdentityFile $ssh/id
			IdentitiesOnly yes
			IdentityAgent none
			UserKnownHostsFile $ssh/known_hosts
			GlobalKnownHostsFile /dev/null
			StrictHostKeyChecking yes
			BatchMode yes
			ConnectTimeout 5
			LogLevel ERROR
	END
	chmod 600 "$ssh/config" "$ssh/hostkey" "$ssh/id"
	for host; do
		setsid "$here/hosts.sh" on "$dir" "$host" /usr/sbin/sshd -D -e -f "$ssh/sshd_config" \
			</dev/null >/dev/null 2>"$ssh/$host.log" &
		echo $! >"$dir/sshd-$host.pid"
	done
	for host; do wait_for "sshd on $host" grep -q 'Server listening on ::' "$ssh/$host.log"; done
}

down() { # DIR: what runs in a host's network namespace goes with it
	local dir=$1 host ns pid
	[ -e "$dir/tag" ] || return 0
	while read -r host; do
		ns=$(ns_of "$dir" "$host")
		for pid in $(ip netns pids "$ns" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || true; done
		rm -f "$dir/$host.pid" "$dir/sshd-$host.pid"
		ip netns del "$ns" 2>/dev/null || true
	done <"$dir/names"
	ip netns del "$(ns_of "$dir" net)" 2>/dev/null || true
}

command=$1
shift
case $command in
up | link | down | on) "$command" "$@" ;;
sshd) start_sshd "$@" ;;
*) die "up, link, sshd, on or down" ;;
esac
