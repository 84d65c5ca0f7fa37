#!/usr/bin/env python3
"""Fits the compute model's parameters to kernels.csv and writes a profile.

    scripts/fit/fit_kernels.py --data DIR --gpu h100-sxm -o scenarios/profiles/h100-sxm.kernels.yaml

Needs numpy and scipy. The same rows give the same file, up to the date.
"""

import sys

import numpy as np

import attention
import common
import gemm
import memory_bound

SCRIPT = "scripts/fit/fit_kernels.py"
TABLE = "kernels.csv"
BURST_SOURCE = "NVIDIA aiconfigurator perf database"

# What the scripts must know of a GPU to read its rows; the shipped files in scenarios/gpus/ state
# the same with their sources.
GPUS = {
    "h100-sxm": dict(rows="H100", sms=132, hbm=3.35e12, tiles="hopper"),
    "h200-sxm": dict(rows="H200", sms=132, hbm=4.8e12, tiles="hopper"),
    "a100-sxm": dict(rows="A100", sms=108, hbm=2.039e12, tiles="ampere"),
}
GEMM_START = dict(rate=830e12, latency=4e-6, epilogue=0.4, bandwidth=2.8e12, wave=0.5, half_tile=0.93)
UNITS = dict(rate=("peak_rate", "FLOP/s"), latency=("latency", "s"), epilogue=("exposed_epilogue", "1"),
             bandwidth=("memory_bandwidth", "B/s"), wave=("wave_quantization", "1"),
             half_tile=("half_tile_efficiency", "1"))


def gemm_rows(rows, gpu, dtype):
    return [row for row in rows if row["kernel_class"] == "gemm" and row["gpu"] == gpu["rows"]
            and row["dtype"] == dtype and row["source"] == BURST_SOURCE]


def write_gemm(profile, gpu, rows, dtype, prefix, start, fixed, element_bytes, cast=None):
    """Fits one data type; returns what the clock table needs."""
    chosen = gemm_rows(rows, gpu, dtype)
    shape = (element_bytes, gpu["sms"], gemm.TILES[gpu["tiles"]])
    p, cast = gemm.fit(chosen, start, {name: value for name, (value, _) in fixed.items()}, *shape, cast)
    residual, large = gemm.score(f"{prefix}", p, cast, chosen, *shape)
    source = f"rows {common.row_range(chosen)} up to 3 ms; {SCRIPT}"
    for name, value in p.items():
        key, unit = UNITS[name]
        if name in fixed:
            profile.set(f"{prefix}.{key}", value, unit, "assumed", fixed[name][1])
        else:
            profile.set(f"{prefix}.{key}", value, unit, "fitted", source, residual)
    profile.set(f"{prefix}.large_shape_error", large["median"], "1", "fitted",
                f"median residual for m, n, k >= 1024 over {large['rows']} held-out rows, p90 {large['p90']}; "
                f"{SCRIPT}")
    if cast is not None:
        why = f"the activation's cast that the rows contain, no part of the product; {source}"
        profile.set(f"{prefix}.cast_in_rows.latency", cast[0] * 1e-6, "s", "fitted", why)
        profile.set(f"{prefix}.cast_in_rows.bytes_per_element", cast[1], "B", "fitted", why)
    return p, cast, chosen, shape


def write_tiles(profile, gpu):
    why = "tile shapes of the vendor library, docs/models/gemm.md"
    for rows, columns in gemm.TILES[gpu["tiles"]]:
        profile.set(f"gemm.tile.{rows}x{columns}", 1, "1", "assumed", why)
    profile.set("gemm.split_k.tile", 128, "1", "assumed", "split-k runs on 128x128 tiles, docs/models/gemm.md")
    profile.set("gemm.split_k.max_parts", 8, "1", "assumed", "parts tried: 2, 4, 8; docs/models/gemm.md")
    profile.set("gemm.split_k.latency", gemm.SPLIT_EXTRA_S, "s", "assumed", "second kernel, docs/models/gemm.md")
    profile.set("gemm.split_k.bytes_per_output", gemm.SPLIT_BYTES_PER_OUTPUT, "B", "assumed",
                "fp32 partial sum written and read, docs/models/gemm.md")


def write_clock(profile, dtype, fit):
    """Mean and spread of burst over measured time for the longest kernels."""
    p, cast, rows, shape = fit
    for low, high, mean, spread, count in gemm.clock_table(p, cast, rows, *shape):
        print(f"  {dtype} kernels of {low * 1e3:g} to {high * 1e3:g} ms: {mean:.3f} sd {spread:.3f} n {count}")
    low, _, mean, spread, count = gemm.clock_table(p, cast, rows, *shape)[-1]
    source = f"burst model over measured time, {count} kernels above {low * 1e3:g} ms, m n k >= 2048; {SCRIPT}"
    profile.set(f"clock.{dtype}.one_gpu_mean", mean, "1", "fitted", source)
    profile.set(f"clock.{dtype}.one_gpu_sd", spread, "1", "fitted", source)


def write_spread(profile, rows):
    """Sustained clock of different machines: how much slower the slowest of eight is."""
    ratios = []
    for name in ("h100-sxm", "h200-sxm"):
        gpu = GPUS[name]
        chosen = gemm_rows(rows, gpu, "bfloat16")
        shape = (2, gpu["sms"], gemm.TILES[gpu["tiles"]])
        p, _ = gemm.fit(chosen, GEMM_START, {}, *shape)
        ratios.append(gemm.clock_table(p, None, chosen, *shape)[-1][2])
        if name == "h100-sxm":
            square = next(row for row in rows if row["row_id"] == "K22641")
            m = np.array([float(square["m"])])
            measured = 2 * m**3 / (float(square["tflops"]) * 1e12)
            ratios.append(float((gemm.seconds(p, m, m, m, *shape) / measured)[0]))
    mean, spread = float(np.mean(ratios)), float(np.std(ratios, ddof=1))
    source = (f"three Hopper machines ({', '.join(f'{ratio:.3f}' for ratio in ratios)}: H100, another H100 "
              f"K22641, H200), mean {mean:.3f}, sd {spread:.3f}; {SCRIPT}")
    profile.set("clock.bf16.machines_mean", mean, "1", "fitted", source)
    profile.set("clock.bf16.machines_sd", spread, "1", "fitted", source)
    profile.set("clock.bf16.slowest_of_8", mean - 1.42 * spread, "1", "fitted",
                "mean - 1.42 sd of clock.bf16.machines_*: expectation of the least of eight normal values; "
                f"{SCRIPT}")
    print(f"  bf16 machines {ratios}: slowest of eight {mean - 1.42 * spread:.3f}")


def set_curve(profile, key, curve):
    print(f"  {key:36s} {curve.rate / 1e12:6.0f} TFLOP/s half span {curve.half_span:5.0f} {curve.residual}")
    profile.set(f"{key}.rate", curve.rate, "FLOP/s", "fitted", curve.source(SCRIPT), curve.residual)
    profile.set(f"{key}.half_span", curve.half_span, "1", "fitted", curve.source(SCRIPT), curve.residual)


MASKS = {"causal": "yes", "full": "no"}
DIRECTIONS = {"forward": "attention_fwd", "backward": "attention_bwd"}


def cudnn_curves(rows):
    return {("cudnn", direction, mask): attention.Curve(attention.select(
        rows, "cudnn cuDNN 91901", "H200", kernel_class=kernel_class, causal=word, dtype="bfloat16", head_dim="128"))
            for direction, kernel_class in DIRECTIONS.items() for mask, word in MASKS.items()}


def hopper_figures(rows, implementation, kernel_class, word):
    return attention.of_figures(attention.select(rows, implementation, ("H100", "Hopper"), kernel_class=kernel_class,
                                                 causal=word, head_dim="128"))


def flash3_curves(rows):
    return {("flash3", direction, mask): attention.Curve(hopper_figures(rows, "FlashAttention-3", kernel_class, word))
            for direction, kernel_class in DIRECTIONS.items() for mask, word in MASKS.items()}


def flash2_curves(rows):
    """The backward's from rows that time it alone and from rows that time both, less the forward's."""
    curves = {}
    for mask, word in MASKS.items():
        forward = attention.Curve(hopper_figures(rows, "FlashAttention-2", "attention_fwd", word))
        both = hopper_figures(rows, "FlashAttention-2", "attention_fwd_bwd", word)
        alone = hopper_figures(rows, "FlashAttention-2", "attention_bwd", word)
        rates = np.concatenate((attention.backward_of_sum(both, forward),
                                np.array([float(row["tflops"]) * 1e12 for row in alone])))
        curves["flash2", "forward", mask] = forward
        curves["flash2", "backward", mask] = attention.Curve(both + alone, rates)
    return curves


def curves_of_sum(rows, name, implementation, gpu):
    """Implementations that are only timed forward and backward together: one curve for both."""
    curves = {}
    for mask, word in MASKS.items():
        curve = attention.Curve(attention.select(rows, implementation, gpu, kernel_class="attention_fwd_bwd",
                                                 causal=word, head_dim="128"))
        for direction in DIRECTIONS:
            curves[name, direction, mask] = curve
    return curves


def attention_curves(name, rows):
    """{(kernel, direction, mask): Curve} of a GPU."""
    if name == "a100-sxm":
        return {**curves_of_sum(rows, "flash2", "FlashAttention-2", "A100"),
                **curves_of_sum(rows, "flash1", "FlashAttention", "A100")}
    return {**cudnn_curves(rows), **flash3_curves(rows), **flash2_curves(rows),
            **curves_of_sum(rows, "flash1", "FlashAttention", "H100")}


def write_head_sizes_hopper(profile, rows, curves):
    """Rates at other head sizes, as factors on the rate at 128 (FLOP counted at the padded size)."""
    full = curves["flash3", "forward", "full"]
    vision = attention.select(rows, "vllm_vit_flash_attn_fa3", "H100")
    vision = [row for row in vision if attention.flops(row) > attention.MIN_FLOPS]
    sets = {64: [row for row in vision if row["head_dim"] == "64"],
            96: [row for row in vision if row["head_dim"] in ("72", "80")],
            256: attention.select(rows, "FlashAttention-3", "H100", head_dim="256", causal="no",
                                  kernel_class="attention_fwd")}
    for size, chosen in sets.items():
        factor, residual = attention.rate_factor(chosen, full, size)
        print(f"  flash3 head size {size}: {factor:.3f} {residual}")
        profile.set(f"attention.flash3.head_dim.{size}", factor, "1", "fitted",
                    f"rows {common.row_range(chosen)} above 0.5 TFLOP, forward, over the rate at 128; {SCRIPT}",
                    residual)
    write_other_factors(profile, "flash3", [])
    write_factor_of_figures(profile, rows, "cudnn", "cuDNN", "H100")
    write_factor_of_figures(profile, rows, "flash2", "FlashAttention-2", "H100")


def write_factor_of_figures(profile, rows, name, implementation, gpu, kernel_class="attention_fwd",
                            sizes=(64, 256)):
    """Factors between head sizes of one set of figures, causal."""
    def at(size):
        return attention.of_figures(attention.select(
            rows, implementation, gpu, head_dim=str(size), causal="yes", kernel_class=kernel_class))
    reference = attention.Curve(at(128))
    for size in sizes:
        factor, residual = attention.rate_factor(at(size), reference, size)
        print(f"  {name} head size {size}: {factor:.3f} {residual}")
        profile.set(f"attention.{name}.head_dim.{size}", factor, "1", "fitted",
                    f"rows {common.row_range(at(size))} over the rate at 128 of the same figures; {SCRIPT}",
                    residual)
    write_other_factors(profile, name, [96])


def write_other_factors(profile, name, interpolated):
    profile.set(f"attention.{name}.head_dim.128", 1, "1", "assumed", "the size that the rates are stated for")
    for size in interpolated:
        profile.set(f"attention.{name}.head_dim.{size}", 0.9, "1", "assumed",
                    "no rows; between 64 and 128, near FlashAttention-3's measured factor")


def memory_fits(name, rows):
    """{class: fit of memory_bound.efficiency} of a GPU."""
    if name == "a100-sxm":
        # 80 GB PCIe card, 1,935 GB/s: the share of the peak carries over, the rate doesn't.
        copy = [row for row in rows if row["gpu"] == "A100 (NVIDIA A100 80GB PCIe)"
                and row["op"] in ("add", "mul", "addu", "mulu", "relu")]
        fits = {"elementwise": memory_bound.efficiency(copy, 1.935e12)}
    else:
        copy = [row for row in rows if row["gpu"] == "H100" and row["op"] == "scale/quantise matrix to fp8"]
        fits = {"elementwise": memory_bound.efficiency(copy, 3.35e12)}
    norm = [row for row in rows if row["gpu"] == "H200" and row["impl"].startswith("cudnn")
            and row["op"].startswith("rms_norm") and row["n"] != "128"]
    for kind, direction in (("norm", "fwd"), ("norm_backward", "bwd")):
        fits[kind] = memory_bound.efficiency([row for row in norm if row["op"].endswith(direction)], 4.8e12)
    return fits


def write_memory(profile, name, rows):
    fits = memory_fits(name, rows)
    eta, residual, used, _ = fits.pop("elementwise")
    print(f"  element-wise {eta:.3f} {residual}")
    for kind in ("elementwise", "cast"):
        profile.set(f"memory.{kind}.efficiency", eta, "1", "fitted",
                    f"rows {common.row_range(used)} above 60 us; {SCRIPT}", residual)
    for kind in ("cross_entropy", "optimizer"):
        profile.set(f"memory.{kind}.efficiency", eta, "1", "assumed", "no rows: as element-wise kernels")
    for kind, (eta, residual, used, _) in fits.items():
        print(f"  {kind} {eta:.3f} {residual}")
        profile.set(f"memory.{kind}.efficiency", eta, "1", "fitted",
                    f"H200 rows {common.row_range(used)} above 60 us, fused; {SCRIPT}", residual)
    profile.set("memory.latency", memory_bound.LATENCY_S, "s", "assumed", "launch of a short kernel, docs/models/memory_bound.md")


def write_fp8(profile, gpu, rows, bf16_latency):
    """Both kinds of fp8 products; returns their parameters by the name in a profile."""
    launch = (round(bf16_latency, 9), "that of bf16: the rows can't tell it from their cast's latency")
    fp8 = write_gemm(profile, gpu, rows, "fp8", "gemm.fp8", dict(GEMM_START, rate=1500e12),
                     dict(latency=launch), 1, [4.0, 3.0])
    write_clock(profile, "fp8", fp8)
    bandwidth = (fp8[0]["bandwidth"], "that of per-tensor fp8: these rows are too compute-bound to tell")
    promoted = write_gemm(profile, gpu, rows, "fp8_block", "gemm.fp8_promoted", dict(GEMM_START, rate=1400e12),
                          dict(latency=launch, bandwidth=bandwidth), 1, [1.0, 4.0])
    return {"fp8": fp8[0], "fp8_promoted": promoted[0]}


def write_fp8_of_h100(profile, rows, bandwidth):
    """The same chip's fp8 products, which nobody has measured, with this one's memory rate."""
    gpu = GPUS["h100-sxm"]
    h100 = common.Profile("unused", profile.date, profile.command, profile.table)
    bf16 = gemm.fit(gemm_rows(rows, gpu, "bfloat16"), GEMM_START, {}, 2, gpu["sms"], gemm.TILES["hopper"])[0]
    for name, p in write_fp8(h100, gpu, rows, bf16["latency"]).items():
        for part, value in dict(p, bandwidth=bandwidth).items():
            key, unit = UNITS[part]
            why = "that of bf16 on this GPU" if part == "bandwidth" else "as on H100, the same chip: no rows"
            profile.set(f"gemm.{name}.{key}", value, unit, "assumed", why)


def write_hopper(profile, name, gpu, rows):
    bf16 = write_gemm(profile, gpu, rows, "bfloat16", "gemm.bf16", GEMM_START, {}, 2)
    write_clock(profile, "bf16", bf16)
    write_spread(profile, rows)
    if name == "h100-sxm":
        write_fp8(profile, gpu, rows, bf16[0]["latency"])
    else:
        write_fp8_of_h100(profile, rows, bf16[0]["bandwidth"])
    curves = attention_curves(name, rows)
    for key, curve in curves.items():
        set_curve(profile, "attention." + ".".join(key), curve)
    write_head_sizes_hopper(profile, rows, curves)
    write_factor_of_figures(profile, rows, "flash1", "FlashAttention", "H100", "attention_fwd_bwd", (64,))


def write_ampere(profile, gpu, rows):
    bandwidth = (1.6e12, "0.8 of the peak as on H100: the rows leave it and the epilogue undetermined")
    bf16 = write_gemm(profile, gpu, rows, "bfloat16", "gemm.bf16",
                      dict(GEMM_START, rate=290e12, latency=3e-6), dict(bandwidth=bandwidth), 2)
    write_clock(profile, "bf16", bf16)
    for key, curve in attention_curves("a100-sxm", rows).items():
        set_curve(profile, "attention." + ".".join(key), curve)
    for name, implementation in (("flash2", "FlashAttention-2"), ("flash1", "FlashAttention")):
        write_factor_of_figures(profile, rows, name, implementation, "A100", "attention_fwd_bwd", (64,))


def main():
    args = common.arguments(__doc__.splitlines()[0], list(GPUS), TABLE)
    rows = common.read_rows(args.data / TABLE)
    gpu = GPUS[args.gpu]
    command = f"{SCRIPT} --data DIR --gpu {args.gpu} -o {args.gpu}.kernels.yaml"
    profile = common.Profile(f"{args.gpu}.kernels", args.date, command, args.data / TABLE)
    write_tiles(profile, gpu)
    if gpu["tiles"] == "hopper":
        write_hopper(profile, args.gpu, gpu, rows)
    else:
        write_ampere(profile, gpu, rows)
    write_memory(profile, args.gpu, rows)
    profile.write(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
