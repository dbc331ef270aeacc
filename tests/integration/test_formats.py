#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-sanitize: no (the printers run sanitized in the unit tests)
"""--format imb, osu, now: a strict grammar of what the tools print, as their parsers expect it."""
import csv
import json
import os
import pty
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import TOP, XB, case, environment, load, main, run  # noqa: E402

SIZES = "0,1,8,1000,64K,1M"
BYTES = [0, 1, 8, 1000, 65536, 1048576]


def kept_run(folder):
    path = os.path.join(folder, "run.json")
    result = run("-t", "tcp,null,label=none", "-b", "pingpong,bw,bibw", "-s", SIZES, "-n", 20, "-x", 2, "-W", 4, "--launches", "2:2",
                 "-o", path)
    assert result.status in (0, 3), result
    return path


def printed(path, shape):
    result = run("report", path, "--format", shape)
    assert result.status in (0, 3) and not result.err, result
    return result.out


def of(document, label, bench):
    return {r["size"]: r for r in document["results"] if r["label"] == label and r["bench"] == bench}


# --- OSU: "# TITLE vVERSION", comments, "# Size<blanks>COLUMN", then rows "%-10d%*.2f" (width 20); nothing else

OSU_TITLES = {"OSU MPI Latency Test": ("pingpong", "Latency (us)"), "OSU MPI Bandwidth Test": ("bw", "Bandwidth (MB/s)"),
              "OSU MPI Bi-Directional Bandwidth Test": ("bibw", "Bandwidth (MB/s)")}


def parse_osu(text):
    parts = []
    for block in re.split(r"\n\n(?=# OSU )", text.strip("\n")):
        lines = block.strip("\n").split("\n")
        title = re.fullmatch(r"# (OSU MPI [A-Za-z -]+ Test) v\d+\.\d+(?:\.\d+)?", lines[0])
        assert title and title.group(1) in OSU_TITLES, lines[0]
        bench, column = OSU_TITLES[title.group(1)]
        at = 1
        while lines[at].startswith("#") and not lines[at].startswith("# Size"):
            at += 1
        label = re.search(r"transport ([^,]+),", lines[1]).group(1)
        assert re.fullmatch(r"# Size {2,}" + re.escape(column), lines[at]), lines[at]
        rows = []
        for line in lines[at + 1:]:
            row = re.fullmatch(r"(\d+) +(\d+\.\d\d)", line)
            assert row and len(line) == max(30, len(line)) and line == f"{int(row.group(1)):<10d}{float(row.group(2)):20.2f}", line
            rows.append((int(row.group(1)), float(row.group(2))))
        parts.append((bench, label, rows))
    return parts


@case("osu: titles, columns and rows as OMB prints them; values are those of the document")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = kept_run(folder)
        document, parts = load(path), parse_osu(printed(path, "osu"))
    assert {(b, l) for b, l, _ in parts} == {(b, l) for b in ("pingpong", "bw", "bibw") for l in ("tcp", "none")}
    for bench, label, rows in parts:
        assert [s for s, _ in rows] == (BYTES if bench == "pingpong" else BYTES[1:]), (bench, rows)
        for size, value in rows:
            r = of(document, label, bench)[size]
            wanted = r["latency_us"]["median"] if bench == "pingpong" else r["bandwidth_MBps"]["median"]
            assert wanted is None or abs(value - wanted) <= 0.00501, (bench, size, value, wanted)


# --- IMB: the frame of the benchmark, then "%13 %13 %13.2f %13.2f"

IMB_COLUMNS = {"PingPong": ["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"], "Uniband": ["#bytes", "#repetitions", "Mbytes/sec", "Msg/sec"],
               "Biband": ["#bytes", "#repetitions", "Mbytes/sec", "Msg/sec"]}


def parse_imb(text):
    lines, parts, at = text.split("\n"), [], 0
    assert re.match(r"#-+$", lines[0]) and "MPI Benchmarks" in lines[1], lines[:3]
    while at < len(lines):
        line = lines[at]
        if not re.match(r"# Benchmarking ", line):
            assert line == "" or line.startswith("#"), line
            at += 1
            continue
        name = re.fullmatch(r"# Benchmarking (\w+)", line).group(1)
        label = re.search(r"transport ([^,]+),", lines[at - 2]).group(1)
        assert re.fullmatch(r"#-+", lines[at - 1]) and lines[at + 1] == "# #processes = 2" and re.fullmatch(r"#-+", lines[at + 2])
        assert lines[at + 3].split() == IMB_COLUMNS[name] and all(len(lines[at + 3]) == 52 for _ in "x"), lines[at + 3]
        rows, at = [], at + 4
        while lines[at] and not lines[at].startswith("#"):
            number = r" *(\d+)" * 2 + (r" *(\d+\.\d\d) *(\d+\.\d\d)" if name == "PingPong" else r" *(\d+\.\d\d) *(\d+)")
            row = re.fullmatch(number, lines[at])
            assert row and len(lines[at]) >= 52, lines[at]
            rows.append([float(x) for x in row.groups()])
            at += 1
        parts.append((name, label, rows))
    assert text.rstrip("\n").endswith("# All processes entering MPI_Finalize")
    return parts


@case("imb: frame, columns and rows as IMB-MPI1 prints them; Mbytes/sec are 10^6 bytes over the time")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = kept_run(folder)
        document, parts = load(path), parse_imb(printed(path, "imb"))
    names = {"PingPong": "pingpong", "Uniband": "bw", "Biband": "bibw"}
    assert {(names[n], l) for n, l, _ in parts} == {(b, l) for b in names.values() for l in ("tcp", "none")}
    for name, label, rows in parts:
        assert [r[0] for r in rows] == BYTES, (name, rows)
        for size, repetitions, a, b in rows:
            r = of(document, label, names[name])[int(size)]
            assert repetitions == r["iterations"], (name, size)
            if name == "PingPong":
                assert abs(a - r["latency_us"]["median"]) <= 0.00501
                assert a == 0 or abs(b - size / r["latency_us"]["median"]) <= 0.00501 + 1e-6 * b, (size, a, b)
            elif label == "tcp":
                assert abs(a - r["bandwidth_MBps"]["median"]) <= 0.00501 and abs(b * size / 1e6 - a) <= 0.01 * a + 0.01, (name, size, a, b)


# --- NOW

def parse_now(text):
    lines = text.split("\n")
    assert re.fullmatch(r" *Message Size +Latency \(usec\) +Bandwidth", lines[2]), lines[:4]
    assert lines[3].split() == ["(bytes)", "Minimum", "Average", "Maximum", "MBytes", "per", "sec"], lines[3]
    rows = []
    for line in lines[4:]:
        if not line:
            break
        row = re.fullmatch(r" *(\d+) +(\d+\.\d{6}) +(\d+\.\d{6}) +(\d+\.\d{6}) +(\d+\.\d{6}|------)", line)
        assert row, line
        rows.append(row.groups())
    return rows, "\n".join(lines)


@case("now: the 24 sizes of -s now, least, mean and largest one-way time, bandwidth from the least, r_inf and n_1/2")
def _():
    with open(os.path.join(TOP, "share", "references", "now-mpi-gam-ultrasparc.csv"), encoding="utf-8") as file:
        sizes = [int(r["bytes"]) for r in csv.DictReader(line for line in file if not line.startswith("#"))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        result = run("-t", "tcp", "-s", "now", "-n", 20, "-x", 2, "--launches", "1:1", "-o", path, "--format", "now")
        assert result.status in (0, 3), result
        document = load(path)
        assert printed(path, "now") == result.out
    rows, text = parse_now(result.out)
    assert [int(r[0]) for r in rows] == sizes and len(sizes) == 24
    for size, least, mean, most, rate in rows:
        l = of(document, "tcp", "pingpong")[int(size)]["latency_us"]
        for found, wanted in ((least, l["min"]), (mean, l["mean"]), (most, l["max"])):
            assert abs(float(found) - wanted) <= 1e-6 + 1e-8 * wanted, (size, found, wanted)
        if size == "0":
            assert rate == "------"
        else:
            assert abs(float(rate) - int(size) / float(least)) <= 1e-6 * float(rate) + 1e-6, (size, rate)
    assert len(re.findall(r"^r_inf +\d+\.\d{3} MB/s, n_1/2 -?\d+ bytes", text, re.M)) == 2, text[-300:]


@case("the time of a whole operation is not printed as half a round trip, nor set beside one")
def _():
    for op in ("write", "read"):
        for words in (("--format", "osu"), ("--format", "imb"), ("--format", "now"), ("--reference", "imb-pingpong-opa"),
                      ("--reference", "osu-bw-opa-openmpi-3.1.6,imb-pingpong-opa")):
            result = run("-t", "tcp", "--op", op, "-s", 8, *words)
            assert result.status == 2 and f"--op {op}" in result.err and "whole operation" in result.err and not result.out, (words, result)
            assert len(result.err.splitlines()) == 1, result.err
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        result = run("-t", "tcp", "-s", 8, "-n", 5, "--launches", "1:1", "-o", path)
        assert result.status in (0, 3), result
        document = load(path)
        for op, refused in (("write", True), ("write-poll", False), ("send", False)):
            document["config"]["op"] = op
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            for words in (("--format", "osu"), ("--format", "imb"), ("--format", "now"), ("--reference", "imb-pingpong-opa")):
                result = run("report", path, *words)
                assert result.status == 2 and "whole operation" in result.err if refused else result.status in (0, 3), (op, words, result)


# --- on a terminal

def on_terminal(*arguments, **more):
    """What a run writes to a terminal; xbtest's environment says NO_COLOR, this one does not."""
    env = {k: v for k, v in environment().items() if k != "NO_COLOR"} | more
    ours, theirs = pty.openpty()
    with subprocess.Popen([XB, "-t", "null", "-s", "8", "-n", "20", "--launches", "2:2", *arguments], stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=theirs, env=env, cwd=TOP) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # EIO: the other end is closed
                part = b""
            if not part:
                break
            seen += part
    os.close(ours)
    assert process.returncode in (0, 3), (process.returncode, seen[-500:])
    return seen.decode()


@case("on a terminal there is colour, unless NO_COLOR is set, and progress, unless -q is given")
def _():
    usual, plain, quiet = on_terminal(), on_terminal(NO_COLOR="1"), on_terminal("-q")
    assert re.search("\033\\[[0-9;]*m", usual) and re.search("\033\\[[0-9;]*m", quiet), (usual, quiet)
    assert not re.search("\033\\[[0-9;]*m", plain), plain
    assert "\r" in usual.replace("\r\n", "") and "\r" in plain.replace("\r\n", ""), usual
    assert "\r" not in quiet.replace("\r\n", ""), quiet
    assert "\033" not in run("-t", "null", "-s", 8, "-n", 20, "--launches", "1:1").out


# --- references

@case("references: all published tables are listed with what they are and where they are from")
def _():
    out = run("references").out
    names = {n[:-4] for n in os.listdir(os.path.join(TOP, "share", "references")) if n.endswith(".csv")}
    assert len(names) == 18 and {line for line in out.splitlines() if line and line[0] != " "} == names, out
    assert "InfiniBand EDR" in out and "Winterhawk II" in out and "Myrinet" in out and "not the network" in " ".join(out.split())


@case("--reference puts a published curve beside the run at matching sizes, and marks what no link can do")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        result = run("-t", "tcp", "-b", "pingpong,bw", "-s", "1,8,3,64K", "-n", 10, "-W", 4, "--launches", "1:1", "-o", path, "--reference",
                     "osu-latency-opa-openmpi-4.1.1,imb-pingpong-opa,osu-bw-opa-openmpi-3.1.6")
        assert result.status in (0, 3), result
        document = load(path)
        again = run("report", path)
        late = run("report", path, "--reference", "imb-pingpong-edr", "--format", "json")
    assert again.out == result.out
    assert '"imb-pingpong-edr"' in late.out and late.status in (0, 3), late
    references = {r["name"]: r for r in document["references"]}
    points = {p["size"]: p for p in references["osu-latency-opa-openmpi-4.1.1"]["points"]}
    assert points[1]["latency_us"] == 0.30 and points[1]["beyond"] is True
    assert "not the network" in references["osu-latency-opa-openmpi-4.1.1"]["remark"]
    assert not any(p["beyond"] for p in references["imb-pingpong-opa"]["points"])
    rate = {p["size"]: p for p in references["osu-bw-opa-openmpi-3.1.6"]["points"]}
    assert rate[1]["beyond"] is False and rate[1048576]["beyond"] is True, "22 GB/s through a 100 Gb/s link"
    text = result.out.split("reference osu-latency-opa-openmpi-4.1.1")[1].split("reference ")[0]
    assert re.search(r"^ +1 +0\.300 ! ", text, re.M) and not re.search(r"^ +3 ", text, re.M), text
    assert "! beyond what the link can do" in text
    assert max(map(len, result.out.splitlines())) <= 100


@case("a table of swaps by protocol stands beside the run's own peak and latency, by protocol and mode")
def _():
    result = run("-t", "tcp", "-b", "swap", "--protocol", "0,3", "-s", "1M,2M", "-n", 5, "--launches", "1:1", "--reference", "commtest-sp3-protocols",
                 "--format", "json")
    assert result.status in (0, 3), result
    document = json.loads(result.out)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(result.out)
        text = printed(path, "table").split("reference commtest-sp3-protocols")[1]
    peaks, latencies = text.split("us per message")
    assert "peak MB/s" in peaks, text
    for e in document["swap_estimates"]:
        row = rf"^ +{e['protocol']} +{re.escape(e['mode'])} +(\S+) +(\S+)$"
        peak, latency = (re.findall(row, part, re.M) for part in (peaks, latencies))
        assert len(peak) == len(latency) == 1, (row, text)
        assert abs(float(peak[0][1]) / e["peak_MBps"] - 1) < 0.01, (peak, e)
        assert 0 < float(peak[0][0]) < 200 and 10 < float(latency[0][0]) < 200, "of an SP"
        assert abs(float(latency[0][1]) - e["latency_us"]["from_minima"]) < 0.01 * abs(e["latency_us"]["from_minima"]) + 0.01, (latency, e)
    assert not re.search(r"^ +5 ", text, re.M), text


@case("a reference that is not there is refused before anything is measured; a file of one's own is taken")
def _():
    result = run("-t", "tcp", "--reference", "nothing-like-it")
    assert result.status == 2 and "xportbench references" in result.err and len(result.err.splitlines()) == 1, result
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.csv")
        for text, words in (("bytes,latency_us\n8,1.0\n", "provenance"), ("# title: t\n# provenance: p\nbytes\n8\n", "neither"),
                            ("# title: t\n# bench: pingpong\n# provenance: p\nlatency_us\n8\n", "no size"), ("", "no rows")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            result = run("-t", "tcp", "--reference", path)
            assert result.status == 2 and words in result.err, (text, result)
        with open(path, "w", encoding="utf-8") as file:
            file.write("# title: ours\n# bench: pingpong\n# provenance: last year\nbytes,latency_us\n8,12.5\n")
        result = run("-t", "null", "-s", "8", "-n", 5, "--launches", "1:1", "--reference", path)
        assert result.status in (0, 3) and re.search(r"^ +8 +12\.50 ", result.out, re.M), result.out


main()
