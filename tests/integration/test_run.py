#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-sanitize: no (the same paths run sanitized in tests/contract and in the other integration tests)
# xb-timeout: 900
"""The main job between two processes of this machine: complete results, evidence, printed forms, a sleeping controller."""
import csv
import io
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import SANITIZED, case, comparison, finish, findings, main, measure, results, run, start, transport  # noqa: E402

ALL = "tcp,ofi:tcp,ucx:tcp,mpi:tcp"


@case("the main job measures every size on four transports, with comparisons, and ends with status 0")
def _():
    document = measure("-t", ALL, "-s", "1:64K", "-n", 20, "--launches", "6:6", "--seed", 1).document
    sizes = [2 ** i for i in range(17)]
    for label in ALL.split(","):
        assert [r["size"] for r in results(document, label=label)] == sizes, label
        assert transport(document, label)["status"] == "ok", label
        assert transport(document, label)["resolved_path"], label
    for r in results(document):
        assert r["verified"] is True and r["launches"] == 6, r
        l = r["latency_us"]
        assert 0 < l["min"] <= l["median"] <= l["max"] and l["ci_low"] <= l["median"] <= l["ci_high"], r
    for upper in ALL.split(",")[1:]:
        for size in sizes:
            c = comparison(document, "tcp", upper, size=size)["overhead_us"]
            assert c["ci_low"] <= c["median"] <= c["ci_high"], c
    assert document["seed"] == 1 and document["partial"] is False and document["stopped_by"] == "fixed"


@case("libfabric and UCX are both on top of tcp, whichever is listed last")
def _():
    document = measure("-t", "tcp,ucx:tcp,ofi:tcp", "-s", 8, "-n", 5, "--launches", "1:1").document
    adjacent = {(c["lower"], c["upper"]) for c in document["comparisons"] if c["adjacent"]}
    assert adjacent == {("tcp", "ucx:tcp"), ("tcp", "ofi:tcp")}, adjacent
    layers = {t["label"]: t["layer"] for t in document["transports"]}
    assert layers == {"tcp": "fabric", "ucx:tcp": "middleware", "ofi:tcp": "middleware"}, layers


@case("the resolved paths name what was asked for, and the loopback interface carried the payload")
def _():
    document = measure("-t", ALL, "-s", "64K,1M", "-n", 20, "--launches", "1:1").document
    for label, word in (("tcp", "lo"), ("ofi:tcp", "tcp"), ("ucx:tcp", "tcp/"), ("mpi:tcp", "ob1/tcp")):
        t = transport(document, label)
        assert word in t["resolved_path"], t
        loopback = [e for e in t["evidence"] if e["device"] == "lo"]
        assert loopback and loopback[0]["share_of_payload"] > 0.9, t["evidence"]
    assert not findings(document, "wrong-path"), findings(document, "wrong-path")


@case("shared memory is said to be carried by no device")
def _():
    labels = ("ucx:posix", "ofi:shm", "mpi:shm")
    for attempt in range(3):  # other programs' traffic on the loopback counts too: not in three runs
        result = measure("-t", ",".join(labels), "-s", "64K,1M", "-n", 50, "--launches", "1:1", status=None)
        found = {label: transport(result.document, label) for label in labels}
        assert all(t["status"] == "ok" for t in found.values()), found
        shares = {label: sum(e["share_of_payload"] or 0 for e in t["evidence"]) for label, t in found.items()}
        if max(shares.values()) < 0.05:
            break
    assert max(shares.values()) < 0.05, shares
    assert "no device carried it: shared memory" in " ".join(result.out.split()), result.out


@case("the controller sleeps while blocks are timed")
def _():
    document = measure("-t", "tcp,ucx:tcp", "-s", "8,64K", "-n", 2000, "--launches", "3:3").document
    c = document["controller"]
    assert c["timed_s"] > 0.2, c
    # waking up, reading two replies and going back to sleep is all that it may do in a block
    assert c["cpu_s_while_timed"] < 0.05 * c["timed_s"], c
    print(f"# {1e3 * c['cpu_s_while_timed']:.1f} ms of CPU in {c['timed_s']:.2f} s")


@case("bw and bibw give bandwidth and message rate that belong together, on every transport")
def _():
    document = measure("-t", ALL, "-b", "bw,bibw", "-s", "0,8,64K", "-n", 5, "--launches", "2:2").document
    for label in ALL.split(","):
        for bench in ("bw", "bibw"):
            found = results(document, label=label, bench=bench)
            assert [r["size"] for r in found] == [0, 8, 65536], (label, bench, found)
            for r in found:
                assert r["verified"] is True, r
                rate, bandwidth = r["message_rate_Mps"], r["bandwidth_MBps"]["median"]
                assert rate > 0 and abs(bandwidth - rate * r["size"]) <= 0.01 * bandwidth + 0.01, r


@case("put and get run on ofi, ucx and mpi")
def _():
    for op in ("write", "read"):
        document = measure("-t", "ucx:tcp,ofi:tcp,mpi:shm", "--op", op, "-b", "pingpong,bw", "-s", "8,64K", "-n", 10,
                           "--launches", "1:1", status=None).document
        for label in ("ucx:tcp", "ofi:tcp", "mpi:shm"):
            found = results(document, label=label)
            assert len(found) == 4 and all(r["verified"] for r in found), (op, label, found, transport(document, label))


@case("messages of no bytes, and of 1 GiB, are measured and verified")
def _():
    document = measure("-t", "tcp", "-s", "0,64M" if SANITIZED else "0,1G", "-n", 5, "-x", 1, "--launches", "1:1", timeout=400).document
    assert [r["verified"] for r in results(document)] == [True, True]


@case("report prints a kept run exactly as the run itself did, in every form")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        first = run("-t", "tcp,tcp,label=b", "-b", "pingpong,bw", "-s", "1,1K", "-n", 20, "--launches", "2:2", "-o", path)
        assert first.status == 0, first
        again = run("report", path)
        assert again.out == first.out and again.status == 0, "the same text"
        rows = list(csv.DictReader(io.StringIO(run("report", path, "--format", "csv").out)))
        assert len(rows) == 8 and {r["label"] for r in rows} == {"tcp", "b"}, rows
        with open(path, encoding="utf-8") as file:
            assert json.loads(run("report", path, "--format", "json").out) == json.load(file)
        assert max(len(line) for line in again.out.splitlines()) <= 100, "fits 100 columns"
        assert "\x1b" not in again.out, "no colour when it is no terminal"


@case("a table of four transports fits 100 columns")
def _():
    result = run("-t", ALL, "-s", "1:4M", "-n", 5, "--launches", "6:6", timeout=300)
    assert result.status == 0, result
    widest = max(result.out.splitlines(), key=len)
    assert len(widest) <= 100, widest


@case("a run stops by its interval, its time, or its count, and says which")
def _():
    fixed = measure("-t", "tcp", "-s", 8, "-n", 50, "--launches", "3:3").document
    assert fixed["stopped_by"] == "fixed" and fixed["launches"] == 3
    by_ci = measure("-t", "tcp", "-s", 8, "-n", 50, "--launches", "6:100", "--ci", 100, "--time", 600).document
    assert by_ci["stopped_by"] == "ci" and 6 <= by_ci["launches"] < 100, (by_ci["stopped_by"], by_ci["launches"])
    by_time = measure("-t", "tcp", "-s", 8, "-n", 50, "--launches", "6:1000", "--ci", 0.01, "--time", 3).document
    assert by_time["stopped_by"] == "time" and by_time["launches"] >= 6, by_time["launches"]


@case("list names what can be used here, and for what cannot the reason and the remedy")
def _():
    result = run("list", timeout=200)
    assert result.status == 0, result
    for word in ("tcp:lo", "ofi:tcp", "ucx:tcp", "mpi:tcp", "null", "why:", "do:"):
        assert word in result.out, f"{word}: {result.out}"


@case("an environment variable reaches its own team only")
def _():
    # other programs' traffic on the loopback makes a short run invalid; the paths are what they are
    document = measure("-t", "ucx:posix,ucx,label=b,env.UCX_TLS=sysv", "-s", "4K", "-n", 20, "--launches", "1:1", status=None).document
    first, second = (transport(document, label)["resolved_path"] for label in ("ucx:posix", "b"))
    assert "posix" in first and "sysv" not in first, first
    assert "sysv" in second and "posix" not in second, second


@case("progress goes to a terminal only")
def _():
    result = finish(start("-t", "tcp", "-s", 8, "-n", 20, "--launches", "2:2"))
    assert result.err == "", result.err


main()
