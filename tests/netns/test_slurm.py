#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 600
"""Inside a job of a real Slurm: hosts from the allocation, raw and MPI teams by srun, and Slurm's own reason when it fails."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts, needs  # noqa: E402
from xbtest import TOP, XB, Skip, case, environment, finish, have_plugin, load, main, results, transport, wait_until  # noqa: E402

SCRIPT = os.path.join(TOP, "tests", "lib", "slurm.sh")
SHORT = ("-s", "8,64K", "-n", 50, "-x", 5, "--launches", 2, "--time", 30, "--bind", "0,1")
hosts = None


def environ_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def slurm(command):
    done = subprocess.run([SCRIPT, command, hosts.folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-800:]


def start(*arguments, nodes=2, options=(), env=None):
    """xportbench inside an allocation. -I bounds the wait for it: without it salloc may wait for ever."""
    return subprocess.Popen([*hosts.inside("nodeA"), "salloc", "-I10", "-Q", f"-N{nodes}", f"-n{nodes}", *options, XB, *map(str, arguments)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            cwd=TOP, env={**environment(), "SLURM_CONF": f"{hosts.folder}/slurm.conf", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **(env or {})})


def measure(*arguments, status=0, patience=100, **options):
    path = f"{hosts.folder}/job.json"
    if os.path.exists(path):
        os.unlink(path)
    run = finish(start(*arguments, "-o", path, **options), patience)
    assert status is None or run.status == status, f"expected exit {status}, got {run!r}"
    run.document = load(path) if os.path.exists(path) else None
    return run


@case("raw and MPI teams of a two-node job, started by srun on the hosts of the allocation")
def _():
    names = ["tcp"] + [name for plugin, name in (("ucx", "ucx:tcp"), ("mpi", "mpi:tcp"), ("mpi@mpich", "mpi@mpich:tcp")) if have_plugin(plugin)]
    run = measure("-t", ",".join(names), *SHORT)
    assert run.document["config"]["hosts"] == ["nodeA", "nodeB"], run.document["config"]["hosts"]
    for name in names:
        t = transport(run.document, name)
        assert t["status"] == "ok" and t["launcher"] == "srun" and "sx0 carried" in t["carried"]["text"], t
    assert len(results(run.document)) == 2 * len(names) and all(r["verified"] is True for r in results(run.document))


@case("the order of -H is the order of the endpoints, whatever Slurm's own is")
def _():
    run = measure("-t", "tcp", "-H", "nodeB,nodeA", *SHORT)
    ends = {h["name"]: h["endpoints"] for h in run.document["hosts"]}
    assert ends == {"nodeB": [0], "nodeA": [1]}, ends


@case("a rank that is in the environment already, as in a shell that srun has started, is not taken for a worker's")
def _():
    ranks = {"PMIX_RANK": "0", "PMI_RANK": "0", "OMPI_COMM_WORLD_RANK": "0"}
    names = ["tcp"] + [name for plugin, name in (("mpi", "mpi:tcp"), ("mpi@mpich", "mpi@mpich:tcp")) if have_plugin(plugin)]
    run = measure("-t", ",".join(names), *SHORT, env=ranks)
    assert all(transport(run.document, name)["status"] == "ok" for name in names), run
    ends = {h["name"]: h["endpoints"] for h in run.document["hosts"]}
    assert ends == {"nodeA": [0], "nodeB": [1]}, ends


@case("mpirun inside the job, where the key reaches the far rank without ssh")
def _():
    if not have_plugin("mpi"):
        raise Skip("mpi is not built")
    run = measure("-t", "mpi:tcp", "--launcher", "mpirun", *SHORT)
    assert transport(run.document, "mpi:tcp")["launcher"] == "mpirun"


@case("an MPI that srun cannot start as one job is named, not measured as two")
def _():
    if not have_plugin("mpi@mpich"):
        raise Skip("mpi@mpich is not built")
    # MPICH under --mpi=none: two jobs of one rank each, and srun exits 0
    run = measure("-t", "mpi@mpich:tcp", "--srun-command", "srun --mpi=none", *SHORT, status=None)
    assert run.status in (2, 4) and not results(run.document or {"results": []}), run
    assert "1" in run.err and ("rank" in run.err or "size" in run.err or "processes" in run.err), run.err


@case("a long variable reaches the workers like a short one")
def _():
    value = "x" * 900
    process = start("-t", f"tcp,env.XB_LONG={value}", "-s", "8", "--launches", "100:100", "--time", 60, "--bind", "0,1")
    try:
        wait_until(lambda: hosts.workers("nodeA") and hosts.workers("nodeB"), 40, "workers on both nodes")
        wait_until(lambda: any(f"XB_LONG={value}" in environ_of(pid) for pid, _ in hosts.workers("nodeB")), 20, "the variable on nodeB")
    finally:
        process.send_signal(signal.SIGINT)
        finish(process, 40)
    hosts.nothing_left_of_ours()


@case("srun's own reason is given when a step cannot be made")
def _():
    run = measure("-t", "tcp", "--srun-command", "srun --cpus-per-task=64", *SHORT, status=4)
    assert "srun: error:" in run.err and len(run.err.splitlines()) == 1, run.err


@case("a step that Slurm cancels ends the run with Slurm's words, and what was measured is kept")
def _():
    path = f"{hosts.folder}/cancelled.json"
    process = start("-t", "tcp", "-s", "8", "--launches", "100:100", "--time", 60, "--bind", "0,1", "-o", path)
    try:
        wait_until(lambda: os.path.exists(path) and results(load(path)), 40, "a first launch")
        job = hosts.on("nodeA", "env", f"SLURM_CONF={hosts.folder}/slurm.conf", "squeue", "-h", "-o", "%A").split()[0]
        for _ in range(40):  # a step lives for one launch: until one is hit
            hosts.on("nodeA", "env", f"SLURM_CONF={hosts.folder}/slurm.conf", "scancel", "--signal=KILL", job, check=False)
            if process.poll() is not None or transport(load(path), "tcp")["status"] == "failed":
                break
        run = finish(process, 40)
    finally:
        if process.poll() is None:
            process.kill()
    assert results(load(path)), "results are kept"
    assert run.status in (4, 130, 143, 1, 137), run
    # slurmstepd's line may come too late for the pipe; srun itself always says how its task ended or that the step is aborted
    assert re.search(r"CANCELLED|srun: (error|Job step aborted)", run.err), f"not a word of Slurm: {run.err}"
    assert run.status != 4 or transport(load(path), "tcp")["error"] in run.err, run.err
    hosts.nothing_left_of_ours()


@case("a step that runs into its time limit is reported with Slurm's words")
def _():
    # limits of Slurm are whole minutes
    run = measure("-t", "tcp", "-s", "8,64,1K,4K,8K,16K", "-n", 1000000, "-x", 10, "--launches", "1:1", "--time", 600, "--bind", "0,1",
                  "--srun-command", "srun -t 0:05", status=4, patience=170)
    assert "DUE TO TIME LIMIT" in run.err, run.err
    hosts.nothing_left_of_ours()


@case("--launcher srun outside a job says how to get one")
def _():
    run = hosts.run("-t", "tcp", "--launcher", "srun", *SHORT)
    assert run.status == 2 and "salloc" in run.err, run


def left_of_ours(self, seconds=15):
    wait_until(lambda: not any(self.workers(h) for h in self.names), seconds, "no worker left")


Hosts.nothing_left_of_ours = left_of_ours

try:
    needs("srun", "slurmctld", "slurmd", "munged")
    with Hosts("nodeA", "nodeB", sshd=False) as hosts:
        try:
            slurm("up")
            main()
        finally:
            slurm("down")
except Skip as reason:
    print(f"skip - inside a job of Slurm: {reason}")
