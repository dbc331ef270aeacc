#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 400
"""-b swap: all protocols, orders and modes on every transport with verified payloads; records, comparisons, refusals."""
import csv
import io
import os
import sys
import tempfile

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import SANITIZED, TOP, case, have_plugin, load, main, measure, run  # noqa: E402

TRANSPORTS = [t for t in ("tcp", "ofi:tcp", "ucx:tcp", "mpi:tcp", "mpi:shm") if have_plugin(t.split(":")[0])]
ORDERS = {"ordered": range(11), "unordered": range(1, 10), "delayed": (1, 2, 3, 4, 5, 7, 8, 9)}
OVERLAPPING = {1, 2, 3, 4, 5, 7, 8, 9}
VALIDATOR = jsonschema.Draft7Validator(load(os.path.join(TOP, "docs", "schema", "result-1.json")))
FAST = ("-n", 1, "-x", 1, "--launches", "1:1")


def validate(document):
    errors = [f"{'.'.join(map(str, e.absolute_path)) or 'document'}: {e.message[:200]}" for e in VALIDATOR.iter_errors(document)]
    assert not errors, "; ".join(errors[:5])


for order, protocols in ORDERS.items():
    for transport in TRANSPORTS:
        @case(f"{transport}: {order} swap, all its protocols, with and without overlap, every payload verified")
        def _(order=order, protocols=protocols, transport=transport):
            document = measure("-t", transport, "-b", "swap", "--order", order, "--overlap", "both", "--total", "512K", "-s", "4K,64K",
                               *FAST).document
            validate(document)
            wanted = {(p, o, s) for p in protocols for o in (False, True) for s in (4096, 65536) if not o or p in OVERLAPPING}
            assert {(r["protocol"], r["overlap"], r["size"]) for r in document["swaps"]} == wanted
            assert all(r["verified"] is True and r["order"] == order for r in document["swaps"])


@case(f"all modes over {', '.join(TRANSPORTS)}: records whose parts belong together, and what each layer adds")
def _():
    document = measure("-t", ",".join(TRANSPORTS), "-b", "swap", "--cache", "all", "--overlap-depth", 4, "--protocol", "0,4,9", "--total", "256K",
                       "-s", "8K,32K,256K", "-n", 1, "-x", 1, "--launches", "2:2" if SANITIZED else "6:6", timeout=300).document
    validate(document)
    assert len(document["swaps"]) == len(TRANSPORTS) * 3 * 3 * (3 + 2), len(document["swaps"])
    for r in document["swaps"]:
        s, n = r["seconds"], r["messages"]
        assert n == 262144 // r["size"] and r["total"] == 262144 and r["verified"] is True
        assert r["overlap_depth"] == (min(4, n) if r["overlap"] else None)
        assert 0 < s["min"] <= s["median"], r
        assert abs(r["seconds_per_message"]["min"] - s["min"] / n) < 1e-6 * s["min"]
        assert abs(r["MBps"]["max"] - 2 * 262144 / s["min"] / 1e6) < 1e-6 * r["MBps"]["max"]
    for lower, upper in zip(TRANSPORTS[:1] * (len(TRANSPORTS) - 1), TRANSPORTS[1:]):
        found = [c for c in document["swap_comparisons"] if c["lower"] == lower and c["upper"] == upper]
        assert len(found) == 3 * 3 * 5 and all(c["baseline"] for c in found)
        for c in found:
            assert abs(c["overhead_us_per_message"]["median"] - c["overhead_us"]["median"] / c["messages"] / 2) <= 1e-6 * abs(c["overhead_us"]["median"])
    by = {(e["label"], e["protocol"], e["mode"], e["overlap"]): e for e in document["swap_estimates"]}
    assert len(by) == len(TRANSPORTS) * 3 * 5
    minima = {r["size"]: r["seconds"]["min"] for r in document["swaps"]
              if (r["label"], r["protocol"], r["mode"], r["overlap"]) == ("tcp", 4, "1 iter.", False)}
    e = by["tcp", 4, "1 iter.", False]
    latency = (minima[8192] - minima[32768]) / 2 / (32 - 8) * 1e6
    assert abs(e["latency_us"]["from_minima"] - latency) <= 1e-6 * abs(latency) + 1e-6, (e, latency)
    assert abs(e["peak_MBps"] - 2 * 262144 / min(minima.values()) / 1e6) < 1e-6 * e["peak_MBps"]


@case("by default 2 MiB in 1, 2, 4 ... 1024 messages by all eleven protocols; table, csv and commtest show them")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        result = run("-t", "tcp,tcp,label=again", "-b", "swap", "-n", 1, "-x", 1, "--launches", "1:1", "-o", path, timeout=200)
        assert result.status in (0, 3), result
        document = load(path)
        rows = list(csv.DictReader(io.StringIO(run("report", path, "--format", "csv").out)))
        classic = run("report", path, "--format", "commtest").out
        assert run("report", path).out == result.out
    validate(document)
    assert {(r["size"], r["messages"]) for r in document["swaps"]} == {(2048 << k, 1024 >> k) for k in range(11)}
    assert {r["protocol"] for r in document["swaps"]} == set(range(11))
    assert len(rows) == len(document["swaps"]) == 2 * 11 * 11
    for row, r in zip(rows, document["swaps"]):
        assert row["bench"] == "swap" and int(row["protocol"]) == r["protocol"] and row["label"] == r["label"], (row, r)
        assert abs(float(row["swap_s_min"]) - r["seconds"]["min"]) < 1e-9 and row["size_bytes"] == str(r["size"])
    assert classic.count("\nProtocol ") == 2 * (11 + 1) and "Number of Proctocols" in classic
    assert max(map(len, result.out.splitlines())) <= 100 and "P10" in result.out and "not verified" not in result.out


@case("pingpong and swap in one run; sizes that do not divide the total are left to the others")
def _():
    document = measure("-t", "tcp", "-b", "pingpong,swap", "--protocol", "3", "-s", "8,1000,4K", "--total", "64K", *FAST).document
    validate(document)
    assert [r["size"] for r in document["results"]] == [8, 1000, 4096]
    assert [r["size"] for r in document["swaps"]] == [8, 4096]


@case("what cannot be is refused by name before anything is measured")
def _():
    for words, said in ((("--order", "unordered", "--protocol", "0"), "protocol 0"), (("--order", "delayed", "--protocol", "6"), "protocol 6"),
                        (("--protocol", "11"), "0 to 10"), (("--protocol", "6", "--overlap", "on"), "protocol 6"), (("--order", "mixed",), "unordered"),
                        (("--total", "3"), "at least 8"), (("-s", "3000"), "--total"), (("-s", "4M"), "--total"), (("--cache", "warm"), "inv"),
                        (("--overlap-depth", "0"), "1024"), (("--op", "write"), "sends and receives"), (("--format", "osu"), "pingpong")):
        result = run("-t", "tcp", "-b", "swap", *words)
        assert result.status == 2 and said in result.err and len(result.err.splitlines()) == 1 and not result.out, (words, result)


@case("mpi,mode=blocking: every protocol but 0, 6 and 10 ordered is refused by name before anything is measured")
def _():
    later, ready, both = "started now and waited for later", "ready sends", "both directions at once"
    lacks = {("ordered", p): ready if p in (4, 5) else later for p in (1, 2, 3, 4, 5, 7, 8, 9)}
    lacks |= {(order, p): ready if p in (4, 5) else both for order, p in (("unordered", 1), ("unordered", 4), ("unordered", 6), ("delayed", 9))}
    for (order, protocol), what in lacks.items():
        result = run("-t", "mpi:shm,mode=blocking", "-b", "swap", "--order", order, "--protocol", protocol, "-s", "64K", "--launches", "1:1")
        assert result.status == 2 and f"protocol {protocol} " in result.err and what in result.err and not result.out, (order, protocol, result)
    done = measure("-t", "mpi:shm,mode=blocking", "-b", "swap", "--protocol", "0,6,10", "-s", "64K", "-n", 1, "-x", 1, "--launches", "1:1").document
    assert [r["protocol"] for r in done["swaps"]] == [0, 6, 10], done["swaps"]


@case("sweeps of the caches take their time and are no hang, on null as between two ends")
def _():
    for words in (("null", "-s", "2M"), ("tcp", "--total", "8", "-s", "8", "-n", "60")):
        document = measure("-t", *words, "-b", "swap", "--cache", "inv", "--protocol", "3", "--launches", "1:1", timeout=300).document
        assert len(document["swaps"]) == 1 and document["swaps"][0]["iterations"] >= 3, (words, document["swaps"])


@case("a corrupted or incomplete message of a swap is found and the transport is named")
def _():
    for fault in ("fault.corrupt=7", "fault.premature=4K"):
        result = measure("-t", f"tcp,label=bad,{fault}", "-b", "swap", "--protocol", "3", "--overlap", "on", "--total", "256K", "-s", "16K", "-n", 3,
                         "-x", 1, "--launches", "1:1", status=None)
        assert result.status == 4 and "bad" in result.err and "swap" in result.err, (fault, result)


main()
