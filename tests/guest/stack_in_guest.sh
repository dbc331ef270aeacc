# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs in the guest, started by test_stack_guest.sh: one run with all layers over one soft-RoCE device, each on the path it names, with
# nothing set but the path.
cp -r /guest/xb /tmp/xb && cd /tmp/xb || exit 2
# shellcheck source=tests/guest/two_devices.sh
. ./two_devices.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=/tmp
two_devices || {
	echo "not ok - two soft-RoCE devices come up"
	exit 1
}
timeout 400 ./xportbench -t verbs:rxe0,ucx:rc,ucx:ud,ofi:verbs,mpi:ucx \
	-s 8,4096 --launches 1:1 -n 20 --bind none -o /tmp/run.json >/tmp/log 2>&1
status=$?
name="verbs, ucx:rc, ucx:ud, ofi:verbs and mpi:ucx are measured side by side"
if [ "$status" = 0 ]; then
	echo "ok - $name"
else
	echo "not ok - $name: exit status $status"
	sed 's/^/  | /' /tmp/log
fi
python3 - <<'END' || status=1
import json
import sys

run = json.load(open("/tmp/run.json"))
took = {t["label"]: t for t in run["transports"]}
failed = 0
for name, path in (("verbs", "RC on rxe0 port 1"), ("ucx:rc", "rc_verbs/rxe0"), ("ucx:ud", "ud_verbs/rxe0"),
                   ("ofi:verbs", "verbs;ofi_rxm on rxe0"), ("mpi:ucx", "rc_verbs/rxe0")):
    label = next((l for l in took if l.startswith(name)), None)
    found = took[label]["resolved_path"] if label else "not in the document"
    results = [r for r in run["results"] if r["label"] == label]
    devices = [e["device"] for e in took[label]["evidence"]] if label else []
    packets = sum(e.get("tx_packets") or 0 for e in took[label]["evidence"] if e["device"].startswith("rxe0")) if label else 0
    for what, right, why in (
        (f"{name} took its path over soft-RoCE", path in found, found),
        (f"{name} has every payload verified", len(results) == 2 and all(r["verified"] for r in results), f"{len(results)} results"),
        # rxe counts packets in hw_counters: a message of 4096 bytes is at least one, and there are 20 each way in the timed part
        (f"{name} has packets that rxe0 has counted as its evidence", packets >= 2 * 2 * 20, f"{packets} packets; {devices}"),
    ):
        print(f"ok - {what}" if right else f"not ok - {what}: {why}")
        failed |= not right
sys.exit(failed)
END
timeout 200 ./xportbench -t verbs:rxe0,ucx:rc --op write-poll -s 1,8,4096 --launches 1:1 -n 20 --bind none -q -o /tmp/poll.json >/tmp/log 2>&1
polled=$?
name="verbs and ucx:rc are compared where both sides write and watch their memory"
if [ "$polled" = 0 ] && python3 -c 'import json, sys
run = json.load(open("/tmp/poll.json"))
sys.exit(len(run["results"]) != 6 or len(run["comparisons"]) != 3 or not all(r["verified"] for r in run["results"]))'; then
	echo "ok - $name"
else
	echo "not ok - $name: exit status $polled"
	sed 's/^/  | /' /tmp/log
	status=1
fi
# by its full name the transport does not bring along what it is set up through
timeout 120 ./xportbench -t mpi:ucx/rc_verbs -s 8,4096 --launches 1:1 -n 20 --bind none -q -o /tmp/named.json >/tmp/log 2>&1
named=$?
name="mpi:ucx/rc_verbs is set up, and takes its path"
if [ "$named" = 0 ] && python3 -c 'import json, sys
run = json.load(open("/tmp/named.json"))
sys.exit("rc_verbs/rxe0" not in run["transports"][0]["resolved_path"] or len(run["results"]) != 2 or not all(r["verified"] for r in run["results"]))'; then
	echo "ok - $name"
else
	echo "not ok - $name: exit status $named"
	sed 's/^/  | /' /tmp/log
	status=1
fi
[ "$status" = 0 ]
