#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A Slurm of its own on the first two test hosts (hosts.sh up DIR must have run): munged, slurmctld on the first, slurmd on both.
#   slurm.sh up DIR       afterwards SLURM_CONF=DIR/slurm.conf salloc, srun, sbatch inside the first host
#   slurm.sh down DIR
set -eu
here=$(dirname "$(readlink -f "$0")")
command=$1
dir=$2
{ read -r a && read -r b; } <"$dir/names"
export SLURM_CONF=$dir/slurm.conf

on() { "$here/hosts.sh" on "$dir" "$@"; }

address_of() { awk -v name="$1" '$2 == name { print $1; exit }' "$dir/hosts"; }

running() { # PID: a zombie, which its parent may reap late, is none
	case $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) in '' | Z | X) return 1 ;; esac
}

stop() { # PID-FILE
	local pid i
	[ -s "$1" ] || return 0
	pid=$(cat "$1")
	kill -TERM "$pid" 2>/dev/null || true
	for i in $(seq 100); do
		running "$pid" || return 0
		sleep 0.05
	done
	echo "slurm.sh: $1 after $((i / 20)) s: killed" >&2
	kill -KILL "$pid" 2>/dev/null || true
}

# Two traps of Slurm 22.05: it loads a cgroup plugin whatever ProctrackType is, which finds nothing mounted inside a
# namespace (v1 does not mind while nothing uses it); and its pmix uses TmpFS, which the hosts must not share.
configure() {
	local node
	mkdir -p "$dir"/{munge,ctld,log} "$dir/spool-$a" "$dir/spool-$b" "$dir/tmp-$a" "$dir/tmp-$b"
	chmod 755 "$dir" "$dir/munge" "$dir/log"
	head -c 1024 /dev/urandom >"$dir/munge/key"
	chmod 400 "$dir/munge/key"
	echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf"
	cat >"$dir/slurm.conf" <<-END
		ClusterName=xb
		SlurmctldHost=$a($(address_of "$a"))
		SlurmUser=root
		SlurmdUser=root
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/sock
		CredType=cred/munge
		SlurmctldPort=16817
		SlurmdPort=16818
		StateSaveLocation=$dir/ctld
		SlurmdSpoolDir=$dir/spool-%n
		TmpFS=$dir/tmp-%n
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd-%n.pid
		SlurmctldLogFile=$dir/log/slurmctld.log
		SlurmdLogFile=$dir/log/slurmd-%n.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		JobCompType=jobcomp/none
		SwitchType=switch/none
		MpiDefault=none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		SlurmdParameters=config_overrides
		ReturnToService=2
		SlurmctldTimeout=30
		SlurmdTimeout=30
		InactiveLimit=0
		MinJobAge=30
		KillWait=3
		SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
	END
	for node in "$a" "$b"; do
		echo "NodeName=$node NodeAddr=$(address_of "$node") NodeHostname=$node CPUs=2 State=UNKNOWN" >>"$dir/slurm.conf"
	done
	echo "PartitionName=xb Nodes=$a,$b Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP" >>"$dir/slurm.conf"
}

up() {
	local i
	configure
	/usr/sbin/munged --key-file="$dir/munge/key" --socket="$dir/munge/sock" --pid-file="$dir/munge/pid" \
		--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=2
	on "$a" /usr/sbin/slurmctld -f "$dir/slurm.conf"
	on "$a" /usr/sbin/slurmd -f "$dir/slurm.conf" -N "$a"
	on "$b" /usr/sbin/slurmd -f "$dir/slurm.conf" -N "$b"
	for i in $(seq 600); do
		[ "$(on "$a" sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && return 0
		sleep 0.1
	done
	echo "slurm.sh: the nodes are not idle after $((i / 10)) s" >&2
	on "$a" sinfo -N -l >&2
	exit 1
}

down() {
	stop "$dir/slurmd-$b.pid"
	stop "$dir/slurmd-$a.pid"
	stop "$dir/slurmctld.pid"
	stop "$dir/munge/pid"
}

case $command in
up | down) "$command" ;;
*) echo "slurm.sh: up or down" >&2 && exit 2 ;;
esac
