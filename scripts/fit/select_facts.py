#!/usr/bin/env python3
"""Writes the small tables of measured rows that the unit tests check the cost models against.

    scripts/fit/select_facts.py --data DIR -o tests/data

Rows that no fit has seen (SHA-1 of row_id modulo 5 is 0), in the order of their SHA-1, so that the
choice is nobody's; attention has too few rows to hold any out.
"""

import argparse
import csv
import hashlib
import pathlib
import sys

import common

GEMM = ("row_id", "gpu", "dtype", "m", "n", "k", "time_us")
ATTENTION = ("row_id", "gpu", "impl", "kernel_class", "batch", "heads", "kv_heads", "seqlen", "head_dim", "causal",
             "time_us")
COLLECTIVE = ("row_id", "gpu", "collective", "n_gpus", "n_nodes", "size_bytes", "time_us")


def by_digest(rows):
    return sorted(rows, key=lambda row: hashlib.sha1(row["row_id"].encode()).hexdigest())


def write(path, fields, rows):
    rows = sorted(rows, key=lambda row: row["row_id"])
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def gemms(rows):
    chosen = [row for row in rows if row["kernel_class"] == "gemm" and row["held_out"]
              and row["source"].startswith("NVIDIA aiconfigurator") and row["dtype"] == "bfloat16"
              and min(int(row["m"]), int(row["n"]), int(row["k"])) >= 1024 and float(row["time_us"]) <= 3000]
    return [row for gpu, count in (("H100", 40), ("H200", 20), ("A100", 20))
            for row in by_digest([row for row in chosen if row["gpu"] == gpu])[:count]]


def attentions(rows):
    return [row for row in rows if row["gpu"] == "H200" and row["impl"] == "cudnn cuDNN 91901"
            and row["dtype"] == "bfloat16" and row["head_dim"] == "128" and row["time_us"]]


def collectives(rows):
    chosen = [row for row in rows if row["held_out"] and row["gpu"] == "H100" and row["n_nodes"] == "1"
              and row["source"].startswith("NVIDIA aiconfigurator") and float(row["size_bytes"] or 0) > 4e6]
    kinds = ("all_gather", "reduce_scatter", "all_reduce", "alltoall")
    return [row for kind in kinds for row in by_digest([row for row in chosen if row["collective"] == kind])[:10]]


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
