#!/usr/bin/env python3
"""Writes the small tables of measured rows that the unit tests check the cost models against.

    scripts/fit/select_facts.py --data DIR -o tests/data

Rows that no fit has seen: products with m, n, k >= 1024 up to 3 ms, collectives above 2 MB; of
attention the rows behind cuDNN's curves. `model_us` is what the formulas in Python say with the
shipped profiles at burst clock, `cast_us` the part of it that is the activation's cast. Needs numpy
and scipy.
"""

import argparse
import csv
import pathlib
import sys

import numpy as np

import common
import fit_collectives
import fit_kernels
import gemm
import score
import shipped

GEMM = ("row_id", "gpu", "dtype", "m", "n", "k", "time_us", "cast_us", "model_us")
ATTENTION = ("row_id", "gpu", "impl", "kernel_class", "batch", "heads", "kv_heads", "seqlen", "head_dim", "causal",
             "time_us")
COLLECTIVE = ("row_id", "gpu", "collective", "n_gpus", "n_nodes", "size_bytes", "time_us", "model_us")


def write(path, fields, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["row_id"]))


def microseconds(seconds):
    return [f"{value * 1e6:.7g}" for value in seconds]


def gemms(rows):
    for gpu, facts in fit_kernels.GPUS.items():
        values = shipped.parameters(gpu)
        for dtype, word in score.GEMM_TABLES[gpu]:
            chosen = [row for row in fit_kernels.gemm_rows(rows, facts, word) if row["held_out"]
                      and min(int(row["m"]), int(row["n"]), int(row["k"])) >= score.LARGE_SHAPE
                      and float(row["time_us"]) <= gemm.BURST_S * 1e6]
            m, n, k, _ = gemm.shapes(chosen)
            model = microseconds(shipped.gemm_seconds(values, dtype, m, n, k))
            cast = microseconds(shipped.cast_seconds(values, dtype, m, k))
            for row, model_us, cast_us in zip(chosen, model, cast):
                yield dict(row, gpu=gpu, dtype=dtype, model_us=model_us, cast_us=cast_us)


def attentions(rows):
    return [row for row in rows if row["gpu"] == "H200" and row["impl"] == "cudnn cuDNN 91901"
            and row["dtype"] == "bfloat16" and row["head_dim"] == "128" and row["time_us"]]


def collectives(rows):
    for gpu, facts in fit_collectives.GPUS.items():
        values = shipped.parameters(gpu)
        for kind in fit_collectives.KINDS:
            for n in (2, 4, 8):
                factor = fit_collectives.bus_factor(kind, n)
                chosen = [row for row in fit_collectives.in_node_rows(rows, facts, kind, n) if row["held_out"]
                          and float(row["size_bytes"]) * factor > fit_collectives.LARGE_BYTES]
                bus = np.array([float(row["size_bytes"]) * factor for row in chosen])
                model = microseconds(shipped.node_form(values, kind, n).seconds(bus))
                yield from (dict(row, gpu=gpu, model_us=us) for row, us in zip(chosen, model))
    chosen = [row for row in fit_collectives.across_rows(rows, "H100") if row["held_out"]]
    bus, nodes, t = fit_collectives.across_columns(chosen)
    model = shipped.all_reduce_across_seconds(shipped.parameters("h100-sxm"), bus, nodes)
    for row, b, time, us in zip(chosen, bus, microseconds(t), microseconds(model)):
        if b > fit_collectives.LARGE_BYTES:
            yield dict(row, gpu="h100-sxm", time_us=time, model_us=us)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path, metavar="DIR")
    args = parser.parse_args()
    kernels = common.read_rows(args.data / "kernels.csv")
    write(args.output / "gemm_rows.csv", GEMM, gemms(kernels))
    write(args.output / "attention_rows.csv", ATTENTION, attentions(kernels))
    write(args.output / "collective_rows.csv", COLLECTIVE, collectives(common.read_rows(args.data / "collectives.csv")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
