# SPDX-License-Identifier: BSD-3-Clause
"""Test hosts for Python tests: see hosts.sh. `with Hosts("nodeA", "nodeB") as hosts:` brings them up and takes them down."""
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from xbtest import TOP, XB, Skip, environment, finish, load, wait_until  # noqa: E402

SCRIPT = os.path.join(TOP, "tests", "lib", "hosts.sh")


def needs(*programs):
    """Skips where a program is missing; in CI they are installed by quickstart."""
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Skip(f"no {program} here")
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")


class Hosts:
    def __init__(self, *names, sshd=True, banner=None):
        needs("ip", "nsenter", "ping", *(["sshd", "ssh"] if sshd else []))
        self.names, self.sshd = names, sshd
        self.folder = tempfile.mkdtemp(prefix="xb-hosts-", dir="/tmp")  # munged wants a path that all can walk
        self.net = 1 + os.getpid() % 250
        self.env = dict(os.environ, **({"XB_SSH_BANNER": banner} if banner else {}))

    def script(self, *arguments):
        done = subprocess.run([SCRIPT, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=self.env, check=False, timeout=120)
        assert done.returncode == 0, f"hosts.sh {' '.join(map(str, arguments))}: {done.stdout[-500:]}"
        return done.stdout

    def __enter__(self):
        try:
            self.script("up", self.folder, self.net, *self.names)
            if self.sshd:
                self.script("sshd", self.folder, *self.names)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.script("down", self.folder)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def ssh(self):
        return f"ssh -F {self.folder}/ssh/config"

    def pid(self, host):
        with open(f"{self.folder}/{host}.pid", encoding="utf-8") as file:
            return int(file.read())

    def inside(self, host):
        """The words that run what follows them on a host."""
        return ["nsenter", "-t", str(self.pid(host)), "-n", "-u", "-i", "-m", f"--wd={TOP}", "--"]

    def on(self, host, *words, check=True, timeout=30):
        done = subprocess.run([*self.inside(host), *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=timeout)
        assert not check or done.returncode == 0, f"{shlex.join(map(str, words))} on {host}: {done.stdout[-400:]}"
        return done.stdout

    def start(self, *arguments, host=None, env=None):
        """Starts xportbench on a host, the first one unless another is named."""
        return subprocess.Popen([*self.inside(host or self.names[0]), XB, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=TOP,
                                env={**environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **(env or {})})

    def run(self, *arguments, timeout=120, **options):
        return finish(self.start(*arguments, **options), timeout)

    def measure(self, *arguments, status=0, timeout=180, **options):
        """Runs a measurement between the hosts; returns it with its document. status None: any."""
        path = os.path.join(self.folder, "run.json")
        if os.path.exists(path):
            os.unlink(path)
        run = self.run("--ssh-command", self.ssh, *arguments, "-o", path, timeout=timeout, **options)
        assert status is None or run.status == status, f"expected exit {status}, got {run!r}"
        run.document = load(path) if os.path.exists(path) else None
        return run

    def namespace(self, host):
        with open(f"{self.folder}/tag", encoding="utf-8") as file:
            return f"{file.read().strip()}-{host}"

    def processes(self, host):
        """(pid, command line) of what runs on a host besides the host itself and its sshd."""
        found = []
        listing = subprocess.run(["ip", "netns", "pids", self.namespace(host)], stdout=subprocess.PIPE, text=True, check=False)
        for pid in listing.stdout.split():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    line = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    state = file.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state not in "ZX" and line and line != "sleep infinity" and "sshd" not in line.split()[0]:
                found.append((int(pid), line))
        return found

    def workers(self, host, contains=""):
        return [(pid, line) for pid, line in self.processes(host)
                if " worker " in line and line.split()[0] == XB and contains in line]

    def nothing_left(self, seconds=12):
        """No process, no shared memory file on any host after a bounded time."""
        def left():
            shm = {h: self.on(h, "ls", "/dev/shm").split() for h in self.names}
            return {h: (self.processes(h), shm[h]) for h in self.names if self.processes(h) or shm[h]}
        try:
            wait_until(lambda: not left(), seconds, "nothing left")
        except AssertionError:
            raise AssertionError(f"left behind: {left()}") from None

    def counters(self, host, interface):
        base = self.on(host, "cat", "/proc/net/dev")
        for line in base.splitlines():
            name, colon, rest = line.strip().partition(":")
            if colon and name == interface:
                values = list(map(int, rest.split()))
                return {"rx_bytes": values[0], "rx_packets": values[1], "tx_bytes": values[8], "tx_packets": values[9]}
        raise AssertionError(f"no {interface} on {host}")


def stray_files():
    return set(glob.glob("/tmp/xportbench*") + glob.glob("/tmp/ompi.*"))
