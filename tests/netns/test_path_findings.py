#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 240
"""Two links between two hosts, one of them slow: bytes that take another way than the one asked for are found and named."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts, needs  # noqa: E402
from xbtest import TOP, XB, Skip, case, comparison, environment, findings, finish, have_plugin, load, main, results, transport  # noqa: E402

SHORT = ("-s", "64K", "-n", 30, "-x", 5, "--launches", 2, "--time", 40, "--bind", "0,1")
TWO = ("-H", "nodeA,nodeB")
hosts = None


def codes(document, severity):
    return {f["code"] for f in findings(document) if f["severity"] == severity}


@case("each link by its name: the counters of that device carry it, and the slow one is the slow one")
def _():
    run = hosts.measure("-t", "tcp:sx0,tcp:slow0", *TWO, *SHORT)
    for device in ("sx0", "slow0"):
        t = transport(run.document, f"tcp:{device}")
        assert t["device"] == device and f"{device} carried" in t["carried"]["text"], t
    c = comparison(run.document, "tcp:sx0", "tcp:slow0", size=65536)
    assert c["overhead_us"]["median"] > 0, c
    assert not codes(run.document, "invalid"), findings(run.document)


@case("MPI over another link than the one it names: wrong-device, exit status 3")
def _():
    if not have_plugin("mpi"):
        raise Skip("mpi is not built")
    a, b = f"10.89.{hosts.net}.1", f"10.89.{hosts.net}.2"
    for host, other, gateway in (("nodeA", b, f"10.88.{hosts.net}.2"), ("nodeB", a, f"10.88.{hosts.net}.1")):
        hosts.on(host, "ip", "route", "replace", f"{other}/32", "via", gateway, "dev", "sx0")
    try:
        run = hosts.measure("-t", f"mpi:tcp/10.89.{hosts.net}.0/24", *TWO, *SHORT, status=3)
    finally:
        for host, other in (("nodeA", b), ("nodeB", a)):
            hosts.on(host, "ip", "route", "del", f"{other}/32")
    found = findings(run.document, "wrong-device")
    assert found and found[0]["severity"] == "invalid" and "sx0" in found[0]["text"] and "slow0" in found[0]["text"], findings(run.document)


@case("MPI over UCX that takes the slow link instead: wrong-path, exit status 3")
def _():
    if not have_plugin("mpi"):
        raise Skip("mpi is not built")
    run = hosts.measure("-t", "mpi:ucx/tcp/sx0,env.UCX_NET_DEVICES=slow0", *TWO, *SHORT, status=3)
    found = findings(run.document, "wrong-path")
    assert found and "slow0" in found[0]["text"], findings(run.document)


@case("UCX by shared memory between hosts that share a machine: shared-memory, exit status 3; over tcp it is none")
def _():
    if not have_plugin("ucx"):
        raise Skip("ucx is not built")
    # only the network is of its own here: host name, IPC and /dev/shm are shared
    wrapper = f"{hosts.folder}/netns-only"
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nfor last; do :; done\nexec ip netns exec {hosts.namespace("nodeB")} sh -c "$last"\n')
    os.chmod(wrapper, 0o755)
    where = ("-H", f"10.88.{hosts.net}.1,10.88.{hosts.net}.2", "--ssh-command", wrapper)
    for path, status in (("ucx", 3), ("ucx:tcp/sx0", 0)):
        output = f"{hosts.folder}/shared.json"
        process = subprocess.Popen(["ip", "netns", "exec", hosts.namespace("nodeA"), XB, "-t", path, *where, *map(str, SHORT), "-o", output],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TOP,
                                   env=environment(), start_new_session=True)
        run = finish(process, 60)
        assert run.status == status, (path, run, [f for f in findings(load(output)) if f["severity"] == "invalid"])
        assert bool(findings(load(output), "shared-memory")) == (status == 3), findings(load(output))


@case("two names of one host: same-host, exit status 3")
def _():
    run = hosts.measure("-t", "tcp", "-H", f"nodeA,10.88.{hosts.net}.1", *SHORT, status=3)
    found = findings(run.document, "same-host")
    assert found and found[0]["severity"] == "invalid" and "nodeA" in found[0]["text"], findings(run.document)


@case("more bytes per second than the link can carry: exceeds-link-rate, exit status 3")
def _():
    run = hosts.measure("-t", "tcp:sx0", "-b", "bw", *TWO, *SHORT, "--link-rate", "50M", status=3)
    found = findings(run.document, "exceeds-link-rate")
    assert found and "sx0" in found[0]["text"], findings(run.document)
    run = hosts.measure("-t", "tcp:sx0", "-b", "bw", *TWO, *SHORT, "--link-rate", "100T")
    assert not findings(run.document, "exceeds-link-rate")


@case("other traffic on the machine does not make a path look wrong")
def _():
    flood = subprocess.Popen([*hosts.inside("nodeB"), "python3", "-c", "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
                              f"while True: s.sendto(bytes(1400),('10.88.{hosts.net}.1',9))"], stdin=subprocess.DEVNULL)
    try:
        run = hosts.measure("-t", "tcp:slow0", *TWO, *SHORT)
    finally:
        flood.kill()
        flood.wait()
    assert not codes(run.document, "invalid"), findings(run.document)


@case("ends that differ: the MTU of the devices")
def _():
    hosts.on("nodeB", "ip", "link", "set", "slow0", "mtu", 1400)
    try:
        run = hosts.measure("-t", "tcp:slow0", *TWO, *SHORT)
    finally:
        hosts.on("nodeB", "ip", "link", "set", "slow0", "mtu", 1500)
    found = findings(run.document, "mtu-differs")
    assert found and "1400" in found[0]["text"] and "1500" in found[0]["text"], findings(run.document)
    assert results(run.document)


# What a host says of itself, in its own mount namespace: another CPU, a governor, and an adapter at NUMA node 1. The rest of /proc and /sys is real.
DISGUISE = r"""
set -e
mkdir -p "$1" && cd "$1"
sed "s/^model name.*/model name : $2/" /proc/cpuinfo >cpuinfo
mount --bind cpuinfo /proc/cpuinfo
for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
	copy=cpus/${cpu##*/}
	mkdir -p "$copy/cpufreq"
	cp -r "$cpu/." "$copy/" 2>/dev/null || true
	echo "$3" >"$copy/cpufreq/scaling_governor"
	mount --bind "$copy" "$cpu"
done
device=$(readlink -f /sys/class/net/sx0)
mkdir -p counters sx0/device
cp -r "$device/." sx0/ 2>/dev/null || true
echo "$4" >sx0/device/numa_node
echo 400000 >sx0/speed # taken for true of an interface with a device behind it; a veth pair claims 10 Gb/s
mount --bind "$device/statistics" counters
mount --bind sx0 "$device"
mount --bind counters "$device/statistics"
"""


@case("ends that differ: kernel, CPU, frequency governor, library version; and a device at another NUMA node at one end")
def _():
    for host, cpu, governor, node in (("nodeA", "Ours at 3 GHz", "performance", 0), ("nodeB", "Theirs at 2 GHz", "powersave", 1)):
        hosts.on(host, "sh", "-c", DISGUISE, "sh", f"{hosts.folder}/as-{host}", cpu, governor, node)
    program = f"{hosts.folder}/xportbench"
    with open(program, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\n[ "$(hostname)" = nodeA ] || exec setarch --uname-2.6 {XB} "$@"\nexec {XB} "$@"\n')
    os.chmod(program, 0o755)
    run = hosts.measure("-t", "tcp:sx0", *TWO, *SHORT, "--remote-path", program)
    differ = " ".join(f["text"] for f in findings(run.document, "hosts-differ"))
    for words in (f"the kernel is {os.uname().release} on nodeA and 2.6.", "the CPU is Ours at 3 GHz on nodeA and Theirs at 2 GHz on nodeB",
                  "the CPU frequency governor is performance on nodeA and powersave on nodeB"):
        assert words in differ, differ
    library = " ".join(f["text"] for f in findings(run.document, "library-differs"))
    assert f"version is {os.uname().release} on nodeA and 2.6." in library, library  # the library of TCP is the kernel
    numa = findings(run.document, "numa-mismatch")
    assert len(numa) == 1 and "endpoint 1 on nodeB" in numa[0]["text"] and "sx0 is at node 1" in numa[0]["text"], findings(run.document)
    assert results(run.document) and not codes(run.document, "invalid"), findings(run.document)


try:
    needs("tc", "setarch")
    with Hosts("nodeA", "nodeB") as hosts:
        hosts.script("link", hosts.folder, hosts.net, "slow0")
        for name in hosts.names:
            hosts.on(name, "tc", "qdisc", "add", "dev", "slow0", "root", "tbf", "rate", "300mbit", "burst", "64kb", "latency", "100ms")
        main()
except Skip as reason:
    print(f"skip - findings about the path between two hosts: {reason}")
