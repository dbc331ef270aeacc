#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tests/run makes of what a program says: the second look at what failed."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import TOP, case, main  # noqa: E402

sys.dont_write_bytecode = True
os.environ.pop("XB_CHECK_SKIPS", None)
loader = importlib.machinery.SourceFileLoader("runner", os.path.join(TOP, "tests", "run"))
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)


def said(text):
    outcome = runner.Outcome()
    runner.parse(text, outcome)
    outcome.told = list(outcome.failed)
    return outcome


def unsettled(first, second):
    return runner.unsettled(said(first), said(second))


@case("a case that failed is settled by its own name in the second look, and by nothing else")
def _():
    first = "ok - a\nnot ok - tcp: b: 3 < 4\n"
    assert unsettled(first, "ok - a\nok - tcp: b\n") == []
    assert unsettled(first, "ok - tcp: b\nok - a\n") == []
    assert unsettled(first, "ok - a\nskip - tcp: b: too busy\n") == ["tcp: b: 3 < 4"]
    assert unsettled(first, "ok - a\nok - another\n") == ["tcp: b: 3 < 4"]
    assert unsettled(first, "ok - a\nok - tcp: b: 3\n") == ["tcp: b: 3 < 4"]


@case("a case that passed first may be skipped in the second look, but not be missing")
def _():
    first = "ok - a\nok - swept caches\nnot ok - b\n"
    assert unsettled(first, "ok - a\nskip - swept caches: no difference\nok - b\n") == []
    assert unsettled(first, "ok - a\nok - b\n") == ["swept caches"]


@case("a name that several cases have counts as often as it was told")
def _():
    first = "ok - a\nnot ok - a: why\n"
    assert unsettled(first, "ok - a\nok - a\n") == []
    assert unsettled(first, "ok - a\nskip - a: why\n") == ["a: why"]


@case("cmocka's cases too")
def _():
    first = "[ RUN      ] one\n[       OK ] one\n[ RUN      ] two\n[  FAILED  ] two\n"
    assert unsettled(first, first.replace("[  FAILED  ]", "[       OK ]")) == []
    assert unsettled(first, first.replace("[  FAILED  ]", "[  SKIPPED ]")) == ["two"]


class Program:
    """Says one text the first time that it runs, and another later."""

    def __init__(self, folder, first, second, status=1):
        self.folder, self.name, self.sanitized, self.timeout_s = folder, f"{folder}/stand-in", False, 60
        self.once, self.texts, self.status = os.path.join(work.name, folder), (first, second), status
        if os.path.exists(self.once):
            os.unlink(self.once)

    def command(self):
        script = f'if [ -e "{self.once}" ]; then echo "$2"; else echo "$1"; touch "{self.once}"; exit {self.status}; fi'
        return ["sh", "-c", script, "sh", *self.texts]


def looks(program, seconds=60):
    """The outcome of a program after the second look, if it got one, and whether it did."""
    deadline = time.monotonic() + seconds
    results = [(program, runner.run(program, deadline)[0])]
    first = results[0][1]
    with contextlib.redirect_stdout(io.StringIO()):
        runner.look_again(results, deadline)
    return results[0][1], results[0][1] is not first


work = tempfile.TemporaryDirectory()
runner.LOGS = work.name


@case("a program that failed gets a second look, and that decides")
def _():
    outcome, again = looks(Program("integration", "ok - a\nnot ok - b: why", "ok - a\nok - b"))
    assert again and not outcome.failed, outcome.failed
    outcome, again = looks(Program("integration", "ok - a\nnot ok - b: why", "ok - a\nskip - b: why"))
    assert again and "b: why" in outcome.failed[0], outcome.failed


@case("a guest that ran out of time or panicked gets no second look; a case that failed inside one does")
def _():
    for end in ("the guest's time of 300 s was up", "the guest ended with status 125"):
        outcome, again = looks(Program("guest", f"ok - a\nnot ok - verbs in a guest: {end}", "ok - a"))
        assert outcome.failed and not again, end
    outcome, again = looks(Program("guest", "not ok - a: took too long", "ok - a"))
    assert again and not outcome.failed, outcome.failed


@case("what lint finds is certain; a lint that ran out of time gets a second look")
def _():
    outcome, again = looks(Program("lint", "not ok - cppcheck finds nothing", "ok - cppcheck finds nothing"))
    assert outcome.failed and not again
    program = Program("lint", "ok - cppcheck finds nothing", "ok - cppcheck finds nothing", status="$(sleep 20)")
    program.timeout_s = 2
    outcome, again = looks(program)
    assert again and not outcome.failed, outcome.failed


@case("there is a second look while the time left is what the first one took, and none after that")
def _():
    for seconds, expected in ((60, True), (0.3, False)):
        _, again = looks(Program("integration", "not ok - a", "ok - a", status="$(sleep 0.2; echo 1)"), seconds)
        assert again == expected, (seconds, again)


@case("where skips are refused, one that is not on the list is a failure, and one that is stays a skip")
def _():
    skips = os.path.join(work.name, "skips")
    with open(skips, "w", encoding="utf-8") as file:
        file.write("# why\n\n*integration/stand-in: noise *: too busy*\n")
    program = Program("integration", "", "")
    for text, allowed in (("skip - noise is seen: too busy a machine", True), ("skip - noise is seen: no root", False),
                          ("skip - two hosts: no network namespaces", False)):
        outcome = said("ok - a\n" + text)
        runner.refuse_skips(program.name, outcome)
        assert len(outcome.skipped) == 1 and not outcome.failed, "by hand any skip will do"
        os.environ["XB_CHECK_SKIPS"] = skips
        try:
            runner.refuse_skips(program.name, outcome)
        finally:
            del os.environ["XB_CHECK_SKIPS"]
        assert (len(outcome.skipped), len(outcome.failed)) == ((1, 0) if allowed else (0, 1)), (text, outcome.failed)


@case("a whole program that is skipped is a failure in CI, unless it runs the second time")
def _():
    os.environ["XB_CHECK_SKIPS"] = ".ci/skips"
    try:
        for second, fails in (("ok - verbs in a guest", False), ("skip - verbs in a guest: cannot be downloaded", True)):
            outcome, again = looks(Program("guest", "skip - verbs in a guest: cannot be downloaded", second, status=0))
            assert again and bool(outcome.failed) == fails, (second, outcome.failed)
    finally:
        del os.environ["XB_CHECK_SKIPS"]


@case("the fast check leaves out what may take long, unless it is named")
def _():
    def listed(*arguments):
        env = {name: value for name, value in os.environ.items() if not name.startswith("XB_CHECK_")}
        return subprocess.run([os.path.join(TOP, "tests", "run"), "--list", *arguments], env={**env, "XB_CHECK_FAST": "1"},
                              stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert "unit/test_stats" in listed() and "contract/run" not in listed() and "lint" in listed()
    assert listed("--only", "contract/*") == ["contract/run"]


main()
