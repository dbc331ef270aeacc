#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# xb-timeout: 300
# xb-sanitize: no (what is asserted are ratios of times)
"""Known truth for swaps: what COMMTEST derives from the times is what was put in."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from xbtest import Skip, case, have_plugin, main, measure  # noqa: E402

FAST = ("-n", 3, "-x", 1, "--launches", "7:7")


def estimate(document, **want):
    found = [e for e in document["swap_estimates"] if all(e[k] == v for k, v in want.items())]
    assert len(found) == 1, (want, len(found))
    return found[0]


def swaps(document, **want):
    return {r["size"]: r for r in document["swaps"] if all(r[k] == v for k, v in want.items())}


# null completes everything at once, and the other side's time is nobody's: a swap of n messages takes n delays, where
# between two real ends it takes 2 n, one after the other. A one-way latency is half of a swap's, and what is told as
# imposed is what a one-way latency holds.

# Minima are COMMTEST's estimator, and what a loaded machine disturbs least; medians carry the interval.

@case("null: a delay of d per message is an estimated latency of d/2, as the injector measured it")
def _():
    document = measure("-t", "null,fault.delay=20us", "-b", "swap", "--protocol", "all", "-s", "4K,8K", "--total", "64K", "-n", 10, "-x", 1,
                       "--launches", "7:7").document
    for protocol in range(11):
        e = estimate(document, protocol=protocol)["latency_us"]
        truth = swaps(document, protocol=protocol)[4096]["fault"]["imposed_delay_us"]["median"]
        assert 10 <= truth < 20, truth
        assert 0.97 * truth <= e["from_minima"] <= 1.1 * truth, (protocol, truth, e)
        assert e["ci_high"] >= 0.97 * truth, (protocol, truth, e)


@case("tcp: a delay of d per message adds d to the estimated latency of every protocol")
def _():
    document = measure("-t", "tcp,tcp,label=slow,fault.delay=200us", "-b", "swap", "--protocol", "0,3,9", "-s", "4K,8K", "--total", "32K", "-n", 10,
                       "-x", 1, "--launches", "7:7").document
    for protocol in (0, 3, 9):
        slow, fast = (estimate(document, label=label, protocol=protocol)["latency_us"]["from_minima"] for label in ("slow", "tcp"))
        truth = swaps(document, label="slow", protocol=protocol)[4096]["fault"]["imposed_delay_us"]["median"]
        print(f"# protocol {protocol}: {truth:.1f} us imposed, {slow - fast:.1f} us found")
        # a busy machine adds its own tens of microseconds to both
        assert 0.8 * truth <= slow - fast <= 1.5 * truth, (protocol, truth, slow, fast)
        added = [c for c in document["swap_comparisons"] if c["protocol"] == protocol and c["size"] == 4096]
        assert len(added) == 1 and added[0]["distinguishable"], added
        assert added[0]["overhead_us_per_message"]["median"] > 0.7 * truth, (added, truth)


@case("tcp: of a delay at one end half is imposed on a message, and so it is of both when both send at once")
def _():
    for order, endpoint in (("ordered", ",fault.endpoint=0"), ("ordered", ",fault.endpoint=1"), ("unordered", "")):
        document = measure("-t", f"tcp,tcp,label=slow,fault.delay=400us{endpoint}", "-b", "swap", "--order", order, "--protocol", "3", "-s", "4K,8K",
                           "--total", "32K", "-n", 10, "-x", 1, "--launches", "7:7").document
        slow, fast = (estimate(document, label=label)["latency_us"]["from_minima"] for label in ("slow", "tcp"))
        truth = swaps(document, label="slow")[4096]["fault"]["imposed_delay_us"]["median"]
        print(f"# {order}{endpoint}: {truth:.1f} us imposed, {slow - fast:.1f} us found")
        assert 200 <= truth < 300, (order, endpoint, truth)
        assert 0.8 * truth <= slow - fast <= 1.5 * truth, (order, endpoint, truth, slow, fast)


@case("a bandwidth cap is the peak bandwidth: all of it on null, where one side's sends are all there is, the cap itself on tcp")
def _():
    document = measure("-t", "null,fault.cap=100M", "-b", "swap", "--protocol", "2", "-s", "64K,256K", "--total", "256K", *FAST).document
    peak = estimate(document, protocol=2)["peak_MBps"]
    assert 195 <= peak <= 200.5, peak
    document = measure("-t", "tcp,tcp,label=capped,fault.cap=50M", "-b", "swap", "--protocol", "2", "-s", "64K,256K", "--total", "256K",
                       *FAST).document
    capped, free = estimate(document, label="capped")["peak_MBps"], estimate(document, label="tcp")["peak_MBps"]
    assert capped <= 50.5 and free > 1.2 * capped, (capped, free)


@case("a step at 32K is the jump of the sensitivity table, there and not before")
def _():
    run_ = measure("-t", "null,fault.step=32K/1ms", "-b", "swap", "--protocol", "1,6", "-s", "8K,16K,32K,64K", "--total", "64K", *FAST)
    for protocol in (1, 6):
        times = {size: r["seconds_per_message"]["min"] for size, r in swaps(run_.document, protocol=protocol).items()}
        assert times[8192] < 1e-4 and times[16384] < 1e-4, times
        assert 1e-3 <= times[32768] < 1.2e-3 and 1e-3 <= times[65536] < 1.2e-3, times


@case("overlap and ten swaps in a row count what was put in just the same")
def _():
    document = measure("-t", "null,fault.delay=20us", "-b", "swap", "--protocol", "3,9", "--cache", "1,10", "--overlap-depth", 3, "-s", "4K,8K",
                       "--total", "32K", "-n", 20, "-x", 1, "--launches", "7:7").document
    truth = swaps(document, protocol=3, mode="1 iter.", overlap=False)[4096]["fault"]["imposed_delay_us"]["median"]
    for protocol in (3, 9):
        for mode in ("1 iter.", "10 iter."):
            for overlap in (False, True):
                e = estimate(document, protocol=protocol, mode=mode, overlap=overlap)["latency_us"]
                assert 0.95 * truth <= e["from_minima"] <= 1.25 * truth, (protocol, mode, overlap, e, truth)


def last_level_cache_bytes():
    folder, largest = "/sys/devices/system/cpu/cpu0/cache", 0
    for index in os.listdir(folder) if os.path.isdir(folder) else []:
        path = os.path.join(folder, index, "size")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read().strip()
            largest = max(largest, int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0))
    return largest


@case("swept caches cost time")
def _():
    if not have_plugin("mpi"):
        raise Skip("no shared memory transport was built")
    cache = last_level_cache_bytes()
    for _ in range(3):  # other work takes caches and cores, and widens the intervals
        # 2 MiB each way through shared memory, where the copies are all there is; every launch on its own
        document = measure("-t", "mpi:shm", "-b", "swap", "--protocol", "2", "--cache", "inv,1", "-s", "256K", "--total", "2M", "-n", 5,
                           "-x", 1, "--launches", "9:9").document
        cold, warm = (swaps(document, mode=mode)[262144]["seconds"] for mode in ("cache inv.", "1 iter."))
        print(f"# cold {cold['median'] * 1e3:.3f} ms [{cold['ci_low'] * 1e3:.3f}, {cold['ci_high'] * 1e3:.3f}], "
              f"warm {warm['median'] * 1e3:.3f} ms [{warm['ci_low'] * 1e3:.3f}, {warm['ci_high'] * 1e3:.3f}]; last-level cache: {cache >> 20} MiB")
        if cold["ci_low"] > warm["ci_high"]:
            return
    assert cold["ci_high"] >= warm["ci_low"], "a swap after a sweep took less time than one without"
    assert cache < 16 << 20, f"no difference, although the last-level cache holds {cache >> 20} MiB and both ends touch 8 MiB"
    raise Skip(f"the last-level cache ({cache >> 20} MiB) holds less than twice the 8 MiB that both ends touch" if cache else
               "the kernel does not tell how large the last-level cache is")


main()
