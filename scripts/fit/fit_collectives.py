#!/usr/bin/env python3
"""Fits the collective model's parameters to collectives.csv and writes a profile.

    scripts/fit/fit_collectives.py --data DIR --gpu h100-sxm -o scenarios/profiles/h100-sxm.collectives.yaml

Needs numpy and scipy. The same rows give the same file, up to the date.
Formulas: docs/models/collectives.md.
"""

import sys

import numpy as np

import common

SCRIPT = "scripts/fit/fit_collectives.py"
TABLE = "collectives.csv"
KINDS = ("all_gather", "reduce_scatter", "alltoall", "all_reduce")
LARGE_BYTES = 2e6  # below, the start-up time alone is seen

# link: bandwidth of a GPU into NVSwitch per direction (data sheet), which no wire exceeds.
GPUS = {
    "h100-sxm": dict(rows="H100", link=450e9, across="H100"),
    "h200-sxm": dict(rows="H200", link=450e9, across="H100"),
    "a100-sxm": dict(rows="A100", link=300e9, across=None),
}


def bus_factor(kind, n):
    """W / S: nccl-tests' bus bytes of one rank over the size."""
    return 2 * (n - 1) / n if kind == "all_reduce" else (n - 1) / n


def wire_factor(kind, n, in_switch):
    """Bytes on a GPU's link, per direction, over the size; with reduction in the switch an
    all-reduce sends S out for the reduction and S/n back in the multicast."""
    if kind == "all_reduce" and in_switch:
        return (n + 1) / n
    return bus_factor(kind, n)


def seconds(p, bus_bytes):
    start, bandwidth, coefficient, exponent = p
    return start * 1e-6 + bus_bytes / (bandwidth * 1e9) + coefficient * 1e-6 * (bus_bytes / 1e6) ** exponent


def fit_in_node(rows, kind, n, max_bandwidth):
    """t = a + W/B + c (W/1 MB)^g, with B at most what the link lets through."""
    bus = common.column(rows, "size_bytes") * bus_factor(kind, n)
    t = common.column(rows, "time_us") * 1e-6
    train = ~common.mask(rows)

    def loss(p):
        if min(p) < 0 or p[1] <= 0 or p[3] > 0.95 or p[1] > max_bandwidth / 1e9:
            return 10
        return np.mean(np.abs(np.log(seconds(p, bus[train]) / t[train])))

    top = max_bandwidth / 1e9
    starts = ([8, 0.7 * top, 1, 0.5], [10, 0.8 * top, 4, 0.3], [6, 0.6 * top, 8, 0.6], [15, 0.95 * top, 7, 0.65])
    best = min((common.minimize_simplex(loss, start) for start in starts), key=lambda result: result.fun)
    predicted = seconds(best.x, bus)
    unseen, large = ~train, bus > LARGE_BYTES
    common.describe(f"{kind} n={n} held out, all sizes", predicted[unseen], t[unseen])
    common.describe(f"{kind} n={n} above 2 MB", predicted[large], t[large])
    return best.x, common.residual(predicted[unseen], t[unseen]), common.residual(predicted[large], t[large])


def write_in_node(profile, gpu, rows):
    for kind in KINDS:
        for n in (2, 4, 8):
            chosen = [row for row in rows if row["gpu"] == gpu["rows"] and row["n_nodes"] == "1"
                      and row["source"].startswith("NVIDIA aiconfigurator") and row["collective"] == kind
                      and row["n_gpus"] == str(n) and row["time_us"]]
            in_switch = kind == "all_reduce" and n == 8 and gpu["link"] > 400e9  # NVLink SHARP, Hopper on
            top = gpu["link"] * bus_factor(kind, n) / wire_factor(kind, n, in_switch)
            p, residual, large = fit_in_node(chosen, kind, n, top)
            print(f"    {kind} n={n}: a {p[0]:.1f} us, B {p[1]:.0f} GB/s, c {p[2]:.2f} us, g {p[3]:.2f}")
            key = f"collective.node.{kind.replace('alltoall', 'all_to_all')}.{n}"
            source = f"rows {common.row_range(chosen)}; {SCRIPT}"
            profile.set(f"{key}.latency", p[0] * 1e-6, "s", "fitted", source, residual)
            profile.set(f"{key}.bandwidth", p[1] * 1e9, "B/s", "fitted", source, residual)
            profile.set(f"{key}.ramp", p[2] * 1e-6, "s", "fitted", source, residual)
            profile.set(f"{key}.ramp_exponent", p[3], "1", "fitted", source, residual)
            profile.set(f"{key}.large_error", large["median"], "1", "fitted",
                        f"median residual above 2 MB over {large['rows']} rows, p90 {large['p90']}; {SCRIPT}")
            profile.set(f"{key}.in_switch", float(in_switch), "1", "assumed",
                        "reduction in the switch (NVLS): busbw above the ring's bound at 8 ranks only")


def across_seconds(p, bus_bytes, nodes):
    base, two, many, ramp, growth, exponent = p
    log = np.log2(nodes)
    bandwidth = np.where(nodes == 2, two, many) * 1e9
    return (base * log * 1e-6 + bus_bytes / bandwidth
            + ramp * (1 + growth * log) * 1e-6 * (bus_bytes / 1e6) ** exponent)


def across_rows(rows, gpu):
    """All-reduces over full nodes of 8 with 8 NICs: trees with reduction in the switch, or default."""
    sources = ("GTC24", "2411.13055", "issue #309")
    return [row for row in rows if row["gpu"] == gpu and row["collective"] == "all_reduce"
            and row["n_nodes"] and int(row["n_nodes"]) >= 2 and any(name in row["source"] for name in sources)
            and float(row["size_bytes"]) >= 2**20 and "Ring" not in row["algo"] and "MIN_CTAS" not in row["algo"]]


def fit_across(profile, chosen):
    n = common.column(chosen, "n_gpus")
    nodes = common.column(chosen, "n_nodes")
    bus = 2 * common.column(chosen, "size_bytes") * (n - 1) / n
    t = np.array([float(row["time_us"]) * 1e-6 if row["time_us"] else b / (float(row["busbw_GBps"]) * 1e9)
                  for row, b in zip(chosen, bus)])
    unseen = common.mask(chosen)

    def loss(p):
        if min(p) < 0 or min(p[1:3]) <= 0 or not 0.1 <= p[5] <= 0.95:
            return 10
        return np.mean(np.abs(np.log(across_seconds(p, bus, nodes) / t)[~unseen]))

    starts = ([10, 475, 385, 10, 0.2, 0.5], [5, 475, 390, 20, 0.3, 0.6], [10, 480, 380, 30, 0.1, 0.4],
              [10, 470, 380, 25, 1.3, 0.2])
    best = min((common.minimize_simplex(loss, start) for start in starts), key=lambda result: result.fun)
    predicted = across_seconds(best.x, bus, nodes)
    common.describe("all_reduce across nodes, held out", predicted[unseen], t[unseen])
    for count in sorted(set(nodes)):
        common.describe(f"  {int(count)} nodes, all", predicted[nodes == count], t[nodes == count])
    print("   ", np.round(best.x, 3))
    residual = common.residual(predicted[unseen], t[unseen])
    source = f"rows {common.row_range(chosen)}, full nodes of 8 GPUs and 8 NICs; {SCRIPT}"
    names = (("latency_per_doubling", 1e-6, "s"), ("bandwidth_2_nodes", 1e9, "B/s"), ("bandwidth", 1e9, "B/s"),
             ("ramp", 1e-6, "s"), ("ramp_growth", 1, "1"), ("ramp_exponent", 1, "1"))
    for (name, scale, unit), value in zip(names, best.x):
        profile.set(f"collective.nodes.all_reduce.{name}", value * scale, unit, "fitted", source, residual)


def check_gather(rows):
    """How far the assumed form of gathers across nodes lies from the few measured ones (printed)."""
    for n, per_node in ((16, 8), (2, 1)):
        chosen = [row for row in rows if row["gpu"] == "H200" and row["collective"] == "all_gather"
                  and row["n_nodes"] == "2" and row["n_gpus"] == str(n) and float(row["size_bytes"]) >= 2**20]
        bus = common.column(chosen, "size_bytes") * (n - 1) / n
        assumed = 20e-6 + bus / min(per_node * 46e9, 0.93 * 350e9) + 4e-6 * (n - 1)
        common.describe(f"assumed all_gather form, {n} GPUs on 2 nodes (H200, RoCE)", assumed,
                        common.column(chosen, "time_us") * 1e-6)


def main():
    args = common.arguments(__doc__.splitlines()[0], list(GPUS), TABLE)
    rows = common.read_rows(args.data / TABLE)
    gpu = GPUS[args.gpu]
    command = f"{SCRIPT} --data DIR --gpu {args.gpu} -o {args.gpu}.collectives.yaml"
    profile = common.Profile(f"{args.gpu}.collectives", args.date, command, args.data / TABLE)
    write_in_node(profile, gpu, rows)
    if gpu["across"]:
        fit_across(profile, across_rows(rows, gpu["across"]))
        check_gather(rows)
    profile.write(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
