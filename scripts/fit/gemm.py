"""Matrix products: time by tiles, waves and epilogue (docs/models/gemm.md)."""

import numpy as np

import common

TILES = {
    "hopper": [(128, 256), (256, 128), (192, 128), (128, 192), (128, 128), (256, 64), (64, 256),
               (128, 64), (64, 128), (64, 64)],
    "ampere": [(128, 256), (256, 128), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128),
               (64, 64)],
}
LARGEST_TILE = 128 * 256
SPLIT_TILE = 128 * 128
SPLIT_EXTRA_S = 2e-6
SPLIT_BYTES_PER_OUTPUT = 8
BURST_S = 3e-3  # longer kernels run into the power limit; they belong to the clock table


def wave_quantum(waves, quantization):
    """Waves that are paid for: between the exact number and the next whole one."""
    return np.where(waves <= 1, 1.0, (1 - quantization) * waves + quantization * np.ceil(waves))


def seconds(p, m, n, k, element_bytes, sms, tiles, output_bytes=None):
    """The formula of sim/cost/gemm_model.h, for arrays of shapes, at burst clock."""
    if output_bytes is None:
        output_bytes = 2 * m * n
    best = None
    for rows, columns in tiles:
        area = rows * columns
        efficiency = p["half_tile"] ** np.log2(max(1.0, LARGEST_TILE / area))
        waves = np.ceil(m / rows) * np.ceil(n / columns) / sms
        t = wave_quantum(waves, p["wave"]) * 2 * area * k * sms / (p["rate"] * efficiency)
        best = t if best is None else np.minimum(best, t)
    for parts in (2, 4, 8):
        waves = np.ceil(m / 128) * np.ceil(n / 128) * parts / sms
        t = wave_quantum(waves, p["wave"]) * 2 * SPLIT_TILE * k / parts * sms / (p["rate"] * p["half_tile"])
        t = t + parts * m * n * SPLIT_BYTES_PER_OUTPUT / p["bandwidth"] + SPLIT_EXTRA_S
        best = np.minimum(best, t)
    memory = (element_bytes * (m * k + n * k) + output_bytes) / p["bandwidth"]
    return p["latency"] + np.maximum(best, memory) + p["epilogue"] * output_bytes / p["bandwidth"]


NAMES = ["rate", "latency", "epilogue", "bandwidth", "wave", "half_tile"]
SCALES = dict(rate=1e12, latency=1e-6, epilogue=1, bandwidth=1e12, wave=1, half_tile=1)


def shapes(rows):
    return (common.column(rows, "m"), common.column(rows, "n"), common.column(rows, "k"),
            common.column(rows, "time_us") * 1e-6)


CAST_BANDWIDTH = 3.0e12  # only the bytes over it can be told from the rows


def quantise_seconds(quantise, m, k):
    """The activation's cast that the FP8 tables include: a constant (us) plus traffic at 3 TB/s."""
    return quantise[0] * 1e-6 + quantise[1] * m * k / CAST_BANDWIDTH


def fit(rows, start, fixed, element_bytes, sms, tiles, cast_start=None):
    """Fits the free parameters of `start` to the rows that are short and not held out.

    Returns (parameters, cast coefficients or None). `fixed` holds parameters the rows can't tell.
    The loss is the mean of |log(predicted / measured)|, so that stray rows don't bend the fit.
    """
    m, n, k, t = shapes(rows)
    train = ~common.mask(rows) & (t <= BURST_S)
    m, n, k, t = m[train], n[train], k[train], t[train]
    free = [name for name in NAMES if name not in fixed]

    def unpack(vector):
        p = dict(fixed, **{name: vector[i] * SCALES[name] for i, name in enumerate(free)})
        return p, (vector[len(free):] if cast_start else None)

    def loss(vector):
        p, cast = unpack(vector)
        if min(vector) < 0 or p["wave"] > 1 or p["half_tile"] > 1:
            return 10
        if p["rate"] <= 0 or p["bandwidth"] <= 0 or p["half_tile"] <= 0:
            return 10
        predicted = seconds(p, m, n, k, element_bytes, sms, tiles)
        if cast_start:
            predicted = predicted + quantise_seconds(cast, m, k)
        return np.mean(np.abs(np.log(predicted / t)))

    vector = [start[name] / SCALES[name] for name in free] + list(cast_start or [])
    return unpack(common.minimize_simplex(loss, vector, rounds=5).x)


def score(label, p, cast, rows, element_bytes, sms, tiles):
    """Residuals of the burst rows that the fit didn't see; printed, and returned by size."""
    m, n, k, t = shapes(rows)
    predicted = seconds(p, m, n, k, element_bytes, sms, tiles)
    if cast is not None:
        predicted = predicted + quantise_seconds(cast, m, k)
    unseen = common.mask(rows) & (t <= BURST_S)
    large = unseen & (np.minimum(np.minimum(m, n), k) >= 1024)
    common.describe(f"{label}, fitted rows", predicted[~common.mask(rows) & (t <= BURST_S)],
                    t[~common.mask(rows) & (t <= BURST_S)])
    common.describe(f"{label}, held out", predicted[unseen], t[unseen])
    common.describe(f"{label}, held out, m n k >= 1024", predicted[large], t[large])
    return common.residual(predicted[unseen], t[unseen]), common.residual(predicted[large], t[large])


def clock_table(p, cast, rows, element_bytes, sms, tiles):
    """Burst time over measured time, by kernel length: how far the clock falls under load."""
    m, n, k, t = shapes(rows)
    predicted = seconds(p, m, n, k, element_bytes, sms, tiles)
    if cast is not None:
        predicted = predicted + quantise_seconds(cast, m, k)
    big = np.minimum(np.minimum(m, n), k) >= 2048
    table = []
    for low, high in ((0.2e-3, 3e-3), (3e-3, 7e-3), (7e-3, 15e-3), (15e-3, 40e-3), (40e-3, 10.0)):
        inside = big & (t > low) & (t <= high)
        if inside.any():
            ratio = predicted[inside] / t[inside]
            table.append((low, high, float(np.mean(ratio)), float(np.std(ratio, ddof=1)) if
                          inside.sum() > 1 else 0.0, int(inside.sum())))
    return table
