"""The models' formulas on the values of the shipped profiles, as the C++ models evaluate them."""

import pathlib
import re

import numpy as np

import fit_collectives
import gemm

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent / "scenarios"
LINE = re.compile(r"  (?P<key>[a-z0-9_.]+): \{value: (?P<value>[^,]+),")
INCLUDES = re.compile(r"  includes: \[(?P<files>.*)\]")
BURST = 1.0  # the tables are bursts: the clock has no time to fall


def parameters(gpu):
    """{key: value} of scenarios/gpus/<gpu>.yaml with what it includes."""
    return read(ROOT / "gpus" / f"{gpu}.yaml")


def read(path):
    values = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := INCLUDES.match(line):
            for name in match["files"].split(","):
                values.update(read(ROOT / name.strip()))
        elif match := LINE.match(line):
            values[match["key"]] = float(match["value"])
    return values


def gemm_seconds(values, dtype, m, n, k):
    """A product as the tables time it: fp8's with the activation's cast."""
    prefix = f"gemm.{dtype}."
    p = {name: values[prefix + key] for name, key in (
        ("rate", "peak_rate"), ("latency", "latency"), ("epilogue", "exposed_epilogue"),
        ("bandwidth", "memory_bandwidth"), ("wave", "wave_quantization"), ("half_tile", "half_tile_efficiency"))}
    tiles = [tuple(int(side) for side in key.removeprefix("gemm.tile.").split("x"))
             for key in values if key.startswith("gemm.tile.")]
    seconds = gemm.seconds(p, m, n, k, 2 if dtype == "bf16" else 1, values["device.num_sms"], tiles)
    return seconds + cast_seconds(values, dtype, m, k)


def cast_seconds(values, dtype, m, k):
    if f"gemm.{dtype}.cast_in_rows.latency" not in values:
        return np.zeros(len(m))
    cast = f"gemm.{dtype}.cast_in_rows."
    return gemm.quantise_seconds((values[cast + "latency"] * 1e6, values[cast + "bytes_per_element"]), m, k)


def attention_rate(values, kernel, direction, mask, span):
    curve = f"attention.{kernel}.{direction}.{mask}."
    return values[curve + "rate"] * span / (span + values[curve + "half_span"])


def node_form(values, kind, n):
    """fit_collectives.NodeForm of a kind as nccl-tests spells it."""
    prefix = f"collective.node.{kind.replace('alltoall', 'all_to_all')}.{n}."
    p = (values[prefix + "latency"] * 1e6, values[prefix + "bandwidth"] / 1e9, values[prefix + "ramp"] * 1e6,
         values[prefix + "ramp_exponent"])
    at = prefix + "at."
    factor = fit_collectives.bus_factor(kind, n)
    return fit_collectives.NodeForm(p, {int(key.removeprefix(at)) * factor: value for key, value in values.items()
                                        if key.startswith(at)})


def all_reduce_across_seconds(values, bus_bytes, nodes):
    prefix = "collective.nodes.all_reduce."
    p = (values[prefix + "latency_per_doubling"] * 1e6, values[prefix + "bandwidth_2_nodes"] / 1e9,
         values[prefix + "bandwidth"] / 1e9, values[prefix + "ramp"] * 1e6, values[prefix + "ramp_growth"],
         values[prefix + "ramp_exponent"])
    return fit_collectives.across_seconds(p, bus_bytes, nodes)


def gather_across_seconds(values, bus_bytes, ranks, ranks_per_node):
    prefix = "collective.nodes.gather."
    rate = ranks_per_node * values["device.nic_bandwidth"] * values[prefix + "nic_efficiency"]
    if ranks_per_node > 1:
        rate = min(rate, values["device.nvlink_bandwidth"] * values[prefix + "nvlink_efficiency"])
    return values[prefix + "latency"] + bus_bytes / rate + values[prefix + "hop_latency"] * (ranks - 1)
