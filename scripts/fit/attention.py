"""Attention cores: rate by implementation, direction, mask and head size (docs/models/attention.md)."""

import numpy as np

import common

MIN_FLOPS = 5e11  # of the vision-encoder table: below, launch time hides the rate
BACKWARD_FLOPS = 2.5  # five matrix products for the forward's two
FLASH_FIGURES = ("FlashAttention rep", "meta-pytorch", "FA3 det")


def select(rows, implementation, gpus, **fields):
    """Rows of an implementation that state a rate and a length."""
    return [row for row in rows if "attention" in row["kernel_class"] and row["tflops"] and row["seqlen"]
            and row["impl"] == implementation and row["gpu"].startswith(gpus)
            and all(row[name] == value for name, value in fields.items())]


def of_figures(rows):
    return [row for row in rows if row["source"].startswith(FLASH_FIGURES)]


def flops(row):
    """4 b a s² d of a full mask."""
    return (4 * float(row["batch"]) * float(row["heads"]) * float(row["seqlen"]) ** 2
            * float(row["head_dim"]))


class Curve:
    """rate · s / (s + half_span): FLOP/s against the span s."""

    def __init__(self, rows, rates=None):
        """`rates` replaces the rows' own, for a rate that is derived from several columns."""
        self.rows = rows
        span = common.column(rows, "seqlen")
        measured = common.column(rows, "tflops") * 1e12 if rates is None else rates
        unseen = common.mask(rows)
        if unseen.sum() < 2 or (~unseen).sum() < 3:
            unseen[:] = False  # too few rows to spare a fifth: all are fitted and all are scored
        self.held_out = bool(unseen.any())

        def loss(p):
            if min(p) < 0 or p[0] <= 0:
                return 10
            return np.mean(np.abs(np.log(1e12 * p[0] * span / (span + p[1]) / measured)[~unseen]))

        best = min((common.minimize_simplex(loss, [rate, half]) for rate in (200, 400, 700)
                    for half in (200, 1000)), key=lambda result: result.fun)
        self.rate, self.half_span = best.x[0] * 1e12, best.x[1]
        scored = unseen if self.held_out else ~unseen
        self.residual = common.residual(self.at(span)[scored], measured[scored])

    def at(self, span):
        return self.rate * span / (span + self.half_span)

    def source(self, script):
        how = "held-out fifth" if self.held_out else "fitted rows, too few to hold out"
        return f"rows {common.row_range(self.rows)}, residual of the {how}; {script}"


def backward_of_sum(rows, forward):
    """Backward rates of rows that time forward and backward together, given the forward's curve."""
    span = common.column(rows, "seqlen")
    both = common.column(rows, "tflops") * 1e12
    return BACKWARD_FLOPS / ((1 + BACKWARD_FLOPS) / both - 1 / forward.at(span))


def rate_factor(rows, curve, computed_dim):
    """Rate at another head size over the curve's, counting the FLOP of the size it is padded to."""
    span = common.column(rows, "seqlen")
    padding = computed_dim / common.column(rows, "head_dim")
    ratio = common.column(rows, "tflops") * 1e12 * padding / curve.at(span)
    return float(np.median(ratio)), common.residual(np.median(ratio) * np.ones_like(ratio), ratio)
