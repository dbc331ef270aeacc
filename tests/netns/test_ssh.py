#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 240
"""Two hosts over real ssh: a run is measured, described from both ends and leaves nothing; every failure is one sentence."""
import contextlib
import os
import re
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts, stray_files  # noqa: E402
from xbtest import BUILD, TOP, XB, Skip, case, findings, finish, have_plugin, load, main, results, transport, wait_until  # noqa: E402

SHORT = ("-s", "8,64K", "-n", 50, "-x", 5, "--launches", 2, "--time", 30, "--bind", "0,1")
TWO = ("-H", "nodeA,nodeB")
hosts = None
before = stray_files()


def one_error(run, status, *words):
    """One line on stderr, with these words, and that exit status."""
    assert run.status == status, run
    lines = [line for line in run.err.splitlines() if line.strip()]
    assert len(lines) == 1, lines
    for word in words:
        assert re.search(word, lines[0], re.I), f"{word!r} not in {lines[0]!r}"
    return lines[0]


@case("raw tcp and UCX between two hosts over ssh: verified, and the wire's counters prove it")
def _():
    names = "tcp,ucx:tcp" if have_plugin("ucx") else "tcp"
    run = hosts.measure("-t", names, *TWO, *SHORT)
    document = run.document
    for name in names.split(","):
        t = transport(document, name)
        assert t["status"] == "ok" and t["launcher"] == "ssh", t
        assert {e["host"] for e in t["evidence"] if e["device"] == "sx0"} == {"nodeA", "nodeB"}, t["evidence"]
        assert "sx0 carried" in t["carried"]["text"], t["carried"]
        assert all(r["verified"] is True for r in results(document, label=name)), name
    assert sorted(h["name"] for h in document["hosts"]) == ["nodeA", "nodeB"], document["hosts"]
    assert "nodeA" in run.out and "nodeB" in run.out and "started by ssh" in run.out, run.out
    assert document["config"]["hosts"] == ["nodeA", "nodeB"]


@case("hosts from a file, with comments and what other launchers write there")
def _():
    path = f"{hosts.folder}/hostfile"
    with open(path, "w", encoding="utf-8") as file:
        file.write("# two of them\nnodeA slots=1\n\n  nodeB   # the far one\n")
    run = hosts.measure("-t", "tcp", "--host-file", path, *SHORT)
    assert run.document["config"]["hosts"] == ["nodeA", "nodeB"]


@case("both hosts are others than the controller's, and the clock is that of the first of them")
def _():
    run = hosts.measure("-t", "tcp", "-H", "nodeA,nodeB", *SHORT, host="nodeC")
    assert sorted(h["name"] for h in run.document["hosts"]) == ["nodeA", "nodeB"]
    assert run.document["timer"]["source"] and run.document["timer"]["drift_ppm"] is None, run.document["timer"]


@case("over IPv6 names, control and measurement")
def _():
    run = hosts.measure("-t", "tcp,family=6", "-H", "nodeA6,nodeB6", *SHORT)
    assert "fd00:88" in transport(run.document, "tcp")["resolved_path"], transport(run.document, "tcp")


@case("the control connection stays off the measured network with --control-interface")
def _():
    hosts.script("link", hosts.folder, hosts.net, "ctl0")
    used = hosts.counters("nodeA", "ctl0")
    hosts.measure("-t", "tcp:sx0", *TWO, *SHORT, "--control-interface", "ctl0")
    now = hosts.counters("nodeA", "ctl0")
    assert now["rx_packets"] - used["rx_packets"] > 20, (used, now)


@case("an interface for control that is not there is refused with those that are")
def _():
    one_error(hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", hosts.ssh, "--control-interface", "eth7"), 2, "eth7", "sx0")


@case("both ends on one CPU of one host that has two names: same-cpu, chosen or bound")
def _():
    where = ("-H", f"nodeA,10.88.{hosts.net}.1")
    run = hosts.measure("-t", "tcp,poll=block", *where, *SHORT[:-2], "--bind", "0", status=3)
    assert findings(run.document, "same-cpu")[0]["severity"] == "invalid", findings(run.document)
    path = f"{hosts.folder}/onecpu.json"
    # both ends run here, as children that have but this one core
    hosts.on("nodeA", "taskset", "-c", "0", XB, "-t", "tcp,poll=block", *where, *SHORT[:-2], "--ssh-command", hosts.ssh, "-o", path, check=False)
    found = findings(load(path), "same-cpu")
    assert found and "endpoints 0 and 1 both run on CPU 0 of nodeA" in found[0]["text"], findings(load(path))


@case("no key on any command line or in any environment while a run goes on")
def _():
    process = hosts.start("-t", "tcp", *TWO, "-s", "8", "--launches", "50:50", "--time", 60, "--bind", "0,1", "--ssh-command", hosts.ssh)
    try:
        wait_until(lambda: hosts.workers("nodeB"), 20, "a worker on nodeB")
        pids = [pid for host in hosts.names for pid, _ in hosts.processes(host)]
        seen = 0
        for pid in pids:
            for file in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{pid}/{file}", "rb") as content:
                        text = content.read()
                except OSError:
                    continue
                seen += 1
                assert not re.search(rb"[0-9a-fA-F]{64}", text), f"64 hex digits in {file} of {pid}: {text[:300]}"
        assert seen >= 6, seen
    finally:
        process.send_signal(signal.SIGINT)
        finish(process, 20)
    hosts.nothing_left()


@case("a host that cannot be reached: one sentence, within the time that ssh takes")
def _():
    begin = time.monotonic()
    # an address of the bridge's network that nobody has
    run = hosts.run("-t", "tcp,null", "-H", f"nodeA,10.88.{hosts.net}.250", *SHORT, "--ssh-command", hosts.ssh)
    one_error(run, 4, r"10\.88\.\d+\.250", "cannot be reached", "ssh")
    assert time.monotonic() - begin < 60
    run = hosts.run("-t", "tcp", "-H", "nodeA,nosuchhost", *SHORT, "--ssh-command", hosts.ssh, "--control-interface", "sx0")
    one_error(run, 4, "nosuchhost", "cannot be reached")
    run = hosts.run("-t", "tcp", "-H", "nodeA,nosuchhost", *SHORT, "--ssh-command", hosts.ssh)
    one_error(run, 4, "nosuchhost", "--control-interface")


@case("a host that does not let us in")
def _():
    other = f"{hosts.folder}/otherkey"
    hosts.on("nodeA", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
    run = hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", f"{hosts.ssh} -i {other} -o IdentityFile={other} -F /dev/null -p 2222 "
                    f"-o HostKeyAlias=xb -o UserKnownHostsFile={hosts.folder}/ssh/known_hosts -o BatchMode=yes -o IdentitiesOnly=yes")
    one_error(run, 4, "nodeB", "permission denied|does not let us in")


@case("a host whose key is not known")
def _():
    run = hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", f"ssh -F /dev/null -p 2222 -i {hosts.folder}/ssh/id -o BatchMode=yes "
                    "-o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null")
    one_error(run, 4, "nodeB", "does not trust|known_hosts")


@case("no xportbench on the far side, and one that cannot be executed")
def _():
    run = hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", hosts.ssh, "--remote-path", "/nonexistent/xportbench")
    one_error(run, 4, "nodeB", "/nonexistent/xportbench", "--remote-path")
    path = f"{hosts.folder}/plainfile"
    with open(path, "w", encoding="utf-8") as file:
        file.write("not a program\n")
    run = hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", hosts.ssh, "--remote-path", path)
    one_error(run, 4, "nodeB", path, "cannot be executed")


@case("another version on the far side")
def _():
    folder = f"{hosts.folder}/other"
    os.makedirs(folder)
    with open(XB, "rb") as file:
        program = file.read()
    version = hosts.run("--version").out.split()[1].encode()
    other = bytes([version[0], version[1]]) + b"9" * (len(version) - 2)
    assert program.count(version + b"\0") >= 1
    with open(f"{folder}/xportbench", "wb") as file:
        file.write(program.replace(version + b"\0", other + b"\0"))
    os.chmod(f"{folder}/xportbench", 0o755)
    os.symlink(os.path.join(BUILD, "plugins"), f"{folder}/plugins")
    run = hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", hosts.ssh, "--remote-path", f"{folder}/xportbench")
    one_error(run, 4, "nodeB", re.escape(other.decode()), re.escape(version.decode()), "same version")
    shutil.rmtree(folder)


@case("a login shell that talks on both streams does not disturb")
def _():
    wrapper = f"{hosts.folder}/noisy"
    with open(wrapper, "w", encoding="utf-8") as file:
        # what a chatty .bashrc does, in front of the command that ssh was given
        file.write(f'#!/bin/sh\nfor last; do :; done\nhost=nodeB\nexec {hosts.ssh} "$host" "echo WELCOME to the cluster; echo motd >&2; $last"\n')
    os.chmod(wrapper, 0o755)
    run = hosts.measure("-t", "tcp", *TWO, *SHORT, "--ssh-command", wrapper)
    assert transport(run.document, "tcp")["status"] == "ok"
    # and where something fails, the banner is not all that is said
    run = hosts.run("-t", "tcp", *TWO, *SHORT, "--ssh-command", wrapper, "--remote-path", "/nonexistent/xportbench")
    one_error(run, 4, "nodeB", "no /nonexistent/xportbench")


@case("a worker that is stopped on the far side is found, and does not outlive the run")
def _():
    path = f"{hosts.folder}/stopped.json"
    process = hosts.start("-t", "tcp", *TWO, "-s", "8", "--launches", "100:100", "--time", 60, "--bind", "0,1", "--ssh-command", hosts.ssh,
                          "-o", path)
    try:
        wait_until(lambda: os.path.exists(path) and results(load(path)), 30, "a first launch")
        stopped = None

        def hit():
            """Stops a worker, and another where that one was only ending with its launch, which is no failure."""
            nonlocal stopped
            found = hosts.workers("nodeB")
            # a guard, asleep, and the worker that it started
            if len(found) > 1 and stopped not in [pid for pid, _ in found]:
                stopped = found[-1][0]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(stopped, signal.SIGSTOP)
            return process.poll() is not None
        wait_until(hit, 90, "the end of the run")
        run = finish(process, 10)
    finally:
        if process.poll() is None:
            process.kill()
    assert run.status == 4, run
    assert results(load(path)), "what was measured is kept"
    hosts.nothing_left()


@case("a controller that is killed takes the workers of both hosts with it")
def _():
    process = hosts.start("-t", "tcp", *TWO, "-s", "8", "--launches", "100:100", "--time", 60, "--bind", "0,1", "--ssh-command", hosts.ssh)
    wait_until(lambda: hosts.workers("nodeA") and hosts.workers("nodeB"), 30, "workers on both")
    controller = [pid for pid, line in hosts.processes("nodeA") if line.startswith(XB) and " worker " not in line]
    os.kill(controller[0], signal.SIGKILL)
    finish(process, 10)
    hosts.nothing_left()


@case("nothing is left on the hosts, and no file in /tmp")
def _():
    hosts.nothing_left()
    assert stray_files() == before, stray_files() - before


try:
    with Hosts("nodeA", "nodeB", "nodeC") as hosts:
        main()
except Skip as reason:
    print(f"skip - two hosts over ssh: {reason}")
