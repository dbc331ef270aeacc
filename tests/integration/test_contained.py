#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 900
"""Failure stays contained: killed, stopped and interrupted runs leave nothing behind, and a valid document."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import (SANITIZED, Skip, case, finish, have_plugin, load, main, mark, nothing_left, results, shared_memory, start,  # noqa: E402
                    temporary_files, transport, wait_until, workers)

mark()
LONG = ("-s", "8,64K", "--launches", "200:200", "--time", 600, "--seed", 3)


def over(sanitized, *names):
    """The transports of a case; under the sanitizers, where all is slow, so many of them."""
    return names[:sanitized] if SANITIZED else names


class Running:
    """A long run of `victim` beside a bystander; `with` gives its process once both measure."""

    def __init__(self, victim):
        if not have_plugin(victim.split(":")[0]):
            raise Skip(f"{victim} is not built")
        self.victim = victim

    def __enter__(self):
        self.shm, self.tmp = shared_memory(), temporary_files()
        self.folder = tempfile.TemporaryDirectory(prefix="xt-")
        self.path = os.path.join(self.folder.name, "run.json")
        self.process = start("-t", f"tcp,label=bystander,{self.victim},label=victim", *LONG, "-o", self.path)
        # the first launch is over: both have results
        wait_until(self.first_launch_done, 60, f"first launch of {self.victim}")
        return self

    def first_launch_done(self):
        if self.process.poll() is not None:
            raise AssertionError(f"ended early: {finish(self.process)!r}")
        try:
            return len(load(self.path)["results"]) == 4
        except (OSError, ValueError):
            return False

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        try:
            nothing_left(self.shm, self.tmp)
        finally:
            self.folder.cleanup()


def stop_run(running):
    """Ends a run that goes on with the bystander alone, as a user would."""
    running.process.send_signal(signal.SIGINT)
    return finish(running.process, 20)


def killed(victim, signal_number, patience):
    with Running(victim) as running:
        stopped, since = None, 0

        def hit():
            """Hits a worker, and once more where that one was only ending with its launch, which is no failure."""
            nonlocal stopped, since
            if transport(load(running.path), "victim")["status"] == "failed":
                return True
            alive = [pid for pid, _ in workers("--team 1")]
            if alive and stopped not in alive and time.monotonic() - since > 1:
                try:
                    os.kill(alive[-1], signal_number)
                    stopped, since = alive[-1], time.monotonic()
                except ProcessLookupError:
                    pass
            return False
        wait_until(hit, patience, "the failure in the document")
        wait_until(lambda: not workers("--team 1"), 10, "the victim's workers to be gone")
        before = results(load(running.path), label="bystander")[0]["rounds"]
        wait_until(lambda: results(load(running.path), label="bystander")[0]["rounds"] > before, 30, "the bystander to go on")
        run = stop_run(running)
        document = load(running.path)
        assert run.status == 130, run
        assert document["partial"] is True, "marked as partial"
        assert len(results(document, label="victim")) == 2, "what was measured of the victim is kept"
        return transport(document, "victim")["error"], run


for name in over(4, "tcp", "ofi:shm", "ucx:posix", "mpi:tcp", "mpi:shm", "ofi:tcp", "ucx:tcp", "ucx:sysv"):
    @case(f"SIGKILL of a worker of {name} in the middle of a run")
    def _(name=name):
        error, _ = killed(name, signal.SIGKILL, 20)
        assert "ended" in error, error


STARTS = {"ucx:posix": range(0, 60, 4), "ucx:sysv": range(0, 60, 4), "ofi:shm": range(0, 200, 5)}
for name in over(1, *STARTS):
    @case(f"SIGKILL of a worker of {name} at any moment of its start leaves nothing")
    def _(name=name):
        if not have_plugin(name.split(":")[0]):
            raise Skip(f"{name} is not built")
        before, files, hit = shared_memory(), temporary_files(), 0
        for delay_ms in STARTS[name][:: 5 if SANITIZED else 1]:
            process = start("-t", name, "-s", 8, "-n", 20, "--launches", "3:3")
            pid = wait_until(lambda: workers("--team 0"), 20, "a worker")[0][0]
            time.sleep(delay_ms / 1000)
            try:
                os.kill(pid, signal.SIGKILL)
                hit += 1
            except ProcessLookupError:
                pass  # its launch has ended
            finish(process, 60)
            nothing_left(before, files)
        assert hit, "no worker was met"


def start_with_signal(folder, function, number, endpoint, *arguments):
    """A run in which the worker of that endpoint raises the signal where it calls the function."""
    shim = os.path.join(folder, "signal_at.so")
    if not os.path.exists(shim):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "signal_at.c")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall", "-Werror", "-o", shim, source],
                       check=True)
    asan = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "detect_leaks=0")  # the shim comes first
    with unittest.mock.patch.dict(os.environ, LD_PRELOAD=shim, SIGNAL_AT=f"{function} {int(number)} {endpoint}", ASAN_OPTIONS=asan):
        return start(*arguments)


for name, endpoint, function, place in (("mpi:shm", 0, "shmctl", "between making a System V segment and marking it"),
                                        ("mpi:shm", 1, "shmctl", "between making a System V segment and marking it"),
                                        ("ucx:sysv", 1, "shmctl", "between making a System V segment and marking it"),
                                        ("ofi:shm", 1, "ftruncate", "while it opens, its file just made")):
    @case(f"{name}: worker {endpoint} is killed {place}")
    def _(name=name, endpoint=endpoint, function=function):
        if not have_plugin(name.split(":")[0]):
            raise Skip(f"{name} is not built")
        before, files = shared_memory(), temporary_files()
        with tempfile.TemporaryDirectory() as folder:
            run = finish(start_with_signal(folder, function, signal.SIGKILL, endpoint, "-t", name, "-s", 8, "-n", 20), 60)
            assert run.status not in (0, None) and "ended" in run.err, run
        nothing_left(before, files)


@case("a worker stopped while it connects is named, whether its peer gives up or waits for it")
def _():
    with tempfile.TemporaryDirectory() as folder:
        wanted = [("tcp", "accept4", 0)] + [("ucx:posix", "ucp_ep_create", 1)] * have_plugin("ucx")
        runs = [(name, endpoint, start_with_signal(folder, function, signal.SIGSTOP, endpoint, "-t", name, "-s", 8))
                for name, function, endpoint in wanted]
        for name, endpoint, process in runs:
            run = finish(process, 120)
            named = re.search(rf"worker {endpoint} \(process \d+, which is stopped\)", run.err)
            assert run.status not in (0, None) and named, (name, run)


for name in over(1, "tcp", "ucx:posix", "mpi:shm"):
    @case(f"SIGSTOP of a worker of {name} is found as a hang")
    def _(name=name):
        error, _ = killed(name, signal.SIGSTOP, 120)
        # it may also have been stopped while its launch was just starting
        assert any(words in error for words in ("hung", "workers reported within", "which is stopped")), error

for name in over(2, "tcp", "mpi:tcp", "ofi:shm", "ucx:sysv"):
    @case(f"Ctrl-C of the controller while {name} runs keeps the results")
    def _(name=name):
        with Running(name) as running:
            begin = time.monotonic()
            run = stop_run(running)
            assert run.status == 130 and time.monotonic() - begin < 12, run
            document = load(running.path)
            assert document["partial"] is True and document["stopped_by"] == "interrupted", document["stopped_by"]
            assert len(results(document)) == 4 and "victim" in run.out, "results printed and kept"

for name in over(2, "tcp", "mpi:shm", "ofi:tcp", "ofi:shm", "ucx:posix", "mpi:tcp"):
    @case(f"SIGKILL of the controller while {name} runs leaves nothing and a valid document")
    def _(name=name):
        with Running(name) as running:
            running.process.kill()
            running.process.wait()
            assert len(load(running.path)["results"]) == 4

main()
