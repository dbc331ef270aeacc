#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 600
# xb-sanitize: no (what is asserted is timing; the same code runs sanitized in test_accept.py)
"""The gate over known truth: 20 seeded runs each with a delay above, at and below a limit."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import case, comparison, load, main, measure, run  # noqa: E402

RUNS = 20
LIMIT_US = 60
LIMITS = """[run]
noise_budget = 100 %
[limit added]
transport = slow
metric = overhead_us
sizes = 8
max = {} us
"""


def gate(delay_us, seeds, limit_us=LIMIT_US):
    found = []
    with tempfile.TemporaryDirectory() as folder:
        ini, out = os.path.join(folder, "limits.ini"), os.path.join(folder, "run.json")
        with open(ini, "w", encoding="utf-8") as file:
            file.write(LIMITS.format(limit_us))
        for seed in seeds:
            result = run("accept", ini, "-t", f"tcp,tcp,label=slow,fault.delay={delay_us}us", "-n", 60, "-x", 10,
                         "--launches", "7:12", "--time", 10, "--seed", seed, "-q", "-o", out)
            assert result.status in (0, 1, 3), result
            ruling = load(out)["acceptance"]["rulings"][0]
            assert {"pass": 0, "fail": 1, "inconclusive": 3}[ruling["verdict"]] == result.status, (ruling, result)
            found.append(ruling)
    counts = {v: sum(r["verdict"] == v for r in found) for v in ("pass", "fail", "inconclusive")}
    print(f"# limit {limit_us} us, delay {delay_us} us: {counts}", flush=True)
    return found, counts


@case("twice the limit: no run passes, and nearly all fail")
def _():
    _, counts = gate(2 * LIMIT_US, range(1, RUNS + 1))
    assert counts["pass"] == 0 and counts["fail"] >= RUNS - 3, counts


@case("half the limit: no run fails, and nearly all pass")
def _():
    _, counts = gate(LIMIT_US // 2, range(101, RUNS + 101))
    assert counts["fail"] == 0 and counts["pass"] >= RUNS - 3, counts


@case("at the limit: hardly any run fails, and one that does has two independent intervals beyond it")
def _():
    # What a delay really adds is a little more than the delay. It is measured first, and its upper end is the limit.
    delay = LIMIT_US // 2
    truth = measure("-t", f"tcp,tcp,label=slow,fault.delay={delay}us", "-s", 8, "-n", 60, "-x", 10, "--launches", "15:15",
                    "--seed", 200, status=None)
    limit = comparison(truth.document, "tcp", "slow", size=8)["overhead_us"]["ci_high"]
    found, counts = gate(delay, range(201, RUNS + 201), f"{limit:.3f}")
    for r in found:
        if r["verdict"] == "fail":
            assert r["first"]["ci_low"] > limit - 0.001 and r["fresh"]["ci_low"] > limit - 0.001, r
    assert counts["fail"] <= 2, counts


main()
