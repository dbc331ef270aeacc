#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every document that xportbench writes is valid against docs/schema/result-1.json, and its numbers hold together."""
import copy
import csv
import glob
import io
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import BUILD, TOP, case, environment, finish, load, main, measure, run, start  # noqa: E402

SCHEMA = load(os.path.join(TOP, "docs", "schema", "result-1.json"))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
FAST = ("-n", 50, "-x", 5, "--launches", "6:6")


def strictly(text):
    """Parses JSON without the extensions that Python allows."""
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    def unique(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), f"a member appears twice: {keys}"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def validate(document):
    errors = [f"{'.'.join(map(str, e.absolute_path)) or 'document'}: {e.message[:200]}" for e in VALIDATOR.iter_errors(document)]
    assert not errors, "; ".join(errors[:5])


def close(a, b, tolerance=1e-6):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-9)


def rank(n):
    """k of the 95 % interval of the median, by whole numbers."""
    below, k = 0, 0
    while True:
        below += math.comb(n, k)
        if 40 * below > 2 ** n:
            return k
        k += 1


def interval(values):
    k, ordered = rank(len(values)), sorted(values)
    return (ordered[k - 1], ordered[-k]) if k else (None, None)


def check_interval(told, values, what):
    assert close(told["median"], statistics.median(values), 1e-6), (what, told, values)
    low, high = interval(values)
    if low is None:
        assert told["ci_low"] is None and told["ci_high"] is None, (what, told)
    else:
        assert close(told["ci_low"], low) and close(told["ci_high"], high), (what, told, values)


def check_numbers(document):
    """Everything that can be computed again from the blocks is what the document says."""
    by_key = {(r["label"], r["bench"], r["size"]): r for r in document["results"]}
    assert len(by_key) == len(document["results"])
    for key, r in by_key.items():
        medians = [statistics.median(b for b in row if b is not None) for row in r["block_medians"]]
        assert all(map(close, medians, r["launch_medians"])), (key, medians, r["launch_medians"])
        assert len(medians) == r["launches"] == len(r["launch_ids"])
        assert r["rounds"] == sum(b is not None for row in r["block_medians"] for b in row), key
        check_interval(r["latency_us"], r["launch_medians"], key)
        assert r["iterations"] == sum(n for _, n in r["histogram_ns"]), key
        wanted = {"p90": 100, "p99": 1000, "p999": 10000}
        for name, samples in wanted.items():
            assert (r["latency_us"][name] is None) == (r["iterations"] < samples), (key, name)
        if r["bandwidth_MBps"] and r["latency_us"]["median"] > 0:
            ways = 2 if r["bench"] == "bibw" else 1
            assert close(r["bandwidth_MBps"]["median"], ways * r["size"] / r["latency_us"]["median"]), key
    for c in document["comparisons"]:
        lower, upper = (by_key[c[end], c["bench"], c["size"]] for end in ("lower", "upper"))
        differences = []
        for launch, row in zip(upper["launch_ids"], upper["block_medians"]):
            if launch not in lower["launch_ids"]:
                continue
            below = lower["block_medians"][lower["launch_ids"].index(launch)]
            pairs = [u - b for u, b in zip(row, below) if u is not None and b is not None]
            if pairs:
                differences.append(statistics.median(pairs))
        # differences of rounded numbers: close to the largest of them
        scale = max(upper["latency_us"]["max"] or 0, 1) * 1e-6
        assert len(differences) == c["launches"], c
        assert all(abs(a - b) <= scale for a, b in zip(differences, c["launch_overheads"])), (c, differences)
        check_interval(c["overhead_us"], c["launch_overheads"], c)
        low, high = c["overhead_us"]["ci_low"], c["overhead_us"]["ci_high"]
        assert c["distinguishable"] == (low is not None and (low > 0 or high < 0)), c
        if c["overhead_pct"] is not None:
            assert close(c["overhead_pct"], 100 * c["overhead_us"]["median"] / lower["latency_us"]["median"]), c


def documents_made_by_hand():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(BUILD, "tests", "test_report_documents")
        done = subprocess.run([program, folder], capture_output=True, text=True, timeout=120, env=environment(), check=False)
        assert done.returncode == 0, done.stderr[-500:] + done.stdout[-500:]
        found = {}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name] = strictly(file.read())
    return found


@case("the schema is itself valid and closed: an unknown member is noticed")
def _():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    document = next(iter(documents_made_by_hand().values()))
    document["unheard_of"] = 1
    assert not VALIDATOR.is_valid(document)


@case("docs/findings.md explains every finding that the program can make")
def _():
    codes = set()
    for path in glob.glob(os.path.join(TOP, "core", "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for call in re.findall(r"finding\((.*?)\);", file.read(), re.S):
                codes |= set(re.findall(r'"(?:info|warning|invalid)",\s*"([a-z-]+)"', call))
    with open(os.path.join(TOP, "docs", "findings.md"), encoding="utf-8") as file:
        explained = set(re.findall(r"^### ([a-z-]+) \(", file.read(), re.M))
    assert len(codes) > 15, codes
    assert codes <= explained, f"not explained: {sorted(codes - explained)}"


@case("complete, running, interrupted and failed runs leave valid documents")
def _():
    documents = documents_made_by_hand()
    assert len(documents) == 8, sorted(documents)
    for name, document in documents.items():
        try:
            validate(document)
            check_numbers(document)
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem
    assert documents["running.json"]["partial"] and documents["interrupted.json"]["partial"]
    assert not documents["complete.json"]["partial"] and not documents["failures.json"]["partial"]


@case("with every published table beside it, a run is valid, and `report` prints what it printed")
def _():
    tables = [line for line in run("references").out.splitlines() if line and line[0] != " "]
    assert len(tables) > 10, tables
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        for table in tables:
            swap = ("-b", "swap", "--total", "2M", "-s", "1M,2M", "--protocol", "0,3") if table.startswith("commtest") else ("-s", "8,1K", "-b", "pingpong,bw")
            result = run("-t", "null", *swap, "-n", 5, "--launches", "1:1", "--reference", table, "-o", path)
            assert result.status in (0, 3) and table in result.out, (table, result)
            with open(path, encoding="utf-8") as file:
                validate(strictly(file.read()))
            again = run("report", path)
            assert again.out == result.out and not again.err, (table, again)


@case("the schema refuses what the program refuses")
def _():
    document = documents_made_by_hand()["complete.json"]
    for path, value in ((("schema",), 2), (("results", 0, "latency_us", "median"), "NaN"), (("results", 0, "bench"), "x"),
                        (("results", 0, "size"), -1), (("transports", 0, "status"), "fine"), (("findings",), None),
                        (("transports", 0, "label"), None), (("comparisons", 0, "distinguishable"), 1)):
        bad = copy.deepcopy(document)
        inner = bad
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value
        assert not VALIDATOR.is_valid(bad), path
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(bad, file)
            file.flush()
            result = run("report", file.name, timeout=60)
        assert result.status == 2 and path[0] in result.err and not result.out, (path, result)
        assert len(result.err.strip().splitlines()) == 1, result.err


@case("a real run is valid and its numbers follow from its blocks")
def _():
    result = measure("-t", "tcp,tcp,label=again,null", "-s", "0,1,1000,64K", "-b", "pingpong,bw,bibw", *FAST, "--seed", 7,
                     "-W", 8, timeout=280, status=None)
    assert result.status in (0, 3, 4), result
    validate(result.document)
    check_numbers(result.document)
    # on a machine that others load, a block may miss its deadline: then its transport has failed, and the others are whole
    whole = {t["label"] for t in result.document["transports"] if t["status"] == "ok"}
    assert (result.status == 4) == (len(whole) < 3), result
    assert {(r["label"], r["bench"], r["size"]) for r in result.document["results"] if r["label"] in whole} == {
        (label, bench, size) for label in whole for bench in ("pingpong", "bw", "bibw") for size in (0, 1, 1000, 65536)}
    assert result.document["seed"] == 7 and not result.document["partial"]
    assert {c["lower"] for c in result.document["comparisons"] if c["baseline"]} == {"tcp"}


@case("a run with an unavailable transport is valid and says why")
def _():
    result = measure("-t", "tcp,tcp:nosuchdev,label=absent", "-s", 8, *FAST, status=4)
    validate(result.document)
    check_numbers(result.document)
    absent = next(t for t in result.document["transports"] if t["label"] == "absent")
    assert absent["status"] != "ok" and "nosuchdev" in absent["error"], absent


@case("a run with an injected delay is valid and tells the delay")
def _():
    result = measure("-t", "tcp,tcp,label=slow,fault.delay=20us", "-s", 8, *FAST, status=None)
    assert result.status in (0, 3), result
    validate(result.document)
    slow = next(r for r in result.document["results"] if r["label"] == "slow")
    assert slow["fault"]["imposed_delay_us"]["median"] > 0
    assert next(r for r in result.document["results"] if r["label"] == "tcp")["fault"] is None


@case("the file is a valid document at every moment of a run, and after Ctrl-C")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        process = start("-t", "tcp,tcp,label=again", "-s", "1,1K", "-n", 50, "--launches", "1000:1000", "--time", 600, "-o", path)
        seen, begin = 0, time.monotonic()
        while time.monotonic() - begin < 60 and (seen == 0 or time.monotonic() - begin < 4) and process.poll() is None:
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    document = strictly(file.read())
                validate(document)
                check_numbers(document)
                assert document["partial"], "a running run must be marked partial"
                seen += document["launches"] > 0
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        result = finish(process, 60)
        assert seen > 0, result
        document = load(path)
        validate(document)
        check_numbers(document)
        assert document["partial"] and document["stopped_by"] == "interrupted", result
        assert "PARTIAL" in result.out
        assert os.listdir(folder) == ["run.json"], os.listdir(folder)


@case("`report` prints what the run printed, in every form")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        first = run("-t", "tcp,tcp,label=again", "-s", "1,1K", *FAST, "-o", path)
        assert first.status in (0, 3), first
        again = run("report", path)
        assert again.out == first.out, (first.out, again.out)
        assert max(map(len, again.out.splitlines())) <= 100
        assert "\033" not in again.out
        as_json = run("report", path, "--format", "json")
        assert strictly(as_json.out) == load(path)
        rows = list(csv.DictReader(io.StringIO(run("report", path, "--format", "csv").out)))
        assert len(rows) == 4
        for row in rows:
            r = next(r for r in load(path)["results"] if r["label"] == row["label"] and r["size"] == int(row["size_bytes"]))
            assert close(float(row["latency_us_median"]), r["latency_us"]["median"])
            assert (row["overhead_us_median"] == "") == (row["label"] == "tcp")


main()
