#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 200
"""mpirun of Open MPI and Hydra of MPICH across two hosts: side by side in one run, the key out of sight, no singletons."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts, stray_files  # noqa: E402
from xbtest import Skip, case, finish, have_plugin, main, results, transport, wait_until  # noqa: E402

SHORT = ("-s", "8,64K", "-n", 50, "-x", 5, "--launches", 2, "--time", 40, "--bind", "0,1")
TWO = ("-H", "nodeA,nodeB")
hosts = None
before = stray_files()


@case("Open MPI and MPICH side by side between two hosts, each by its own launcher")
def _():
    if not (have_plugin("mpi@openmpi") and have_plugin("mpi@mpich")):
        raise Skip("there are not two MPIs here (mpicc.openmpi, mpicc.mpich)")
    run = hosts.measure("-t", "tcp,mpi@openmpi:tcp,mpi@mpich:tcp,mpi@openmpi:ucx/tcp", *TWO, *SHORT)
    for name, library in (("mpi@openmpi:tcp", "Open MPI"), ("mpi@mpich:tcp", "MPICH"), ("mpi@openmpi:ucx/tcp", "Open MPI")):
        t = transport(run.document, name)
        assert t["library"] == library and t["launcher"] == "mpirun" and t["layer"] == "mpi", t
        assert "sx0 carried" in t["carried"]["text"], t["carried"]
        assert {e["host"] for e in t["evidence"] if e["device"] == "sx0"} == {"nodeA", "nodeB"}, t["evidence"]
    assert transport(run.document, "tcp")["launcher"] == "ssh"
    assert len(results(run.document)) == 8 and all(r["verified"] is True for r in results(run.document))


@case("every team by mpirun, if asked for")
def _():
    run = hosts.measure("-t", "tcp,mpi:tcp", "--launcher", "mpirun", *TWO, *SHORT)
    assert {t["launcher"] for t in run.document["transports"]} == {"mpirun"}


@case("ranks that a foreign launcher starts as jobs of their own are named, not measured")
def _():
    if not have_plugin("mpi@mpich"):
        raise Skip("mpi@mpich is not built")
    run = hosts.run("-t", "mpi@mpich:tcp,mpirun=mpirun.openmpi", *TWO, *SHORT, "--ssh-command", hosts.ssh)
    assert run.status in (2, 4), run
    assert re.search(r"MPICH|rank", run.err) and re.search(r"\b1\b", run.err), run.err
    hosts.nothing_left()


@case("no key on a command line or in an environment while ranks run on both hosts")
def _():
    process = hosts.start("-t", "mpi:tcp", *TWO, "-s", "8", "--launches", "50:50", "--time", 60, "--bind", "0,1", "--ssh-command", hosts.ssh)
    try:
        wait_until(lambda: hosts.workers("nodeB") and any(" hold " in line for _, line in hosts.processes("nodeB")), 30, "a rank on nodeB")
        for host in hosts.names:
            for pid, _line in hosts.processes(host):
                for file in ("cmdline", "environ"):
                    try:
                        with open(f"/proc/{pid}/{file}", "rb") as content:
                            text = content.read()
                    except OSError:
                        continue
                    assert not re.search(rb"[0-9a-fA-F]{64}", text), f"64 hex digits in {file} of {pid}: {text[:300]}"
    finally:
        process.send_signal(signal.SIGINT)
        finish(process, 30)
    hosts.nothing_left()


@case("a program that is no mpirun is refused")
def _():
    run = hosts.run("-t", "mpi:tcp", *TWO, *SHORT, "--ssh-command", hosts.ssh, "--mpirun-command", "/bin/true")
    assert run.status == 4 and "neither" in run.err and "--mpirun-command" in run.err, run


@case("a host without xportbench is found by its holder, in one sentence")
def _():
    run = hosts.run("-t", "mpi:tcp", *TWO, *SHORT, "--ssh-command", hosts.ssh, "--remote-path", "/nonexistent/xportbench")
    assert run.status == 4 and "/nonexistent/xportbench" in run.err and "nodeB" in run.err, run


@case("a controller that is killed takes ranks and holders of both hosts with it")
def _():
    process = hosts.start("-t", "mpi:tcp", *TWO, "-s", "8", "--launches", "50:50", "--time", 60, "--bind", "0,1", "--ssh-command", hosts.ssh)
    wait_until(lambda: hosts.workers("nodeA") and hosts.workers("nodeB"), 30, "ranks on both")
    controller = [pid for pid, line in hosts.processes("nodeA") if " -t mpi:tcp " in line and " worker " not in line]
    os.kill(controller[0], signal.SIGKILL)
    finish(process, 15)
    hosts.nothing_left(20)


try:
    if not have_plugin("mpi"):
        raise Skip("mpi is not built")
    with Hosts("nodeA", "nodeB") as hosts:
        main()
except Skip as reason:
    print(f"skip - mpirun across two hosts: {reason}")
