#!/usr/bin/env python3
"""Scores the shipped profiles on rows that no fit has seen and writes the residuals.

    scripts/fit/score.py --data DIR -o reports/results/fits

residuals.csv: |predicted / measured - 1| and the signed median by model, GPU and kind of kernel.
acceptance.csv: medians of all rows of a class together, with the limit each has to keep.
Needs numpy and scipy.
"""

import argparse
import csv
import pathlib
import sys

import numpy as np

import attention
import common
import fit_collectives
import fit_kernels
import gemm
import shipped

FIFTH = "shapes of the held-out fifth"
LEFT_OUT = "fits with one shape left out"
NO_FIT = "no fit: assumed values"
LARGE_SHAPE = 1024
PAGED_FLOPS = 2e11
# Data types of a profile and their names in the tables.
GEMM_TABLES = {
    "h100-sxm": (("bf16", "bfloat16"), ("fp8", "fp8"), ("fp8_promoted", "fp8_block")),
    "h200-sxm": (("bf16", "bfloat16"),),
    "a100-sxm": (("bf16", "bfloat16"),),
}


class Group:
    """Rows of one kind that are scored together; `x` is the size a plot shows them against."""

    def __init__(self, model, gpu, kind, how, measured, predicted, x):
        self.model, self.gpu, self.kind, self.how = model, gpu, kind, how
        self.measured, self.predicted, self.x = np.array(measured), np.array(predicted), np.array(x)

    def where(self, mask, kind):
        return Group(self.model, self.gpu, kind, self.how, self.measured[mask], self.predicted[mask], self.x[mask])

    @property
    def error(self):
        return self.predicted / self.measured - 1

    def cells(self):
        error = self.error
        return [self.model, self.gpu, self.kind, self.how, len(error), f"{np.median(abs(error)):.4f}",
                f"{np.quantile(abs(error), 0.9):.4f}", f"{np.median(error):+.4f}"]


def gemm_groups(rows):
    """By data type, held-out shapes up to 3 ms (longer ones belong to the clock)."""
    for gpu, names in GEMM_TABLES.items():
        values = shipped.parameters(gpu)
        for dtype, word in names:
            m, n, k, t = gemm.shapes([row for row in fit_kernels.gemm_rows(rows, fit_kernels.GPUS[gpu], word)
                                      if row["held_out"]])
            burst = t <= gemm.BURST_S
            m, n, k, t = m[burst], n[burst], k[burst], t[burst]
            group = Group("gemm", gpu, f"{dtype}, all shapes", FIFTH, t,
                          shipped.gemm_seconds(values, dtype, m, n, k), 2 * m * n * k)
            yield group
            yield group.where(np.minimum(np.minimum(m, n), k) >= LARGE_SHAPE, f"{dtype}, m n k >= 1024")


def attention_curves(rows):
    """(kernel, gpu, kind, curve): every curve that the fit scripts make, by the same selections."""
    for gpu in ("h100-sxm", "a100-sxm"):
        for key, curve in fit_kernels.attention_curves(gpu, rows).items():
            yield gpu, key, curve


def attention_groups(rows):
    for gpu, key, curve in attention_curves(rows):
        kernel, direction, mask = key
        if kernel == "flash1" and direction == "backward":
            continue  # the forward's rows: both are timed together
        for how, scored in ((LEFT_OUT, curve.left_out), (FIFTH, curve.fifth)):
            if scored:
                yield Group("attention", gpu, f"{kernel} {direction} {mask}", how,
                            [1 / measured for _, _, measured in scored],
                            [1 / predicted for _, predicted, _ in scored],
                            [float(row["seqlen"]) for row, _, _ in scored])
    yield paged_group(rows)


def paged_group(rows):
    """Inference kernels over paged caches, which the training curve was not made for."""
    values = shipped.parameters("h100-sxm")
    chosen = [row for row in rows if row["impl"].endswith("vllm_flash_attn_fa3") and row["gpu"] == "H100"
              and row["causal"] == "yes" and row["head_dim"] == "128" and row["held_out"]
              and attention.flops(row) / 2 > PAGED_FLOPS]
    span = common.column(chosen, "seqlen")
    work = np.array([attention.flops(row) / 2 for row in chosen])
    predicted = values["attention.latency"] + work / shipped.attention_rate(values, "flash3", "forward", "causal", span)
    return Group("attention", "h100-sxm", "flash3 forward causal, paged calls above 0.2 TFLOP", FIFTH,
                 common.column(chosen, "time_us") * 1e-6, predicted, span)


def memory_groups(rows):
    names = {"elementwise": "element-wise, casts", "norm": "norm forward, fused", "norm_backward": "norm backward, fused"}
    for gpu in ("h100-sxm", "a100-sxm"):
        for kind, (_, _, used, (moved, time, predicted)) in fit_kernels.memory_fits(gpu, rows).items():
            if gpu == "a100-sxm" and kind != "elementwise":
                continue  # the same H200 rows
            how = LEFT_OUT if len(moved) == len(used) else FIFTH
            yield Group("memory-bound", gpu, names[kind], how, time, predicted, moved)


def collective_groups(rows):
    for gpu, facts in fit_collectives.GPUS.items():
        values = shipped.parameters(gpu)
        for kind in fit_collectives.KINDS:
            for n in (2, 4, 8):
                chosen = [row for row in fit_collectives.in_node_rows(rows, facts, kind, n) if row["held_out"]]
                bus = common.column(chosen, "size_bytes") * fit_collectives.bus_factor(kind, n)
                group = Group("collective in a node", gpu, f"{kind} n={n}, all sizes", FIFTH,
                              common.column(chosen, "time_us") * 1e-6, shipped.node_form(values, kind, n).seconds(bus),
                              bus)
                yield group
                large = bus > fit_collectives.LARGE_BYTES
                if large.any():
                    yield group.where(large, f"{kind} n={n}, above 2 MB")
    yield from across_groups(rows)


def across_groups(rows):
    values = shipped.parameters("h100-sxm")
    chosen = [row for row in fit_collectives.across_rows(rows, "H100") if row["held_out"]]
    bus, nodes, t = fit_collectives.across_columns(chosen)
    group = Group("collective across nodes", "h100-sxm", "all_reduce, all sizes", FIFTH, t,
                  shipped.all_reduce_across_seconds(values, bus, nodes), bus)
    yield group
    yield group.where(bus > fit_collectives.LARGE_BYTES, "all_reduce, above 2 MB")
    values = shipped.parameters("h200-sxm")
    for n, per_node in ((16, 8), (2, 1)):
        chosen = fit_collectives.gather_rows(rows, n)
        bus = common.column(chosen, "size_bytes") * (n - 1) / n
        yield Group("collective across nodes", "h200-sxm", f"all_gather, 2 nodes of {per_node}", NO_FIT,
                    common.column(chosen, "time_us") * 1e-6,
                    shipped.gather_across_seconds(values, bus, n, per_node), bus)


def all_groups(data):
    kernels = common.read_rows(data / "kernels.csv")
    collectives = common.read_rows(data / "collectives.csv")
    return [*gemm_groups(kernels), *attention_groups(kernels), *memory_groups(kernels),
            *collective_groups(collectives)]


def acceptance(groups):
    """(what, limit, errors): the classes that have to keep a limit."""
    def errors(*conditions):
        return np.concatenate([group.error for group in groups if all(c(group) for c in conditions)])

    def training(group):
        return group.model == "attention" and group.kind.startswith(("cudnn", "flash3", "flash2")) and \
            "paged" not in group.kind and group.gpu == "h100-sxm"

    def scarce(group):
        return group.kind.startswith("flash3 backward")

    for name, kinds in (("bf16", ("bf16",)), ("fp8", ("fp8", "fp8_promoted"))):
        for gpu in ("h100-sxm", "h200-sxm", "a100-sxm"):
            wanted = [f"{kind}, m n k >= 1024" for kind in kinds]
            if any(group.gpu == gpu and group.kind in wanted for group in groups):
                yield (f"gemm {name} {gpu}, m n k >= 1024", 0.03,
                       errors(lambda g, gpu=gpu, wanted=wanted: g.gpu == gpu and g.kind in wanted))
    yield ("attention in training, held-out fifth; flash3 backward with one shape left out", 0.05,
           errors(training, lambda g: g.how == (LEFT_OUT if scarce(g) else FIFTH)))
    yield "attention in training, one shape left out", 0.05, errors(training, lambda g: g.how == LEFT_OUT)
    for gpus in (["h100-sxm", "h200-sxm", "a100-sxm"], ["h100-sxm"], ["h200-sxm"], ["a100-sxm"]):
        yield (f"collectives in a node {' '.join(gpus)}, above 2 MB", 0.03,
               errors(lambda g, gpus=gpus: g.model == "collective in a node" and g.gpu in gpus and "above" in g.kind))
    yield ("all_reduce across nodes, above 2 MB", 0.06,
           errors(lambda g: g.kind == "all_reduce, above 2 MB"))


def write(path, header, lines):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    groups = all_groups(args.data)
    args.output.mkdir(parents=True, exist_ok=True)
    write(args.output / "residuals.csv", ("model", "gpu", "kind", "scored on", "rows", "median", "p90", "bias"),
          [group.cells() for group in groups])
    lines = [[what, limit, len(error), f"{np.median(abs(error)):.4f}", f"{np.quantile(abs(error), 0.9):.4f}",
              "yes" if np.median(abs(error)) <= limit else "no"] for what, limit, error in acceptance(groups)]
    write(args.output / "acceptance.csv", ("class", "limit of the median", "rows", "median", "p90", "kept"), lines)
    for line in lines:
        print(*line, sep="  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
