#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same loop everywhere: every backend sees the identical sequence of posts, waits and replies."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import case, have_plugin, main, measure  # noqa: E402

BACKENDS = [t for t in ("tcp", "ofi:tcp", "ofi:shm", "ucx:tcp", "ucx:posix", "mpi:tcp", "mpi:shm") if have_plugin(t.split(":")[0])]


def traces(transport, bench, size, folder, op="send"):
    path = os.path.join(folder, transport.replace(":", "_"))
    measure("-t", f"{transport},trace={path}", "-b", bench, "--op", op, "-s", size, "-n", 5, "-x", 2, "-W", 4, "--launches", "1:1")
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith(os.path.basename(path)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name[len(os.path.basename(path)):]] = file.read()
    assert found and all(found.values()), f"no trace of {transport}"
    return found


for bench in ("pingpong", "bw", "bibw"):
    for size in ("0", "8", "100000"):
        @case(f"{bench} at {size}: one sequence of operations on {', '.join(BACKENDS)}")
        def _(bench=bench, size=size):
            with tempfile.TemporaryDirectory() as folder:
                first = traces(BACKENDS[0], bench, size, folder)
                assert any("send" in text for text in first.values())
                for other in BACKENDS[1:]:
                    found = traces(other, bench, size, folder)
                    assert list(found.values()) == list(first.values()), f"{other} differs from {BACKENDS[0]}"


# --- swap: the protocols of P. Worley's swap_comm, stages separated by '|'; one text where both sides do the same

SWAPS = {
    "ordered": {
        0: ("|Send,Recv|", "|Recv,Send|"), 1: ("|Isend,Recv|Wait", "|Recv,Isend|Wait"), 2: ("Irecv|Send,Wait|", "Irecv|Wait,Send|"),
        3: ("Irecv|Isend,Wait|Wait", "Irecv|Wait,Isend|Wait"), 4: ("Irecv,Recv(sig)|Rsend,Wait|", "Irecv,Send(sig)|Wait,Rsend|"),
        5: ("Irecv,Recv(sig)|Irsend,Wait|Wait", "Irecv,Send(sig)|Wait,Irsend|Wait"), 6: ("|Recv(sig),Send,Recv|", "|Send(sig),Recv,Send|"),
        7: ("|Issend,Recv|Wait", "|Recv,Issend|Wait"), 8: ("Irecv|Ssend,Wait|", "Irecv|Wait,Ssend|"),
        9: ("Irecv|Issend,Wait|Wait", "Irecv|Wait,Issend|Wait"), 10: ("|Ssend,Recv|", "|Recv,Ssend|")},
    "unordered": {
        1: ("|Isend,Recv|Wait",), 2: ("Irecv|Send,Wait|",), 3: ("Irecv|Isend,Wait|Wait",), 4: ("Irecv,Send(sig),Recv(sig)|Rsend,Wait|",),
        5: ("Irecv,Send(sig),Recv(sig)|Irsend,Wait|Wait",), 6: ("|Irecv,Send,Wait|",), 7: ("|Issend,Recv|Wait",), 8: ("Irecv|Ssend,Wait|",),
        9: ("Irecv|Issend,Wait|Wait",)},
    "delayed": {
        1: ("|Isend|Recv,Wait",), 2: ("Irecv|Send|Wait",), 3: ("Irecv|Isend|Wait,Wait",), 4: ("Irecv,Send(sig),Recv(sig)|Rsend|Wait",),
        5: ("Irecv,Send(sig),Recv(sig)|Irsend|Wait,Wait",), 7: ("|Isend|Recv,Wait",), 8: ("Irecv|Ssend|Wait",), 9: ("Irecv|Issend|Wait,Wait",)},
}
SWAP_SIZE, SWAP_MESSAGES = 4096, 4
OPERATIONS = {name: [f"{op} {SWAP_SIZE}"] + (["wait"] if name[0] not in "I" else [])
              for name, op in (("Send", "send"), ("Isend", "send"), ("Ssend", "send_sync"), ("Issend", "send_sync"), ("Rsend", "send_ready"),
                               ("Irsend", "send_ready"), ("Recv", "recv"), ("Irecv", "recv"))}
# signals come on the same connection: their receives are posted when a batch begins, and Recv(sig) is the wait
OPERATIONS.update({"Wait": ["wait"], "Send(sig)": ["send 8", "wait"], "Recv(sig)": ["wait"]})


def train(text, batch):
    found = []
    for first in range(0, SWAP_MESSAGES, batch):
        members = range(first, min(first + batch, SWAP_MESSAGES))
        found += ["recv 8" for _ in members if "Recv(sig)" in text]
        for stage in text.split("|"):
            for _ in members:
                found += [op for name in filter(None, stage.split(",")) for op in OPERATIONS[name]]
    return found


def swap_blocks(transport, order, depth, folder):
    """By side and protocol: the operations of the timed swap of that block."""
    path = os.path.join(folder, "swap")
    words = ("--overlap", "on", "--overlap-depth", depth) if depth else ()
    measure("-t", f"{transport},trace={path}", "-b", "swap", "--order", order, "--total", SWAP_SIZE * SWAP_MESSAGES, "-s", SWAP_SIZE, "-n", 1,
            "-x", 1, "--launches", "1:1", *words)
    found = {}
    for endpoint in (0, 1):
        with open(f"{path}.{endpoint}", encoding="utf-8") as file:
            blocks = file.read().split("# swap ")[1:]
        os.unlink(f"{path}.{endpoint}")
        for block in blocks:
            head, *lines = block.strip().split("\n")
            protocol = int(head.split("protocol ")[1].split()[0])
            assert ("initiator" if endpoint == 0 else "responder") in head and order in head, head
            found[endpoint, protocol] = lines
    return found


def is_swap(line):
    """Of data or a signal; everything else between the trains are 64-byte control messages and waits."""
    return line.endswith(f" {SWAP_SIZE}") or line.endswith(" 8")


for order, protocols in SWAPS.items():
    for depth in (0, 2):
        for transport in BACKENDS:
            @case(f"swap, {order}{f', overlapping by {depth}' if depth else ''}, {transport}: both sides make the calls of the protocol's table")
            def _(order=order, protocols=protocols, depth=depth, transport=transport):
                with tempfile.TemporaryDirectory() as folder:
                    found = swap_blocks(transport, order, depth, folder)
                expected = {p: t for p, t in protocols.items() if not depth or p not in (0, 6, 10)}
                assert set(found) == {(e, p) for e in (0, 1) for p in expected}, sorted(found)
                for (endpoint, protocol), lines in found.items():
                    wanted = train(expected[protocol][endpoint if len(expected[protocol]) == 2 else 0], depth or 1)
                    # three trains: warm-up, timed, verification; each begins with data or a signal
                    at = 0
                    for part in range(3):
                        while at < len(lines) and not is_swap(lines[at]):
                            at += 1
                        assert lines[at:at + len(wanted)] == wanted, (protocol, endpoint, part, wanted, lines[at:at + len(wanted)])
                        at += len(wanted)
                    assert not any(map(is_swap, lines[at:])), (protocol, endpoint, lines[at:])


main()
