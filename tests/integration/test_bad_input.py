#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 600
"""Bad input to everything: a clear sentence on stderr, once, the right exit status, and nothing hangs."""
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import (case, have_plugin, load, main, mark, measure, results, run, start, finish, transport,  # noqa: E402
                    wait_until, workers)

mark()
os.environ["RES_OPTIONS"] = "timeout:1 attempts:1"  # of no-such-host.invalid, where the name server does not answer
USAGE = [
    ([], "-t"),
    (["-t", ""], ""),
    (["-t", "nosuch"], "nosuch"),
    (["-t", "tcp,"], ""),
    (["-t", "label=x"], "label"),
    (["-t", "tcp,tcp"], "label"),
    (["-t", "tcp,nokey=1"], "nokey"),
    (["-t", "tcp,poll=maybe"], "poll"),
    (["-t", "tcp,fault.nosuch=1"], "nosuch"),
    (["-t", "tcp,fault.delay=fast"], "fast"),
    (["-t", "tcp,env.=1"], ""),
    (["-t", "../../etc/passwd"], ""),
    (["-t", "tcp", "-s", "0:"], "-s"),
    (["-t", "tcp", "-s", "4M:1"], ""),
    (["-t", "tcp", "-s", "-1"], ""),
    (["-t", "tcp", "-s", "1T"], ""),
    (["-t", "tcp", "-s", "99999999999999999999"], ""),
    (["-t", "tcp", "-s", "8x"], "8x"),
    (["-t", "tcp", "-s", ""], ""),
    (["-t", "tcp", "-b", "nosuch"], "nosuch"),
    (["-t", "tcp", "-n", "0"], ""),
    (["-t", "tcp", "-n", "1e3"], ""),
    (["-t", "tcp", "-W", "0"], ""),
    (["-t", "tcp", "-W", "100000"], ""),
    (["-t", "tcp", "--launches", "0"], ""),
    (["-t", "tcp", "--launches", "9:3"], ""),
    (["-t", "tcp", "--time", "nan"], ""),
    (["-t", "tcp", "--time", "-5"], ""),
    (["-t", "tcp", "--ci", "0"], ""),
    (["-t", "tcp", "--seed", "x"], ""),
    (["-t", "tcp", "--bind", "0,9999"], "9999"),
    (["-t", "tcp", "--bind", "a"], ""),
    (["-t", "tcp", "--format", "xml"], "xml"),
    (["-t", "tcp", "--baseline", "nosuch"], "nosuch"),
    (["-t", "tcp", "--nosuch"], "nosuch"),
    (["-t", "tcp", "--op", "write"], "tcp"),
    (["-t", "tcp", "-o", "/nonexistent/folder/run.json"], "/nonexistent/folder"),
    (["nosuchcommand"], "nosuchcommand"),
    (["report"], ""),
    (["report", "/nonexistent.json"], "/nonexistent.json"),
    (["report", "/etc/passwd"], "/etc/passwd"),
]

for arguments, names in USAGE:
    @case("refused with status 2: xportbench " + " ".join(a or "''" for a in arguments))
    def _(arguments=arguments, names=names):
        tail = ["-s", "8", "-n", "10", "--launches", "1:1"] if arguments and arguments[0] == "-t" and "-s" not in arguments else []
        result = run(*arguments, *tail, timeout=60)
        assert result.status == 2, result
        assert names in result.err, f"names {names!r}: {result.err!r}"
        assert 1 <= len(result.err.strip().splitlines()) <= 3, f"one sentence: {result.err!r}"
        assert result.out == "", f"nothing on stdout: {result.out[:200]!r}"


@case("an absent provider is unavailable (status 4); the other transport is measured")
def _():
    if not have_plugin("ofi"):
        raise AssertionError("ofi is not built")
    result = measure("-t", "tcp,ofi:nosuchprovider", "-s", "8", "-n", 20, "--launches", "1:1", status=4)
    assert "nosuchprovider" in result.err and transport(result.document, "tcp")["status"] == "ok", result
    assert len(results(result.document, label="tcp")) == 1, result
    assert transport(result.document, "ofi:nosuchprovider")["status"] == "unavailable"


@case("an absent UCX device is refused or unavailable, with the devices that are there")
def _():
    result = run("-t", "tcp,ucx:tcp/nosuchdev9", "-s", "8", "-n", 20, "--launches", "1:1")
    assert result.status in (2, 4) and "nosuchdev9" in result.err and "lo" in result.err, result


@case("an absent interface is unavailable (status 4), with the interfaces that are there")
def _():
    result = run("-t", "tcp:nosuchdev0", "-s", "8", "-n", 20, "--launches", "1:1")
    assert result.status == 4 and "nosuchdev0" in result.err and "lo" in result.err, result


@case("an unknown MPI path is refused with the list of paths")
def _():
    result = run("-t", "mpi:nosuch", "-s", "8", "-n", 20, "--launches", "1:1")
    assert result.status == 2 and "nosuch" in result.err and "ucx" in result.err, result


@case("an absent mpirun is named; the other transport is measured")
def _():
    result = measure("-t", "tcp,mpi:tcp", "--mpirun-command", "/nonexistent/mpirun", "-s", "8", "-n", 20, "--launches", "1:1",
                     status=4)
    assert "/nonexistent/mpirun" in result.err and transport(result.document, "tcp")["status"] == "ok", result
    assert transport(result.document, "mpi:tcp")["status"] == "unavailable"


@case("a full disk while the document is kept: the report is printed, status 5, the last good document stays valid")
def _():
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False).returncode == 0
        assert mounted, "cannot mount a small tmpfs (needs root)"
        try:
            with open(os.path.join(folder, "fill"), "wb") as file:
                file.write(b"x" * 40000)
            path = os.path.join(folder, "run.json")
            result = run("-t", "tcp,tcp,label=b,tcp,label=c,tcp,label=d", "-s", "1:1M", "-n", 10, "--launches", "3:3", "-o", path)
            assert result.status == 5, result
            assert "space" in result.err.lower() and "4M" not in result.err, result.err
            assert "tcp" in result.out and "1M" in result.out, "the report is printed all the same"
            if os.path.exists(path):
                load(path)
            assert [f for f in os.listdir(folder) if f not in ("fill", "run.json")] == [], os.listdir(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@case("a run that is refused leaves the file of the one before, a link and a device as they are")
def _():
    with tempfile.TemporaryDirectory() as folder:
        path, link = os.path.join(folder, "run.json"), os.path.join(folder, "link.json")
        first = run("-t", "null", "-s", "8", "-n", 20, "--launches", "1:1", "-o", path)
        assert first.status == 0, first
        os.symlink(path, link)
        with open(path, encoding="utf-8") as file:
            before = file.read()
        for output in (path, link, "/dev/null"):
            for refused in (("-t", "tcp", "--op", "write"), ("-t", "tcp", "-H", "127.0.0.1,no-such-host.invalid", "--launcher", "ssh")):
                result = run(*refused, "-s", "8", "-n", 20, "--launches", "1:1", "-o", output, timeout=60)
                assert result.status in (2, 4), result
                with open(path, encoding="utf-8") as file:
                    assert file.read() == before, (refused, output)
        assert os.path.islink(link) and not os.path.isfile("/dev/null") and os.path.exists("/dev/null")
        assert sorted(os.listdir(folder)) == ["link.json", "run.json"], os.listdir(folder)


@case("standard output that cannot be written gives status 5")
def _():
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = run("-t", "tcp", "-s", "8", "-n", 20, "--launches", "1:1", stdout=full)
    assert result.status == 5 and "space" in result.err.lower(), result


@case("damaged and hostile documents are refused by report with one sentence")
def _():
    good = measure("-t", "tcp,tcp,label=b", "-s", "8,64", "-n", 20, "--launches", "2:2").document
    text = json.dumps(good)
    rng = random.Random(4)
    variants = [text[: len(text) // 2], "[" * 100000, "{}", "null", "", "\0" * 100, text.replace('"schema": 1', '"schema": 2'),
                text.replace('"schema": 1', '"schema": "1"'), text.replace("[", "{", 1)]
    for key in ("results", "transports", "findings", "comparisons", "hosts", "timer"):
        for value in (None, 1, "x", [1], {"a": 1}, [[]], [{}], -1e308):
            variants.append(json.dumps({**good, key: value}))
    for _ in range(150):
        at = rng.randrange(len(text))
        variants.append(text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 + rng.randrange(3):])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.json")
        for i, variant in enumerate(variants):
            with open(path, "w", encoding="utf-8") as file:
                file.write(variant)
            result = run("report", path, "--format", ("table", "csv", "json")[i % 3], timeout=20)
            assert result.status in (0, 2, 3, 4), f"variant {i}: {result!r}: {variant[:200]!r}"
            if result.status == 2:
                assert len(result.err.strip().splitlines()) == 1, result.err


def control_port(pid):
    """The port on which a controller listens, from /proc."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:"):
            inodes.add(target[8:-1])
    with open("/proc/net/tcp", encoding="utf-8") as file:
        for line in file.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                return int(fields[1].split(":")[1], 16)
    return 0


@case("strangers on the control port get nothing and change nothing")
def _():
    process = start("-t", "tcp,null", "-s", "8,1K", "-n", 200, "--launches", "12:12", "--seed", 9, "--format", "json")
    port = wait_until(lambda: control_port(process.pid), 10, "the control port")
    rng = random.Random(1)
    answered = []

    def attack():
        for i in range(300):
            try:
                s = socket.create_connection(("127.0.0.1", port), timeout=2)
            except OSError:
                return
            try:
                payload = rng.randbytes(rng.choice((0, 1, 71, 72, 73, 500, 4096)))
                if i % 3 == 0:
                    payload = b"XBCTRL\0\1" + payload
                s.sendall(payload)
                s.settimeout(0.01)
                if s.recv(1):
                    answered.append(payload[:16])
            except OSError:
                pass
            finally:
                s.close()

    threads = [threading.Thread(target=attack) for _ in range(3)]
    for t in threads:
        t.start()
    result = finish(process, 120)
    for t in threads:
        t.join()
    assert not answered, f"a stranger got an answer to {answered[0]!r}"
    assert result.status == 0, result
    document = json.loads(result.out)
    assert len(results(document)) == 4 and all(r["launches"] == 12 for r in results(document)), "complete"


@case("idle strangers do not keep workers out")
def _():
    process = start("-t", "tcp", "-s", "8", "-n", 50, "--launches", "30:30", "--format", "json")
    port = wait_until(lambda: control_port(process.pid), 10, "the control port")
    idle = []
    for _ in range(200):
        try:
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=2))
        except OSError:
            break
    result = finish(process, 120)
    for s in idle:
        s.close()
    assert result.status == 0 and json.loads(result.out)["results"][0]["launches"] == 30, result


@case("the key is in no command line, environment or output")
def _():
    process = start("-t", "tcp,mpi:tcp" if have_plugin("mpi") else "tcp", "-s", "8", "--launches", "4:4", "-v", "--format", "json")
    seen, texts = 0, []
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        for pid, line in workers():
            seen += 1
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    texts.append(line + file.read().decode(errors="replace"))
            except OSError:
                pass
        time.sleep(0.02)
    result = finish(process)
    assert seen and result.status == 0, (seen, result)
    import re
    for text in texts + [result.out, result.err]:
        for word in re.findall(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64}(?![0-9a-fA-F])", text):
            raise AssertionError(f"something like a key is visible: {word}")


main()
