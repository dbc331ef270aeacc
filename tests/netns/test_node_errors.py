#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 300
"""A host that answers with an error is named in it, and acceptance goes on without that host."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts  # noqa: E402
from xbtest import Skip, case, finish, load, main, results, transport  # noqa: E402

NAMES = ["n0", "n1", "n2", "n3"]
SHORT = ("-s", "8", "-n", 20, "-x", 5, "--launches", 2, "--time", 30, "--bind", "none")
LIMITS = """[run]
transports = tcp:sx0,poll=block
noise_budget = 100 %
[limit latency]
transport = tcp:sx0
metric = latency_us
sizes = 8
max = 1 s
"""
hosts = None


def run(names, *arguments, status):
    return hosts.measure("-H", ",".join(names), *arguments, *SHORT, "--control-interface", "sx0", status=status)


@case("an interface that one host lacks: the error says which host, and the other transport is measured")
def _():
    r = run(["n0", "n1", "n2"], "-t", "tcp,tcp:sx0,label=second", status=4)
    second = transport(r.document, "second")
    assert second["status"] == "unavailable" and second["error"].startswith("worker 2 on n2: "), second
    assert "sx0" in second["error"] and second["error"] in r.err, (second, r.err)
    assert results(r.document, label="tcp") and transport(r.document, "tcp")["status"] == "ok"


@case("an interface that no host has is said once, of none of them")
def _():
    r = run(["n0", "n1", "n2"], "-t", "tcp,tcp:eth7,label=second", status=4)
    assert "eth7" in transport(r.document, "second")["error"], r.err


@case("corrupted payload names both ends of the pair")
def _():
    r = run(["n0", "n3"], "-t", "tcp,fault.corrupt=1", status=4)
    error = transport(r.document, "tcp")["error"]
    assert "between worker 0 on n0 and worker 1 on n3: " in error, error


@case("acceptance leaves the host out, names it, and judges the others")
def _():
    ini, out = os.path.join(hosts.folder, "limits.ini"), os.path.join(hosts.folder, "accept.json")
    with open(ini, "w", encoding="utf-8") as file:
        file.write(LIMITS)
    r = finish(hosts.start("accept", ini, "-H", ",".join(NAMES), "--ssh-command", hosts.ssh, "-o", out, "--control-interface", "sx0",
                           "--serial", "--bind", "none", "-n", 4, "-x", 1, "--launches", "6:12", "--time", 45, "-q"), 120)
    assert r.status == 4, r
    accepted = load(out)["acceptance"]
    assert [x["host"] for x in accepted["left_out"]] == ["n2"], (accepted["left_out"], r.err)
    assert "worker 2 on n2: " in accepted["left_out"][0]["reason"], accepted["left_out"]
    assert {tuple(x["hosts"]) for x in accepted["rulings"]} == {("n0", "n1"), ("n0", "n3"), ("n1", "n3")}, r.out
    assert {x["verdict"] for x in accepted["rulings"]} == {"pass"}, r.out


try:
    with Hosts(*NAMES) as hosts:
        for words in ("down", "name other0"):
            subprocess.run(["ip", "-n", hosts.namespace("n2"), "link", "set", "sx0", *words.split()], check=True)
        subprocess.run(["ip", "-n", hosts.namespace("n2"), "link", "set", "other0", "up"], check=True)
        main()
except Skip as reason:
    print(f"skip - hosts that answer with errors: {reason}")
