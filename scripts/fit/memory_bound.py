"""Memory-bound kernels: the share of the HBM's rate that a class of them reaches."""

import numpy as np

import common

LATENCY_S = 3e-6
MIN_ROWS = 40  # to spare a fifth
MIN_TIME_US = 60  # below, launch time and the L2 cache hide the rate


def long_rows(rows):
    return [row for row in rows if float(row["time_us"]) > MIN_TIME_US]


def efficiency(rows, peak_bytes_per_s):
    """Median share of the peak, after the latency is taken off, and how far rows lie from it.

    The median is of the rows that are not held out, and the residual of those that are; with few
    rows the median is of all, and the residual of each against the median of the others. Returns
    (share, residual, rows, (moved bytes, measured, predicted seconds) of the scored rows).
    """
    rows = long_rows(rows)
    time = common.column(rows, "time_us") * 1e-6
    moved = common.column(rows, "gbps") * 1e9 * time
    share = moved / (time - LATENCY_S) / peak_bytes_per_s
    unseen = common.mask(rows)
    if len(rows) < MIN_ROWS:
        eta = float(np.median(share))
        used = np.array([np.median(np.delete(share, index)) for index in range(len(share))])
        unseen[:] = True
    else:
        eta = float(np.median(share[~unseen]))
        used = np.full(len(rows), eta)
    predicted = LATENCY_S + moved / (used * peak_bytes_per_s)
    scored = (moved[unseen], time[unseen], predicted[unseen])
    return eta, common.residual(predicted[unseen], time[unseen]), rows, scored
