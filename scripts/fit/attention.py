"""Attention cores: rate by implementation, direction, mask and head size (docs/models/attention.md)."""

import numpy as np

import common

MIN_FLOPS = 5e11  # of the vision-encoder table: below, launch time hides the rate
BACKWARD_FLOPS = 2.5  # five matrix products for the forward's two
FLASH_FIGURES = ("FlashAttention rep", "meta-pytorch", "FA3 det")
MIN_SHAPES = 3  # to fit two coefficients to
MIN_ROWS = 40  # of a factor, to spare a fifth


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


def fit_curve(span, rate):
    """(R, s0) of R s / (s + s0), by the mean |log(predicted / measured)|."""
    def loss(p):
        if min(p) < 0 or p[0] <= 0:
            return 10
        return np.mean(np.abs(np.log(1e12 * p[0] * span / (span + p[1]) / rate)))

    best = min((common.minimize_simplex(loss, [start, half]) for start in (200, 400, 700)
                for half in (200, 1000)), key=lambda result: result.fun)
    return best.x[0] * 1e12, best.x[1]


class Curve:
    """rate · s / (s + half_span): FLOP/s against the span s.

    A curve has 4 to 12 shapes, too few to spare a fifth for good: all are fitted, and the residual
    is that of fits with one shape left out at a time (`left_out`: rows, predicted and measured
    rates). `fifth` is the same for one fit without the held-out fifth of all shapes, as far as
    three are left to fit.
    """

    def __init__(self, rows, rates=None):
        """`rates` replaces the rows' own, for a rate that is derived from several columns."""
        self.rows = rows
        self.span = common.column(rows, "seqlen")
        self.measured = common.column(rows, "tflops") * 1e12 if rates is None else rates
        self.rate, self.half_span = fit_curve(self.span, self.measured)
        shapes = np.array([row["shape_key"] for row in rows])
        self.left_out = []
        for shape in sorted(set(shapes)):
            self.left_out += self.predict_without(shapes == shape)
        unseen = common.mask(rows)
        enough = len(set(shapes[~unseen])) >= MIN_SHAPES
        self.fifth = self.predict_without(unseen) if enough and unseen.any() else []
        self.residual = common.residual([m for _, _, m in self.left_out], [p for _, p, _ in self.left_out])  # of times

    def predict_without(self, left):
        """(row, predicted, measured rate) of the rows of a mask, by a fit to the others."""
        rate, half = fit_curve(self.span[~left], self.measured[~left])
        return [(self.rows[i], rate * self.span[i] / (self.span[i] + half), self.measured[i])
                for i in np.flatnonzero(left)]

    def at(self, span):
        return self.rate * span / (span + self.half_span)

    def source(self, script):
        return f"rows {common.row_range(self.rows)}, residual of fits with one shape left out; {script}"


def backward_of_sum(rows, forward):
    """Backward rates of rows that time forward and backward together, given the forward's curve."""
    span = common.column(rows, "seqlen")
    both = common.column(rows, "tflops") * 1e12
    return BACKWARD_FLOPS / ((1 + BACKWARD_FLOPS) / both - 1 / forward.at(span))


def rate_factor(rows, curve, computed_dim):
    """Rate at another head size over the curve's, counting the FLOP of the size it is padded to.

    The residual is of rows that the median didn't see: the held-out fifth, or each row in turn.
    """
    span = common.column(rows, "seqlen")
    padding = computed_dim / common.column(rows, "head_dim")
    ratio = common.column(rows, "tflops") * 1e12 * padding / curve.at(span)
    unseen = common.mask(rows)
    if len(rows) < MIN_ROWS:
        others = [np.median(np.delete(ratio, index)) for index in range(len(ratio))]
        return float(np.median(ratio)), common.residual(ratio, others)
    factor = float(np.median(ratio[~unseen]))
    return factor, common.residual(ratio[unseen], np.full(unseen.sum(), factor))
