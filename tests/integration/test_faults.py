#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 600
"""Injected faults are each reported as what they are; the other transports' results are complete."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import case, findings, main, measure, results, transport  # noqa: E402

SIZES = "1,64,1K,8K"
QUICK = ("-n", 50, "--launches", "2:2", "--seed", 7)


def broken(fault, bench="pingpong", status=4):
    run = measure("-t", f"tcp,tcp,label=bad,{fault}", "-b", bench, "-s", SIZES, *QUICK, status=status)
    bad, good = transport(run.document, "bad"), transport(run.document, "tcp")
    assert good["status"] == "ok" and len(results(run.document, label="tcp", bench=bench)) == 4, good
    for result in results(run.document, label="tcp"):
        assert result["launches"] == 2 and result["verified"] is True, result
    assert bad["status"] == "failed", bad
    assert "bad" in run.err and bench in bad["error"], (run.err, bad["error"])
    assert run.err.count(bad["error"].split(":")[0]) == 1, f"said once: {run.err}"
    return run, bad["error"]


@case("corrupted payload is found and named with label, pattern and size")
def _():
    run, error = broken("fault.corrupt=3")
    assert "corrupt" in error or "differ" in error, error
    assert findings(run.document, "payload-corrupted")[0]["severity"] == "invalid"


@case("corrupted payload is found in a window of sends")
def _():
    broken("fault.corrupt=1", bench="bw")


@case("premature completion is found and told from corruption")
def _():
    _, error = broken("fault.premature=1K")
    assert "stale" in error or "premature" in error or "before" in error, error
    assert "at 1K" in error or "at 8K" in error, error


@case("a hang is found by its deadline and named with the phase")
def _():
    run, error = broken("fault.hang=8K")
    assert "hung" in error and "at 8K" in error, error
    assert run.seconds < 90, run.seconds


@case("a delay that makes every iteration long is no hang, with and without a peer")
def _():
    for words in (("null,fault.delay=20us", "-b", "bw"), ("null,fault.delay=1ms",), ("tcp,fault.delay=20ms", "-x", "5")):
        document = measure("-t", *words, "-s", "8", "--launches", "1:1").document
        assert len(document["results"]) == 1 and document["results"][0]["iterations"] >= 3, (words, document["results"])


@case("a crash is named with the signal")
def _():
    _, error = broken("fault.crash=1K")
    assert "signal 11" in error and ("at 1K" in error or "at 8K" in error), error


@case("results of sizes measured before the failure are kept")
def _():
    run = measure("-t", "tcp,tcp,label=bad,fault.crash=8K", "-s", SIZES, "-n", 50, "--launches", "3:3", "--seed", 11, status=4)
    kept = [r["size"] for r in results(run.document, label="bad")]
    assert kept == [1, 1024], f"{kept}: with this seed 1 and 1K come before 8K, and 64 behind it"


@case("every transport of a run failing still ends with a document and status 4")
def _():
    run = measure("-t", "tcp,fault.crash=1", "-s", "8", *QUICK, status=4)
    assert run.document["results"] == [] and transport(run.document, "tcp")["status"] == "failed"
    assert run.document["stopped_by"] == "failed" and run.document["partial"] is False, run.document["stopped_by"]
    assert "nothing was left to measure" in " ".join(run.out.split()), run.out


@case("a failure of one transport of two does not stop the run")
def _():
    run = measure("-t", "tcp,tcp,label=bad,fault.crash=1", "-s", "8", *QUICK, status=4)
    assert run.document["stopped_by"] == "fixed" and run.document["launches"] == 2, run.document["stopped_by"]


main()
