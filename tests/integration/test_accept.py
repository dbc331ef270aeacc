#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 1200
"""xportbench accept: what is refused before anything runs, verdicts and exit statuses, machine forms, baselines."""
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import SANITIZED, TOP, XB, case, finish, load, main, run, start, wait_until  # noqa: E402

FAST = ("-n", 50, "-x", 10, "--launches", "6:6", "-q")
# a delay of 100 us is far beyond what this machine's noise does to the difference of two transports
TWO = "tcp,tcp,label=slow,fault.delay=100us"
RUN = "[run]\nnoise_budget = 100 %\n"
OVERHEAD = RUN + "[limit added]\ntransport = slow\nmetric = overhead_us\nsizes = 8\n"
GENEROUS = RUN + "[limit generous]\ntransport = tcp\nmetric = latency_us\nsizes = 8\nmax = 1 s\n"


def accept(limits, *arguments, status=None, keep=None, timeout=120):
    """Runs accept with these limits; the document, JUnit text and output are in the result."""
    with tempfile.TemporaryDirectory() as folder:
        ini, out, junit = (os.path.join(folder, name) for name in ("limits.ini", "run.json", "junit.xml"))
        with open(ini, "w", encoding="utf-8") as file:
            file.write(limits)
        result = run("accept", ini, "-o", keep or out, "--junit", junit, *arguments, timeout=timeout)
        result.document = load(keep or out) if os.path.exists(keep or out) else None
        result.junit = xml.parse(junit).getroot() if os.path.exists(junit) else None
        assert status is None or result.status == status, f"expected exit {status}, got {result!r} {result.out[-600:]}"
        return result


def validate(document):
    import jsonschema
    with open(os.path.join(TOP, "docs", "schema", "result-1.json"), encoding="utf-8") as file:
        jsonschema.validate(document, json.load(file))


def verdicts(document):
    return [r["verdict"] for r in document["acceptance"]["rulings"]]


@case("what is wrong with the limits is said with its line before anything runs")
def _():
    limit = "[limit a]\ntransport = tcp\nmetric = latency_us\n"
    for text, words in ((limit + "maximum = 3\n", (":4:", "unknown key 'maximum'")),
                        (limit + "max = 3 GB/s\n", (":4:", "choose from us, ns, ms, s")),
                        (limit + "sizes = 8\nmin = 5\nmax = 4\n", (":1:", "contradicts itself")),
                        (limit.replace("tcp", "ucx") + "max = 3\n", (":1:", "matches nothing", "there are tcp")),
                        (limit + "max = 1 s\nsizes = 4K\n", (":1:", "none of those measured")),
                        (limit + "within = 5 % of baseline\n", (":4:", "--against FILE")),
                        (limit + "within = 5 % of median\n", (":1:", "one pair")),
                        (limit + "within = 5 % of reference no-such-table.csv\n", (":4:", "no-such-table.csv"))):
        result = accept(text, "-t", "tcp", "-s", 8, *FAST, status=2)
        assert result.document is None and result.junit is None and not result.out, result.out
        assert all(word in result.err for word in words), (words, result.err)
        assert result.err.count("\n") == 1, result.err


@case("without limits there is nothing to accept, and missing files are named")
def _():
    for arguments in (("accept",), ("accept", "/nonexistent/limits.ini"), ("accept", "--self-test"), ("accept", TOP)):
        result = run(*arguments, "-t", "tcp")
        assert result.status == 2 and result.err.startswith("xportbench: ") and not result.out, result
    result = accept(GENEROUS, "-t", "tcp", "--against", "/nonexistent/base.json", *FAST, status=2)
    assert "/nonexistent/base.json" in result.err, result.err


@case("within the limits: PASS, exit status 0, a document of the schema, JUnit that a parser reads")
def _():
    result = accept(GENEROUS, "-t", "tcp", *FAST, status=0)
    validate(result.document)
    assert result.document["acceptance"]["verdict"] == "pass" and verdicts(result.document) == ["pass"]
    assert result.document["acceptance"]["retests"] == 0
    assert "no network was judged" in result.out, result.out
    assert [len(n["detour_pct"]) for n in result.document["noise"]] == [6, 6], "the noise budget wants a probe in each launch"
    assert result.document["stopped_by"] in ("verdict", "fixed"), result.document["stopped_by"]
    assert "Acceptance by" in result.out and "PASS" in result.out and "FAIL" not in result.out
    suites = result.junit.findall("testsuite")
    assert [s.get("name") for s in suites] == ["generous"] and suites[0].get("failures") == "0"
    assert len(suites[0].findall("testcase")) == 1 and not result.junit.findall(".//failure")


@case("beyond a limit: FAIL only after fresh launches said so too, exit status 1")
def _():
    result = accept(OVERHEAD + "max = 20 us\n", "-t", TWO, *FAST, status=1)
    validate(result.document)
    a = result.document["acceptance"]
    assert a["verdict"] == "fail" and a["retests"] == 1, a
    ruling = a["rulings"][0]
    assert ruling["first"]["verdict"] == ruling["fresh"]["verdict"] == "fail" and ruling["retest_pair"] == [0, 1]
    assert ruling["fresh"]["value"] != ruling["first"]["value"], "the retest measured nothing of its own"
    assert ruling["fresh"]["ci_low"] > 20 and ruling["fresh"]["bound"] == 20, ruling
    suite = result.junit.find("testsuite")
    assert suite.get("failures") == "1" and suite.find("testcase/failure").get("type") == "fail"
    assert "overhead_us" in suite.find("testcase/failure").get("message")
    assert "confirmed by fresh launches" in " ".join(result.out.split()), result.out


@case("a saved acceptance run prints again as it was, also one line a node")
def _():
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "kept.json")
        first = accept(OVERHEAD + "max = 20 us\n", "-t", TWO, *FAST, keep=kept, status=1)
        again = run("report", kept)
        assert again.status == 1 and again.out == first.out, again.out
        nodes = run("report", kept, "--format", "nodes")
        lines = nodes.out.splitlines()
        # both ends are on this host: one line, by the name that a scheduler knows
        assert nodes.status == 1 and len(lines) == 1, nodes.out
        assert re.fullmatch(re.escape(os.uname().nodename) + r" FAIL added: overhead_us .*", lines[0]), lines
        # of two endpoints on a host, the worse one speaks for it
        document = load(kept)
        document["acceptance"]["nodes"][0].update(host="n1:0", verdict="pass", reason="")
        document["acceptance"]["nodes"][1].update(host="n1:1", verdict="inconclusive", reason="why")
        with open(kept, "w", encoding="utf-8") as file:
            json.dump(document, file)
        assert run("report", kept, "--format", "nodes").out == "n1 INCONCLUSIVE why\n"
        # what is damaged is refused, not printed
        document = load(kept)
        document["acceptance"]["rulings"][0]["verdict"] = 7
        with open(kept, "w", encoding="utf-8") as file:
            json.dump(document, file)
        damaged = run("report", kept)
        assert damaged.status == 2 and "acceptance.rulings[0].verdict" in damaged.err, damaged


@case("too few launches: INCONCLUSIVE with what is missing, exit status 3, an error in JUnit")
def _():
    result = accept(GENEROUS, "-t", "tcp", *FAST, "--launches", "3:3", status=3)
    validate(result.document)
    ruling = result.document["acceptance"]["rulings"][0]
    assert ruling["verdict"] == "inconclusive" and "6 are needed" in ruling["first"]["reason"], ruling
    assert ruling["more_s"] > 0, ruling
    assert result.junit.find("testsuite").get("errors") == "1" and result.junit.find(".//error") is not None


@case("more noise than the budget: INCONCLUSIVE, whatever the numbers")
def _():
    limits = GENEROUS.replace("100 %", "0 %") + "[limit quiet]\nmetric = noise_pct\nmax = 100 %\n"
    result = accept(limits, "-t", "tcp", *FAST)
    probes = [p for n in result.document["noise"] for p in n["detour_pct"]]
    assert len(result.document["noise"]) == 2 and len(probes) == 12, "a probe of each core in each launch"
    validate(result.document)
    expected = "inconclusive" if max(sorted(n["detour_pct"])[2] for n in result.document["noise"]) > 0 else None
    if expected:
        assert verdicts(result.document) == ["inconclusive", "pass"], result.out
        assert "noise budget" in result.out and result.status == 3, result


@case("a run that is not valid gives no PASS and no FAIL in any form, exit status 3")
def _():
    core = min(os.sched_getaffinity(0))
    for bound in ("1 s", "0.001 us"):
        result = accept(GENEROUS.replace("1 s", bound), "-t", "tcp,poll=block,label=tcp", *FAST, "--bind", f"{core},{core}", status=3)
        validate(result.document)
        assert verdicts(result.document) == ["inconclusive"] and result.document["acceptance"]["retests"] == 0, result.out
        assert "the run is not valid: same-cpu: both ends" in result.document["acceptance"]["rulings"][0]["first"]["reason"]
        assert result.junit.find("testsuite").get("errors") == "1" and result.junit.find("testsuite").get("failures") == "0"
        assert "Acceptance by" in result.out and " PASS" not in result.out and "FAIL" not in result.out, result.out
        # as many launches as asked for: more of them would not help
        assert result.document["launches"] == 6, result.document["launches"]


MANY = 12 if SANITIZED else 64  # sanitized processes are slow to start


@case(f"{MANY} endpoints: every pair has its verdict, and the map and the controller stay small")
def _():
    count = MANY * (MANY - 1) // 2
    limits = RUN + "[limit all]\ntransport = null\nmetric = latency_us\nsizes = 8\nmax = 1 s\n" \
        "[limit way]\ntransport = null\nmetric = noise_pct\nmax = 100 %\n"
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    result = accept(limits, "-t", "null", "--endpoints", MANY, *FAST, "-n", 4, "-x", 1, status=0, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    pairs = {tuple(r["pair"]) for r in result.document["acceptance"]["rulings"] if r["limit"] == "all"}
    assert pairs == {(a, b) for b in range(MANY) for a in range(b)}, len(pairs)
    assert len(result.document["acceptance"]["rulings"]) == 2 * count and set(verdicts(result.document)) == {"pass"}
    assert "latency_us of all pairs, worse than the median" in result.out
    controller = result.document["controller"]
    print(f"# {MANY} endpoints, {count} pairs, 6 launches: {time.monotonic() - begin:.1f} s, of all processes "
          f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s of CPU time; the controller took "
          f"{controller['cpu_s_while_timed']:.2f} of {controller['timed_s']:.1f} timed s and {controller['memory_MB']:.0f} MB")
    assert controller["memory_MB"] < 500, controller


@case("the report of a network too large for a map is there at once")
def _():
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "kept.json")
        accept(RUN + "[limit all]\ntransport = null\nmetric = latency_us\nsizes = 8\nmax = 1 s\n", "-t", "null", "--endpoints", 3,
               *FAST, keep=kept, status=0)
        document = load(kept)
        document["acceptance"]["matrices"][0]["values"] = [[1 + i * 0.001 + k for k in range(500)] for i in range(500)]
        with open(kept, "w", encoding="utf-8") as file:
            json.dump(document, file)
        result = run("report", kept, timeout=60)
        assert result.status == 0 and "of all pairs, worse than" not in result.out, result


@case("what everybody violates is measured again for some, and the others say that they were not")
def _():
    limits = RUN + "[limit hopeless]\ntransport = null\nmetric = latency_us\nsizes = 8\nmax = 0.0001 us\n"
    result = accept(limits, "-t", "null", "--endpoints", 7, "--bind", "none", *FAST, status=1)
    rulings = result.document["acceptance"]["rulings"]
    assert len(rulings) == 21 and result.document["acceptance"]["retests"] == 16, result.document["acceptance"]["retests"]
    left = [r for r in rulings if not r["fresh"]]
    assert len(left) == 5 and verdicts(result.document).count("fail") == 16, result.out
    assert all(r["verdict"] == "inconclusive" and r["first"]["reason"] == "violated; not measured again: 16 others have been"
               for r in left), left


@case("pairs that ran at the same time: the retest is compared with what one that passed has alone, measured once")
def _():
    limits = RUN + "[limit alike]\ntransport = slow\nmetric = latency_us\nsizes = 8\nmax = 1 ms\nwithin = 900 % of median\nviolated_when = both\n"
    # of two, endpoint 1 is always slow: the reference, which is not among the others, is slowed down alone as much as the suspect
    transport = "tcp,poll=block,label=slow,fault.delay=20ms,fault.endpoint=1"
    loud = tuple(x for x in FAST if x != "-q")
    for more, alone, status in (((), 1, 0), (("--serial",), 0, 1)):
        result = accept(limits, "-t", transport, "--endpoints", 5, "--bind", "none", *loud, "-n", 6, "-x", 1, *more, status=status)
        validate(result.document)
        violated = [r for r in result.document["acceptance"]["rulings"] if r["first"]["verdict"] == "fail"]
        assert len(violated) == 4 and all(1 in r["pair"] for r in violated), result.out
        assert all((r["fresh"]["bound"] > 3 * r["first"]["bound"]) == alone for r in violated), violated
        assert result.err.count("relative to pairs that ran at the same time; measuring") == alone, result.err
        assert result.err.count("a limit is violated; measuring") == result.document["acceptance"]["retests"] > 0, result.err


@case("a transport that dies: UNMEASURED, exit status 4, and the other limits have their verdicts")
def _():
    limits = GENEROUS + "[limit dead]\ntransport = dead\nmetric = latency_us\nsizes = 8\nmax = 1 s\n"
    result = accept(limits, "-t", "tcp,tcp,label=dead,fault.crash=1", *FAST, status=4)
    validate(result.document)
    assert verdicts(result.document) == ["pass", "unmeasured"], result.out
    assert result.junit.find(".//error").get("type") == "unmeasured"


@case("a transport that dies by itself on one endpoint after the other leaves none of them out")
def _():
    limits = GENEROUS.replace("tcp", "null") + "[limit dead]\ntransport = dead\nmetric = latency_us\nsizes = 8\nmax = 1 s\n"
    result = accept(limits, "-t", "null,null,label=dead,fault.crash=1", *FAST, "--endpoints", 4, status=4)
    validate(result.document)
    acceptance = result.document["acceptance"]
    assert acceptance["left_out"] == [], acceptance["left_out"]
    by_transport = {name: {r["verdict"] for r in acceptance["rulings"] if r["transport"] == name} for name in ("null", "dead")}
    assert by_transport == {"null": {"pass"}, "dead": {"unmeasured"}}, (by_transport, result.out)
    assert len({tuple(r["pair"]) for r in acceptance["rulings"] if r["transport"] == "null"}) == 6, acceptance["rulings"]
    assert "is taken back" in result.err, result.err


@case("of eight nodes two may fail in one transport, and only the third makes it the transport's fault")
def _():
    limits = GENEROUS.replace("tcp", "null") + "[limit dead]\ntransport = dead\nmetric = latency_us\nsizes = 8\nmax = 1 s\n"
    # whoever has this number ends, also when there are fewer
    result = accept(limits, "-t", "null,null,label=dead,fault.crash=1,fault.endpoint=4", *FAST, "--endpoints", 8, status=4)
    acceptance = result.document["acceptance"]
    assert result.err.count("is left out;") == 2 and result.err.count("is taken back") == 2, result.err
    assert acceptance["left_out"] == [] and len(acceptance["nodes"]) == 8, acceptance["left_out"]


@case("a node without which nothing is left is not left out: its transport is, and the others are measured on")
def _():
    limits = GENEROUS.replace("tcp", "null") + "[limit dead]\ntransport = dead\nmetric = latency_us\nsizes = 8\nmax = 1 s\n"
    with tempfile.TemporaryDirectory() as folder:
        star = os.path.join(folder, "star")
        with open(star, "w", encoding="utf-8") as file:
            file.write("0 1\n0 2\n3 0\n")
        result = accept(limits, "-t", "null,null,label=dead,fault.crash=1,fault.endpoint=0", *FAST, "--endpoints", 4, "--pairs", star, status=4)
    acceptance = result.document["acceptance"]
    assert acceptance["left_out"] == [] and result.document["launches"] == 6, (acceptance["left_out"], result.document["launches"])
    by_transport = {name: [r["verdict"] for r in acceptance["rulings"] if r["transport"] == name] for name in ("null", "dead")}
    assert by_transport["null"] == ["pass"] * 3 and set(by_transport["dead"]) == {"unmeasured"}, (by_transport, result.out)


@case("the share of the payload on the device is judged by its counters")
def _():
    limits = RUN + "[limit path]\ntransport = tcp\nmetric = share_of_payload\n"
    sizes = ("-s", "64K", "-n", 50)
    result = accept(limits + "min = 95 %\n", "-t", "tcp", *FAST, *sizes, status=0)
    assert result.document["acceptance"]["rulings"][0]["first"]["value"] >= 0.95
    assert accept(limits + "max = 50 %\n", "-t", "tcp", *FAST, *sizes, status=1).document["acceptance"]["retests"] == 1


@case("what is violated by the run as a whole is measured again with all its sizes")
def _():
    limits = RUN + "[limit path]\ntransport = tcp\nmetric = share_of_payload\nmax = 50 %\n"
    result = accept(limits, "-t", "tcp", *FAST, "-s", "0,64K", "-b", "pingpong", status=1)
    ruling = result.document["acceptance"]["rulings"][0]
    assert ruling["verdict"] == ruling["fresh"]["verdict"] == "fail" and ruling["fresh"]["value"] > 0.5, ruling


@case("99th percentiles, bandwidth and message rate are judged by launch")
def _():
    limits = RUN
    for metric, bound in (("p99_us", "max = 10 s"), ("bandwidth_MBps", "min = 0.001"), ("message_rate_Mps", "min = 0.000001")):
        limits += f"[limit {metric}]\ntransport = tcp\nmetric = {metric}\nsizes = 1K\n{bound}\n"
    result = accept(limits, "-t", "tcp", *FAST, "-n", 200, status=0)
    validate(result.document)
    assert all(r["first"]["launches"] == 6 for r in result.document["acceptance"]["rulings"]), result.out
    p99 = result.document["acceptance"]["rulings"][0]["first"]["value"]
    median = next(r for r in result.document["results"] if r["bench"] == "pingpong")["latency_us"]["median"]
    assert p99 > median, (p99, median)


@case("a published table is a measure too")
def _():
    with tempfile.TemporaryDirectory() as folder:
        for name, us, status in (("fast.csv", 0.001, 1), ("slow.csv", 1000000, 0)):
            table = os.path.join(folder, name)
            with open(table, "w", encoding="utf-8") as file:
                file.write(f"# title: made up\n# provenance: this test\n# bench: pingpong\nbytes,repetitions,latency_us,MBps\n8,1000,{us},1\n")
            limits = RUN + f"[limit table]\ntransport = tcp\nmetric = latency_us\nsizes = 8\nwithin = 50 % of reference {table}\n"
            if len(table) < 120:
                accept(limits, "-t", "tcp", *FAST, status=status)
        accept(limits.replace("sizes = 8", "sizes = 16"), "-t", "tcp", *FAST, status=2)


@case("a table of another benchmark, and a value that its network cannot have, are refused with the line")
def _():
    fitting = {"pingpong": {"pingpong"}, "bw": {"bw"}}
    tables = [os.path.basename(t)[:-4] for t in glob.glob(os.path.join(TOP, "share", "references", "*.csv"))]
    assert len(tables) >= 18, tables
    for table in tables:
        with open(os.path.join(TOP, "share", "references", table + ".csv"), encoding="utf-8") as file:
            of = re.search(r"^# bench: (\w+)", file.read(), re.M).group(1)
        for bench in ("pingpong", "bw", "bibw"):
            limits = RUN + f"[limit t]\ntransport = tcp\nmetric = bandwidth_MBps\nbenchmark = {bench}\nsizes = 4K\n" \
                f"within = 50 % of reference {table}\n"
            if bench in fitting.get(of, ()):
                continue
            refused = accept(limits, "-t", "tcp", *FAST, status=2)
            assert ":8: the table" in refused.err, refused.err
            assert f"is of benchmark {of}, and the limit of {bench}" in refused.err, refused.err
    limits = RUN + "[limit t]\ntransport = tcp\nmetric = latency_us\nsizes = {}\nwithin = 50 % of reference osu-latency-opa-openmpi-4.1.1\n"
    refused = accept(limits.format("8,4K"), "-t", "tcp", *FAST, status=2)
    assert ":7:" in refused.err and "for 8 bytes is beyond what its network can do" in refused.err, refused.err
    accept(limits.format("4K"), "-t", "tcp", *FAST, "--launches", "3:3", status=3)


BASE = RUN + "[limit steady]\ntransport = it\nmetric = latency_us\nsizes = 8\nwithin = 300 % of baseline\n"


@case("a baseline is recorded, compared with, and what differs is said")
def _():
    with tempfile.TemporaryDirectory() as folder:
        base = os.path.join(folder, "base.json")
        recorded = run("accept", "--record", base, "-t", "tcp,label=it", "-s", 8, *FAST)
        assert recorded.status == 0, recorded
        document = load(base)
        validate(document)
        assert document["started"] and document["hosts"][0]["cpus_used"] and document["seed"], document["hosts"]
        same = accept(BASE, "-t", "tcp,label=it", "--against", base, *FAST, status=0)
        assert same.document["acceptance"]["baseline"]["differences"] == [], same.out
        validate(same.document)
        slow = accept(BASE, "-t", "tcp,label=it,fault.delay=2ms", "--against", base, *FAST, status=1)
        assert slow.document["acceptance"]["rulings"][0]["first"]["bound"] > 0
        # another version is told, and judged all the same
        document["transports"][0]["version"] = "0.0.1"
        with open(base, "w", encoding="utf-8") as file:
            json.dump(document, file)
        other = accept(BASE, "-t", "tcp,label=it", "--against", base, *FAST, status=0)
        assert [d["kind"] for d in other.document["acceptance"]["baseline"]["differences"]] == ["version"], other.out
        assert "0.0.1 when the baseline was recorded" in " ".join(other.out.split())
        # other cores, or another machine: no comparison is made
        for change, kind in ((lambda d: d["hosts"][0].update(cpus_used=[98, 99]), "placement"),
                             (lambda d: d["hosts"][0].update(cpu="another CPU"), "hardware")):
            changed = json.loads(json.dumps(document))
            change(changed)
            with open(base, "w", encoding="utf-8") as file:
                json.dump(changed, file)
            result = accept(BASE, "-t", "tcp,label=it", "--against", base, *FAST, status=3)
            ruling = result.document["acceptance"]["rulings"][0]
            assert kind in ruling["first"]["reason"] and ruling["verdict"] == "inconclusive", ruling


@case("a run beyond its limits is not recorded as a baseline")
def _():
    with tempfile.TemporaryDirectory() as folder:
        base = os.path.join(folder, "base.json")
        result = accept(OVERHEAD + "max = 20 us\n", "-t", TWO, "--record", base, *FAST, status=1)
        assert not os.path.exists(base) and "is not written" in result.err, result.err


@case("a violation is not hidden by output that cannot be written, and is not recorded")
def _():
    with tempfile.TemporaryDirectory() as folder:
        ini, base = os.path.join(folder, "limits.ini"), os.path.join(folder, "base.json")
        with open(ini, "w", encoding="utf-8") as file:
            file.write(OVERHEAD + "max = 20 us\n")
        with open("/dev/full", "w", encoding="utf-8") as full:
            words = [str(x) for x in (XB, "accept", ini, "-t", TWO, "--record", base, *FAST)]
            result = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
        assert result.returncode == 1 and not os.path.exists(base), result
        assert "is not written" in result.stderr and "a limit is violated" in result.stderr, result


@case("an interrupted run leaves the baseline that there was, and is not taken for one")
def _():
    with tempfile.TemporaryDirectory() as folder:
        base, out = os.path.join(folder, "base.json"), os.path.join(folder, "out.json")
        with open(base, "w", encoding="utf-8") as file:
            file.write("the good one")
        process = start("accept", "--record", base, "-o", out, "-t", "tcp,label=it", "-s", 8, *FAST, "--launches", "900:900")
        try:
            wait_until(lambda: os.path.exists(out) and load(out)["launches"] >= 2, 60, "two launches")
        finally:
            process.send_signal(signal.SIGINT)
        result = finish(process, 60)
        assert result.status == 130 and "is not written" in result.err and "interrupted" in result.err, result
        with open(base, encoding="utf-8") as file:
            assert file.read() == "the good one"
        assert load(out)["partial"] is True
        refused = accept(BASE, "-t", "tcp,label=it", "--against", out, *FAST, status=2)
        assert out in refused.err and "did not end" in refused.err, refused.err


@case("a host that cannot be reached leaves no verdict of another day: everything is UNMEASURED, and it is named")
def _():
    limits = GENEROUS + "[limit quiet]\nmetric = noise_pct\nmax = 10 %\n[limit path]\ntransport = tcp\nmetric = share_of_payload\nmin = 95 %\n"
    with tempfile.TemporaryDirectory() as folder:
        ini, out, junit, ssh = (os.path.join(folder, name) for name in ("limits.ini", "run.json", "junit.xml", "ssh"))
        with open(ini, "w", encoding="utf-8") as file:
            file.write(limits)
        with open(ssh, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho no route to host >&2\nexit 255\n")
        os.chmod(ssh, 0o755)
        words = ("accept", ini, "-t", "tcp", "-o", out, "--junit", junit, *FAST)
        for host, more in (("nowhere.invalid", ()), ("192.0.2.1", ("--ssh-command", ssh)), ("nowhere.invalid,else.invalid", ())):
            for path in (out, junit):
                with open(path, "w", encoding="utf-8") as file:
                    file.write("PASS of yesterday")
            result = run(*words, "-H", "localhost," + host, *more)
            assert result.status == 4, result
            names, document = host.split(","), load(out)
            validate(document)
            a = document["acceptance"]
            assert a["verdict"] == "unmeasured" and set(verdicts(document)) == {"unmeasured"}, a
            assert [r["limit"] for r in a["rulings"]] == ["generous", "quiet", "path"], a["rulings"]
            assert all(r["first"]["reason"] for r in a["rulings"]), a["rulings"]
            assert [x["host"] for x in a["left_out"]] == names and all(x["reason"] for x in a["left_out"]), a["left_out"]
            assert [n["host"] for n in a["nodes"]] == ["localhost"], a["nodes"]
            suites = xml.parse(junit).getroot().findall("testsuite")
            assert [s.get("name") for s in suites] == ["generous", "quiet", "path", "reachable"], suites
            assert all(s.get("errors") == s.get("tests") for s in suites) and "PASS" not in result.out, result.out
            again = run("report", out)
            assert again.status == 4 and again.out == result.out and names[-1] in again.out, again.out
            lines = run("report", out, "--format", "nodes").out.splitlines()
            assert [line.split()[:2] for line in lines] == [[n, "UNMEASURED"] for n in ("localhost", *names)], lines


@case("JUnit and baseline files that cannot be written are found out before anything is measured")
def _():
    with tempfile.TemporaryDirectory() as folder:
        for option in ("--junit", "--record"):
            for place in (os.path.join(folder, "missing", "file"), folder):
                out = os.path.join(folder, "run.json")
                result = accept(GENEROUS, "-t", "tcp", *FAST, option, place, keep=out, status=2)
                assert place in result.err and option in result.err and not result.out and result.document is None, result
        assert os.listdir(folder) == [], os.listdir(folder)


def missed(output):
    """Limits of a self-test that find less than 99 % of what is 15 % beyond them; none may raise more than 1 % false alarms."""
    assert all(float(x) <= 1 for x in re.findall(r"at most ([0-9.]+) % \(wanted", output)), output
    return [section.split(":")[0] for section in re.split(r"^limit ", output, flags=re.M)[1:]
            if any(float(x) < 99 for x in re.findall(r"at least ([0-9.]+) % \(wanted", section))]


@case("every shipped profile is understood, and keeps what is wanted of a gate")
def _():
    profiles = sorted(glob.glob(os.path.join(TOP, "share", "profiles", "*.ini")))
    assert len(profiles) >= 8, profiles
    for profile in profiles:
        result = run("accept", "--self-test", profile)
        # a difference of two times: where launches spread by more than 2 % it is INCONCLUSIVE, as the profile says
        known = ["mpi-overhead"] if "omni-path" in profile else []
        assert result.status == (1 if known else 0) and "wanted" in result.out, (profile, result.out, result.err)
        assert missed(result.out) == known, (profile, result.out)
        for at_2_pct in re.findall(r"^15 % beyond the limit *\| *[0-9.]+ +([0-9.]+)", result.out, re.M):
            assert float(at_2_pct) >= 99, (profile, result.out)
        with open(profile, encoding="utf-8") as file:
            text = file.read()
        numbers = len(re.findall(r"^(max|min|within) =", text, re.M))
        sources = len(re.findall(r"^; .*\n(?:max|min|within) =", text, re.M))
        assert numbers == sources, f"{profile}: {numbers} numbers, {sources} of them with a comment that says why"


@case("the self-test's table in the guide is the one that the program prints")
def _():
    with open(os.path.join(TOP, "docs", "acceptance.md"), encoding="utf-8") as file:
        guide = file.read()
    limits = re.search(r"<!-- self-test limits -->\s*```ini\n(.*?)```", guide, re.S).group(1)
    table = re.search(r"<!-- self-test output -->\s*```text\n(.*?)```", guide, re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        ini = os.path.join(folder, "limits.ini")
        with open(ini, "w", encoding="utf-8") as file:
            file.write(limits)
        outputs = [run("accept", "--self-test", ini) for _ in range(2)]
        other = run("accept", "--self-test", ini, "--seed", 2)
    assert outputs[0].out == outputs[1].out, "the same seed, another table"
    # what the guide says of the limit on an overhead, and of no other
    assert outputs[0].status == 1 and missed(outputs[0].out) == ["mpi-on-top"], (outputs[0].status, missed(outputs[0].out))
    assert other.status == 1 and other.out != outputs[0].out, "another seed, the same table"
    stripped = "\n".join(line.rstrip() for line in outputs[0].out.strip().splitlines())
    assert stripped == table.strip(), f"the guide's table is not the program's; this is:\n{stripped}"


main()
