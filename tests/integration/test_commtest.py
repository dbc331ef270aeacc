#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-sanitize: no (the printer runs sanitized in the unit tests)
"""--format commtest, fed with what was published, prints what was published: all 66 lines, to the digit."""
import csv
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import TOP, case, main, run  # noqa: E402

TOTAL = 2097152
MODES = {"cache inv": "cache inv.", "1 iter": "1 iter.", "10 iter": "10 iter."}
TITLES = {("cache inv", "no"): "cache inv./no overlap", ("1 iter", "no"): "1 iterations/no overlap",
          ("10 iter", "no"): "10 iterations/no overlap", ("cache inv", "yes"): "cache inv. with overlap",
          ("1 iter", "yes"): "1 iterations with overlap", ("10 iter", "yes"): "10 iterations with overlap"}


def published(name):
    with open(os.path.join(TOP, "share", "references", name), encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


ROWS = published("commtest-sp3-sensitivity.csv")


def interval(printed):
    """What rounds to the printed number."""
    digits = printed.split("e")[0].partition(".")[2]
    half = 0.5 * 10 ** -len(digits) * 10 ** int(printed.partition("e")[2] or 0)
    return float(printed) - half, float(printed) + half


def minimum(row):
    """A time that agrees with all three printed forms of it; they were rounded from more digits than were printed."""
    n = TOTAL // int(row["msg_bytes"])
    low, high = interval(row["min_s"])
    per = interval(row["min_s_per_msg"])
    rate = interval(row["max_MBps"])
    low, high = max(low, per[0] * n, 2 * TOTAL / rate[1] / 1e6), min(high, per[1] * n, 2 * TOTAL / rate[0] / 1e6)
    assert low < high, row
    return (low + high) / 2


def eleven(row):
    """Relative times over the fastest, ascending, that have the published mean, median, maximum and counts."""
    within = [int(row[f"within_{x}pct"]) for x in (1, 5, 25)]
    limits = (0.01, 0.05, 0.25)
    low, high = [], []
    for i in range(11):
        class_of = next((k for k in range(3) if i < within[k]), 3)
        low.append(0.0 if class_of == 0 else limits[class_of - 1] + 1e-6)
        high.append(limits[class_of] - 1e-6 if class_of < 3 else 10.0)
    high[0] = 0.0
    for i, name in ((5, "median_rel"), (10, "max_rel")):
        a, b = interval(row[name])
        low[i], high[i] = max(low[i], a + 1e-6), min(high[i], b - 1e-6)
    for i in range(1, 11):
        low[i] = max(low[i], low[i - 1])
    for i in range(9, -1, -1):
        high[i] = min(high[i], high[i + 1])
    assert all(a <= b for a, b in zip(low, high)), (row, low, high)
    a, b = interval(row["mean_rel"])
    a, b = max(a + 1e-6, sum(low) / 11), min(b - 1e-6, sum(high) / 11)
    assert a <= b, row
    share = 0.0 if sum(high) == sum(low) else ((a + b) / 2 * 11 - sum(low)) / (sum(high) - sum(low))
    return [x + share * (y - x) + i * 1e-9 for i, (x, y) in enumerate(zip(low, high))]


def times(row):
    """Seconds of the eleven protocols, the five fastest in the published order."""
    order = [int(p) for p in row["five_fastest"].split()]
    order += [p for p in range(11) if p not in order]
    least = minimum(row)
    return {p: least * (1 + x) for p, x in zip(order, eleven(row))}


def record(row, protocol, seconds):
    n = TOTAL // int(row["msg_bytes"])
    four = {"min": seconds, "median": seconds, "ci_low": None, "ci_high": None}
    rate = 2 * TOTAL / seconds / 1e6
    return {"label": "sp3", "bench": "swap", "protocol": protocol, "title": "", "order": "ordered", "mode": MODES[row["mode"]],
            "overlap": row["overlap"] == "yes", "overlap_depth": n if row["overlap"] == "yes" else None,
            "size": int(row["msg_bytes"]), "messages": n, "total": TOTAL, "launches": 1, "rounds": 1, "iterations": 3,
            "stopped_by": "fixed", "verified": True, "seconds": four, "seconds_per_message": {k: v / n if v else v for k, v in four.items()},
            "MBps": {"max": rate, "median": rate, "ci_low": None, "ci_high": None}, "fault": None,
            "context_switches": {"voluntary": 0, "involuntary": 0, "disturbed_blocks": 0}, "launch_ids": [0],
            "launch_medians": [seconds * 1e6], "histogram_ns": []}


def document(swaps):
    return {"xportbench": "0", "schema": 1, "started": "2000-05-25T00:00:00Z", "seed": 1, "launches": 1, "stopped_by": "fixed",
            "partial": False, "baseline": "sp3", "config": {}, "hosts": [],
            "timer": {"source": None, "cost_ns": None, "resolution_ns": None, "drift_ppm": None},
            "controller": {"cpu_s_while_timed": None, "timed_s": None, "strangers": 0},
            "transports": [{"label": "sp3", "name": "mpi", "requested_path": "", "resolved_path": "us", "library": None, "version": None,
                            "device": None, "layer": "mpi", "status": "ok", "error": None, "start_ms": None, "evidence": [],
                            "carried": {"devices": [], "shared_memory": False, "payload_bytes": 0, "text": ""}}],
            "results": [], "comparisons": [], "findings": [], "swaps": swaps, "swap_estimates": [], "swap_comparisons": []}


def report(swaps, *options, status=0):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document(swaps), file)
        file.flush()
        result = run("report", file.name, *options, timeout=60)
    assert result.status == status, result
    return result


def tables(text):
    """Title of each sensitivity table: its rows, split at blanks."""
    found, current = {}, None
    for line in text.splitlines():
        title = re.fullmatch(r"Protocol Sensitivity: (.*)", line)
        if title:
            current = found.setdefault(title.group(1), [])
        elif current is not None and re.match(r" *\d+ +\d\.\d{4}e", line):
            current.append(line.split())
    return found


@case("the 66 published lines of the sensitivity tables are reproduced to the printed digit")
def _():
    assert len(ROWS) == 66
    swaps = [record(row, p, s) for row in ROWS for p, s in times(row).items()]
    found = tables(report(swaps, "--format", "commtest").out)
    assert set(found) == set(TITLES.values()), sorted(found)
    same = 0
    for key, title in TITLES.items():
        rows = [row for row in ROWS if (row["mode"], row["overlap"]) == key]
        assert len(found[title]) == len(rows) == 11, title
        for row, printed in zip(rows, found[title]):
            wanted = [row[k] for k in ("msg_bytes", "min_s", "min_s_per_msg", "max_MBps", "mean_rel", "median_rel", "max_rel")]
            wanted += row["five_fastest"].split() + [row[f"within_{x}pct"] for x in (1, 5, 25)]
            assert printed == wanted, (title, printed, wanted)
            same += 1
    print(f"# {same} of 66 lines")
    assert same == 66


@case("a protocol's section has its three or six rows, with latency, peak and model error by the published formulas")
def _():
    swaps = []
    for overlap in ("no", "yes"):
        for mode, per_message in (("cache inv", 30e-6), ("1 iter", 20e-6), ("10 iter", 10e-6)):
            for protocol in (0, 1) if overlap == "no" else (1,):
                for k in range(11):
                    row = {"mode": mode, "overlap": overlap, "msg_bytes": str(TOTAL >> k)}
                    swaps.append(record(row, protocol, 2 * (2 ** k * per_message + TOTAL / 100e6)))
    text = report(swaps, "--format", "commtest").out
    sections = re.split(r"\nProtocol (?=\d+:)", text)
    assert len(sections) == 3, text
    first, second = sections[1:]
    assert first.startswith("0: ordered simple swap\n\nData Statistics\n") and second.startswith("1: ordered swap using nonblocking send\n")
    rows = {}
    for name, section in (("0", first), ("1", second)):
        for line in section.split("Protocol Sensitivity")[0].splitlines():
            found = re.fullmatch(r"  ((?:cache inv\.|1 iter\.|10 iter\.)(?: w/overlap)?) +(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d)%", line)
            if found:
                rows[name, found.group(1)] = found.groups()[1:]
        assert "Model Error Range: [1,1024]" in section, section
    assert len(rows) == 3 + 6, sorted(rows)
    for (_, name), (peak, latency, error) in rows.items():
        us = {"c": 30.0, "1": 20.0}[name[0]] if not name.startswith("10") else 10.0
        one = us * 1e-6 + TOTAL / 100e6
        assert latency == f"{us:.2f}" and peak == f"{TOTAL / one / 1e6:.2f}", (name, latency, peak)
        assert error == f"{100 * us * 1e-6 / one:.1f}", (name, error)


@case("a run without swaps is refused this report, and swaps are refused the others' shapes")
def _():
    result = report([], "--format", "commtest", status=2)
    assert "-b swap" in result.err and not result.out, result
    for shape in ("imb", "osu", "now"):
        result = report([record(ROWS[0], 0, 0.2)], "--format", shape, status=2)
        assert shape in result.err and not result.out, result
    result = run("-t", "null", "--format", "commtest")
    assert result.status == 2 and "-b swap" in result.err, result


@case("records that do not belong together are refused with a sentence")
def _():
    good = record(ROWS[0], 0, 0.2)
    for change, words in (({"protocol": 11}, "protocol"), ({"label": "other"}, "label"), ({"messages": 0}, "messages"),
                          ({"mode": "warm"}, "mode"), ({"order": "none"}, "order"), ({"total": 8, "protocol": 1}, "total")):
        result = report([good, dict(good, **change)] if "total" in change else [dict(good, **change)], status=2)
        assert words in result.err and len(result.err.splitlines()) == 1, (change, result.err)
    result = report([good, good], status=2)
    assert "twice" in result.err, result


main()
