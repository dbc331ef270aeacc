#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 600
"""Sixteen hosts over ssh and mpirun, and hundreds of endpoints here: every pair once, and what that costs the controller."""
import itertools
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts, stray_files  # noqa: E402
from xbtest import Skip, case, have_plugin, load, main, results, run, transport  # noqa: E402

NAMES = [f"node{i:02d}" for i in range(16)]
SHORT = ("-s", "8", "-n", 10, "-x", 2, "--launches", 1, "--time", 60, "--bind", "none")
hosts = None
before = stray_files()


def check_pairs(document, label, endpoints):
    """Every pair of endpoints has a result, and just one."""
    wanted = set(itertools.combinations(range(endpoints), 2))
    found = [tuple(p["pair"]) for p in document["pairs"] if p["label"] == label]
    assert len(found) == len(wanted) and set(found) == wanted, f"{label}: {len(found)} of {len(wanted)} pairs"
    assert all(p["latency_us"]["median"] > 0 for p in document["pairs"])
    r = results(document, label=label)
    assert len(r) == 1 and r[0]["rounds"] == len(wanted), r[0]["rounds"]


def figures(what, document, seconds):
    c, start = document["controller"], [t["start_ms"]["median"] / 1e3 for t in document["transports"]]
    print(f"# {what}: started in {', '.join(f'{s:.1f}' for s in start)} s, {c['rounds']} rounds of "
          f"{1e3 * c['timed_s'] / max(1, c['rounds']):.1f} ms, controller {c['memory_MB']:.0f} MB, {seconds:.0f} s in all", flush=True)


@case("16 hosts over ssh: null and tcp, all 120 pairs")
def _():
    begin = time.monotonic()
    r = hosts.measure("-t", "null,tcp", "-H", ",".join(NAMES), *SHORT, timeout=120)
    for label in ("null", "tcp"):
        check_pairs(r.document, label, 16)
        assert transport(r.document, label)["launcher"] == "ssh"
    assert sorted(h["name"] for h in r.document["hosts"]) == NAMES
    pair = next(p for p in r.document["pairs"] if p["label"] == "tcp" and p["pair"] == [3, 11])
    assert pair["hosts"] == ["node03", "node11"], pair
    figures("16 hosts over ssh", r.document, time.monotonic() - begin)


@case("16 hosts by mpirun: tcp and MPI, all 120 pairs")
def _():
    if not have_plugin("mpi"):
        raise Skip("mpi is not built")
    begin = time.monotonic()
    r = hosts.measure("-t", "tcp,mpi:tcp", "--launcher", "mpirun", "-H", ",".join(NAMES), *SHORT, timeout=150)
    for label in ("tcp", "mpi:tcp"):
        check_pairs(r.document, label, 16)
    figures("16 hosts by mpirun", r.document, time.monotonic() - begin)


@case("an odd number of endpoints: every pair, each endpoint rests once")
def _():
    r = hosts.measure("-t", "null", "-H", ",".join(NAMES[:5]), *SHORT)
    check_pairs(r.document, "null", 5)


@case("more endpoints than hosts go round them")
def _():
    r = hosts.measure("-t", "tcp", "-H", "node00,node01", "--endpoints", 4, *SHORT)
    check_pairs(r.document, "tcp", 4)
    assert {h["name"]: h["endpoints"] for h in r.document["hosts"]} == {"node00": [0, 2], "node01": [1, 3]}


for count in (64, 512):
    @case(f"{count} null endpoints on this machine: every pair")
    def _(count=count):
        path = f"{hosts.folder}/local.json"
        begin = time.monotonic()
        r = run("-t", "null", "--endpoints", count, *SHORT[:-4], "--time", 300, "--bind", "none", "-q", "-o", path, "--format", "csv", timeout=400)
        assert r.status in (0, 3), r
        check_pairs(load(path), "null", count)
        figures(f"{count} endpoints here", load(path), time.monotonic() - begin)


@case("nothing is left on the hosts, and no file in /tmp")
def _():
    hosts.nothing_left(20)
    assert stray_files() == before, stray_files() - before


try:
    with Hosts(*NAMES) as hosts:
        main()
except Skip as reason:
    print(f"skip - many hosts: {reason}")
