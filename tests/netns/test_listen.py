#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 240
"""`xportbench listen` on one host and a run @it from another: the key, one client at a time, strangers, clean ends."""
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hosts import Hosts  # noqa: E402
from xbtest import Skip, case, findings, finish, have_plugin, load, main, results, transport, wait_until  # noqa: E402

SHORT = ("-s", "8,64K", "-n", 50, "-x", 5, "--launches", 2, "--time", 30, "--bind", "0,1")
LONG = ("-s", "8", "-n", 50, "-x", 5, "--launches", "200:200", "--time", 120, "--bind", "0,1")
hosts = None
PORT = 18599


def home(name):
    path = f"{hosts.folder}/home-{name}"
    os.makedirs(path, exist_ok=True)
    return {"HOME": path}


class Listening:
    """A listener on nodeB; `said` is what it has printed so far."""

    def __init__(self, *arguments, env=None):
        self.arguments, self.env = arguments, env or home("shared")

    def __enter__(self):
        self.process = hosts.start("listen", *self.arguments, host="nodeB", env=self.env)
        self.said = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        wait_until(lambda: "listens on" in self.said or self.process.poll() is not None, 20, "the listener")
        return self

    def read(self):
        for line in self.process.stderr:
            self.said += line

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.reader.join(5)


def client(*arguments, env=None, host=None, timeout=90, status=0):
    path = f"{hosts.folder}/client.json"
    if os.path.exists(path):
        os.unlink(path)
    run = hosts.run(*arguments, "-o", path, env=env or home("shared"), host=host, timeout=timeout)
    assert status is None or run.status == status, f"expected exit {status}, got {run!r}"
    run.document = load(path) if os.path.exists(path) else None
    return run


@case("raw tcp and UCX with a listener, the key made on first use and readable by its owner only")
def _():
    names = "tcp,ucx:tcp" if have_plugin("ucx") else "tcp"
    with Listening() as listener:
        run = client("-t", names, "@nodeB", *SHORT)
        for name in names.split(","):
            t = transport(run.document, name)
            assert t["status"] == "ok" and t["launcher"] == "listen" and "sx0 carried" in t["carried"]["text"], t
        assert all(r["verified"] is True for r in results(run.document))
        wait_until(lambda: "has gone" in listener.said, 10, "the end of the session")
        assert re.search(r"root@nodeA is connected", listener.said), listener.said
    key = f"{home('shared')['HOME']}/.xportbench.key"
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600, oct(os.stat(key).st_mode)
    assert listener.process.returncode == 0, listener.said
    hosts.nothing_left()


@case("another port, an IPv6 address and a key file of one's own")
def _():
    path = f"{hosts.folder}/mykey"
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(os.urandom(32).hex() + "\n")
    with Listening("--port", 4242, "--key-file", path, "--control-interface", "sx0") as listener:
        assert f"10.88.{hosts.net}.2:4242" in listener.said, listener.said
        client("-t", "tcp", "@nodeB:4242", "--key-file", path, *SHORT)
    with Listening("--port", 4242, "--key-file", path):
        client("-t", "tcp,family=6", f"@[fd00:88:{hosts.net}::2]:4242", "--key-file", path, *SHORT)


@case("a key that others can read, is no key, or is missing, is refused on both sides")
def _():
    path = f"{hosts.folder}/openkey"
    with open(path, "w", encoding="utf-8") as file:
        file.write("0" * 64 + "\n")
    os.chmod(path, 0o644)
    for arguments in (["listen"], ["-t", "tcp", "@nodeB", *SHORT]):
        run = hosts.run(*arguments, "--key-file", path, env=home("shared"))
        assert run.status in (2, 4) and "can be used by others" in run.err and "0644" in run.err, run
    os.chmod(path, 0o600)
    with open(path, "w", encoding="utf-8") as file:
        file.write("hello\n")
    run = hosts.run("listen", "--key-file", path, env=home("shared"))
    assert run.status == 2 and "64 hex digits" in run.err, run
    run = hosts.run("listen", "--key-file", path + ".none", env=home("shared"))
    assert run.status == 2 and "cannot read" in run.err, run


@case("another key, and no listener at all: one sentence each")
def _():
    with Listening():
        run = client("-t", "tcp", "@nodeB", *SHORT, env=home("other"), status=4)
        assert "does not know our key" in run.err and len(run.err.splitlines()) == 1, run
    run = client("-t", "tcp", "@nodeB", *SHORT, status=4)
    assert "cannot be reached" in run.err and "xportbench listen" in run.err, run


@case("MPI, and options that name hosts as well, are refused with what to do")
def _():
    for words, says in ((["-t", "mpi:tcp"], "-H"), (["-t", "tcp", "-H", "a,b"], "leave out"), (["-t", "tcp", "@nodeC"], "only one")):
        run = hosts.run(*words, "@nodeB", *SHORT, env=home("shared"))
        assert run.status == 2 and says in run.err, run


@case("a second run is told who is there, and the first is not disturbed")
def _():
    with Listening() as listener:
        path = f"{hosts.folder}/first.json"
        first = hosts.start("-t", "tcp", "@nodeB", *LONG, "-o", path, env=home("shared"))
        try:
            wait_until(lambda: os.path.exists(path) and results(load(path)), 40, "results of the first")
            run = client("-t", "tcp", "@nodeB", *SHORT, host="nodeC", status=4)
            assert "busy" in run.err and "root@nodeA" in run.err, run
            rounds = results(load(path))[0]["rounds"]
            wait_until(lambda: results(load(path))[0]["rounds"] > rounds, 30, "the first to go on")
        finally:
            first.send_signal(signal.SIGINT)
            run = finish(first, 20)
        assert run.status == 130, run
        assert "nodeC" not in listener.said, listener.said
        # and now it is free again
        client("-t", "tcp", "@nodeB", *SHORT, host="nodeC")
    hosts.nothing_left()


@case("a client that is killed, and a worker that is stopped there, leave nothing; the listener serves on")
def _():
    with Listening():
        first = hosts.start("-t", "tcp", "@nodeB", *LONG, env=home("shared"))
        # a stopped worker cannot end by itself; one may just be ending with its launch
        def stop_one():
            found = hosts.workers("nodeB")
            try:
                if found:
                    os.kill(found[-1][0], signal.SIGSTOP)
            except ProcessLookupError:
                return None
            return found
        wait_until(stop_one, 30, "a worker on nodeB")
        controller = [pid for pid, line in hosts.processes("nodeA") if " @nodeB " in line]
        os.kill(controller[0], signal.SIGKILL)
        finish(first, 10)
        wait_until(lambda: not hosts.workers("nodeB"), 12, "the stopped worker to be gone")
        client("-t", "tcp", "@nodeB", *SHORT)
    hosts.nothing_left()


STRANGER = r"""
import socket, sys, time
host, count = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
port = int(sys.stdin.readline())
got, held = 0, []
for i in range(count):
    s = socket.socket()
    s.settimeout(3)
    try:
        s.connect((host, port))
        if i % 3 == 0:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(100))
        elif i % 3 == 1:
            s.sendall(b"XBCTRL\0\1" + bytes([i % 256]) * 64)
        # else: says nothing at all
        s.setblocking(False)
        try:
            got += len(s.recv(100))
        except BlockingIOError:
            pass
        held.append(s)
        if len(held) > 200:
            held.pop(0).close()
    except OSError:
        pass
time.sleep(0.5)
for s in held:
    try:
        got += len(s.recv(100))
    except OSError:
        pass
print(got)
"""


def port_of_controller(host, run):
    """TCP port on which a controller listens for workers: those listen for each other."""
    for line in hosts.on(host, "ss", "-Hltnp").splitlines():
        if f"pid={run.pid}," in line:
            return int(re.search(r":(\d+) ", line)[1])
    return None


@case("1000 strangers at the listener and 1000 at the control port get nothing and lose no result")
def _():
    with Listening() as listener:
        path = f"{hosts.folder}/flood.json"
        # ready to knock before the run begins, which lasts a second or more
        floods = [subprocess.Popen([*hosts.inside("nodeC"), "python3", "-c", STRANGER, host, "1000"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for host in ("nodeB", "nodeA")]
        for flood in floods:
            assert flood.stdout.readline() == "ready\n"
        run = hosts.start("-t", "tcp", "@nodeB", "-s", "8", "-n", 4000, "-x", 5, "--launches", 12, "--time", 120, "--bind", "0,1",
                          "-o", path, env=home("shared"))
        port = wait_until(lambda: port_of_controller("nodeA", run), 20, "the control port")
        for flood, number in zip(floods, (PORT, port)):
            flood.stdin.write(f"{number}\n")
            flood.stdin.flush()
        said = [flood.communicate(timeout=90)[0].strip() for flood in floods]
        assert said == ["0", "0"], f"bytes that strangers got: {said}"
        done = finish(run, 120)
        assert done.status in (0, 3), done
        document = load(path)
        assert document["partial"] is False and results(document)[0]["launches"] == 12, results(document)[0]["launches"]
        assert document["controller"]["strangers"] > 0, document["controller"]
        rss = [line.split()[1] for line in open(f"/proc/{hosts_pid(listener)}/status", encoding="utf-8") if line.startswith("VmHWM")]
        assert int(rss[0]) < 65536, f"the listener grew to {rss[0]} KiB"
        print(f"# 12 launches of tcp at 8 B beside 2000 strangers: {results(document)[0]['latency_us']['median']:.2f} us, "
              f"{document['controller']['strangers']} of them seen by the controller; listener at most {rss[0]} KiB")


def hosts_pid(listener):
    return listener.process.pid


try:
    with Hosts("nodeA", "nodeB", "nodeC", sshd=False) as hosts:
        main()
except Skip as reason:
    print(f"skip - listen on another host: {reason}")
