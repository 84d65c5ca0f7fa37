"""Memory-bound kernels: the share of the HBM's rate that a class of them reaches."""

import numpy as np

import common

LATENCY_S = 3e-6
MIN_TIME_US = 60  # below, launch time and the L2 cache hide the rate


def efficiency(rows, peak_bytes_per_s):
    """Median share of the peak, after the latency is taken off, and how far rows lie from it.

    The median is of the rows that are not held out, unless too few would be left.
    """
    rows = [row for row in rows if float(row["time_us"]) > MIN_TIME_US]
    time = common.column(rows, "time_us") * 1e-6
    moved = common.column(rows, "gbps") * 1e9 * time
    share = moved / (time - LATENCY_S) / peak_bytes_per_s
    unseen = common.mask(rows)
    if unseen.sum() < 2 or (~unseen).sum() < 3:
        unseen[:] = False
    eta = float(np.median(share[~unseen]))
    scored = unseen if unseen.any() else ~unseen
    predicted = LATENCY_S + moved / (eta * peak_bytes_per_s)
    return eta, common.residual(predicted[scored], time[scored]), rows
