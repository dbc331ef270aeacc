# SPDX-License-Identifier: BSD-3-Clause
"""What the integration tests share: running xportbench, reading its document, looking for leftovers.

A test file defines functions decorated with @case("what must hold") and ends with main(). Each prints one line
`ok - NAME`, `not ok - NAME: why` or `skip - NAME: reason`.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("XB_BUILD", "build")
BUILD = BUILD if os.path.isabs(BUILD) else os.path.join(TOP, BUILD)
XB = os.environ.get("XB_BIN", os.path.join(BUILD, "xportbench"))
SANITIZED = os.path.basename(BUILD) != "build"
_cases = []


class Skip(Exception):
    """A test that cannot be done here; says why."""


def case(name):
    def keep(function):
        _cases.append((name, function))
        return function
    return keep


def main():
    failed = 0
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, function in _cases:
        if only not in name:
            continue
        try:
            function()
            print(f"ok - {name}", flush=True)
        except Skip as reason:
            print(f"skip - {name}: {reason}", flush=True)
        except Exception as problem:  # noqa: BLE001 - a test reports whatever went wrong
            failed += 1
            if not isinstance(problem, AssertionError):
                traceback.print_exc()
            text = " ".join(str(problem).split()) or traceback.format_exc(limit=-1).replace("\n", " ")
            print(f"not ok - {name}: {text}", flush=True)
    sys.exit(1 if failed else 0)


def environment():
    env = dict(os.environ)
    env["NO_COLOR"] = "1"
    suppressions = os.path.join(TOP, "tests", "lsan.supp")
    # the fabric libraries leak by design at exit; leaks of ours are looked for in the unit tests
    env.setdefault("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=0")
    if os.path.exists(suppressions):
        env.setdefault("LSAN_OPTIONS", f"suppressions={suppressions}")
    return env


class Run:
    def __init__(self, status, out, err, seconds, document=None):
        self.status, self.out, self.err, self.seconds, self.document = status, out, err, seconds, document

    def __repr__(self):
        return f"exit {self.status} after {self.seconds:.1f} s; stderr: {self.err[-600:]!r}"


def start(*arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([XB, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True, env=environment(), cwd=TOP,
                            start_new_session=True, **options)


def finish(process, timeout=120):
    begin = time.monotonic()
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"did not end within {timeout} s; stderr: {err[-600:]!r}") from None
    return Run(process.returncode, out or "", err or "", time.monotonic() - begin)


def run(*arguments, timeout=120, **options):
    return finish(start(*arguments, **options), timeout)


def measure(*arguments, timeout=180, status=0):
    """Runs a measurement and returns it with its document; fails unless it ends with the status."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        result = run(*arguments, "-o", path, timeout=timeout)
        assert status is None or result.status == status, f"expected exit {status}, got {result!r}"
        result.document = load(path) if os.path.exists(path) else None
    return result


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def results(document, **want):
    return [r for r in document["results"] if all(r.get(k) == v for k, v in want.items())]


def comparison(document, lower, upper, **want):
    found = [c for c in document["comparisons"] if c["lower"] == lower and c["upper"] == upper
             and all(c.get(k) == v for k, v in want.items())]
    assert len(found) == 1, f"{len(found)} comparisons {lower} -> {upper} {want}"
    return found[0]


def transport(document, label):
    return next(t for t in document["transports"] if t["label"] == label)


def findings(document, code=None):
    return [f for f in document["findings"] if code is None or f["code"] == code]


def have_plugin(name):
    return os.path.exists(os.path.join(BUILD, "plugins", f"libxb-{name}.so"))


# --- leftovers: processes are known by a mark in their environment, so that nobody else's are counted

MARK = f"XB_TEST_MARK_{os.getpid()}"


def marked_processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if MARK.encode() not in file.read():
                    continue
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found.append((int(pid), file.read().replace(b"\0", b" ").decode(errors="replace").strip()))
        except OSError:
            pass
    return found


def workers(contains=""):
    return [(pid, line) for pid, line in marked_processes() if " worker " in line and "mpirun" not in line.split()[0]
            and contains in line]


def mark():
    os.environ[MARK] = "1"


def shared_memory():
    segments = set(os.listdir("/dev/shm"))
    with open("/proc/sysvipc/shm", encoding="utf-8") as file:
        segments |= {"sysv " + line.split()[1] for line in file.readlines()[1:]}
    return segments


def temporary_files():
    folder = tempfile.gettempdir()
    return {name for name in os.listdir(folder) if name.startswith(("ompi.", "xportbench", "prrte", "pmix"))}


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


def nothing_left(before_shm, before_tmp, seconds=8):
    """No process, shared memory file or temporary folder of ours is left after a bounded time."""
    end = time.monotonic() + seconds
    while True:
        left = marked_processes()
        shm, tmp = shared_memory() - before_shm, temporary_files() - before_tmp
        if not left and not shm and not tmp:
            return
        if time.monotonic() > end:
            for pid, _ in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"left behind: processes {left}, shared memory {sorted(shm)}, files {sorted(tmp)}")
        time.sleep(0.05)
