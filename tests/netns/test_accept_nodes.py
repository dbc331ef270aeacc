#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 900
# xb-sanitize: no (eight sanitized workers on few cores take too long; the same code runs sanitized in test_accept.py)
"""Eight test hosts over real ssh: each thing that is wrong is named as what it is, and nothing else is."""
import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts  # noqa: E402
from xbtest import SANITIZED, TOP, Skip, case, finish, have_plugin, load, main, wait_until  # noqa: E402

NAMES = [f"n{i}" for i in range(8)]
# One pair at a time, and sockets that block: spinning ends that share a core would wait for the end of their time slices.
SHORT = ("--bind", "none", "-n", 4, "-x", 1, "--launches", "6:20", "--time", 45, "-q")
# A node or link behind 100 Mbit/s takes 5 ms for what the others do in less than 0.2 ms.
LIMITS = """[run]
transports = {transports}
noise_budget = {budget} %
[limit alike]
transport = tcp
metric = latency_us
sizes = 64K
within = 900 % of median
"""
# The same where it does not matter how much these wait for each other on few cores that others use as well.
TOLERANT = LIMITS + "max = 10 ms\nviolated_when = both\n"
SLOW = ("tbf", "rate", "100mbit", "burst", "16k", "latency", "400ms")
hosts = None


def start(*arguments, budget=100, transports="tcp,poll=block", limits=LIMITS, names=None, serial=True):
    ini = os.path.join(hosts.folder, "limits.ini")
    with open(ini, "w", encoding="utf-8") as file:
        file.write(limits.format(budget=budget, transports=transports))
    out = os.path.join(hosts.folder, "accept.json")
    if os.path.exists(out):
        os.unlink(out)
    return hosts.start("accept", ini, "-H", ",".join(names or NAMES), "--ssh-command", hosts.ssh, "-o", out, *SHORT,
                       *(["--serial"] if serial else []), *arguments)


def done(process, status):
    result = finish(process, 150)
    path = os.path.join(hosts.folder, "accept.json")
    assert result.status == status, f"expected exit {status}: {result!r} {result.out[-1500:]}"
    document = load(path)
    import jsonschema
    with open(os.path.join(TOP, "docs", "schema", "result-1.json"), encoding="utf-8") as file:
        jsonschema.validate(document, json.load(file))
    result.document, result.acceptance = document, document["acceptance"]
    return result


def accept(status, *arguments, **options):
    return done(start(*arguments, **options), status)


def nodes(result):
    """Verdicts of the nodes that did not pass."""
    return {n["host"]: n["verdict"] for n in result.acceptance["nodes"] if n["verdict"] != "pass"}


def causes(result):
    return {(r["cause"], tuple(r["pair"]) if r["cause"] == "link" else r["culprit"])
            for r in result.acceptance["rulings"] if r["verdict"] == "fail"}


@contextlib.contextmanager
def shaped(*names, rate="100mbit"):
    """What these hosts send, and what is sent to them, goes through a slow queue."""
    bridge = hosts.namespace("net")
    ends = [(hosts.namespace(name), "sx0") for name in names] + [(bridge, f"p{1 + NAMES.index(name)}") for name in names]
    try:
        for namespace, device in ends:
            subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", *SLOW[:2], rate, *SLOW[3:]], check=True)
        yield
    finally:
        for namespace, device in ends:
            subprocess.run(["tc", "-n", namespace, "qdisc", "del", "dev", device, "root"], check=False)


@contextlib.contextmanager
def slow_link(a, b):
    """Only what goes from a to b is slow."""
    namespace, tc = hosts.namespace(a), ["tc", "-n", hosts.namespace(a)]
    address = f"10.88.{hosts.net}.{1 + NAMES.index(b)}/32"
    try:
        for words in ("qdisc add dev sx0 root handle 1: htb default 1", "class add dev sx0 parent 1: classid 1:1 htb rate 40gbit quantum 60000",
                      "class add dev sx0 parent 1: classid 1:2 htb rate 100mbit burst 16k",
                      f"filter add dev sx0 parent 1: protocol ip u32 match ip dst {address} flowid 1:2"):
            subprocess.run([*tc, *words.split()], check=True)
        yield namespace
    finally:
        subprocess.run([*tc, "qdisc", "del", "dev", "sx0", "root"], check=False)


@case("all good: every pair passes, and no node is named")
def _():
    r = accept(0)
    assert len(r.acceptance["rulings"]) == 28 and nodes(r) == {} and r.acceptance["left_out"] == [], r.out
    matrix = r.acceptance["matrices"][0]["values"]
    assert all((matrix[i][k] is None) == (i == k) and matrix[i][k] == matrix[k][i] for i in range(8) for k in range(8))


@case("one node behind a slow link: it is named, retested with a partner that passed, and no other node is")
def _():
    with shaped("n5"):
        r = accept(1)
    assert nodes(r) == {"n5": "fail"} and causes(r) == {("node", 5)}, (nodes(r), causes(r), r.out)
    failed = [x for x in r.acceptance["rulings"] if x["verdict"] == "fail"]
    assert len(failed) == 7 and r.acceptance["retests"] == 1, r.out
    assert all(5 in x["pair"] and 5 in x["retest_pair"] for x in failed)


@case("the same with four pairs at a time: it is that node, and nothing else")
def _():
    with shaped("n5", rate="20mbit"):
        r = accept(1, "-n", 12, serial=False, limits=TOLERANT)  # 20 ms by that node
    assert r.acceptance["pairs_at_a_time"] == "many", r.acceptance["pairs_at_a_time"]
    assert nodes(r) == {"n5": "fail"} and causes(r) == {("node", 5)}, (nodes(r), causes(r), r.out)
    assert all((5 in x["pair"]) == (x["verdict"] == "fail") for x in r.acceptance["rulings"]), r.out
    assert len(r.acceptance["rulings"]) == 28 and r.acceptance["left_out"] == [], r.out


@case("two bad nodes at once: both are named")
def _():
    with shaped("n1", "n6"):
        r = accept(1)
    assert nodes(r) == {"n1": "fail", "n6": "fail"}, (nodes(r), r.out)
    assert r.acceptance["retests"] == 2, r.acceptance["retests"]


@case("a bad link between two good nodes: the link is named, no node is")
def _():
    with slow_link("n2", "n4"):
        r = accept(1)
    assert nodes(r) == {} and causes(r) == {("link", (2, 4))}, (nodes(r), causes(r), r.out)
    assert "a link, not a node" in " ".join(r.out.split()), r.out


@case("one node whose cores are taken: no verdict on it, and nobody else is named")
def _():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Skip("needs two cores")
    # all ends on the first core (blocking, so that they can share it), the victim on the second one, with three others
    bind = ",".join(str(cores[1] if name == "n3" else cores[0]) for name in NAMES)
    hogs = [subprocess.Popen([*hosts.inside("n3"), "taskset", "-c", str(cores[1]), "sh", "-c", "while :; do :; done"])
            for _ in range(7)]
    try:
        # a worker that has just slept is let through at first: the probe sees less than the seven eighths that are taken
        r = accept(3, "--bind", bind, "-t", "tcp,poll=block", budget=30)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert nodes(r) == {"n3": "inconclusive"}, (nodes(r), r.document["noise"], r.out)
    assert "noise budget" in r.out and all((3 in x["pair"]) == (x["verdict"] == "inconclusive") for x in r.acceptance["rulings"])


def disturbed(what, *names):
    """Something is done to a worker on each of these, the next when the run has begun again without the one before."""
    process, gone, old = start("-n", 12, limits=TOLERANT), None, set()

    def new_workers():
        # on each a guard, asleep, and the worker that it started
        seen = [[pid for pid, _ in hosts.workers(name) if pid not in old] for name in names]
        return not (gone and hosts.workers(gone)) and all(len(pids) > 1 for pids in seen) and seen

    try:
        while names:
            found = wait_until(new_workers, 60, f"workers on {', '.join(names)}")
            os.kill(found[0][-1], what)
            old.update(pid for pids in found for pid in pids)
            gone, names = names[0], names[1:]
    except BaseException:
        process.kill()
        raise
    return done(process, 4)


for title, what in (("stopped", signal.SIGSTOP), ("killed", signal.SIGKILL)):
    @case(f"one node whose worker is {title}: it is named and left out, and the others have their verdicts")
    def _(what=what):
        r = disturbed(what, "n6")
        assert [x["host"] for x in r.acceptance["left_out"]] == ["n6"], r.acceptance["left_out"]
        assert len(r.acceptance["rulings"]) == 21 and nodes(r) == {}, (nodes(r), r.out)
        assert "n6 was left out" in " ".join(r.out.split()), r.out


@case("two of eight nodes whose workers are killed: both are named and left out, and the others have their verdicts")
def _():
    r = disturbed(signal.SIGKILL, "n2", "n6")
    assert [(x["host"], x["endpoint"]) for x in r.acceptance["left_out"]] == [("n2", 2), ("n6", 6)], r.acceptance["left_out"]
    assert len(r.acceptance["rulings"]) == 15 and {x["verdict"] for x in r.acceptance["rulings"]} == {"pass"}, r.out
    assert {n["host"] for n in r.acceptance["nodes"]} == set(NAMES) - {"n2", "n6"} and nodes(r) == {}, (nodes(r), r.out)


@case("a host that cannot be reached is left out, and one line a node says so")
def _():
    r = accept(4, "--format", "nodes", names=[*NAMES[:3], "nowhere.invalid"])
    lines = r.out.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [[n, "PASS"] for n in NAMES[:3]], r.out
    assert len(lines) == 4 and lines[3].startswith("nowhere.invalid UNMEASURED "), r.out


def memory_files(pid, name):
    count = 0
    for fd in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            count += f"memfd:{name}" in os.readlink(fd)
    time.sleep(0.05)
    return count


@case("a first remote host whose name is not known is left out like any other, with its pairs of a file")
def _():
    pairs = os.path.join(hosts.folder, "pairs")
    with open(pairs, "w", encoding="utf-8") as file:
        file.write("n0 nowhere.invalid\nn1 n2\n0 3\n")
    process, keys = start("--pairs", pairs, names=["n0", "nowhere.invalid", "n1", "n2"]), set()
    while process.poll() is None:
        keys.add(memory_files(process.pid, "xportbench-key"))
    r = done(process, 4)
    assert max(keys) == 1, f"{max(keys)} memory files with a key at once: those of runs that have ended stay"
    left = [(x["host"], x["endpoint"]) for x in r.acceptance["left_out"]]
    assert left == [("nowhere.invalid", 1)] and "cannot be reached by ssh" in r.acceptance["left_out"][0]["reason"], r.acceptance["left_out"]
    assert {tuple(x["pair"]) for x in r.acceptance["rulings"]} == {(1, 2), (0, 2)} and nodes(r) == {}, (r.acceptance["rulings"], r.out)


@case("a host that cannot be reached is the one that is left out of an MPI job too")
def _():
    if not have_plugin("mpi"):
        raise Skip("mpi is not built")
    limits = "[run]\ntransports = {transports}\nnoise_budget = {budget} %\n" \
             "[limit mpi]\ntransport = mpi:tcp\nmetric = latency_us\nsizes = 64K\nmax = 1 s\n"
    r = accept(4, transports="mpi:tcp", limits=limits, names=["n0", "n1", "nowhere.invalid", "n2"])
    assert [(x["host"], x["endpoint"]) for x in r.acceptance["left_out"]] == [("nowhere.invalid", 2)], r.acceptance["left_out"]
    assert len(r.acceptance["rulings"]) == 3 and {x["verdict"] for x in r.acceptance["rulings"]} == {"pass"}, r.out


@case("a baseline of three hosts is compared with pair by pair, and a host that has become slow since is found")
def _():
    base = os.path.join(hosts.folder, "base.json")
    # a few long messages behind the slow queue; more of them where they are fast, for a median that chance does not make
    limits, many = LIMITS.replace("900 % of median", "1000 % of baseline"), ("-n", 40)
    recorded = finish(hosts.start("accept", "--record", base, "-H", ",".join(NAMES[:3]), "--ssh-command", hosts.ssh, "-t",
                                  "tcp,poll=block", "-s", "64K", "--serial", *SHORT, *many), 150)
    assert recorded.status == 0, recorded
    # the order of the hosts is another one, and so is the pair whose addresses are told
    r = accept(0, *many, "--against", base, names=[NAMES[2], NAMES[0], NAMES[1]], limits=limits)
    assert r.acceptance["baseline"]["differences"] == [] and len(r.acceptance["rulings"]) == 3, r.out
    with shaped("n1", rate="20mbit"):
        r = accept(1, "--against", base, names=NAMES[:3], limits=limits)
    failed = [x for x in r.acceptance["rulings"] if x["verdict"] == "fail"]
    assert len(failed) == 2 and all("n1" in x["hosts"] and x["fresh"]["verdict"] == "fail" for x in failed), r.out
    assert r.acceptance["baseline"]["differences"] == [], r.out


@case("TCP, UCX and MPI between four nodes: pairs of a ring, each with its verdict")
def _():
    if not (have_plugin("ucx") and have_plugin("mpi")):
        raise Skip("ucx or mpi is not built")
    limits = LIMITS + "".join(f"[limit {t}]\ntransport = {t}:tcp\nmetric = latency_us\nsizes = 64K\nmax = 1 s\n"
                              for t in ("ucx", "mpi"))
    r = accept(0, "--pairs", "ring", transports="tcp,poll=block,ucx:tcp,mpi:tcp", names=NAMES[:4], limits=limits)
    assert len(r.acceptance["rulings"]) == 12, r.out
    assert {tuple(x["pair"]) for x in r.acceptance["rulings"]} == {(0, 1), (1, 2), (2, 3), (0, 3)}


@case("nothing is left on the hosts")
def _():
    hosts.nothing_left(20)


try:
    assert not SANITIZED
    with Hosts(*NAMES) as hosts:
        main()
except Skip as reason:
    print(f"skip - acceptance of eight hosts: {reason}")
