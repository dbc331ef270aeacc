#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is xportbench as fast as the tool that each fabric brings itself?

For every tool and message size, runs ours and theirs alternately (A B A B ...), at least 7 pairs, in one session, both
ends pinned to the same two CPUs, and prints the median of each, the ratio of the medians, and the smallest and largest
ratio of a pair. Run by hand on a quiet machine; it asserts nothing. Wanted: latency ratio at most 1.02, bandwidth ratio
at least 0.98; what misses that is marked.

    tests/bench/compare.py                                    every tool that is installed
    tests/bench/compare.py nptcp sockperf --pairs 15
    tests/bench/compare.py osu:tcp osu-bw:shm --osu ~/omb/c/mpi/pt2pt/standard
    tests/bench/compare.py --list

Like is compared with like: each tool has its own statistic, and ours is computed the same way from the JSON document.

    tool            transport       its statistic                                    ours
    nptcp           tcp, poll=block best of 7 means of n one-way times               best of 7 block means (3 launches)
    sockperf        tcp, poll=block median of half round trips (1 s, blocking)       p50 of all iterations (1 launch)
    ucx:tcp, :posix ucx             median of the last 2048 half round trips         p50 of all iterations (1 launch)
    ucx-put:tcp     ucx, write-poll the same, of puts into watched memory            the same
    ucx-bw:...      ucx -b bw       bytes over time of n messages, 32 outstanding,   best first block of 3 launches, window
                                    ends when the sender is done; best of 3 runs     32, ends when the receiver has all
    fi_pingpong     ofi:tcp         mean of n one-way times, no warm-up; best of 3   best first block mean of 3 launches
    np:tcp, np:shm  mpi             as nptcp                                         as nptcp
    osu:..., imb:...mpi             mean of n one-way times after a warm-up; best of best first block mean of 3 launches
                                    3 runs
    osu-bw:...      mpi -b bw       bytes over time, window 64 and a reply; best of  best first block of 3 launches, window
                                    3 runs                                           64

A "block mean" is the mean of all n iterations of one block, interruptions included, as in the others' means. Where a
tool takes the best of several, ours takes the best of as many: otherwise the one with more tries wins on a machine with
noise (NetPIPE's 7 lie in one launch, our 7 in three, since a launch has 3 blocks). Their units are converted: NetPIPE prints
seconds one way, sockperf and fi_pingpong microseconds one way, ucx_perftest microseconds one way and MB of 2^20, OSU and
IMB microseconds one way and MB of 10^6. sockperf's smallest message is 14 bytes and its largest 65507; both tools then
use that size. n is the same for both (see iterations and bw_windows).
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LATENCY_WANTED, BANDWIDTH_WANTED = 1.02, 0.98
TRIES = 3  # runs of a tool that gives one mean, and launches of ours
NETPIPE_TRIES = 7
LIMIT_S = 120


def iterations(size):
    """Of one block, or of one trial of the other tool."""
    return 2000 if size <= 4096 else 500 if size <= 65536 else 100


def parse_size(text):
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def size_text(size):
    for name, unit in (("M", 2**20), ("K", 2**10)):
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


class Failure(Exception):
    """A tool that did not run; says which and what it printed."""


def run(command, env=None, cwd=None, fine=(0,)):
    """What it printed. In a session of its own, so that nothing of it is left when it does not end."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True)
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except BaseException as problem:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(problem, subprocess.TimeoutExpired):
            raise Failure(f"{' '.join(command)}: not done after {LIMIT_S} s") from None
        raise
    if process.returncode not in fine:
        raise Failure(f"{' '.join(command)}: exit status {process.returncode}: {(err or out)[:400].strip()}")
    return out


def pinned(cpu, command):
    return ["taskset", "-c", str(cpu), *command]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    """Looks into the kernel's table, since a trial connection would be taken for the client."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            with open(table, encoding="ascii") as lines:
                for line in lines:
                    fields = line.split()
                    if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                        return True
    return False


def with_server(server, client, port, cpus, env=None):
    """Runs server on the second CPU and, once it listens, client on the first. Returns what the client printed."""
    full = {**os.environ, **(env or {})}
    with tempfile.TemporaryDirectory() as folder:
        serving = subprocess.Popen(pinned(cpus[1], server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, env=full, cwd=folder)
        try:
            end = time.monotonic() + 20
            while not listens(port):
                if serving.poll() is not None or time.monotonic() > end:
                    raise Failure(f"{' '.join(server)} does not listen on port {port}")
                time.sleep(0.01)
            return run(pinned(cpus[0], client), env, folder)
        finally:
            serving.terminate()
            try:
                serving.wait(5)
            except subprocess.TimeoutExpired:
                serving.kill()
                serving.wait()


def found(pattern, text):
    match = re.search(pattern, text, re.M)
    if not match:
        raise Failure(f"cannot find /{pattern}/ in: {text[-400:].strip()}")
    return float(match.group(1))


def best_of(tries, better, once):
    return better(once() for _ in range(tries))


# --- theirs: one-way microseconds, or MB/s of 10^6

def netpipe(launch, size):
    """The client's output file has bytes, Mb/s of 2^20, seconds one way."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "np.out")
        launch(["-l", str(size), "-u", str(size), "-p", "0", "-n", str(iterations(size)), "-o", out])
        with open(out, encoding="ascii") as rows:
            fields = rows.read().split()
    if len(fields) != 3 or int(fields[0]) != size:
        raise Failure(f"NetPIPE gave {fields} for {size} bytes")
    return float(fields[2]) * 1e6


def nptcp(options, size):
    port = free_port()

    def launch(arguments):
        server = ["NPtcp", "-P", str(port), *arguments[:-1], os.devnull]
        with_server(server, ["NPtcp", "-h", "127.0.0.1", "-P", str(port), *arguments], port, options.cpus)
    return netpipe(launch, size)


def sockperf(options, size):
    port = free_port()
    text = with_server(["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", str(port)],
                       ["sockperf", "ping-pong", "--tcp", "-i", "127.0.0.1", "-p", str(port), "-m", str(size), "-t", "1"],
                       port, options.cpus)
    return found(r"percentile 50\.0+ = +([0-9.]+)", re.sub(r"\x1b\[[0-9;]*m", "", text))


def ucx_environment(transport):
    return {"UCX_TLS": f"{transport},self", **({"UCX_NET_DEVICES": "lo"} if transport == "tcp" else {}),
            "UCX_WARN_UNUSED_ENV_VARS": "n"}


def ucx_perftest(options, transport, test, size, count):
    port = free_port()
    # the connection of the tool itself is a socket, whatever the transport
    text = with_server(["ucx_perftest", "-p", str(port)],
                       ["ucx_perftest", "127.0.0.1", "-p", str(port), "-t", test, "-s", str(size), "-n", str(count),
                        "-w", str(max(10, count // 10)), "-f", "-v"], port, options.cpus, ucx_environment(transport))
    rows = [line.split(",") for line in text.splitlines() if re.match(r"^ *[0-9]+,", line)]
    if not rows:
        raise Failure(f"cannot read ucx_perftest: {text[-400:].strip()}")
    return [float(value) for value in rows[-1]]


def ucx_latency(transport, test="tag_lat"):
    return lambda options, size: ucx_perftest(options, transport, test, size, max(2048, iterations(size)))[1]


def ucx_bandwidth(transport):
    def once(options, size):
        return ucx_perftest(options, transport, "tag_bw", size, 32 * bw_windows(size))[5] * 2**20 / 1e6
    return lambda options, size: best_of(TRIES, max, lambda: once(options, size))


def fi_pingpong(options, size):
    def once():
        port = free_port()
        common = ["-p", "tcp", "-e", "rdm", "-m", "tagged", "-I", str(iterations(size)), "-S", str(size)]
        text = with_server(["fi_pingpong", "-B", str(port), *common],
                           ["fi_pingpong", "-P", str(port), *common, "127.0.0.1"], port, options.cpus)
        # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
        return float(text.splitlines()[-1].split()[6])
    return best_of(TRIES, min, once)


def mpirun(options, path, program):
    """Two ranks, pinned as ours are, over the same components as mpi:PATH."""
    flags = {"tcp": ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"],
             "shm": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]}[path]
    ranks = []
    for cpu in options.cpus:
        ranks += [":"] * bool(ranks) + ["-np", "1", *pinned(cpu, program)]
    return run(["mpirun", "--bind-to", "none", "--oversubscribe", *flags, *ranks],
               {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})


def npopenmpi(path):
    return lambda options, size: netpipe(lambda arguments: mpirun(options, path, ["NPopenmpi", *arguments]), size)


def osu(path, program, better):
    def once(options, size):
        windows = bw_windows(size) if program == "osu_bw" else iterations(size)
        rest = ["-i", str(windows), "-x", str(max(2, windows // 10))]
        try:
            text = mpirun(options, path, [os.path.join(options.osu, program), "-m", f"{size}:{size}", *rest])
        except Failure as problem:
            if "invalid option -- 'm'" not in str(problem):
                raise
            text = mpirun(options, path, [os.path.join(options.osu, program), *rest])  # an older release: all sizes
        return found(rf"^{size}\s+([0-9.]+)", text)
    return lambda options, size: best_of(TRIES, better, lambda: once(options, size))


def imb(path):
    def once(options, size):
        with tempfile.NamedTemporaryFile("w", suffix=".lengths") as lengths:
            lengths.write(f"{size}\n")
            lengths.flush()
            text = mpirun(options, path, [os.path.join(options.imb, "IMB-MPI1"), "PingPong", "-msglen", lengths.name,
                                          "-iter", str(iterations(size)), "-iter_policy", "off"])
        return found(rf"^\s+{size}\s+[0-9]+\s+([0-9.]+)", text)
    return lambda options, size: best_of(TRIES, min, lambda: once(options, size))


# --- ours

def bw_windows(size):
    return 100 if size <= 4096 else 40 if size <= 65536 else 10


def ours(options, tool, size):
    """statistic: "p50", or how many block means to take the best of: all that are there, or the first of each launch."""
    transport, bench, window, statistic = tool.transport, tool.bench, tool.window, tool.statistic
    launches = 1 if statistic == "p50" else TRIES
    count = bw_windows(size) if bench == "bw" else max(iterations(size), 2048 if statistic == "p50" and size <= 4096 else 0)
    text = run([options.xportbench, "-t", transport, "-b", bench, "--op", tool.op, "-s", str(size), "-n", str(count), "-W", str(window),
                "--launches", str(launches), "--bind", ",".join(map(str, options.cpus)), "--format", "json", "-q"], fine=(0, 3))  # 3: measured, with findings such as noise
    document = json.loads(text)
    result = document["results"][0]
    if not result["verified"]:
        raise Failure(f"xportbench -t {transport}: {size} bytes not verified")
    if statistic == "p50":
        return result["latency_us"]["p50"]
    means = [mean for row in result["block_means"] for mean in (row[:1] if statistic == TRIES else row) if mean is not None]
    if len(means) < statistic:
        raise Failure(f"xportbench -t {transport}: {len(means)} blocks, {statistic} wanted")
    best = min(means[:statistic])
    return size / best if bench == "bw" else best


class Tool:
    def __init__(self, transport, program, theirs, statistic, bench="pingpong", window=64, sizes=None, op="send"):
        self.transport, self.program, self.theirs = transport, program, theirs
        self.statistic, self.bench, self.window = statistic, bench, window
        self.op = op
        self.sizes = sizes or (lambda size: size)

    def missing(self, options):
        if self.program.startswith("osu_"):
            return None if options.osu and os.access(os.path.join(options.osu, self.program), os.X_OK) else "--osu DIR"
        if self.program == "IMB-MPI1":
            return None if options.imb and os.access(os.path.join(options.imb, self.program), os.X_OK) else "--imb DIR"
        return None if shutil.which(self.program) else self.program


TOOLS = {
    "nptcp": Tool("tcp:lo,poll=block", "NPtcp", nptcp, NETPIPE_TRIES),
    "sockperf": Tool("tcp:lo,poll=block", "sockperf", sockperf, "p50", sizes=lambda size: min(max(size, 14), 65507)),
    "fi_pingpong": Tool("ofi:tcp", "fi_pingpong", fi_pingpong, TRIES),
}
for lane, spec in (("tcp", "ucx:tcp/lo"), ("posix", "ucx:posix")):
    TOOLS[f"ucx:{lane}"] = Tool(spec, "ucx_perftest", ucx_latency(lane), "p50")
    TOOLS[f"ucx-bw:{lane}"] = Tool(spec, "ucx_perftest", ucx_bandwidth(lane), TRIES, "bw", 32)
TOOLS["ucx-put:tcp"] = Tool("ucx:tcp/lo", "ucx_perftest", ucx_latency("tcp", "ucp_put_lat"), "p50", op="write-poll")
for lane in ("tcp", "shm"):
    TOOLS[f"np:{lane}"] = Tool(f"mpi:{lane}", "NPopenmpi", npopenmpi(lane), NETPIPE_TRIES)
    TOOLS[f"osu:{lane}"] = Tool(f"mpi:{lane}", "osu_latency", osu(lane, "osu_latency", min), TRIES)
    TOOLS[f"osu-bw:{lane}"] = Tool(f"mpi:{lane}", "osu_bw", osu(lane, "osu_bw", max), TRIES, "bw", 64)
    TOOLS[f"imb:{lane}"] = Tool(f"mpi:{lane}", "IMB-MPI1", imb(lane), TRIES)


def compare(options, name, size):
    tool = TOOLS[name]
    pairs = []
    for number in range(options.pairs):
        try:
            mine = ours(options, tool, size)
            pairs.append((mine, tool.theirs(options, size)))
        except (Failure, KeyError, IndexError, ValueError) as problem:
            print(f"  pair {number + 1} of {name} at {size} bytes: {problem}", file=sys.stderr)
    if len(pairs) < 2:
        return {"tool": name, "size": size, "pairs": len(pairs)}
    medians = [statistics.median(column) for column in zip(*pairs)]
    ratios = sorted(a / b for a, b in pairs)
    ratio = medians[0] / medians[1]
    good = ratio >= BANDWIDTH_WANTED if tool.bench == "bw" else ratio <= LATENCY_WANTED
    return {"tool": name, "size": size, "pairs": len(pairs), "unit": "MB/s" if tool.bench == "bw" else "us",
            "ours": medians[0], "theirs": medians[1], "ratio": ratio, "ratio_of_pairs": statistics.median(ratios),
            "ratio_min": ratios[0], "ratio_max": ratios[-1], "ok": good, "values": pairs}


def print_row(row):
    if "ratio" not in row:
        print(f"{row['tool']:12} {size_text(row['size']):>6}  not measured", flush=True)
        return
    print(f"{row['tool']:12} {size_text(row['size']):>6} {row['ours']:12.4g} {row['theirs']:12.4g} {row['unit']:5}"
          f"{row['ratio']:7.3f} {row['ratio_of_pairs']:7.3f}  {row['ratio_min']:.3f} ... {row['ratio_max']:.3f}"
          f"  {row['pairs']:3}{'' if row['ok'] else '  misses'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=f"one of: {' '.join(TOOLS)} (all that are here)")
    parser.add_argument("--sizes", default="8,1K,64K,1M", help="message sizes (8,1K,64K,1M)")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of each (9; at least 7 to mean anything)")
    parser.add_argument("--cpus", default="0,1", help="CPU of the side that measures, and of the other (0,1)")
    parser.add_argument("--xportbench", default=os.path.join(TOP, "xportbench"), metavar="FILE")
    parser.add_argument("--osu", metavar="DIR", help="folder of osu_latency and osu_bw (5.4 or later)")
    parser.add_argument("--imb", metavar="DIR", help="folder of IMB-MPI1")
    parser.add_argument("--json", metavar="FILE", help="also write every value there")
    parser.add_argument("--list", action="store_true", help="say which tools are here")
    options = parser.parse_args()
    options.cpus = [int(cpu) for cpu in options.cpus.split(",")]
    if len(options.cpus) != 2:
        parser.error(f"--cpus takes two CPUs, given {options.cpus}")
    for name in options.tools:
        if name not in TOOLS:
            parser.error(f"unknown tool '{name}'; there are: {' '.join(TOOLS)}")
    if options.list:
        for name, tool in TOOLS.items():
            print(f"{name:12} -t {tool.transport:20} {'missing: ' + tool.missing(options) if tool.missing(options) else 'here'}")
        return 0
    if not os.access(options.xportbench, os.X_OK):
        parser.error(f"{options.xportbench} is not there; run make, or give --xportbench FILE")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are ended on the way out
    names = options.tools or [name for name in TOOLS if not TOOLS[name].missing(options)]
    for name in options.tools:
        if TOOLS[name].missing(options):
            parser.error(f"'{name}' needs {TOOLS[name].missing(options)}")
    print(f"{options.pairs} pairs of each, CPUs {options.cpus[0]} and {options.cpus[1]}, load {os.getloadavg()[0]:.1f}; "
          f"wanted: latency ratio <= {LATENCY_WANTED}, bandwidth ratio >= {BANDWIDTH_WANTED}")
    print(f"{'tool':12} {'size':>6} {'ours':>12} {'theirs':>12} {'unit':5}{'ratio':>7} {'paired':>7}  smallest ... largest  pairs")
    rows = []
    for name in names:
        # a tool's own limits may make one size of two
        for size in dict.fromkeys(TOOLS[name].sizes(parse_size(text)) for text in options.sizes.split(",")):
            rows.append(compare(options, name, size))
            print_row(rows[-1])
    print("ratio: of the medians; paired: median of the ratios of the pairs. See the top of this script for each "
          "tool's statistic.")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"load": os.getloadavg(), "rows": rows}, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
