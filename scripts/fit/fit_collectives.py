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
LARGE_BYTES = 2e6  # of the bus; below, the start-up time alone is seen
FIRST_POINT = 2**20  # size from which measured times are kept: protocols change between 1 and 8 MB

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
    """t = a + W/B + c (W/1 MB)^g, with p = (a in us, B in GB/s, c in us, g)."""
    start, bandwidth, coefficient, exponent = p
    return start * 1e-6 + bus_bytes / (bandwidth * 1e9) + coefficient * 1e-6 * (bus_bytes / 1e6) ** exponent


class NodeForm:
    """Time of one collective among n GPUs of a node: the form up to the first measured point, lines
    between points, and beyond the last the form shifted to meet it (sim/cost/nccl_model.h)."""

    def __init__(self, p, points):
        """`points`: {bus bytes: seconds}."""
        self.p, self.points = p, points
        self.at_bytes = np.array(sorted(points))
        self.at_seconds = np.array([points[bus] for bus in self.at_bytes])

    def seconds(self, bus_bytes):
        form = seconds(self.p, bus_bytes)
        if not self.points:
            return form
        first, last = self.at_bytes[0], self.at_bytes[-1]
        inside = np.interp(bus_bytes, self.at_bytes, self.at_seconds)
        beyond = self.at_seconds[-1] + form - seconds(self.p, last)
        return np.where(bus_bytes < first, np.minimum(form, self.at_seconds[0]),
                        np.where(bus_bytes > last, beyond, inside))


def fit_form(bus, t, max_bandwidth):
    """The form's four numbers, with B at most what the link lets through. Sizes from 1 MB, those of
    training, weigh three times as much as start-up."""
    weight = np.where(bus > 1e6, 3.0, 1.0)
    top = max_bandwidth / 1e9

    def loss(p):
        if min(p) < 0 or p[1] <= 0 or p[3] > 0.95 or p[1] > top:
            return 10
        return np.average(np.abs(np.log(seconds(p, bus) / t)), weights=weight)

    starts = ([8, 0.7 * top, 1, 0.5], [10, 0.8 * top, 4, 0.3], [6, 0.6 * top, 8, 0.6], [15, 0.95 * top, 7, 0.65])
    return min((common.minimize_simplex(loss, start) for start in starts), key=lambda result: result.fun).x


def measured_points(rows, bus, t, first=FIRST_POINT):
    """{bus bytes: median seconds} of the sizes from `first` on, and {size: ...} for the profile."""
    size = common.column(rows, "size_bytes")
    by_size = {int(s): float(np.median(t[size == s])) for s in sorted(set(size)) if s >= first}
    return {float(bus[size == s][0]): value for s, value in by_size.items()}, by_size


def in_node_rows(rows, gpu, kind, n):
    return [row for row in rows if row["gpu"] == gpu["rows"] and row["n_nodes"] == "1"
            and row["source"].startswith("NVIDIA aiconfigurator") and row["collective"] == kind
            and row["n_gpus"] == str(n) and row["time_us"]]


def uses_switch(gpu, kind, n):
    """Reduction in the NVSwitch (NVLink SHARP): Hopper on, and only at eight ranks."""
    return kind == "all_reduce" and n == 8 and gpu["link"] > 400e9


def write_in_node(profile, gpu, rows):
    for kind in KINDS:
        for n in (2, 4, 8):
            write_form(profile, gpu, kind, n, in_node_rows(rows, gpu, kind, n))


def write_form(profile, gpu, kind, n, chosen):
    in_switch = uses_switch(gpu, kind, n)
    top = gpu["link"] * bus_factor(kind, n) / wire_factor(kind, n, in_switch)
    bus = common.column(chosen, "size_bytes") * bus_factor(kind, n)
    t = common.column(chosen, "time_us") * 1e-6
    unseen = common.mask(chosen)
    p = fit_form(bus[~unseen], t[~unseen], top)
    seen = [row for row in chosen if not row["held_out"]]
    points, by_size = measured_points(seen, bus[~unseen], t[~unseen])
    predicted = NodeForm(p, points).seconds(bus)
    large = unseen & (bus > LARGE_BYTES)
    common.describe(f"{kind} n={n} held out, all sizes", predicted[unseen], t[unseen])
    common.describe(f"{kind} n={n} held out, above 2 MB", predicted[large], t[large])
    print(f"    {kind} n={n}: a {p[0]:.1f} us, B {p[1]:.0f} GB/s, c {p[2]:.2f} us, g {p[3]:.2f}")
    key = f"collective.node.{kind.replace('alltoall', 'all_to_all')}.{n}"
    source = f"rows {common.row_range(chosen)}; {SCRIPT}"
    residual = common.residual(predicted[unseen], t[unseen])
    profile.set(f"{key}.latency", p[0] * 1e-6, "s", "fitted", source, residual)
    profile.set(f"{key}.bandwidth", p[1] * 1e9, "B/s", "fitted", source, residual)
    profile.set(f"{key}.ramp", p[2] * 1e-6, "s", "fitted", source, residual)
    profile.set(f"{key}.ramp_exponent", p[3], "1", "fitted", source, residual)
    for size, value in by_size.items():
        profile.set(f"{key}.at.{size}", value, "s", "measured", "median of the rows above")
    if large.any():
        large = common.residual(predicted[large], t[large])
        profile.set(f"{key}.large_error", large["median"], "1", "fitted",
                    f"median residual above 2 MB over {large['rows']} held-out rows, p90 {large['p90']}; {SCRIPT}")
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
            and float(row["size_bytes"]) >= 2**10 and "Ring" not in row["algo"] and "MIN_CTAS" not in row["algo"]]


def across_columns(chosen):
    """(bus bytes, nodes, seconds) of rows; some state busbw only."""
    n = common.column(chosen, "n_gpus")
    bus = 2 * common.column(chosen, "size_bytes") * (n - 1) / n
    t = np.array([float(row["time_us"]) * 1e-6 if row["time_us"] else b / (float(row["busbw_GBps"]) * 1e9)
                  for row, b in zip(chosen, bus)])
    return bus, common.column(chosen, "n_nodes"), t


def fit_across(profile, chosen):
    bus, nodes, t = across_columns(chosen)
    unseen = common.mask(chosen)

    def loss(p):
        if min(p) < 0 or min(p[1:3]) <= 0 or not 0.1 <= p[5] <= 0.95:
            return 10
        return np.mean(np.abs(np.log(across_seconds(p, bus, nodes) / t)[~unseen]))

    starts = ([10, 475, 385, 10, 0.2, 0.5], [5, 475, 390, 20, 0.3, 0.6], [10, 480, 380, 30, 0.1, 0.4],
              [10, 470, 380, 25, 1.3, 0.2])
    best = min((common.minimize_simplex(loss, start) for start in starts), key=lambda result: result.fun)
    predicted = across_seconds(best.x, bus, nodes)
    large = unseen & (bus > LARGE_BYTES)
    common.describe("all_reduce across nodes, held out", predicted[unseen], t[unseen])
    common.describe("all_reduce across nodes, held out, above 2 MB", predicted[large], t[large])
    for count in sorted(set(nodes)):
        common.describe(f"  {int(count)} nodes, all", predicted[nodes == count], t[nodes == count])
    print("   ", np.round(best.x, 3))
    residual = common.residual(predicted[unseen], t[unseen])
    source = f"rows {common.row_range(chosen)}, full nodes of 8 GPUs and 8 NICs; {SCRIPT}"
    names = (("latency_per_doubling", 1e-6, "s"), ("bandwidth_2_nodes", 1e9, "B/s"), ("bandwidth", 1e9, "B/s"),
             ("ramp", 1e-6, "s"), ("ramp_growth", 1, "1"), ("ramp_exponent", 1, "1"))
    for (name, scale, unit), value in zip(names, best.x):
        profile.set(f"collective.nodes.all_reduce.{name}", value * scale, unit, "fitted", source, residual)


    large = common.residual(predicted[large], t[large])
    profile.set("collective.nodes.all_reduce.large_error", large["median"], "1", "fitted",
                f"median residual above 2 MB over {large['rows']} held-out rows, p90 {large['p90']}; {SCRIPT}")


def gather_rows(rows, n):
    """The few measured gathers across nodes: n H200s on two nodes, RoCE. Nothing is fitted to them;
    score.py says how far the assumed form lies from them."""
    return [row for row in rows if row["gpu"] == "H200" and row["collective"] == "all_gather"
            and row["n_nodes"] == "2" and row["n_gpus"] == str(n) and float(row["size_bytes"]) >= 2**20]


def main():
    args = common.arguments(__doc__.splitlines()[0], list(GPUS), TABLE)
    rows = common.read_rows(args.data / TABLE)
    gpu = GPUS[args.gpu]
    command = f"{SCRIPT} --data DIR --gpu {args.gpu} -o {args.gpu}.collectives.yaml"
    profile = common.Profile(f"{args.gpu}.collectives", args.date, command, args.data / TABLE)
    write_in_node(profile, gpu, rows)
    if gpu["across"]:
        fit_across(profile, across_rows(rows, gpu["across"]))
    profile.write(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
